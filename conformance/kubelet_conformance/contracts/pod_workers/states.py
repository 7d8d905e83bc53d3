"""WORK: one worker per pod: it works in order, does not undo a termination, and repeats what failed.

WORK-04: a pod that was asked to go is not started any more.
"""

from collections.abc import Iterator

from kubelet_conformance.contract import (
    Answered,
    Container,
    Finding,
    Moment,
    Note,
    Pod,
    PodStatus,
    Sandbox,
    Stop,
)
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import (
    call,
    deleted,
    done,
    exited,
    failed,
    pod_set,
    read_as,
    status,
)
from kubelet_conformance.contracts.config.sources import change_of
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts import timing
from kubelet_conformance.contracts.facts.container import REMAKING, end_is_read
from kubelet_conformance.contracts.facts.kills import reasons, stopped_for_itself
from kubelet_conformance.contracts.facts.sandbox import FINISHED, is_dead_orphan, stop_of_sandbox
from kubelet_conformance.contracts.facts.static_pod import is_left_to_itself
from kubelet_conformance.contracts.facts.status import are_sampled, terminal_phase_sent
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.format.bodies import ContainerStatusReply, CreateContainerRequest
from kubelet_conformance.trace.format.records import Call, Reply
from kubelet_conformance.trace.world.in_flight import is_the_workers
from kubelet_conformance.trace.world.kubelet_view import informed_by

_ENDLESS = frozenset({"PullImage", "ExecSync"})
_LONGEST_SYNC = 4 * timing.CALL_TIMEOUT
"""How long the rest of a sync may take that pulls nothing and runs no hook: a sandbox and a container."""
_STEPS = ("RunPodSandbox", "PullImage", "CreateContainer", "StartContainer")
_MAKING = call("RunPodSandbox", "CreateContainer", "StartContainer")
_GOES_ON = pods.starts_or_creates().either(call("ExecSync").where(pods.runs_post_start))
_ANSWERED = done(*_STEPS, "StopContainer").either(
    failed(*_STEPS, "StopContainer"), done("ExecSync").where(pods.runs_post_start)
)


@contract("WORK-01", on=call(*_STEPS))
def steps_of_one_pod_follow_one_another(m: Moment, pod: Pod) -> Findings:
    """No step of a pod's sync begins while another step or a kill of the same pod is not answered."""
    for other in pod.calls_open.values():
        if other.rpc in _STEPS or other.rpc == "StopContainer" or _kills(pod, other):
            return broken(f"{m.call.rpc} begins while {other.rpc} is not answered", other.seq)
    return KEPT if pod.sandboxes else None


def _kills(pod: Pod, one: Call) -> bool:
    """It stops the newest sandbox. One that is stopped already garbage collection may stop at any time."""
    stops = pod.sandbox.stops if pod.sandbox is not None else ()
    is_stopped = any(stop.is_done and stop.call.seq < one.seq for stop in stops)
    return not is_stopped and any(stop.call is one for stop in stops)


@contract("WORK-03", on=pod_set(), needs=(CRI, PODS), versions=since("1.22"))
def update_does_not_undo_a_kill(m: Moment, pod: Pod) -> Findings:
    """A pod that was asked to go goes, though an update is sent while its worker is busy."""
    if not pod.born or pod.termination is None or not pod.wanted or not m.node.kubelet_up:
        return None
    if not pods.worker_is_busy(pod) or any(c.stopping for c in pod.every_container()):
        return None
    if any(stop.call.t >= pod.termination.t for s in pod.sandboxes for stop in s.stops):
        return None
    return answered(
        by=call("StopContainer", "StopPodSandbox").either(deleted()),
        within=None if any(c.rpc in _ENDLESS for c in pod.calls_open.values()) else _LONGEST_SYNC,
        not_before=call("RunPodSandbox"),
        text=f"pod {pod.name} is terminated after the update",
    )


def _sent_as_ended(m: Moment) -> bool:
    """With a terminal phase, and not for its status alone, of which a worker does not hear (CONFIG-05)."""
    sent = m.manifest.status if m.manifest else None
    return sent is not None and sent.terminal and change_of(m) != "reconciled"


_TO_GO = pods.TERMINATION_ASKED.either(pod_set().where(_sent_as_ended))


@contract("WORK-05", on=_TO_GO.either(_ANSWERED), needs=(CRI, PODS), versions=since("1.22"))
def pod_that_is_to_go_is_stopped(m: Moment, pod: Pod) -> Findings:
    """A pod that is being deleted, was removed, or was sent with a terminal phase has each of its running
    containers stopped, as soon as its worker is free.
    """
    if not pod.born or not m.node.kubelet_up or m.node.listing_failed:
        return None
    if _is_answer(m) and (pod.termination is None or m.call.rpc == "StopContainer"):
        return None
    if m.keys[0] == "deleted" and pod.static:
        return None  # Only its mirror has gone.
    if pods.may_be_unknown(pod, m.node) or _is_busy_beyond(m, pod):
        return None
    return _stops_of(pod, pod.termination.t if pod.termination else m.t)


def _is_answer(m: Moment) -> bool:
    return isinstance(m.record, Reply)


def _stops_of(pod: Pod, since_t: float) -> Iterator[Finding]:
    for container in pod.of_kind("app", "init"):
        if not pods.believed_running(container) or pods.stop_asked(container, since_t) or container.stopping:
            continue
        goes_on = _GOES_ON.either(_KILL.where(_is_for_itself)).where(pods.of(pod))
        called_off = end_is_read(container).either(goes_on)
        yield answered(
            by=call("StopContainer", "ExecSync").where(pods.about(container)),
            # A folder or a URL may be read only then; a kubelet that has just started waits for all sources.
            within=timing.REACTION + (timing.FILE_POLL if pod.static else 0.0),
            unless=called_off.either(pods.FAULT, pod_set().where(pods.of(pod))) if pod.static else called_off,
            whole_node=pod.static,
            text=f"container {container.name} is stopped",
        )


_KILL = call("StopContainer").either(call("ExecSync").where(pods.runs_pre_stop))
_ALONE = frozenset({"changed", "postStart failed", "probe failed", "unknown state"})


def _is_for_itself(m: Moment) -> bool:
    """The sync that was in progress stops a container for a reason of its own, and goes on after that.

    So it may be where no row says which grace a deletion by force gives.
    """
    found = reasons(m)
    return not found or any(reason.situation in _ALONE for reason in found)


def _is_busy_beyond(m: Moment, pod: Pod) -> bool:
    """The worker waits for another call than the one that is answered here."""
    if _is_answer(m):
        return any(one is not m.call and one.rpc in _STEPS for one in pod.calls_open.values())
    return pods.worker_is_busy(pod)


@contract("WORK-10", on=failed("StopPodSandbox"), needs=(CRI, PODS))
def failed_termination_is_tried_again(m: Moment, pod: Pod) -> Findings:
    """A kill that fails is tried again within 16 s, and the pod's object stays until one succeeds."""
    error = m.reply.error
    if error is None or error.code == "NOT_FOUND" or pod.termination is None or not pod.born:
        return None
    if is_left_to_itself(m, pod):
        return None
    if _was_stopped(pod, m.sandbox) or (m.sandbox is not None and is_dead_orphan(pod, m.sandbox, m.node)):
        return None
    graceful = pod.termination.cause == "deleted" and bool(pod.termination.grace) and pod.deleted_t is None
    return answered(
        by=stop_of_sandbox(m.sandbox),
        within=timing.RETRY + timing.RETRY_SLACK,
        not_before=deleted() if graceful else None,
        text=f"the kill of {pod.name} is tried again",
    )


def _was_stopped(pod: Pod, sandbox: Sandbox | None) -> bool:
    """The pod was stopped before, and all that ran has ended: this is garbage collection, which has its
    period.
    """
    if sandbox is None or not any(stop.is_done for stop in sandbox.stops):
        return False
    return all(c.state != "running" for c in pod.every_container())


@contract("WORK-11", on=read_as("running"), needs=(CRI, PODS, STATUS), versions=since("1.22"))
def stop_is_not_believed_blindly(m: Moment, pod: Pod, container: Container) -> Findings:
    """When a container of a terminating pod is read as running after its stop succeeded, it is stopped again
    before the pod ends.
    """
    record = m.response(ContainerStatusReply).status
    if record is None or record.state != "CONTAINER_RUNNING":
        return None
    stop = container.stops[-1] if container.stops else None
    if pod.termination is None or not pod.born or pod.static or stop is None or not stop.succeeded:
        return None
    if stop.end_t is None or m.call.t < stop.end_t:
        return None
    return answered(
        by=call("StopContainer").where(pods.about(container)),
        within=timing.RETRY + timing.RETRY_SLACK,
        unless=exited().where(pods.about(container)),
        not_before=deleted().either(status().where(lambda n: bool(n.status and n.status.terminal))),
        text=f"container {container.name}, read as running, is stopped again",
    )


@contract("WORK-12", on=done("StopPodSandbox"), needs=(CRI, PODS), versions=since("1.22"))
def stopped_pod_goes(_: Moment, pod: Pod) -> Findings:
    """When the kill of a deleted pod has succeeded, its object goes without a further wait."""
    end = pod.termination
    if end is None or not pod.born or pod.static or pod.deleted_t is not None:
        return None
    if pod.manifest is not None and pod.manifest.metadata.finalizers:
        return None  # The object stays until they are removed.
    if end.cause != "deleted" or not end.grace or any(c.state == "running" for c in pod.every_container()):
        return None
    if any(not stop.is_done for c in pod.every_container() for stop in c.stops):
        return None
    return answered(
        by=deleted(),
        within=timing.RETRY + timing.RETRY_SLACK,
        # The sync that was in progress may have stopped a sandbox only to replace it.
        unless=pods.FAULT.either(done("StopPodSandbox").either(call("RunPodSandbox")).where(pods.of(pod))),
        whole_node=True,
        text=f"the object of {pod.name} goes",
    )


@contract("WORK-13", on=call("RemoveContainer"), needs=(CRI, PODS), clause="records")
def records_stay_until_the_pod_is_stopped(m: Moment, pod: Pod, container: Container) -> Findings:
    """The newest record of each container of a terminating pod stays until the sandbox was stopped, and the
    final status has the exit codes that the runtime gave.
    """
    if not pod.born or pod.termination is None:
        return None
    if container is not pod.newest(container.name) or container.sandbox is not pod.sandbox:
        return None
    if container.sandbox is None or not container.sandbox.born:
        return None
    if container.sandbox.state != "ready" and pods.may_be_unknown(pod, m.node):
        return None  # Nothing of it runs and no source knows it: it is not killed.
    if not any(stop.is_done for stop in container.sandbox.stops):
        return broken(
            f"the record of {container.name} is removed before the pod was stopped", pod.termination.seq
        )
    return KEPT


@records_stay_until_the_pod_is_stopped.clause("exit-codes", on=FINISHED)
def final_status_has_the_exit_codes(m: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """The terminal status has the exit codes that the runtime gave.

    One that was set when the kill began may be seen after the exit: where statuses are sampled, by one poll;
    else the status manager's batch has written it before a relist showed the exit, and the one with the exit
    code follows. One that repeats the phase that a client has set is not the last.
    """
    is_sampled = are_sampled(m)
    unknown = timing.API_POLL if is_sampled else timing.RELIST
    if not status.terminal or not pod.born or terminal_phase_sent(pod):
        return
    for shown in status.lasting_containers:
        container = pod.newest(shown.name)
        ended = container.exit if container else None
        if container is None or ended is None or ended.code is None or shown.runtime_id != container.id:
            continue
        if shown.state.running is not None and m.t - ended.t <= unknown:
            if not is_sampled:
                yield _exit_follows(container, ended.code)
            continue
        reported, last = shown.state.terminated, shown.last_state.terminated
        if last is not None and last.runtime_id == container.id and last.exit_code == ended.code:
            yield KEPT  # It waited to be run again: its exit is shown as its last state (CSTAT-04).
        elif reported is None or reported.exit_code != ended.code:
            got = reported.exit_code if reported else "none"
            yield broken(f"the exit code of {shown.name} is {ended.code}, the status has {got}", ended.seq)
        else:
            yield KEPT


def _exit_follows(container: Container, code: int) -> Answered:
    """The next status has the exit code, unless the pod is deleted at once."""

    def shows_it(m: Moment) -> bool:
        every = m.status.lasting_containers if m.status is not None else ()
        ends = (one.state.terminated for one in every if one.runtime_id == container.id)
        return any(end is not None and end.exit_code == code for end in ends)

    return answered(
        by=status().where(shows_it),
        within=timing.REACTION,
        unless=pods.TERMINATION_ASKED.either(deleted(), pods.FAULT, LIFE_ENDS),
        text=f"the status has the exit code {code} of {container.name}",
    )


@contract(
    "WORK-14",
    on=_MAKING.where(pods.has_ended),
    needs=(CRI, PODS, STATUS),
    versions=since("1.22"),
    clause="nothing",
)
def finished_pod_is_left_alone(m: Moment, pod: Pod) -> Findings:
    """Nothing of a pod with a terminal phase is made or started again, whatever is sent about it."""
    if not pod.finished or not pod.born or pods.end_is_forgotten(pod, m.node):
        return None
    return broken(f"{m.call.rpc} for pod {pod.name}, which has ended", pod.status_seq)


def _is_dead(m: Moment) -> bool:
    return m.container is not None and m.container.state == "exited"


@finished_pod_is_left_alone.clause("no-stop", on=call("StopContainer").where(pods.has_ended).where(_is_dead))
def finished_pod_is_not_stopped_again(m: Moment, pod: Pod) -> Findings:
    """No container of a pod that has ended is stopped (1.23 and 1.26 may do so, by a stale view)."""
    is_old = m.kubernetes is None or m.kubernetes < (1, 28)
    if is_old or not pod.finished or not pod.born or pods.may_be_unknown(pod, m.node):
        return None
    return broken(f"StopContainer for pod {pod.name}, which has ended", pod.status_seq)


@finished_pod_is_left_alone.clause("stays", on=pods.END)
def finished_pods_stayed_finished(m: Moment) -> Iterator[Finding]:
    """A pod with a terminal phase keeps it to the end of the trace."""
    for pod in m.world.pods.values():
        if pod.finished and pod.born and pod.status_t is not None and m.t - pod.status_t >= 1.0:
            yield KEPT


@contract("WORK-17", on=REMAKING)
def container_is_not_made_twice(m: Moment, pod: Pod) -> Findings:
    """A container is created only when the kubelet can know that no other one of its name runs or is about to
    be started in the pod.
    """
    if not pod.born:
        return None
    newest = pod.newest(m.request(CreateContainerRequest).config.metadata.name)
    if newest is None or not newest.born or newest.create is None:
        return None
    if newest.state == "running" or (
        pods.believed_running(newest) and not newest.stops and _is_there(newest)
    ):
        start = newest.start.seq if newest.start else newest.create.seq
        return broken(f"container {newest.name} is created while another one runs, for all it knows", start)
    life = m.node.started_t or 0.0
    if newest.state == "created" and newest.start is None and newest.create.t >= max(life, m.node.away_t):
        if newest.created_t is not None and m.t - newest.created_t < timing.REACTION:
            return broken(f"container {newest.name} was just created and not started", newest.create.seq)
        return None
    return KEPT


def _is_there(container: Container) -> bool:
    """The container's sandbox was not stopped with it."""
    return container.sandbox is None or not container.sandbox.stops


class _FirstStep(Note):
    """The kubelet instance in which the first step was seen."""

    life: int = 0


@contract("WORK-19", on=call("RunPodSandbox", "CreateContainer", "StopContainer", "StopPodSandbox"))
def first_sync_waits_for_the_first_relist(m: Moment) -> Findings:
    """A kubelet that has just started changes nothing before its first listing of containers is answered."""
    node = m.node
    if not node.kubelet_up or node.started_t is None:
        return None
    if node.relisted_t is None:
        return broken(f"{m.call.rpc} before the first listing of containers was answered")
    first = node.note(_FirstStep)
    if first.life == node.lives:
        return None
    first.life = node.lives
    return KEPT


_KILLS = ("StopContainer", "StopPodSandbox")
_STARTING = (
    "RunPodSandbox",
    "PullImage",
    "CreateContainer",
    "StartContainer",
    "StopContainer",
    "StopPodSandbox",
)
_START_OR_STOP_ANSWERED = done(*_STARTING).either(failed(*_STARTING))
_ASIDE = done("ExecSync", "RemoveContainer").either(failed("ExecSync", "RemoveContainer"))
"""Calls that a sync waits for in some cases only: hooks, and the records of init containers that are made
again.
"""


@contract("WORK-04", on=_MAKING, needs=(CRI, PODS), versions=since("1.22"), clause="no-start")
def termination_is_irreversible(m: Moment, pod: Pod) -> Findings:
    """Once a pod was asked to go, nothing of it is made or started any more, but for the steps of the sync
    that was in progress.
    """
    if not pod.born or pod.termination is None:
        return None
    asked, work = pod.termination, pod.note(_LastStep)
    died_around = any(_died_around(s, asked.t) for s in pod.sandboxes[-2:])
    if m.call.rpc == "RunPodSandbox" and not work.replaced_seq and (work.killing_when_asked or died_around):
        work.replaced_seq = m.seq
    begun = informed_by(m, asked.t) + (timing.TOGETHER if work.busy_when_asked else 0.0)
    if died_around:
        begun += timing.REACTION
    kill = _first_kill(m, pod, begun, work.replaced_seq)
    if kill is not None:
        text = f"{m.call.rpc} after the pod was asked to go and its termination had begun"
        return broken(text, asked.seq, kill.seq)
    if m.t - max(informed_by(m, asked.t), work.t) > timing.REACTION:
        return broken(f"{m.call.rpc} long after the pod was asked to go", asked.seq)
    return None


def _died_around(sandbox: Sandbox, asked_t: float) -> bool:
    """A sandbox that died before the pod was asked to go, or just then, may be replaced by the next sync."""
    died_t, stopped_before = sandbox.died_t, any(stop.call.t < asked_t for stop in sandbox.stops)
    return died_t is not None and died_t <= asked_t + timing.TOGETHER and not stopped_before


def _first_kill(m: Moment, pod: Pod, since_t: float, since_seq: int) -> Call | None:
    every = (one for one in pod.every_container() if not stopped_for_itself(m, pod, one))
    stops = [stop.call for one in every for stop in _kills_of(one)]
    stops += [stop.call for s in pod.sandboxes for stop in s.stops]
    return next((one for one in stops if one.t >= since_t and one.seq > since_seq), None)


def _kills_of(container: Container) -> list[Stop]:
    """A container's stops, except the one that ends its start when the postStart hook fails: the sync goes
    on.
    """
    return list(container.stops)[1 if pods.post_start_may_have_failed(container) else 0 :]


class _LastStep(Note):
    """When the last step of a pod's sync was answered, and whether one was in progress when it was to go."""

    t: float = 0.0
    busy_when_asked: bool = False
    killing_when_asked: bool = False
    """A kill was in progress, be it to replace the sandbox: the sync may still make the new one."""
    replaced_seq: int = 0
    """Where it did so."""


@observer(on=pods.TERMINATION_ASKED)
def sync_in_flight_is_remembered(m: Moment, pod: Pod) -> None:
    """Remember whether a sync may be in progress: its remaining steps are still allowed."""
    if pod.termination is None:
        work = pod.note(_LastStep)
        work.busy_when_asked = pods.worker_is_busy(pod) or m.t - work.t < timing.TOGETHER
        sandbox, open_calls = pod.sandbox, pod.calls_open.values()
        # A sandbox that has died may be replaced by the sync that was begun for that.
        is_dead = sandbox is not None and sandbox.died_t is not None
        work.killing_when_asked = is_dead or any(one.rpc in _KILLS for one in open_calls)


@observer(on=_START_OR_STOP_ANSWERED)
def steps_are_remembered(m: Moment, pod: Pod) -> None:
    """Remember when a step was answered: what follows it belongs to the same sync."""
    pod.note(_LastStep).t = m.t


@observer(on=_ASIDE)
def waits_are_remembered(m: Moment, pod: Pod) -> None:
    """Remember when a hook ended, and when the record of an init container was removed."""
    if m.container is not None and is_the_workers(m):
        pod.note(_LastStep).t = m.t


@termination_is_irreversible.clause("gone", on=deleted().either(pods.END))
def pod_went_without_another_start(m: Moment) -> Iterator[Finding]:
    """A pod that had something running was asked to go, and went."""
    every = [m.pod] if m.pod is not None else list(m.world.pods.values()) if "end" in m.keys else []
    for pod in every:
        if pod.born and pod.termination is not None and pod.sandbox is not None and pod.sandbox.stopped:
            yield KEPT
