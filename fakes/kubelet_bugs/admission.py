"""Bugs of admission: who is let in, who has to make room, and what becomes of those that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lightkube.models.core_v1 import Pod, PodStatus

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.admission import HANDLERS, Candidate, Handler, Rejection, no_pressure, node_ports
from kubelet_reference.deadline import Deadlines
from kubelet_reference.events import Recorder
from kubelet_reference.parts import NodeParts, Parts
from kubelet_reference.pod_handlers import PodHandlers
from kubelet_reference.pods import is_critical
from kubelet_reference.ports import Clock
from kubelet_reference.preemption import Preemption
from kubelet_reference.resources import requests


def _with(old: Handler, new: Handler) -> tuple[Handler, ...]:
    return tuple(new if handler is old else handler for handler in HANDLERS)


class _AsksAgain(PodHandlers):
    """Admits a pod again whenever it changes."""

    def update(self, changed: Iterable[Pod]) -> None:
        found = list(changed)
        super().update(found)
        for pod in found:
            others = [one for one in self._tools.manager.pods() if pods.uid(one) != pods.uid(pod)]
            refusal = self._tools.admission.admit(pod, others, self._tools.activity.is_active)
            if refusal is not None and self.needs_admission(pod):
                self.reject(pod, refusal)


class _MayStillFit(PodHandlers):
    """Leaves a pod that does not fit pending."""

    def reject(self, pod: Pod, rejection: Rejection) -> None:
        self._tools.recorder.warning(pod, rejection.reason, rejection.message)
        status = PodStatus(phase=pods.PENDING, reason=rejection.reason, message=rejection.message)
        self._tools.statuses.set_pod_status(pod, status)


class _SaysNothingOfUse(PodHandlers):
    """Has one reason for all refusals."""

    def reject(self, pod: Pod, rejection: Rejection) -> None:
        super().reject(pod, Rejection("Rejected", rejection.message))


class _AdmitsTheDead(PodHandlers):
    """Asks about every pod that it sees for the first time."""

    def needs_admission(self, pod: Pod) -> bool:
        return not self._tools.workers.is_termination_requested(pods.uid(pod))


class _AdmitsLate(PodHandlers):
    """Asks whether a pod fits when something has happened to it."""

    def needs_admission(self, pod: Pod) -> bool:
        return not pods.uid(pod)

    def sync(self, uids: Iterable[str]) -> None:
        found = list(uids)
        for pod in filter(None, map(self._tools.manager.by_uid, found)):
            others = [one for one in self._tools.manager.pods() if pods.uid(one) != pods.uid(pod)]
            refusal = self._tools.admission.admit(pod, others, self._tools.activity.is_active)
            if refusal is not None:
                self.reject(pod, refusal)
        super().sync(found)


class _NobodyMakesRoom(Preemption):
    """Ends no pod for another one."""

    def victims(
        self, pod: Pod, others: Sequence[Pod], missing: int, frees: Callable[[Pod], int]
    ) -> Sequence[Pod]:
        return super().victims(pod, others[:0], missing, frees)


class _StaticPodsAreLikeOthers(Preemption):
    """Goes by priorities alone."""

    def victims(
        self, pod: Pod, others: Sequence[Pod], missing: int, frees: Callable[[Pod], int]
    ) -> Sequence[Pod]:
        return () if pods.is_static(pod) else super().victims(pod, others, missing, frees)


def _no_pressure_at_all(candidate: Candidate) -> Rejection | None:
    """Refuses whatever is not critical as long as the node is short of anything."""
    if not candidate.distress.pressures or is_critical(candidate.pod):
        return None
    return Rejection("Evicted", "The node is under pressure.")


def _only_known_resources(candidate: Candidate) -> Rejection | None:
    """Looks for everything that a pod asks for."""
    asked = {name for one in pods.containers(candidate.pod) for name in requests(one)}
    unknown = sorted(asked - {"cpu", "memory", "ephemeral-storage"})
    return Rejection(f"OutOf{unknown[0]}", f"Node didn't have enough {unknown[0]}") if unknown else None


class _CountsFromTheContainers(Deadlines):
    """Takes a pod's time from the start of its first container."""

    def is_past(self, pod: Pod) -> bool:
        status = self._stored(pods.uid(pod)) or pod.status or PodStatus()
        states = [one.state.running for one in status.containerStatuses or () if one.state]
        began = next((state.startedAt for state in states if state), None)
        seconds = pods.spec(pod).activeDeadlineSeconds
        if began is None or seconds is None:
            return False
        return self._clock.wall_ns() >= (began.timestamp() + seconds) * 1e9


class _CountsFromItsOwnStart(Deadlines):
    """Takes a pod's time from when this kubelet heard of it."""

    def __init__(self, stored: Callable[[str], PodStatus | None], clock: Clock, recorder: Recorder) -> None:
        super().__init__(stored, clock, recorder)
        self._heard: dict[str, float] = {}

    def watch(self, pod: Pod) -> None:
        super().watch(pod)
        self._heard.setdefault(pods.uid(pod), self._clock.monotonic())

    def is_past(self, pod: Pod) -> bool:
        seconds = pods.spec(pod).activeDeadlineSeconds
        heard = self._heard.get(pods.uid(pod))
        return seconds is not None and heard is not None and self._clock.monotonic() >= heard + seconds


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-ADMIT-01",
        "A running pod is admitted anew, and perhaps refused, when it changes.",
        lambda: Parts(pod_handlers=_AsksAgain),
        ("ADMIT-01",),
    ),
    Bug(
        "MUT-ADMIT-02",
        "A pod that does not fit stays Pending.",
        lambda: Parts(pod_handlers=_MayStillFit),
        ("ADMIT-02",),
    ),
    Bug(
        "MUT-ADMIT-03",
        "Whatever a pod is refused for, the reason is the same.",
        lambda: Parts(pod_handlers=_SaysNothingOfUse),
        ("ADMIT-03",),
    ),
    Bug(
        "MUT-ADMIT-05",
        "A kubelet that comes back asks whether pods that have ended still fit.",
        lambda: Parts(pod_handlers=_AdmitsTheDead),
        ("ADMIT-05",),
    ),
    Bug(
        "MUT-ADMIT-06",
        "Two pods get the same port of the node.",
        lambda: Parts(admission_handlers=tuple(one for one in HANDLERS if one is not node_ports)),
        ("ADMIT-06",),
    ),
    Bug(
        "MUT-ADMIT-07",
        "A pod that asks for a resource the kubelet knows nothing of is refused.",
        lambda: Parts(admission_handlers=(*HANDLERS, _only_known_resources)),
        ("ADMIT-07",),
    ),
    Bug(
        "MUT-ADMIT-08",
        "On a full node a critical pod is refused like any other.",
        lambda: Parts(node=NodeParts(preemption=_NobodyMakesRoom)),
        ("ADMIT-08", "STATIC-23"),
    ),
    Bug(
        "MUT-STATIC-23",
        "On a full node a static pod is refused, as it has no priority.",
        lambda: Parts(node=NodeParts(preemption=_StaticPodsAreLikeOthers)),
        ("STATIC-23",),
    ),
    Bug(
        "MUT-ADMIT-09",
        "A node that is short of memory refuses pods that ask for some too.",
        lambda: Parts(admission_handlers=_with(no_pressure, _no_pressure_at_all)),
        ("ADMIT-09",),
    ),
    Bug(
        "MUT-ADMIT-11",
        "A pod is started, and asked whether it fits later.",
        lambda: Parts(pod_handlers=_AdmitsLate),
        ("ADMIT-11",),
    ),
    Bug(
        "MUT-DEADLINE-01",
        "A pod's deadline is counted from the start of its containers.",
        lambda: Parts(deadlines=_CountsFromTheContainers),
        ("DEADLINE-01",),
    ),
    Bug(
        "MUT-DEADLINE-02",
        "A pod's deadline begins anew with every start of the kubelet.",
        lambda: Parts(deadlines=_CountsFromItsOwnStart),
        ("DEADLINE-02",),
    ),
)
