"""Pods: what happens to them as patterns, what keeps them from running, and which are new."""

import math
import re

import msgspec

from kubelet_conformance.contract import (
    Answered,
    Container,
    Execution,
    Manifest,
    Moment,
    Node,
    Pattern,
    Pod,
    PodStatus,
    Predicate,
    Sandbox,
    applicability,
)
from kubelet_conformance.contract.definition import answered
from kubelet_conformance.contract.patterns import call, deleted, event, exited, pod_set, pod_unset, status
from kubelet_conformance.contracts.facts.timing import FILE_POLL
from kubelet_conformance.contracts.tables.container import APPS, AppSeen
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.manifests import ContainerSpec
from kubelet_conformance.trace.format.records import ApiWrite, Disk, Event, Fault, PodChange
from kubelet_conformance.trace.world.disruption import (
    REFUSALS,
    events_may_be_missing,
    is_ended_by_the_kubelet,
)
from kubelet_conformance.trace.world.kubelet_view import kubelet_view
from kubelet_conformance.trace.world.missed_updates import is_missed
from kubelet_conformance.trace.world.resolve import full_name


def _deletes_a_pod(m: Moment) -> bool:
    record = m.record
    return isinstance(record, ApiWrite) and record.verb.lower() == "delete" and record.resource == "pods"


API_DELETE = Pattern(frozenset({"api"})).where(_deletes_a_pod)
"""The kubelet's own DELETE of a pod object."""


def _writes_a_status(m: Moment) -> bool:
    record = m.record
    return isinstance(record, ApiWrite) and record.resource == "pods" and record.subresource == "status"


STATUS_WRITE = Pattern(frozenset({"api"})).where(_writes_a_status)
"""The kubelet's own PATCH of a pod's status."""
END = Pattern(frozenset({"end"}))
"""The trace ends."""
FAULT = Pattern(frozenset({"fault"}))
"""A fault was injected or removed."""
NOBODY = Pattern(frozenset())
"""Matches no record: only an `unless` can end the obligation, or it is broken."""


_OF_PODS = "/pods/"
"""Stands in the path of every file that a kubelet keeps for a pod."""
_CGROUPS = "/sys/fs/cgroup/"
"""Below it every pod has a folder, which no source has written."""


def _is_a_manifest(m: Moment) -> bool:
    return isinstance(m.record, Disk) and not any(part in m.record.path for part in (_OF_PODS, _CGROUPS))


DISK = Pattern(frozenset({"disk"}))
"""A manifest folder or another path changes."""
MANIFEST = DISK.where(_is_a_manifest)


def _api_is_back(m: Moment) -> bool:
    return isinstance(m.record, Fault) and m.record.is_healed and "API server" in m.record.what


API_BACK: Pattern = FAULT.where(_api_is_back)
"""The API server can be reached again."""


def _is_being_deleted(m: Moment) -> bool:
    return m.manifest is not None and m.manifest.metadata.deletion_timestamp is not None


DELETION: Pattern = pod_set().where(_is_being_deleted).either(pod_unset())
"""The pod gets a deletionTimestamp, or is removed from its source."""
TERMINATION_ASKED: Pattern = DELETION.either(deleted())
"""The pod is to be terminated: deletionTimestamp, removal from its source, or a forced deletion."""


def _is_of_the_pod(m: Moment) -> bool:
    static = m.pod is not None and m.pod.static
    return not static or (m.manifest is None and m.keys[0] != "deleted")


POD_IS_TO_GO: Pattern = TERMINATION_ASKED.where(_is_of_the_pod)
"""The same, and not a mirror pod, which is replaced while its static pod runs on."""


def to_run(m: Moment) -> bool:
    """The moment's pod was born in the trace, is desired, and neither a source nor the kubelet ends it."""
    pod = m.pod
    if pod is None or not (pod.born and pod.wanted) or pod.termination is not None or pod.finished:
        return False
    return not is_ended_by_the_kubelet(m, pod)


def has_ended(m: Moment) -> bool:
    """The moment's pod has had a terminal phase."""
    return m.pod is not None and bool(m.pod.finished)


def pod_of_write(m: Moment) -> Pod | None:
    """The pod that one of the kubelet's own writes is about."""
    return m.world.pod_of_object(m.record.uid) if isinstance(m.record, ApiWrite) else None


def about(container: Container) -> Predicate:
    """The moment is about this container."""
    return lambda m: m.container is container


def another_image(container: Container) -> Pattern:
    """The container's pod is sent again: its image may be another one, absent and not to be pulled."""
    spec = container.spec
    return pod_set() if spec is not None and spec.pull_policy == "Never" else NOBODY


def believed_running(container: Container) -> bool:
    """The container was started, and the kubelet has neither stopped it nor read that it ended."""
    if container.state not in {"running", "exited"} or container.started_t is None:
        return False
    reported = container.record
    if container.listed_exited or (reported is not None and reported.state != "CONTAINER_RUNNING"):
        return False
    return not container.stops or not any(stop.is_done for stop in container.stops)


def was_seen_started(container: Container) -> bool:
    """The runtime has reported the container as started, whatever it answered to StartContainer."""
    reported = container.record.state if container.record is not None else "CONTAINER_CREATED"
    return container.seen_running or reported not in {"CONTAINER_CREATED", "CONTAINER_UNKNOWN"}


def is_on(name: str) -> Predicate:
    """The Kubernetes event is on the container of this name."""
    return lambda m: isinstance(m.record, Event) and f"{{{name}}}" in (m.record.container or "")


def of(pod: Pod) -> Predicate:
    """The moment is about this pod: for obligations that watch the whole node."""
    return lambda m: m.pod is pod


def is_first_of_this_life(m: Moment) -> bool:
    """The status of this moment is the first of its pod that the kubelet has written since it started."""
    began, pod = m.node.started_t, m.pod
    return began is not None and pod is not None and (pod.status_t is None or pod.status_t < began)


def known_to_kubelet(pod: Pod, node: Node) -> bool:
    """Some source has sent this pod to the present kubelet; False only where certainly none has."""
    is_sent = pod.manifest is not None or not node.born
    if pod.termination is not None and not pod.wanted:
        is_sent = node.started_t is None or node.started_seq < pod.termination.seq
    return is_sent or _was_begun_in_this_life(pod, node)


def may_be_unknown(pod: Pod, node: Node) -> bool:
    """Perhaps no source has sent the pod to the kubelet that runs now.

    It was removed while no source could be read, or was gone when that kubelet started, and may be back.
    """
    is_young = pod.termination is not None and node.started_t == pod.termination.t
    is_unnoticed = pod.was_gone_at(node.started_t) if pod.wanted else is_young or is_missed(node, pod)
    return (is_unnoticed and not _was_begun_in_this_life(pod, node)) or not known_to_kubelet(pod, node)


def _was_begun_in_this_life(pod: Pod, node: Node) -> bool:
    """The present kubelet has brought it up: it knew the pod, though its manifest may be removed."""
    begun = (pod.sandbox.run if pod.sandbox is not None else None, pod.create)
    return any(one is not None and node.started_t is not None and one.t >= node.started_t for one in begun)


def has_ended_for_good(pod: Pod, reported: PodStatus | None = None) -> bool:
    """The status shows a container as ended for good which now runs again in another sandbox.

    As long as it runs no status of the pod is written at all (status_manager.go
    checkContainerStateTransition). The status is `reported`, or the pod's last one.
    """
    reported = reported or pod.status
    for said in reported.lasting_containers if reported is not None else ():
        ended, newest = said.state.terminated, pod.newest(said.name)
        if ended is None or newest is None or newest.kind == "sidecar" or newest.id == said.runtime_id:
            continue
        is_final = pod.restart_policy == "Never" or (
            pod.restart_policy == "OnFailure" and not ended.exit_code
        )
        if is_final and newest.state in {"created", "running"}:
            return True
    return False


def hook_command(container: Container, hook: str) -> list[str] | None:
    """The command of the container's exec hook `post_start` or `pre_stop`; None where it has none."""
    spec = container.spec
    handler = getattr(spec.lifecycle, hook) if spec is not None else None
    return handler.exec.command if handler is not None and handler.exec is not None else None


def has_pre_stop(container: Container) -> bool:
    """The container has a preStop hook of any kind; only an exec hook passes through the runtime."""
    return container.spec is not None and container.spec.lifecycle.pre_stop is not None


def _runs_hook(m: Moment, hook: str) -> bool:
    container = m.container
    if container is None or m.call.rpc != "ExecSync":
        return False
    request, spec = m.request(bodies.ExecSyncRequest), container.spec
    if spec is None or request.cmd != hook_command(container, hook):
        return False
    probes = (spec.liveness_probe, spec.readiness_probe, spec.startup_probe)
    return request.timeout == 0 or not any(p and p.exec and p.exec.command == request.cmd for p in probes)


def runs_post_start(m: Moment) -> bool:
    """The ExecSync that begins or ends here is the container's postStart hook.

    Where both hooks have the same command, it is postStart only as long as none has run.
    """
    if not _runs_hook(m, "post_start"):
        return False
    if m.container is None or not _runs_hook(m, "pre_stop"):
        return True
    first = next(iter(m.container.hooks), None)
    return first is None or first.call is m.call


def runs_pre_stop(m: Moment) -> bool:
    """The ExecSync that begins or ends here is the container's preStop hook."""
    return _runs_hook(m, "pre_stop") and not runs_post_start(m)


def post_starts(container: Container) -> list[Execution]:
    """The runs of the container's postStart hook: only the first, if its preStop hook is the same."""
    if not container.hooks or (command := hook_command(container, "post_start")) is None:
        return []
    found = [hook for hook in container.hooks if hook.cmd == command]
    return found[:1] if command == hook_command(container, "pre_stop") else found


def pre_stops(container: Container) -> list[Execution]:
    """The runs of the container's preStop hook."""
    if not container.hooks or (command := hook_command(container, "pre_stop")) is None:
        return []
    return [hook for hook in container.hooks if hook.cmd == command]


def has_unseen_hook(spec: ContainerSpec | None) -> bool:
    """The container has a postStart hook that does not pass through the runtime."""
    handler = spec.lifecycle.post_start if spec is not None else None
    return handler is not None and handler.exec is None


def post_start_may_have_failed(container: Container) -> bool:
    """The container's postStart hook failed, or does not pass through the runtime and may have failed."""
    return has_unseen_hook(container.spec) or any(hook.failed for hook in post_starts(container))


def left_created(pod: Pod, sandbox: Sandbox) -> bool:
    """In a pod with sidecars an app container was created in an earlier sandbox and never began.

    Its record stays there, and with one such a pod counts as initialized in whatever sandbox
    (kuberuntime_container.go hasAnyRegularContainerCreated). Without sidecars that is K8S-140309.
    """
    if pod.spec is None or not pod.spec.sidecars:
        return False
    return any(one.state == "created" and one.sandbox is not sandbox for one in pod.of_kind("app"))


def stop_asked(container: Container, since: float = 0.0) -> bool:
    """A StopContainer, or the preStop hook that goes before it, began at `since` or later."""
    if any(stop.call.t >= since for stop in container.stops):
        return True
    command = hook_command(container, "pre_stop")
    return command is not None and any(h.cmd == command and h.call.t >= since for h in container.hooks)


_STARTING = frozenset({"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer"})
_WORKING = _STARTING | {"StopContainer", "StopPodSandbox"}


def end_is_forgotten(pod: Pod, node: Node) -> bool:
    """The kubelet before this one ended the static pod by its own decision, which nothing records.

    The kubelet reads statuses of API pods from their objects, and of static pods it keeps none.
    """
    if not pod.static or node.started_t is None or pod.status_t is None:
        return False
    by_decision = pod.status is not None and bool(pod.status.reason)
    return pod.status_t < node.started_t and (by_decision or not at_its_end(pod))


def worker_is_busy(pod: Pod) -> bool:
    """The pod's worker waits for an answer: a step of a sync, a kill, or a hook."""
    return worker_busy_since(pod) is not None


def worker_busy_since(pod: Pod) -> float | None:
    """When the first of what the pod's worker waits for began (s); None if it waits for nothing."""
    begun = [c.t for c in pod.calls_open.values() if c.rpc in _WORKING]
    hooked = [c for c in pod.every_container() if c.hooks_open]
    begun += [h.call.t for c in hooked for h in c.hooks if h.call.id in c.hooks_open]
    begun += [-math.inf] if pod.work_unknown else []
    return min(begun, default=None)


def starts_or_creates() -> Pattern:
    """A step that brings a pod up begins."""
    return call(*sorted(_STARTING))


def goes_on_in(sandbox: Sandbox) -> Pattern:
    """The sync that was in progress brings up another container in this sandbox, and so has not killed it."""

    def is_in_it(m: Moment) -> bool:
        is_pull = m.call.rpc == "PullImage" and m.pod is sandbox.pod and sandbox.state == "ready"
        return is_pull or m.sandbox is sandbox

    return call("PullImage", "CreateContainer").where(is_in_it)


def will_not_run_again(pod: Pod, name: str, code: int | None) -> bool:
    """The restart policy does not restart an app container that ended with `code`."""
    spec = pod.container_spec(name)
    if spec is None or spec.restart_policy is not None:
        return False
    return APPS.decide(AppSeen("exited", pod.restart_policy, code)) == "nothing"


def will_not_restart(pod: Pod, name: str) -> bool:
    """The newest instance of an app container has ended and the restart policy does not restart it.

    Where it was stopped to be replaced, as for a change, and that failed, the next sync creates none: it goes
    by the end of the one before (kuberuntime_manager.go computePodActions).
    """
    newest = pod.newest(name)
    if newest is None or newest.state != "exited" or newest.exit is None or pod.kind_of(name) != "app":
        return False
    return will_not_run_again(pod, name, newest.exit.code)


def at_its_end(pod: Pod, last: Container | None = None, code: int | None = None) -> bool:
    """Every app container has ended and none is to run again; `last` ends just now with `code`."""
    if pod.spec is None or not pod.spec.containers:
        return False
    for spec in pod.spec.containers:
        container = pod.newest(spec.name)
        if container is None:
            return False
        if container is not last and (container.exit is None or container.state != "exited"):
            return False
        ended = code if container is last else container.exit.code if container.exit else None
        if not will_not_run_again(pod, spec.name, ended):
            return False
    return True


def _leaves_nothing_to_run(m: Moment) -> bool:
    pod, container = m.pod, m.container
    return pod is not None and m.exit is not None and at_its_end(pod, container, m.exit.code)


LAST_END: Pattern = exited().where(_leaves_nothing_to_run)
"""The last app container ends for good: the pod is over, whatever its sidecars are to do."""


def is_new_reply(m: Moment) -> bool:
    """The reply is not like the last one to the same request."""
    return not m.reply.same


MIRROR = "kubernetes.io/config.mirror"
"""The annotation by which a mirror pod names the hash of its static pod."""
MAKES_ROOM = event("Preempting")
"""A pod is preempted for another one: until it is gone the kubelet handles nothing else (ADMIT-08)."""
REFUSED: Pattern = event(*sorted(REFUSALS))
"""A pod is refused at admission."""
_HINDRANCES = REFUSALS | {"FailedMount", "FailedValidation", "FailedCreatePodContainer", "NetworkNotReady"}


class NewPod(msgspec.Struct, frozen=True):
    """A new pod by what its sandbox will be called; a static pod gets its UID only then."""

    uid: str
    namespace: str
    name: str
    source: str

    def asked(self, m: Moment) -> bool:
        """The RunPodSandbox that begins here is for it."""
        metadata = m.request(bodies.RunPodSandboxRequest).config.metadata
        if self.uid:
            return metadata.uid == self.uid
        return (metadata.namespace, metadata.name) == (self.namespace, self.name)

    def is_about(self, m: Moment) -> bool:
        """The record is about it."""
        pod = m.pod or m.replaced
        if pod is not None:
            return pod.uid == self.uid if self.uid else self._called(pod)
        event = m.record
        if not isinstance(event, Event):
            return False
        named = (event.namespace, event.name) == (self.namespace, self.name)
        return named or (not event.name and self.name in event.message)

    def _called(self, pod: Pod) -> bool:
        return pod.static and (pod.namespace, pod.name) == (self.namespace, self.name)

    def known(self, m: Moment) -> Pod | None:
        """The pod as the trace knows it by now."""
        if self.uid:
            return m.world.pods.get(self.uid)
        return m.world.names.get((self.namespace, self.name))


def is_mirror(m: Moment) -> bool:
    """The manifest that was sent is that of a mirror pod."""
    return m.manifest is not None and MIRROR in (m.manifest.metadata.annotations or {})


def new_pod(m: Moment) -> NewPod | None:
    """The pod that this `pod` record makes desired for the first time; None for any other record."""
    if type(m.record) is not PodChange:
        return None
    if m.memo is None:
        m.memo = _Looked(_new_pod(m))
    looked: _Looked = m.memo
    return looked.found


class _Looked(msgspec.Struct, frozen=True):
    """The new pod of a `pod` record, computed once for all contracts."""

    found: NewPod | None


def _new_pod(m: Moment) -> NewPod | None:
    record, manifest, pod = m.record, m.manifest, m.pod
    if not isinstance(record, PodChange) or manifest is None or is_mirror(m):
        return None
    if manifest.metadata.deletion_timestamp is not None or manifest.metadata.name == "":
        return None
    if manifest.status is not None and manifest.status.terminal:
        return None
    if pod is not None and (pod.set_t is not None or pod.sandboxes or not pod.born):
        return None
    if m.replaced is not None and not m.replaced.uid:
        return None  # An edit of what has not been run yet, and may be waiting.
    namespace = manifest.metadata.namespace or "default"
    name = full_name(m.world, record.source, manifest.metadata.name)
    return NewPod(manifest.metadata.uid, namespace, name, record.source)


def _comes_from_a_manifest(m: Moment) -> bool:
    pod = new_pod(m)
    return pod is not None and pod.source != "api"


NEW_STATIC_POD: Pattern = pod_set().where(_comes_from_a_manifest)
"""A static pod is desired for the first time."""


def host_ports(m: Moment) -> frozenset[tuple[str, int]]:
    """The ports of the node that the manifest asks for: protocol and number."""
    spec = m.manifest.spec if m.manifest is not None else None
    every = [port for one in (spec.containers if spec is not None else ()) for port in one.ports or ()]
    return frozenset((port.protocol, port.host_port) for port in every if port.host_port)


def can_start(m: Moment, pod: NewPod) -> bool:
    """The kubelet works and receives the pod at once, and nothing in the manifest may delay it or get
    it refused.
    """
    made_t = kubelet_view(m).made_t
    # A folder that has just been created may not be watched yet: it is listed from time to time.
    watched = made_t is None or m.t - made_t > FILE_POLL
    return (watched or pod.source != "file") and can_start_once_received(m, pod)


def can_start_once_received(m: Moment, pod: NewPod) -> bool:
    """As `can_start`, but the kubelet may receive the pod later."""
    node, known, manifest = m.node, kubelet_view(m), m.manifest
    if manifest is None or not node.kubelet_up or node.relisted_t is None or node.listing_failed:
        return False
    if known.down_since(m.t) is not None or not m.world.past_known:
        return False
    if known.network_bad_t is not None and not manifest.spec.host_network:
        return False
    if pod.source == "api" and (known.api_away_t is not None or known.node_unknown):
        return False
    if refusal_may_be_unseen(m, pod.source) or (pod.source != "api" and is_refused(m, manifest)):
        return False
    return not manifest.spec.volumes and manifest.spec.runtime_class_name is None and not _waits(m, pod)


def refusal_may_be_unseen(m: Moment, source: str) -> bool:
    """The trace does not show whether the kubelet has refused a pod; it refuses hardly any static pod."""
    return source == "api" and m.header.channels.api == "none" and events_may_be_missing(m)


_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_PULL_POLICIES = {None, "", "Always", "IfNotPresent", "Never"}


def is_refused(m: Moment, manifest: Manifest) -> bool:
    """A kubelet of this version does not run the manifest as a static pod."""
    return is_invalid(manifest) or may_not_refer(m, manifest)


def may_not_refer(m: Moment, manifest: Manifest) -> bool:
    """The manifest of a static pod refers to objects of the API server, and the kubelet refuses that.

    Volumes that do so are left out here.
    """
    is_on = applicability.is_on(applicability.STATIC_GATE, m.header.feature_gates, m.kubernetes)
    return is_on and manifest.spec.refers_to_the_api


def is_invalid(manifest: Manifest) -> bool:
    """The manifest is none that a kubelet runs as a static pod (config/common.go tryDecodeSinglePod).

    No API server has validated it. The kubelet does, and reports what is wrong in its log only.
    """
    spec = manifest.spec
    every = [*spec.containers, *(spec.init_containers or ())]
    if not spec.containers or len({one.name for one in every}) < len(every):
        return True
    if spec.resource_claims or spec.ephemeral_containers or not _NAME.fullmatch(manifest.metadata.name):
        return True
    return any(map(_has_invalid_fields, every))


def _has_invalid_fields(spec: ContainerSpec) -> bool:
    probes = filter(None, (spec.liveness_probe, spec.readiness_probe, spec.startup_probe))
    numbers = (
        number
        for probe in probes
        for number in (
            probe.initial_delay_seconds,
            probe.period_seconds,
            probe.timeout_seconds,
            probe.success_threshold,
            probe.failure_threshold,
        )
    )
    return spec.image_pull_policy not in _PULL_POLICIES or any(number < 0 for number in numbers)


def _waits(m: Moment, pod: NewPod) -> bool:
    """A static pod of that name is still being terminated."""
    old = m.replaced or m.world.names.get((pod.namespace, pod.name))
    return old is not None and pod.source != "api" and old.static and bool(old.uid or old.sandboxes)


def starts(pod: NewPod, within: float, text: str) -> Answered:
    """The pod gets its sandbox within so many seconds, unless it is refused or removed."""
    about: Pattern = TERMINATION_ASKED.either(
        event(*sorted(_HINDRANCES)), status().where(_fails), pod_set()
    ).where(pod.is_about)
    return answered(
        by=call("RunPodSandbox").where(pod.asked),
        within=within,
        unless=about.either(FAULT, MAKES_ROOM),
        whole_node=True,
        text=text,
    )


def _fails(m: Moment) -> bool:
    return m.status is not None and m.status.terminal
