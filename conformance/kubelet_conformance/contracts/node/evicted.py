"""EVICT: what happens to a pod after the kubelet evicted it, preempted it or shut it down."""

import math
from collections.abc import Iterator

from kubelet_conformance.contract import Finding, Moment, Note, Pod, PodStatus
from kubelet_conformance.contract.applicability import CRI, EVERY_EVENT, EVERY_STATUS, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, event, happened
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.sandbox import FINISHED
from kubelet_conformance.contracts.facts.status import AGAIN, UNKNOWN_END
from kubelet_conformance.contracts.facts.timing import GC_PERIOD, REACTION
from kubelet_conformance.contracts.garbage.containers import being_removed
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.world.disruption import Disruption, disruption_of, shutdown_of

_RESOURCES = ("memory", "ephemeral-storage", "inodes", "pids", "EmptyDir")
_DISRUPTED = frozenset({"Evicted", "Preempting", "Terminated"})
_MARK = "DisruptionTarget"
_BY_KUBELET = "TerminationByKubelet"
_MARKS_PREEMPTED_SINCE = 1, 28


class _Ran(Note):
    """The pod was running when the kubelet began to end it."""

    seq: int = 0


def _was_evicted(m: Moment) -> Pod | None:
    """The moment's pod, if this terminal status ends its eviction: it ran and was not deleted."""
    pod = m.pod
    disruption = _disruption_of(pod) if pod is not None else None
    if pod is None or disruption is None or disruption.reason != "Evicted" or not pod.born:
        return None
    if pod.finished or pod.termination is not None or pod.note(_Ran).seq != disruption.seq:
        return None
    return pod


def _disruption_of(pod: Pod) -> Disruption | None:
    """Why the kubelet has killed the pod, and has not refused it at its own start.

    A later kill does not change the end of a pod that is being stopped since it was refused.
    """
    found = disruption_of(pod)
    if found is None or found.is_refusal:
        return None
    was_refused = found.before is not None and found.before.is_refusal
    return None if was_refused and _stopped_before(pod, found) else found


def _stopped_before(pod: Pod, kill: Disruption) -> bool:
    """Nothing of the pod was asked to stop by this kill: an earlier one was in progress."""
    return max((stop.call.t for c in pod.every_container() for stop in c.stops), default=-math.inf) < kill.t


_KILLS = event("Evicted", "Preempting")


@observer(on=_KILLS)
def _take_in(m: Moment, pod: Pod) -> None:
    """Record whether the pod was running as its kill began."""
    if any(c.state == "running" for c in pod.every_container()):
        pod.note(_Ran).seq = m.seq


@contract("EVICT-02", on=FINISHED, needs=(CRI, PODS, EVERY_STATUS, EVERY_EVENT))
def evicted_pod_is_failed(m: Moment, status: PodStatus) -> Iterator[Finding]:
    """An evicted pod is Failed with reason Evicted and a message that names the resource, as soon as its
    containers have ended and no sooner.
    """
    pod = _was_evicted(m)
    if pod is None:
        return
    seq = pod.note(_Ran).seq
    if (status.phase, status.reason) != ("Failed", "Evicted"):
        yield broken(f"expected Failed (Evicted), got {status.phase} ({status.reason})", seq)
    elif not any(word in status.message for word in _RESOURCES):
        yield broken(f"the message {status.message[:60]!r} names no resource", seq)
    running = [c.name for c in pod.every_container() if c.state == "running"]
    yield broken(f"it is written while {', '.join(running)} still runs", seq) if running else KEPT


@contract("EVICT-05", on=FINISHED, needs=(CRI, PODS, STATUS, EVERY_EVENT), clause="goes")
def evicted_pods_records_go(m: Moment) -> Iterator[Finding]:
    """The dead containers of an evicted pod go within a minute, though its object stays, and not before its
    status has reported how they ended.
    """
    pod = _was_evicted(m)
    if pod is None:
        return
    going = being_removed(m, pod)  # Asked to go before: no second call is owed.
    for container in pod.every_container():
        if container.state == "exited" and container.born and container not in going:
            yield answered(
                by=call("RemoveContainer").either(happened("removed")).where(pods.about(container)),
                within=GC_PERIOD + REACTION,
                unless=pods.FAULT.either(pods.TERMINATION_ASKED),
                text=f"dead container {container.name} of the evicted pod is removed",
            )


@evicted_pods_records_go.clause("reported-first", on=FINISHED)
def ends_are_reported_before(m: Moment, status: PodStatus) -> Iterator[Finding]:
    """What the runtime reported of a container's end is in the pod's status."""
    pod = _was_evicted(m)
    if pod is None:
        return
    for one in status.lasting_containers:
        container, reported = pod.newest(one.name), one.state.terminated
        if one.state.waiting is not None:
            reported = one.last_state.terminated  # Its start had failed by what the kubelet knows of it.
        if container is None or container.exit is None or container.vanished or one.state.running is not None:
            continue
        lost = reported is None or reported.reason == UNKNOWN_END
        yield broken(f"the status no longer says how {one.name} ended", container.exit.seq) if lost else KEPT


@contract("EVICT-06", on=FINISHED, needs=(CRI, PODS, STATUS, EVERY_EVENT))
def evicted_pods_object_stays(m: Moment) -> Findings:
    """The object of an evicted pod stays in the API server until another client deletes it."""
    pod = _was_evicted(m)
    if pod is None:
        return None
    return answered(
        by=LIFE_ENDS.either(pods.DELETION.where(pods.of(pod))),
        not_before=pods.API_DELETE.where(lambda n: pods.pod_of_write(n) is pod),
        whole_node=True,
        text=f"the kubelet does not delete pod {pod.name}, which was evicted,",
    )


@contract("EVICT-07", on=FINISHED, needs=(CRI, PODS, STATUS, EVERY_EVENT), clause="stays")
def evicted_pod_stays_ended(m: Moment) -> Findings:
    """Nothing of an evicted pod is ever started again, not by the next kubelet instance either."""
    pod = _was_evicted(m)
    if pod is None:
        return None
    return answered(
        by=LIFE_ENDS.either(pods.DELETION.where(pods.of(pod))),
        not_before=pods.starts_or_creates().where(pods.of(pod)),
        whole_node=True,
        text=f"nothing of pod {pod.name}, which was evicted, is started",
    )


@evicted_pod_stays_ended.clause("next-kubelet", on=pods.starts_or_creates())
def next_kubelet_leaves_it(m: Moment, pod: Pod) -> Findings:
    """The next kubelet instance finds the pod Failed and makes no call for it."""
    if pod.finished != "Failed" or not _is_evicted_before(m, pod):
        return None
    return broken(f"{m.call.rpc} for pod {pod.name}, which was evicted", pod.status_seq)


@evicted_pod_stays_ended.clause("left-alone", on=LIFE_ENDS)
def next_kubelet_has_left_it(m: Moment) -> Iterator[Finding]:
    """The next kubelet instance ran for a while, and made no call for the evicted pod."""
    started = m.node.started_t
    for pod in m.world.pods.values():
        if pod.finished == "Failed" and _is_evicted_before(m, pod) and m.t - (started or m.t) > REACTION:
            yield KEPT


def _is_evicted_before(m: Moment, pod: Pod) -> bool:
    """The pod was evicted by an earlier kubelet instance."""
    reported, started = pod.status, m.node.started_t
    if reported is None or reported.reason != "Evicted" or not pod.sandboxes or pod.termination is not None:
        return False
    return started is not None and pod.status_t is not None and pod.status_t < started and pod.wanted


def _is_disrupted(m: Moment, pod: Pod, now: PodStatus) -> bool:
    if now.reason not in _DISRUPTED or not pod.sandboxes or not pod.born:
        return False
    return _disruption_of(pod) is not None or (disruption_of(pod) is None and shutdown_of(m.node) is not None)


@contract("COND-08", on=FINISHED, needs=(CRI, PODS, STATUS), versions=since("1.26"), clause="set")
def disruption_is_marked(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """A pod that the kubelet has evicted, preempted or shut down has the condition DisruptionTarget, with
    reason TerminationByKubelet, from its terminal status on; one that was preempted, from 1.28 on.
    """
    if pod.finished or not _is_disrupted(m, pod, status):
        return None
    if status.reason == "Preempting" and m.kubernetes is not None and m.kubernetes < _MARKS_PREEMPTED_SINCE:
        return None
    mark = status.condition(_MARK)
    if mark is None or (mark.status, mark.reason) != ("True", _BY_KUBELET):
        said = "it is not there" if mark is None else f"it is {mark.status} ({mark.reason})"
        return broken(f"pod {pod.name} is {status.phase} ({status.reason}): expected {_MARK}, {said}")
    return KEPT


@disruption_is_marked.clause("stays", on=AGAIN)
def mark_stays(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Later statuses have it too."""
    mark = pod.status.condition(_MARK) if pod.status is not None else None
    if mark is None or mark.reason != _BY_KUBELET or not pod.finished:
        return None
    return KEPT if status.condition(_MARK) is not None else broken(f"{_MARK} is gone", pod.status_seq)


@contract("WORK-21", on=FINISHED, needs=(CRI, PODS, EVERY_STATUS, EVERY_EVENT), versions=since("1.22"))
def last_kill_decides(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """If a pod is killed several times, each with a reason, the last kill gives the pod its reason."""
    last = disruption_of(pod)
    if last is None or last.before is None or pod.finished:
        return None
    if {last.reason, last.before.reason} != {"Evicted", "Preempting"}:
        return None
    if pod.termination is not None or not pod.born:
        return None
    # A kill that was in progress does not follow the later one.
    if _stopped_before(pod, last):
        return None
    if status.reason != last.reason:
        return broken(f"expected reason {last.reason}, got {status.reason}", last.before.seq, last.seq)
    return KEPT
