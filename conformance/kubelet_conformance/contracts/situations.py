"""Situations that several contracts speak of, as patterns and predicates."""

from __future__ import annotations

from kubelet_conformance.contract.words import (
    Pattern,
    Predicate,
    call,
    deleted,
    done,
    exited,
    happened,
    pod_set,
    pod_unset,
)
from kubelet_conformance.contracts.tables.container import APPS, AppSeen
from kubelet_conformance.trace.bodies import ContainerStatusReply, ExecSyncRequest
from kubelet_conformance.trace.disruption import is_ended_by_the_kubelet
from kubelet_conformance.trace.manifests import PodStatus
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.records import ApiWrite, Disk, Fault
from kubelet_conformance.trace.untold import is_missed
from kubelet_conformance.trace.views import Container, Execution, Node, Pod, Sandbox


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
"""Something was broken or healed from outside."""
NOBODY = Pattern(frozenset())
"""No record: for what must be explained by an `unless`, or break."""


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
    return (
        isinstance(m.record, Fault) and m.record.what.startswith("healed:") and "API server" in m.record.what
    )


API_BACK: Pattern = FAULT.where(_api_is_back)
"""The API server can be reached again."""


def _is_being_deleted(m: Moment) -> bool:
    return m.manifest is not None and m.manifest.metadata.deletion_timestamp is not None


TERMINATION_ASKED: Pattern = pod_set().where(_is_being_deleted).either(pod_unset(), deleted())
"""The pod is to go: deletionTimestamp, removal from its source, or a forced deletion."""


def _is_of_the_pod(m: Moment) -> bool:
    static = m.pod is not None and m.pod.static
    return not static or (m.manifest is None and m.keys[0] != "deleted")


POD_IS_TO_GO: Pattern = TERMINATION_ASKED.where(_is_of_the_pod)
"""The same, and not a mirror pod, which is replaced while its static pod runs on."""


def to_run(m: Moment) -> bool:
    """The moment's pod was born in the trace, is wanted, and nobody asked it to go, the kubelet neither."""
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
    """Its pod is sent again: its image may be another one that is not there, and may not be pulled."""
    spec = container.spec
    return pod_set() if spec is not None and spec.pull_policy == "Never" else NOBODY


def believed_running(container: Container) -> bool:
    """It was started, and the kubelet has neither stopped it nor read that it ended."""
    if container.state not in {"running", "exited"} or container.started_t is None:
        return False
    told = container.record
    if told is not None and told.state != "CONTAINER_RUNNING":
        return False
    return not container.stops or not any(stop.succeeded or stop.not_found for stop in container.stops)


def was_seen_started(container: Container) -> bool:
    """The runtime has told that it was started, whatever is answered to the call that did so."""
    told = container.record.state if container.record is not None else "CONTAINER_CREATED"
    return container.seen_running or told not in {"CONTAINER_CREATED", "CONTAINER_UNKNOWN"}


def told_exited(container: Container) -> Pattern:
    """The kubelet reads that this container has ended, or its record is gone."""

    def tells(m: Moment) -> bool:
        record = m.response(ContainerStatusReply).status
        return record is None or record.state == "CONTAINER_EXITED"

    read = done("ContainerStatus").where(about(container)).where(tells)
    return read.either(happened("removed").where(about(container)))


def of(pod: Pod) -> Predicate:
    """The moment is about this pod: for obligations that watch the whole node."""
    return lambda m: m.pod is pod


def is_first_of_this_life(m: Moment) -> bool:
    """The status of this moment is the first of its pod that the kubelet has written since it started."""
    began, pod = m.node.started_t, m.pod
    return began is not None and pod is not None and (pod.status_t is None or pod.status_t < began)


def known_to_kubelet(pod: Pod, node: Node) -> bool:
    """Some source has told the kubelet that runs now of this pod; False only where that is certain."""
    if pod.termination is not None and not pod.wanted:
        return node.started_t is None or node.started_t < pod.termination.t
    return pod.manifest is not None or not node.born or _was_begun_in_this_life(pod, node)


def may_be_unknown(pod: Pod, node: Node) -> bool:
    """Perhaps no source has told the kubelet that runs now of it.

    It went while nobody could be asked, or in the very moment in which that kubelet began.
    """
    is_young = pod.termination is not None and node.started_t == pod.termination.t
    is_unheard = (is_young or is_missed(node, pod)) and not _was_begun_in_this_life(pod, node)
    return (is_unheard and not pod.wanted) or not known_to_kubelet(pod, node)


def is_dead_orphan(pod: Pod, sandbox: Sandbox, node: Node) -> bool:
    """Its pod may be unknown, and the sandbox died: nothing runs that could be killed, it is garbage."""
    return sandbox.died_t is not None and may_be_unknown(pod, node)


def _was_begun_in_this_life(pod: Pod, node: Node) -> bool:
    """The kubelet that runs now has run its sandbox: it knew the pod, though its manifest may have gone."""
    run = pod.sandbox.run if pod.sandbox is not None else None
    return run is not None and node.started_t is not None and run.t >= node.started_t


def has_ended_for_good(pod: Pod, told: PodStatus | None = None) -> bool:
    """It is told that a container has ended for good, which now runs again in another sandbox.

    As long as it does no status of the pod is told at all (status_manager.go checkContainerStateTransition).
    What is told is the pod's last status, unless it is given.
    """
    told = told or pod.status
    for said in told.lasting_containers if told is not None else ():
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


def _runs_hook(m: Moment, hook: str) -> bool:
    container = m.container
    if container is None or m.call.rpc != "ExecSync":
        return False
    request, spec = m.request(ExecSyncRequest), container.spec
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
    """The runs of its postStart hook: only the first, where its preStop hook has the same command."""
    if not container.hooks or (command := hook_command(container, "post_start")) is None:
        return []
    found = [hook for hook in container.hooks if hook.cmd == command]
    return found[:1] if command == hook_command(container, "pre_stop") else found


def post_start_may_have_failed(container: Container) -> bool:
    """Its postStart hook failed, or does not pass through the runtime: then it may be stopped for that."""
    handler = container.spec.lifecycle.post_start if container.spec is not None else None
    if handler is None or handler.exec is None:
        return handler is not None
    return any(hook.failed for hook in post_starts(container))


def left_created(pod: Pod, sandbox: Sandbox) -> bool:
    """In a pod with sidecars an app container was made in an earlier sandbox and never began.

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
    """A static pod that the kubelet before this one ended on its own account: no file and no record tells.

    The kubelet reads statuses of API pods from their objects, and of static pods it keeps none.
    """
    if not pod.static or node.started_t is None or pod.status_t is None:
        return False
    return pod.status_t < node.started_t and not at_its_end(pod)


def worker_is_busy(pod: Pod) -> bool:
    """The pod's worker waits for an answer: a step of a sync, a kill, or a hook."""
    return worker_busy_since(pod) is not None


def worker_busy_since(pod: Pod) -> float | None:
    """When the first of what the pod's worker waits for began (s); None if it waits for nothing."""
    begun = [c.t for c in pod.calls_open.values() if c.rpc in _WORKING]
    hooked = [c for c in pod.every_container() if c.hooks_open]
    begun += [h.call.t for c in hooked for h in c.hooks if h.call.id in c.hooks_open]
    return min(begun, default=None)


def starts_or_creates() -> Pattern:
    """A step that brings a pod up begins."""
    return call(*sorted(_STARTING))


def goes_on_in(sandbox: Sandbox) -> Pattern:
    """The sync that was under way brings up another container in this sandbox, and so has not killed it."""

    def is_in_it(m: Moment) -> bool:
        is_pull = m.call.rpc == "PullImage" and m.pod is sandbox.pod and sandbox.state == "ready"
        return is_pull or m.sandbox is sandbox

    return call("PullImage", "CreateContainer").where(is_in_it)


def will_not_run_again(pod: Pod, name: str, code: int | None) -> bool:
    """The restart policy lets an app container that ended with `code` be."""
    spec = pod.container_spec(name)
    if spec is None or spec.restart_policy is not None:
        return False
    return APPS.decide(AppSeen("exited", pod.restart_policy, code)) == "nothing"


def is_let_be(pod: Pod, name: str) -> bool:
    """The newest instance of an app container has ended so that the restart policy lets it be.

    Where it was stopped to be made anew, as for a change, and that failed, the next sync makes none: it goes
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


def told_anew(m: Moment) -> bool:
    """The reply is not like the last one to the same request."""
    return not m.reply.same
