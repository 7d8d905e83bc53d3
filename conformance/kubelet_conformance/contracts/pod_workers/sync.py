"""SYNC: the order of one pod sync, as its calls and its statuses show it."""

import math
from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod, PodStatus, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, event, failed, sandbox_died, status
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.backoff import retry_bound
from kubelet_conformance.contracts.facts.sandbox import CONTAINER_EVENT, GONE, NOT_READY, event_with, standing
from kubelet_conformance.contracts.facts.timing import CALL_TIMEOUT, REACTION, RETRY, RETRY_SLACK, STOP_SLACK
from kubelet_conformance.contracts.images.pull_policy import pulled_image
from kubelet_conformance.trace.format.bodies import StatusReply
from kubelet_conformance.trace.format.manifests import ContainerSpec
from kubelet_conformance.trace.format.records import Call
from kubelet_conformance.trace.world.kubelet_view import kubelet_view

UNTRIED = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Waiting reasons that do not mean a failed attempt."""


def _failing(m: Moment) -> bool:
    waiting = [one.state.waiting for one in m.status.every_container] if m.status is not None else []
    return any(one is not None and one.reason not in UNTRIED for one in waiting)


OBSTACLE: Pattern = status().where(_failing)
"""A container could not be made for a reason that shows in no call: its config, or an absent image."""
CUT_OFF: Pattern = GONE.either(OBSTACLE, sandbox_died())
"""What makes a sync's next step no longer expected."""


@contract("SYNC-01", on=status(), needs=(CRI, STATUS))
def status_is_older_than_what_the_sync_does(m: Moment, status: PodStatus) -> Iterator[Finding]:
    """A status is computed from what was read before the sync acts.

    It shows a container as running only after the runtime has reported it so, and a new pod's first status
    shows all its containers waiting.
    """
    for one in status.every_container:
        container = m.world.containers.get(one.runtime_id) if one.state.running is not None else None
        if container is None or not container.born:
            continue
        if container.seen_running or container.ended:
            yield KEPT
        else:
            yield broken(f"{one.name} is shown running, and no ContainerStatus has said so", container.start)


class _First(Note):
    """Whether a status with a start time was seen."""

    seen: bool = False


def _may_be_late(m: Moment, pod: Pod) -> bool:
    """Earlier statuses of the pod may not have reached the API server: requests to it failed, or the kubelet
    was killed.
    """
    if pod.set_t is None or kubelet_view(m).api_was_faulty(pod.set_t):
        return True
    begun, is_again = m.node.started_t or 0.0, m.node.lives > 1
    runs = [sandbox.run for sandbox in pod.sandboxes]
    return any(run is None or run.t < begun or (is_again and run.t == begun) for run in runs)


@status_is_older_than_what_the_sync_does.clause("first", on=status())
def first_status_shows_nothing_done(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """The first status is Pending, with a start time and every container waiting."""
    if not pod.born or m.header.channels.api != "full":
        return None
    memory = pod.note(_First)
    if memory.seen or (status.start_time is None and not status.conditions):
        return None
    memory.seen = True
    if status.terminal or pod.static or _may_be_late(m, pod):
        return None
    acting = next((one.name for one in status.every_container if one.state.waiting is None), None)
    if status.phase != "Pending" or acting is not None:
        return broken(f"the first status is {status.phase}, {acting or 'nothing'} being more than waiting")
    return broken("the first status has no startTime") if status.start_time is None else KEPT


_STEPS = frozenset(
    {"RunPodSandbox", "StopPodSandbox", "PullImage", "CreateContainer", "StartContainer", "StopContainer"}
)


@contract("SYNC-03", on=pods.starts_or_creates(), needs=(CRI, PODS, STATUS))
def steps_of_a_sync_follow_one_another(m: Moment, pod: Pod) -> Findings:
    """One step of a pod's sync begins when the one before was answered.

    After a new sandbox was read its first container is pulled for or made.
    """
    if not pod.born:
        return None
    for one in pod.calls_open.values():
        if one.rpc in _STEPS and m.t - one.t < CALL_TIMEOUT and not _collects(pod, one):
            return broken(f"{m.call.rpc} begins while {one.rpc} has not been answered", one.seq)
    return KEPT


def _collects(pod: Pod, call: Call) -> bool:
    """The call stops an old sandbox that holds nothing any more: that is garbage collection, no step of a
    sync.
    """
    old = (one for one in list(pod.sandboxes)[:-1] if not one.containers)
    return any(stop.call is call for one in old for stop in one.stops)


_NOT_FOLLOWED: Pattern = CUT_OFF.either(failed("PodSandboxStatus"), call("RunPodSandbox"))


@steps_of_a_sync_follow_one_another.clause("goes on", on=done("PodSandboxStatus"))
def first_container_follows_the_sandbox(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A new sandbox is followed by its first container."""
    if sandbox.status_t is not None or not sandbox.born or pod.spec is None:
        return None
    if sandbox.stops or sandbox.containers or sandbox.state != "ready" or not pods.to_run(m):
        return None
    if any(one.rpc == "RunPodSandbox" for one in pod.calls_open.values()):
        return None  # The sync is still at its step before: the sandbox is one that it had given up on.
    return answered(
        by=call("PullImage", "CreateContainer"),
        within=RETRY + RETRY_SLACK,
        unless=_NOT_FOLLOWED,
        text="the first container follows its new sandbox",
    )


def _tried(pod: Pod, name: str) -> bool:
    return pod.newest(name) is not None or name in pod.create_failed


def _last_try(pod: Pod, name: str) -> Call | None:
    newest = pod.newest(name)
    tries = (newest.create if newest is not None else None, pod.create_failed.get(name))
    return max((one for one in tries if one is not None), key=lambda one: one.seq, default=None)


def _app_names(pod: Pod) -> list[str]:
    return [spec.name for spec in pod.spec.containers] if pod.spec is not None else []


@steps_of_a_sync_follow_one_another.clause("made", on=done("PullImage"))
def container_follows_its_image(m: Moment) -> Findings:
    """A pulled image is followed by its container."""
    if not pods.to_run(m) or m.pod is None or m.pod.spec is None:
        return None
    return answered(
        by=call("CreateContainer"),
        within=RETRY + RETRY_SLACK,
        unless=CUT_OFF,
        text="the container follows its image",
    )


class _LastEvent(Note):
    """When a container event last reported the pod: the next sync uses that, and reads nothing."""

    t: float = -math.inf


@steps_of_a_sync_follow_one_another.clause("ephemeral-first", on=call("CreateContainer"))
def ephemeral_containers_come_first(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """In one sync ephemeral containers are tried before init containers and app containers."""
    name = containers.asked(m).metadata.name
    if pod.spec is None or pod.kind_of(name) != "ephemeral" or sandbox.status_t is None:
        return None
    for one in (*(pod.spec.init_containers or ()), *pod.spec.containers):
        tried = _last_try(pod, one.name)
        if tried is not None and tried.t > max(sandbox.status_t, pod.note(_LastEvent).t):
            return broken(
                f"{one.name} was made before ephemeral container {name} in the same sync", tried.seq
            )
    return KEPT


@contract("SYNC-04", on=call("CreateContainer"), needs=(CRI, PODS, STATUS))
def containers_come_in_spec_order(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """In one sync a pod's app containers are started one after another in spec order.

    A failure of one does not keep the next from being tried.
    """
    names = []
    if not pod.born:
        return None
    names, name = _app_names(pod), containers.asked(m).metadata.name
    if name not in names or _tried(pod, name) or sandbox.status_t is None:
        return None
    place = names.index(name)
    for later in names[place + 1 :]:
        tried = _last_try(pod, later)
        if tried is not None and tried.t > max(sandbox.status_t, pod.note(_LastEvent).t):
            return broken(f"{later} was made before {name} in the same sync", tried.seq)
    return KEPT if place and all(_tried(pod, earlier) for earlier in names[:place]) else None


@observer(on=CONTAINER_EVENT)
def _event_is_received(m: Moment, pod: Pod) -> None:
    pod.note(_LastEvent).t = m.t


def _next_due(pod: Pod, name: str, sandbox: Sandbox | None) -> ContainerSpec | None:
    """The app container after this one, if the sandbox lacks it and nothing is known to hold it up."""
    names = _app_names(pod)
    if pod.spec is None or sandbox is None or name not in names or names[-1] == name:
        return None
    following = pod.spec.containers[names.index(name) + 1]
    pulls = pod.pulls.get(following.image)
    if following.name in pod.create_failed or (pulls is not None and pulls.failed_seq):
        return None
    if containers.made_in(pod, following.name, sandbox) is not None:
        return None
    old = containers.recorded(pod, following.name)
    return following if old is None or containers.wants_restart(pod, old) else None


def _runs_its_hook_first(container: Container | None) -> bool:
    """The container has a postStart hook, which the sync waits for."""
    spec = container.spec if container is not None else None
    return spec is not None and spec.lifecycle.post_start is not None


_OUTCOMES = failed("StartContainer", "CreateContainer", "PullImage").either(
    done("StartContainer").where(lambda m: not _runs_its_hook_first(m.container)),
    done("ExecSync").where(pods.runs_post_start),
)


def _cut_off(name: str) -> Pattern:
    """What makes this container no longer expected: it could not be made, for a reason that shows
    in no call.
    """

    def fails(m: Moment) -> bool:
        one = m.status.by_name.get(name) if m.status is not None else None
        return one is not None and one.state.waiting is not None and one.state.waiting.reason not in UNTRIED

    return GONE.either(status().where(fails), sandbox_died())


@containers_come_in_spec_order.clause("next", on=_OUTCOMES)
def next_container_is_tried(m: Moment, pod: Pod) -> Findings:
    """The next container is tried, whether or not the one before failed."""
    following = _next_due(pod, _name_at(m, pod), m.sandbox or pod.sandbox)
    if following is None or not pods.to_run(m):
        return None
    if m.call.rpc == "PullImage" and pulled_image(m) == following.image:
        return None
    # One whose hook has failed is killed first, with its grace.
    kill = pod.spec.grace_seconds + STOP_SLACK if pod.spec is not None and m.call.rpc == "ExecSync" else 0
    return answered(
        by=containers.creation_of(following.name).either(call("PullImage")),
        within=retry_bound(m, following.name) + kill,
        unless=_cut_off(following.name),
        text=f"the next container, {following.name}, is tried",
    )


def _name_at(m: Moment, pod: Pod) -> str:
    """The container that an outcome is about; for a pull the first untried one of that image."""
    if m.call.rpc in {"StartContainer", "ExecSync"}:
        return m.container.name if m.container is not None else ""
    if m.call.rpc == "CreateContainer":
        return containers.asked(m).metadata.name
    specs = pod.spec.containers if pod.spec is not None else []
    return next(
        (spec.name for spec in specs if spec.image == pulled_image(m) and not _tried(pod, spec.name)), ""
    )


@contract("SYNC-05", on=failed("CreateContainer", "StartContainer"), needs=(CRI, PODS))
def failed_init_start_ends_the_sync(m: Moment, pod: Pod) -> Findings:
    """An init container that cannot be started is tried again before any app container is made."""
    if not pods.to_run(m):
        return None
    name = _name_at(m, pod)
    is_init = name in [spec.name for spec in containers.regular_inits(pod)]
    if not is_init or (m.container is not None and pods.was_seen_started(m.container)):
        return None
    # A start whose answer was lost may have taken place.
    started = containers.left_created_state(m.container) if m.container and m.reply.effect else pods.NOBODY
    return answered(
        by=containers.creation_of(name),
        not_before=containers.creation_of_kind("app"),
        unless=GONE.either(sandbox_died(), started),
        text=f"init container {name}, which could not be started, is tried again",
    )


@contract("SYNC-07", on=call("CreateContainer"))
def sandbox_is_read_before_its_containers(m: Moment, pod: Pod) -> Findings:
    """No container is made before its sandbox was run, and PodSandboxStatus of it has succeeded.

    That is upstream's way to know the pod's addresses, with container events from these (pleg/evented.go).
    """
    sandbox = m.sandbox
    if not pod.born:
        return None
    name = containers.asked(m).metadata.name
    if sandbox is None:
        return None if standing(pod) else broken(f"{name} is made, and the pod has no sandbox", pod.set_seq)
    if not sandbox.born:
        return None
    if sandbox.record is None:
        return broken(f"{name} is made in a sandbox whose status was never read", sandbox.run)
    return KEPT


@contract("SYNC-20", on=failed("PodSandboxStatus"), needs=(CRI, PODS))
def unread_sandbox_is_read_again(m: Moment, sandbox: Sandbox) -> Findings:
    """When PodSandboxStatus fails right after RunPodSandbox, the sandbox is read again.

    Until then no container is made and no second sandbox is run. A container event that reports the sandbox
    is as good as reading it.
    """
    if not pods.to_run(m) or not sandbox.born or sandbox.record is not None or sandbox.stops:
        return None
    if m.reply.error is not None and m.reply.error.code == "NOT_FOUND":
        return None
    return answered(
        by=done("PodSandboxStatus").where(lambda n: n.sandbox is sandbox),
        not_before=call("CreateContainer", "RunPodSandbox"),
        within=RETRY + RETRY_SLACK,
        unless=GONE.either(sandbox_died(), failed("PodSandboxStatus"), event_with(sandbox)),
        text="the new sandbox is read again",
    )


class _Network(Note):
    """Since when the runtime says that the pod network is not ready, and until when it did."""

    down_t: float | None = None
    up_t: float | None = None


@contract("SYNC-09", on=call("RunPodSandbox"), needs=(CRI, PODS))
def pod_waits_for_the_network(m: Moment, pod: Pod) -> Findings:
    """A pod that comes while the pod network is not ready gets its sandbox only when it is, and soon then.

    A pod on the host's network does not wait.
    """
    memory = m.node.note(_Network)
    if not pod.born or pod.set_t is None or memory.down_t is None or pod.set_t < memory.down_t:
        return None
    if memory.up_t is None:
        host = pod.spec is not None and pod.spec.host_network
        return KEPT if host else broken("a sandbox is run while the network is not ready")
    return KEPT if pod.set_t < memory.up_t else None


_REPORTED = done("Status").where(pods.is_new_reply)


def _network_is_ready(m: Moment) -> bool | None:
    """What the runtime reports of its network."""
    reply = m.response(StatusReply).status
    conditions = {one.type: one.status for one in reply.conditions} if reply is not None else {}
    return conditions.get("NetworkReady")


@observer(on=_REPORTED)
def _network_is_reported(m: Moment) -> None:
    """Record whether the runtime reports that its network is ready."""
    memory, ready = m.node.note(_Network), _network_is_ready(m)
    was_down = memory.down_t is not None and memory.up_t is None
    if ready is False and not was_down:
        memory.down_t, memory.up_t = m.t, None
    elif ready and was_down:
        memory.up_t = m.t


class _Held(Note):
    """Whether a sync of the pod has ended because the network was not ready."""

    back: bool = False


@observer(on=event("NetworkNotReady"))
def _pod_is_held_back(_: Moment, pod: Pod) -> None:
    pod.note(_Held).back = True


@pod_waits_for_the_network.clause("soon", on=_REPORTED)
def pod_is_tried_each_second(m: Moment) -> Iterator[Finding]:
    """A pod that waits for the network is tried each second: it has its sandbox soon after that is ready."""
    if not _network_is_ready(m) or m.node.note(_Network).up_t not in {None, m.t}:
        return
    for pod in m.world.pods.values():
        is_over = bool(pod.sandboxes or pod.termination or pod.finished) or not pod.wanted
        if is_over or not pod.note(_Held).back or pod.spec is None or pod.spec.volumes:
            continue
        yield answered(
            by=call("RunPodSandbox").where(pods.of(pod)),
            within=REACTION,
            unless=pods.FAULT.either(NOT_READY, GONE.where(pods.of(pod))),
            whole_node=True,
            text=f"{pod.name} is run once the network is ready",
        )
