"""STATIC: when a static pod starts, what it waits for, and how it ends."""

import math
from collections.abc import Iterator

from msgspec import field

from kubelet_conformance.contract import Finding, Moment, Note, Pod, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, exited, kubelet, pod_set, pod_unset, status
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts import static_pod as static_pods
from kubelet_conformance.contracts.facts.kubelet import api_is_away
from kubelet_conformance.contracts.facts.sandbox import sandbox_asked, why_replaced
from kubelet_conformance.contracts.facts.timing import FILE_POLL, REACTION
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.termination.deadline import time_may_be_over
from kubelet_conformance.trace.format.bodies import CreateContainerRequest, ExecSyncReply
from kubelet_conformance.trace.format.manifests import Manifest, PodSpec, PodStatus
from kubelet_conformance.trace.world.kubelet_view import informed_by
from kubelet_conformance.trace.world.views import Latest


@contract("STATIC-07", on=pod_unset(), needs=(CRI, PODS), clause="others")
def bad_manifest_disturbs_no_other(m: Moment) -> Findings:
    """A manifest that is removed, or unreadable, ends its own pod within 20 s and affects no other."""
    gone = static_pods.sent_static(m)
    if gone is None or not m.node.kubelet_up:
        return None
    others = [pod for pod in m.world.names.values() if pod.static and pod.wanted and pod is not m.pod]
    if not any(c.state == "running" for pod in others for c in pod.every_container()):
        return None
    begun = m.t

    def is_disturbed(n: Moment) -> bool:
        pod, sandbox = n.pod, n.sandbox
        if pod is None or not pod.static or not pod.wanted or pod.termination is not None or pod.finished:
            return False
        if time_may_be_over(n, pod) or why_replaced(pod) is not None:
            return False
        if sandbox is None or not sandbox.born or pod.note(_Trouble).seen:
            return False
        return pod in others and sandbox.state == "ready"

    return answered(
        by=call("Status", "ListContainers")
        .either(LIFE_ENDS)
        .where(lambda n: n.t - begun > FILE_POLL + REACTION),
        not_before=call("StopPodSandbox").where(is_disturbed),
        unless=pods.FAULT,
        whole_node=True,
        text=f"{FILE_POLL + REACTION:g} s pass",
    )


class _Trouble(Note):
    """A container of the pod ended or failed a probe, or the pod was removed once: it may end for that."""

    seen: bool = False


@observer(on=done("ContainerStatus").where(lambda m: not m.reply.same).either(exited()))
def _container_has_ended(m: Moment, pod: Pod) -> None:
    """Record that a container has ended, other than by a stop that is under way."""
    if m.exit is not None and not ("fact:exited" in m.keys and m.exit.commanded):
        pod.note(_Trouble).seen = True


@observer(on=done("ExecSync"))
def _probes_fail(m: Moment, pod: Pod) -> None:
    """Record that a probe failed: it may cost the container, and under some policies the pod."""
    if m.response(ExecSyncReply).exit_code:
        pod.note(_Trouble).seen = True


@observer(on=pod_unset(), last=True)
def _pods_went(_: Moment, pod: Pod) -> None:
    """Record that a pod was removed: if it comes back, its former instance is still stopped."""
    pod.note(_Trouble).seen = True


@bad_manifest_disturbs_no_other.clause("goes", on=pod_unset())
def pod_of_a_bad_manifest_goes(m: Moment, pod: Pod) -> Iterator[Finding]:
    """The pod of that manifest is killed."""
    yield from static_pods.stops_after_removal(
        m, pod, lambda c: f"container {c.name} of static pod {pod.name} is stopped"
    )


@contract("STATIC-09", on=pods.NEW_STATIC_POD, needs=(CRI, PODS))
def manifest_is_noticed_at_once(m: Moment) -> Findings:
    """A manifest that appears in the folder is noticed at once, not at the next listing of the folder."""
    pod = pods.new_pod(m)
    if pod is None or pod.source != "file" or not pods.can_start(m, pod) or pods.host_ports(m):
        return None
    return pods.starts(pod, REACTION, f"static pod {pod.name} is started")


@contract("STATIC-10", on=pods.NEW_STATIC_POD, needs=(CRI, PODS))
def static_pod_needs_no_api_server(m: Moment) -> Findings:
    """A static pod runs though the API server cannot be reached: its containers are created."""
    pod = pods.new_pod(m)
    if pod is None or pod.source != "file" or not api_is_away(m) or not pods.can_start(m, pod):
        return None

    def is_made(n: Moment) -> bool:
        meta = n.request(CreateContainerRequest).sandbox_config.metadata
        return (meta.namespace, meta.name) == (pod.namespace, pod.name)

    return answered(
        by=call("CreateContainer").where(is_made),
        within=2 * REACTION,
        unless=pods.FAULT.either(pod_unset().where(pod.is_about), call("PullImage")),
        whole_node=True,
        text=f"a container of static pod {pod.name} is created",
    )


class _Leaving(Note):
    """Static pods being terminated, by namespace and name; a kubelet that starts forgets them."""

    pods: dict[static_pods.FullName, list[Pod]] = {}


@contract("STATIC-18", on=call("RunPodSandbox"), needs=(CRI, PODS), versions=since("1.22"))
def static_pod_waits_for_the_one_before(m: Moment) -> Findings:
    """A static pod is not started before the one of the same name, with another UID, has ended altogether."""
    config = sandbox_asked(m)
    if not static_pods.is_static(config):
        return None
    meta = config.metadata
    leaving = m.node.note(_Leaving).pods.get((meta.namespace, meta.name))
    if not leaving:
        return None
    for old in leaving:
        if old.uid in {meta.uid, ""}:
            continue
        running = [c for c in old.every_container() if c.state == "running"]
        if running:
            seq = running[0].started_seq
            return broken(f"{meta.name} is run, and {running[0].name} of the one before still runs", seq)
        if any(s.state == "ready" and not s.stopped for s in old.sandboxes):
            return broken(f"{meta.name} is run before the sandbox of the one before was stopped")
    leaving[:] = [old for old in leaving if old.uid in {meta.uid, ""}]
    return KEPT


@observer(on=pod_set().either(pod_unset(), kubelet("started")))
def _old_ones_leave(m: Moment) -> None:
    """Record which static pods are to be terminated."""
    leaving = m.node.note(_Leaving).pods
    if m.keys[0] == "kubelet:started":
        leaving.clear()
        return
    name, old = static_pods.sent_static(m), m.replaced if m.manifest is not None else m.pod
    if name is None or old is None or not old.static or not old.sandboxes or _is_news(m, old):
        return
    kept = [one for one in leaving.get(name, ()) if one is not old and _is_there(one)]
    leaving[name] = [*kept, old]
    for other in [
        one for one, every in leaving.items() if not any(m.world.pods.get(p.uid) is p for p in every)
    ]:
        del leaving[other]


def _is_news(m: Moment, pod: Pod) -> bool:
    """The kubelet that has just started may not have received the old pod, and then does not wait for it."""
    begun, run = m.node.started_t, pod.sandbox.run if pod.sandbox is not None else None
    return begun is not None and m.t - begun < REACTION and (run is None or run.t < begun)


def _is_there(pod: Pod) -> bool:
    return any(s.state == "ready" for s in pod.sandboxes) or any(
        c.state == "running" for c in pod.every_container()
    )


@contract("STATIC-20", on=pod_set(), needs=(CRI, PODS), versions=since("1.22"))
def api_pod_does_not_wait_for_a_static_one(m: Moment) -> Findings:
    """A pod of the API server that has the name of a static pod is not delayed by it."""
    pod = pods.new_pod(m)
    other = m.world.names.get((pod.namespace, pod.name)) if pod is not None else None
    if pod is None or other is None or not other.static or pod.source != "api":
        return None
    if not any(c.state == "running" for c in other.every_container()):
        return None
    if not pods.can_start(m, pod) or pods.host_ports(m):
        return None
    return pods.starts(pod, REACTION, f"pod {pod.name} of the API server is started beside the static one")


@contract("STATIC-21", on=status(), needs=(CRI, PODS, STATUS), versions=since("1.27"))
def removal_is_no_failure(_: Moment, pod: Pod, spec: PodSpec, status: PodStatus) -> Findings:
    """A static pod whose manifest is removed does not become Failed or Succeeded for that."""
    if not pod.static or pod.termination is None or pod.finished:
        return None
    if pod.restart_policy != "Always" or spec.active_deadline_seconds is not None:
        return None
    if status.terminal and status.reason != "Evicted":
        return broken(f"the phase is {status.phase} after the manifest was removed", pod.termination.seq)
    return KEPT


@contract("STATIC-25", on=pod_set(), needs=(CRI, PODS))
def mirror_adds_no_ephemeral_container(m: Moment, manifest: Manifest) -> Findings:
    """An ephemeral container that is added to a mirror pod is not started in its static pod."""
    if not pods.is_mirror(m) or not manifest.spec.ephemeral_containers:
        return None
    meta, names = manifest.metadata, {one.name for one in manifest.spec.ephemeral_containers}

    def is_made(n: Moment) -> bool:
        asked = n.request(CreateContainerRequest)
        return asked.config.metadata.name in names and asked.sandbox_config.metadata.name == meta.name

    return answered(
        by=LIFE_ENDS,
        not_before=call("CreateContainer").where(is_made),
        whole_node=True,
        text="no ephemeral container is created",
    )


class _Superseded(Note):
    """When a version of a static pod was last replaced before it was run, by namespace and name."""

    of: Latest[static_pods.FullName, tuple[float, int]] = field(
        default_factory=Latest[static_pods.FullName, tuple[float, int]]
    )


@contract("STATIC-19", on=call("CreateContainer"), needs=(CRI, PODS), versions=since("1.22"))
def skipped_version_is_not_run(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A version of a static pod that is edited away while it waits for the one before is never run: only the
    last one is.
    """
    if not pod.static or pod.manifest is None or sandbox.run is None:
        return None
    edited_t, seq = m.node.note(_Superseded).of.get((pod.namespace, pod.name), (math.inf, 0))
    if sandbox.run.t - edited_t < REACTION:
        return None
    if not pod.wanted and pod.set_t is not None and pod.set_t < edited_t:
        # A kubelet that was delayed may have begun with it before it received the edit.
        is_held_up = sandbox.run.t <= informed_by(m, edited_t) + REACTION
        return None if is_held_up else broken(f"a version of {pod.name} that was edited away is run", seq)
    config = m.request(CreateContainerRequest).config
    spec, image = pod.container_spec(config.metadata.name), config.image.user_specified_image
    if spec is None:
        return broken(f"{config.metadata.name} is created, which the last version does not have", seq)
    if image and image != spec.image:
        return broken(f"{spec.name} is created from {image}, expected {spec.image}", seq)
    return KEPT


@observer(on=pod_set())
def _waiting_version_is_edited(m: Moment) -> None:
    """Record that a pod was edited that has not been run."""
    name, old = static_pods.sent_static(m), m.replaced
    if name is not None and old is not None and not old.uid:
        m.node.note(_Superseded).of[name] = m.t, m.seq
