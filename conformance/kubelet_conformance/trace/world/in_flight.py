"""What is in flight: calls that have no reply yet, hooks and probes inside containers, failing listings."""

import math

from kubelet_conformance.trace.format.bodies import (
    CreateContainerRequest,
    ExecSyncReply,
    ExecSyncRequest,
    StatusReply,
)
from kubelet_conformance.trace.format.records import Call, Fault
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Container, Execution, Pod
from kubelet_conformance.trace.world.world import World

RUNTIME_AWAY = "the runtime is away"
"""The fault text that says that no call reaches the runtime, so that none is recorded."""
CATCH_UP = 25.0
"""What a kubelet needs after the first good Status: its loop sleeps up to 5 s between two checks
(kubelet.go), and a sync that failed meanwhile comes again within 16 s (pod_workers.go); the rest is for a
loaded machine.
"""
LISTS = frozenset({"ListContainers", "ListPodSandbox"})
"""Listings. One that equals the last one shows only that the runtime answers."""
WORK = frozenset(
    {
        "RunPodSandbox",
        "StopPodSandbox",
        "RemovePodSandbox",
        "PullImage",
        "CreateContainer",
        "StartContainer",
        "StopContainer",
        "RemoveContainer",
        "ExecSync",
    },
)
"""Calls that change a pod, or wait for something inside it."""
_OF_A_SYNC = WORK - {"RemovePodSandbox", "RemoveContainer", "ExecSync"}
_BREAK = 1.0
"""A worker that has made no call for longer has finished what it did (s)."""
_MAKES = frozenset({"RunPodSandbox", "CreateContainer"})
"""Calls after which the runtime has one record more."""


def call_begins(moment: Moment) -> None:
    """A call to the runtime begins."""
    if moment.pod is not None and moment.call.rpc in WORK:
        moment.pod.calls_open[moment.call.id] = moment.call
        if moment.container is not None:
            moment.world.called[moment.call.id] = moment.container
        elif moment.sandbox is not None:
            moment.world.called_sandboxes[moment.call.id] = moment.sandbox
        if moment.call.rpc == "CreateContainer":
            moment.pod.create = moment.call
        _is_at_work(moment, moment.pod)


def call_ends(moment: Moment) -> None:
    """A call to the runtime was answered, well or by an error."""
    moment.world.called.pop(moment.call.id, None)
    moment.world.called_sandboxes.pop(moment.call.id, None)
    if moment.pod is not None:
        _is_at_work(moment, moment.pod)
        moment.pod.calls_open.pop(moment.call.id, None)
        if moment.call.rpc == "CreateContainer" and moment.reply.error is not None:
            name = moment.request(CreateContainerRequest).config.metadata.name
            moment.pod.create_failed[name] = moment.call
        if moment.call.rpc not in _MAKES or not _leaves_a_record(moment):
            moment.world.forget_if_gone(moment.pod)


def _leaves_a_record(moment: Moment) -> bool:
    """The call may have created its record: one that fails may have taken effect."""
    return moment.reply.error is None or moment.reply.effect


def _is_at_work(moment: Moment, pod: Pod) -> None:
    """The pod's worker begins a call, or has an answer."""
    if is_the_workers(moment):
        pod.at_work_t, pod.worked_t = since_when_at_work(pod, moment.t), moment.t
        pod.work_unknown = False


def is_the_workers(moment: Moment) -> bool:
    """A step, a kill, a hook, or a record that goes for an init container that is made again.

    Probes and garbage collection are not done by the pod's worker.
    """
    if moment.call.rpc == "ExecSync":
        return runs_hook(moment.call)
    if moment.call.rpc == "RemoveContainer":
        return moment.container is not None and moment.container.kind != "app"
    return moment.call.rpc in _OF_A_SYNC


def runs_hook(call: Call) -> bool:
    """Whether this ExecSync runs a hook: only a probe has a timeout."""
    return not call.request.view(ExecSyncRequest).timeout


def since_when_at_work(pod: Pod, t: float) -> float:
    """Since when the pod's worker has been busy without a break; `t` itself where it was idle before.

    What was begun before some news goes on to its end; what follows at once cannot be distinguished from it.
    """
    if pod.work_unknown or t - pod.worked_t <= _BREAK:
        return pod.at_work_t
    for one in pod.calls_open.values():
        if one.t < t and one.rpc in _OF_A_SYNC:
            return pod.at_work_t
    for container in pod.every_container():
        for hook in container.hooks:
            if hook.end_t is None and hook.call.t < t:
                return pod.at_work_t
    return t


def listing_failed(moment: Moment) -> None:
    """A listing was answered by an error."""
    moment.node.listing_failed = True


def status_is_reported(moment: Moment) -> None:
    """The runtime reports its Status."""
    node, reported = moment.node, moment.response(StatusReply).status
    conditions = reported.conditions if reported is not None else ()
    ready = {one.type for one in conditions if one.status}
    node.runtime_ready = {"RuntimeReady", "NetworkReady"} <= ready
    if "RuntimeReady" in ready and node.cut_off_until == math.inf:
        node.cut_off_until = moment.t + CATCH_UP


def runtime_is_unreachable(moment: Moment) -> None:
    """The runtime is unreachable; the kubelet does nothing for its pods until Status says it is ready."""
    if isinstance(moment.record, Fault) and moment.record.what == RUNTIME_AWAY:
        moment.node.away_t, moment.node.cut_off_until = moment.t, math.inf


def execution_begins(moment: Moment) -> None:
    """ExecSync begins: a hook where it has no timeout, else an exec probe."""
    container = moment.container
    if container is None:
        return
    container.hooks_open[moment.call.id] = moment.call
    request = moment.request(ExecSyncRequest)
    execution = Execution(moment.call, request.cmd)
    if request.timeout == 0:
        container.hooks.append(execution)
    else:
        container.probes[tuple(request.cmd)] = execution


def execution_ends(moment: Moment) -> None:
    """ExecSync was answered."""
    container = moment.container
    if container is None:
        return
    container.hooks_open.pop(moment.call.id, None)
    for execution in (*container.hooks, *container.probes.values()):
        if execution.call is moment.call:
            execution.end_t = moment.t
            if moment.reply.error is None:
                execution.exit_code = moment.response(ExecSyncReply).exit_code
            execution.failed = execution.exit_code != 0
    probed = container.probes.get(tuple(moment.request(ExecSyncRequest).cmd))
    if probed is not None and probed.call is moment.call:
        _note_failure(container, probed)


def _note_failure(container: Container, probed: Execution) -> None:
    """Keep the failure of a probe that may lead to a kill: the worker may wake only after another probe."""
    spec, cmd = container.spec, tuple(probed.cmd)
    probes = (spec.liveness_probe, spec.startup_probe) if spec is not None else ()
    if not probed.failed:
        container.probes_failed.pop(cmd, None)
    elif any(probe and probe.exec and probe.exec.command == probed.cmd for probe in probes):
        container.probes_failed[cmd] = probed


def drop_calls_in_flight(world: World) -> None:
    """The kubelet is down: its open calls are dropped."""
    world.calls_open.clear()
    world.called.clear()
    world.called_sandboxes.clear()
    for container in world.containers.values():
        container.hooks_open.clear()
        for one in (*container.hooks, *container.probes.values()):
            one.end_t = world.node.down_t if one.end_t is None else one.end_t
    for pod in (*world.pods.values(), *world.names.values()):
        if pod.calls_open:
            pod.calls_open.clear()
            pod.worked_t = -math.inf
            world.forget_if_gone(pod)
