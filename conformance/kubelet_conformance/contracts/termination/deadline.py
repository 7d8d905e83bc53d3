"""DEADLINE: pods with activeDeadlineSeconds."""

from collections.abc import Iterator

from kubelet_conformance.contract import Answered, Finding, Moment, Note, Pod, PodSpec, PodStatus
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, STORED_STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, kubelet, status
from kubelet_conformance.contracts.facts.pod import FAULT, TERMINATION_ASKED, of, worker_is_busy
from kubelet_conformance.contracts.facts.sandbox import FINISHED
from kubelet_conformance.contracts.facts.timing import KUBELET_START, REACTION, ROUNDING
from kubelet_conformance.trace.format.header import epoch_seconds
from kubelet_conformance.trace.world.in_flight import is_the_workers

_EXCEEDED = "DeadlineExceeded"


def _deadline(m: Moment, pod: Pod, reported: PodStatus | None) -> float | None:
    """When the pod's deadline passes, on the trace's clock; None where that is not known."""
    spec, zero = pod.spec, m.header.started
    if spec is None or spec.active_deadline_seconds is None or reported is None or not reported.start_time:
        return None
    if not zero:
        return None
    began, origin = epoch_seconds(reported.start_time), epoch_seconds(zero)
    if began is None or origin is None:
        return None
    return began - origin + spec.active_deadline_seconds


def time_may_be_over(m: Moment, pod: Pod) -> bool:
    """The pod has a deadline, and has reached it as far as is known: the kubelet itself ends it."""
    if pod.spec is None or pod.spec.active_deadline_seconds is None:
        return False
    deadline = _deadline(m, pod, pod.status)
    return deadline is None or m.t >= deadline - ROUNDING


class _Watched(Note):
    """The deadline that was checked for a kubelet instance."""

    deadline: float | None = None
    life: int = -1


def _to_watch(pod: Pod) -> bool:
    runs = any(c.state == "running" for c in pod.every_container())
    return pod.born and pod.wanted and pod.termination is None and not pod.finished and runs


_KEEPS_THE_WORKER = call("PullImage", "ExecSync", "StopContainer").where(is_the_workers)
"""A pull, a hook and a kill may take longer than the pod has: its worker does one thing after the other."""


def _is_ended(m: Moment, pod: Pod, deadline: float, slack: float) -> Answered:
    ends = call("StopContainer", "ExecSync", "StopPodSandbox").where(lambda n: n.t >= deadline - ROUNDING)
    busy = _KEEPS_THE_WORKER.where(lambda n: n.t < deadline - ROUNDING)
    return answered(
        by=ends.where(of(pod)),
        within=max(deadline + ROUNDING - m.t, 0.0) + slack,
        unless=FINISHED.either(TERMINATION_ASKED, call("RunPodSandbox"), busy).where(of(pod)).either(FAULT),
        whole_node=True,
        text=f"pod {pod.name} is ended, whose time was over at {deadline:.1f} s,",
    )


def _is_ended_once(m: Moment, pod: Pod, watched: _Watched) -> Answered | None:
    """It is ended when its time is over; None where the same has been asked for already."""
    deadline = _deadline(m, pod, m.status)
    if deadline is None or not _to_watch(pod) or not m.node.kubelet_up:
        return None
    if watched.deadline == deadline and watched.life == m.node.lives:
        return None
    watched.deadline, watched.life = deadline, m.node.lives
    return _is_ended(m, pod, deadline, REACTION)


@contract("DEADLINE-01", on=status(), needs=(CRI, PODS, STATUS), clause="ended")
def pod_ends_at_its_deadline(m: Moment, pod: Pod) -> Findings:
    """A pod is terminated as soon as activeDeadlineSeconds have passed since its startTime, and is Failed
    with reason DeadlineExceeded then, and not earlier.
    """
    return None if worker_is_busy(pod) else _is_ended_once(m, pod, pod.note(_Watched))


@observer(on=_KEEPS_THE_WORKER)
def _(_: Moment, pod: Pod) -> None:
    """Ask again once the worker is free: what was owed until then may be late."""
    pod.note(_Watched).deadline = None


@pod_ends_at_its_deadline.clause("not-before", on=status())
def deadline_is_not_early(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """The status does not say DeadlineExceeded any earlier."""
    deadline = _deadline(m, pod, status)
    if deadline is None or status.reason != _EXCEEDED:
        return None
    if m.t < deadline - ROUNDING:
        return broken(f"the pod is {_EXCEEDED} at {m.t:.1f} s, its time is over at {deadline:.1f} s")
    return (
        KEPT if status.phase == "Failed" or any(c.state == "running" for c in pod.every_container()) else None
    )


@contract("DEADLINE-02", on=kubelet("started"), needs=(CRI, PODS, STORED_STATUS))
def restart_does_not_move_the_deadline(m: Moment) -> Iterator[Finding]:
    """A kubelet that starts again ends a pod when its time is over, counted from its first startTime.

    Only the API server keeps that: a static pod that never had a mirror begins anew.
    """
    for pod in list(m.world.pods.values()):
        if pod.static and not pod.mirror_uid:
            continue
        deadline = _deadline(m, pod, pod.status)
        if deadline is not None and _to_watch(pod):
            yield _is_ended(m, pod, max(deadline, m.t), KUBELET_START)


@restart_does_not_move_the_deadline.clause("same", on=status())
def start_time_stays(m: Moment, pod: Pod, spec: PodSpec, status: PodStatus) -> Findings:
    """The startTime stays what it was."""
    if pod.status is None or pod.static:
        return None
    if spec.active_deadline_seconds is None or not pod.status.start_time or not status.start_time:
        return None
    if status.start_time != pod.status.start_time:
        return broken(f"startTime is {status.start_time}, and was {pod.status.start_time}", pod.status_seq)
    again = pod.status_t is not None and m.node.started_t is not None and pod.status_t < m.node.started_t
    return KEPT if again else None


@contract("INIT-19", on=status(), needs=(CRI, PODS, STATUS))
def deadline_includes_init_containers(m: Moment, pod: Pod) -> Findings:
    """The time that init containers take counts: a pod whose init containers still run is ended too."""
    if not any(c.state == "running" for c in pod.of_kind("init")):
        return None
    return _is_ended_once(m, pod, pod.note(_WatchedInit))


class _WatchedInit(_Watched):
    """The deadline that was checked for a kubelet instance, for a pod whose init containers still run."""
