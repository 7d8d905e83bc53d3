"""CONFIG: which pods a change of a source affects, and how.

CONFIG: two manifests of one name in the folder.
"""

from collections.abc import Iterator

from kubelet_conformance.contract import Answered, Container, Finding, Moment, Note, Pattern, Pod
from kubelet_conformance.contract.applicability import CRI, EVERY_STATUS, PODS, since
from kubelet_conformance.contract.definition import Findings, answered, contract, observer
from kubelet_conformance.contract.patterns import call, exited, kubelet, pod_set, pod_unset, status
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.kills import explained, to_be_explained
from kubelet_conformance.contracts.facts.kubelet import is_informed, sees_its_runtime
from kubelet_conformance.contracts.facts.sandbox import why_replaced
from kubelet_conformance.contracts.facts.static_pod import FullName, sent_static
from kubelet_conformance.contracts.facts.timing import KUBELET_START, REACTION, RETRY, RETRY_SLACK, STOP_SLACK
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.format.bodies import CreateContainerRequest
from kubelet_conformance.trace.format.manifests import Manifest, PodSpec, PodStatus
from kubelet_conformance.trace.format.records import Disk, Fault, PodChange
from kubelet_conformance.trace.world.kubelet_view import kubelet_view

_CHANGE: Pattern = pod_set().either(pod_unset())


class _Change(Note):
    """The latest change of a source, and the pods that it affects."""

    t: float = float("-inf")
    source: str = ""
    pods: tuple[Pod | None, ...] = ()
    """The pods it is about, as far as they were known then."""


@contract("CONFIG-02", on=_CHANGE, needs=(CRI, PODS), clause="no-sandbox")
def change_concerns_its_pod_alone(m: Moment, change: PodChange) -> Findings:
    """When a source brings a new pod, changes one or drops one, its other pods are neither run again nor
    stopped.
    """
    if not sees_its_runtime(m):
        return None
    source, changed = change.source, (m.pod, m.replaced)
    others = [pod for pod in m.world.names.values() if pod.source == source and _is_settled(pod)]
    others = [pod for pod in others if pod not in changed]
    if not others:
        return None
    begun = m.t

    def is_run_again(n: Moment) -> bool:
        return n.pod in others and _is_settled(n.pod) and why_replaced(n.pod) is None

    return answered(
        by=call("Status", "ListContainers").where(lambda n: n.t - begun > REACTION).either(LIFE_ENDS),
        not_before=call("RunPodSandbox").where(is_run_again),
        unless=pods.FAULT,
        whole_node=True,
        text=f"{REACTION:g} s pass without another sandbox for a pod that was not changed",
    )


def _is_settled(pod: Pod) -> bool:
    """The pod is desired and runs in a ready sandbox."""
    sandbox = pod.sandbox
    if not pod.wanted or pod.termination is not None or pod.finished or sandbox is None or sandbox.stops:
        return False
    return sandbox.state == "ready" and any(c.state == "running" for c in pod.every_container())


@change_concerns_its_pod_alone.clause("no-stop", on=call("StopContainer"))
def others_are_not_stopped(m: Moment, pod: Pod) -> Findings:
    """No container of an unchanged pod is stopped because of the change."""
    change = m.node.note(_Change)
    if m.t - change.t > REACTION or pod.source != change.source or pod in change.pods:
        return None
    if explained(m):
        return None
    return to_be_explained(m, f"there is a reason to stop {pod.name}, another pod having been changed,")


@observer(on=_CHANGE)
def _source_changes(m: Moment, change: PodChange) -> None:
    """Record the change."""
    last = m.node.note(_Change)
    together = last.t == m.t and last.source == change.source
    last.pods = (*(last.pods if together else ()), m.pod, m.replaced)
    last.t, last.source = m.t, change.source


@contract("CONFIG-07", on=pod_set(), needs=(CRI, PODS))
def deletion_and_change_are_one_thing(m: Moment, pod: Pod, manifest: Manifest) -> Iterator[Finding]:
    """A pod that is changed while it is deleted is terminated once: each container is stopped, none of them
    again meanwhile, and none is created.
    """
    old = pod.manifest
    if old is None or pod.source != "api" or not pod.born or pod.finished:
        return
    grace = manifest.metadata.deletion_grace_period_seconds
    if not manifest.metadata.deletion_timestamp or not grace or not _differ(old, manifest):
        return
    if not is_informed(m):
        return
    for container in pod.every_container():
        if container.state == "running" and container.born:
            yield answered(
                by=exited().where(pods.about(container)),
                within=grace + RETRY + RETRY_SLACK + STOP_SLACK,
                not_before=_stopped_twice(container).either(call("CreateContainer").where(pods.of(pod))),
                unless=pods.FAULT.either(_grace_is_cut(pod, grace)),
                whole_node=True,
                text=f"container {container.name} of {pod.name} is stopped once",
            )


def _differ(old: Manifest, new: Manifest) -> bool:
    """More than the deletion is new."""
    return old.spec != new.spec or (old.metadata.labels or {}) != (new.metadata.labels or {})


def _stopped_twice(container: Container) -> Pattern:
    return call("StopContainer").where(pods.about(container)).where(lambda _: container.stopping)


def _grace_is_cut(pod: Pod, grace: int) -> Pattern:
    """Another deletion leaves the pod less time: its containers are stopped again for that."""

    def is_less(n: Moment) -> bool:
        now = n.manifest.metadata.deletion_grace_period_seconds if n.manifest is not None else None
        return n.pod is pod and (now is None or now < grace)

    return pods.TERMINATION_ASKED.where(is_less)


def _node_is_answered_for(m: Moment) -> bool:
    return isinstance(m.record, Fault) and not kubelet_view(m).node_unknown


_NODE_RETRY = 60.0
"""The longest wait between two lists of the node that fail, with its jitter (client-go reflector.go)."""


class _Waits(Note):
    """The present kubelet started while requests for its node failed, and they still fail."""

    waits: bool = False


@contract("CONFIG-11", on=kubelet("started"), needs=(CRI, PODS), versions=since("1.22"), clause="waits")
def pods_are_asked_for_after_the_node(m: Moment) -> Findings:
    """A kubelet that starts asks for the API server's pods once that has answered for the node, not before.

    That there is no such node is an answer.
    """
    known = kubelet_view(m)
    if not known.node_unknown or known.api_away_t is not None:
        return None
    if not any(map(_awaits, m.world.names.values())):
        return None
    return answered(
        by=pods.FAULT.where(_node_is_answered_for),
        not_before=call("RunPodSandbox").where(lambda n: n.pod is not None and n.pod.source == "api"),
        whole_node=True,
        text="the API server answers for the node before a pod of the API server is run",
    )


def _awaits(pod: Pod) -> bool:
    """The pod has come from the API server, and no kubelet has run it."""
    plain = pod.spec is not None and not pod.spec.volumes and pod.spec.runtime_class_name is None
    return pod.source == "api" and pod.wanted and pod.born and not pod.sandboxes and plain


@pods_are_asked_for_after_the_node.clause("then", on=pods.FAULT)
def pods_are_run_once_the_node_is_known(m: Moment) -> Iterator[Finding]:
    """The API server's pods are run once it has answered for the node."""
    note = m.node.note(_Waits)
    if not note.waits or kubelet_view(m).node_unknown:
        return
    note.waits = False
    if not is_informed(m):
        return
    for pod in m.world.names.values():
        if _awaits(pod) and pod.termination is None and not pod.finished:
            fresh = pods.NewPod(pod.uid, pod.namespace, pod.name, pod.source)
            text = f"pod {pod.name} is started, the node being known,"
            yield pods.starts(fresh, _NODE_RETRY + REACTION, text)


@observer(on=kubelet("started"))
def _node_is_looked_up(m: Moment) -> None:
    """Record whether the node is answered for when the kubelet starts."""
    m.node.note(_Waits).waits = kubelet_view(m).node_unknown


@contract("CONFIG-16", on=pod_set(), needs=(CRI, PODS, EVERY_STATUS))
def gate_is_noticed(m: Moment, pod: Pod, spec: PodSpec, manifest: Manifest) -> Findings:
    """When a client opens or shuts a pod's readiness gate its Ready condition follows soon, and nothing is
    stopped.
    """
    said = manifest.status
    if pod.status is None or said is None or not spec.readiness_gates:
        return None
    if pod.termination is not None or pod.finished or not pod.wanted or not is_informed(m):
        return None
    opened = all(_is(said, gate.condition_type) for gate in spec.readiness_gates)
    if not _is(pod.status, "ContainersReady") or _is(pod.status, "Ready") is opened:
        return None
    return answered(
        by=status().where(lambda n: n.status is not None and _is(n.status, "Ready") is opened),
        within=REACTION,
        not_before=call("StopContainer", "StopPodSandbox"),
        unless=pods.FAULT.either(
            pods.TERMINATION_ASKED, exited(), pod_set(), status().where(_is_not_ready_itself)
        ),
        text=f"Ready of {pod.name} is {opened}",
    )


def _is(said: PodStatus, kind: str) -> bool:
    condition = said.condition(kind)
    return condition is not None and condition.status == "True"


def _is_not_ready_itself(m: Moment) -> bool:
    return m.status is not None and not _is(m.status, "ContainersReady")


Images = dict[str, str]
"""The image of each container, by name."""


class _Files(Note):
    """The pods that each file of the folder defines: the write of a file is recorded just before its pods."""

    wanted: dict[str, tuple[FullName, Images]] = {}
    written: str = ""
    seq: int = 0


@contract("CONFIG-09", on=kubelet("started"), needs=(CRI, PODS))
def last_pod_of_a_name_is_run(m: Moment) -> Iterator[Finding]:
    """Of two manifests with one name that a kubelet finds in its folder the one of the last file is run, and
    the other is not.
    """
    last: dict[FullName, Images] = {}
    twice: set[FullName] = set()
    files = m.node.note(_Files).wanted
    for path in sorted(files):
        name, images = files[path]
        if last.get(name, images) != images:
            twice.add(name)
        last[name] = images
    for name in sorted(twice):
        yield _is_run_alone(name, last[name])


def _is_run_alone(name: FullName, expected: Images) -> Answered:
    def is_its(n: Moment) -> bool:
        meta = n.request(CreateContainerRequest).sandbox_config.metadata
        return (meta.namespace, meta.name) == name

    def is_another(n: Moment) -> bool:
        config = n.request(CreateContainerRequest).config
        container, image = config.metadata.name, config.image.user_specified_image
        return is_its(n) and (container not in expected or bool(image and image != expected[container]))

    return answered(
        by=call("CreateContainer").where(lambda n: is_its(n) and not is_another(n)),
        within=KUBELET_START,
        not_before=call("CreateContainer").where(is_another),
        unless=pods.FAULT.either(pods.MANIFEST),
        whole_node=True,
        text=f"the last manifest of pod {name[1]} is run, and no other,",
    )


@observer(on=pods.DISK.either(pod_set()))
def _file_is_written(m: Moment) -> None:
    """Record which pods each file defines."""
    files = m.node.note(_Files)
    if isinstance(m.record, Disk):
        files.wanted.pop(m.record.path, None)
        files.written = m.record.path if m.record.op == "written" else ""
        files.seq = m.seq
        return
    name = sent_static(m)
    if name is None or m.manifest is None or m.seq != files.seq + 1 or not files.written:
        return
    files.seq = m.seq
    images = {one.name: one.image for one in m.manifest.spec.containers}
    files.wanted[files.written] = name, images
