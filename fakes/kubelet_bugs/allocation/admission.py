"""Bugs of admission: who is let in, who has to make room, and what becomes of those that are refused."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from lightkube.models.core_v1 import Node, Pod, PodStatus

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_reference.allocation.admission import (
    HANDLERS,
    Candidate,
    Handler,
    Rejection,
    no_pressure,
    no_shutdown,
    node_affinity,
    node_ports,
    sidecars_allowed,
)
from kubelet_reference.api import pods
from kubelet_reference.api.events import Recorder
from kubelet_reference.api.pods import is_critical
from kubelet_reference.api.resources import requests
from kubelet_reference.eviction.preemption import Preemption
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.pod_workers.active_deadline import Deadlines
from kubelet_reference.util.ports import Clock


@bug("MUT-ADMIT-01", breaks="ADMIT-01")
class AsksAgain(PodHandlers):
    """A running pod is admitted anew, and perhaps refused, when it changes."""

    def update(self, changed: Iterable[Pod]) -> None:
        found = list(changed)
        super().update(found)
        for pod in found:
            others = [one for one in self.manager.pods() if pods.uid(one) != pods.uid(pod)]
            refusal = self.admission.admit(pod, others, self.activity.is_active)
            if refusal is not None and self.needs_admission(pod):
                self.reject(pod, refusal)


@bug("MUT-ADMIT-02", breaks="ADMIT-02")
class MayStillFit(PodHandlers):
    """A pod that does not fit stays Pending."""

    def reject(self, pod: Pod, rejection: Rejection) -> None:
        self.recorder.warning(pod, rejection.reason, rejection.message)
        status = PodStatus(phase=pods.PENDING, reason=rejection.reason, message=rejection.message)
        self.statuses.set_pod_status(pod, status)


@bug("MUT-ADMIT-03", breaks="ADMIT-03")
class SaysNothingOfUse(PodHandlers):
    """Whatever a pod is refused for, the reason is the same."""

    def reject(self, pod: Pod, rejection: Rejection) -> None:
        super().reject(pod, Rejection("Rejected", rejection.message))


@bug("MUT-ADMIT-05", breaks="ADMIT-05")
class AdmitsTheDead(PodHandlers):
    """A kubelet that comes back asks whether pods that have ended still fit."""

    def needs_admission(self, pod: Pod) -> bool:
        return not self.workers.is_termination_requested(pods.uid(pod))


@bug("MUT-ADMIT-11", breaks="ADMIT-11")
class AdmitsLate(PodHandlers):
    """A pod is started, and asked whether it fits later."""

    def needs_admission(self, pod: Pod) -> bool:
        return not pods.uid(pod)

    def sync(self, uids: Iterable[str]) -> None:
        found = list(uids)
        for pod in filter(None, map(self.manager.by_uid, found)):
            others = [one for one in self.manager.pods() if pods.uid(one) != pods.uid(pod)]
            refusal = self.admission.admit(pod, others, self.activity.is_active)
            if refusal is not None:
                self.reject(pod, refusal)
        super().sync(found)


@bug("MUT-ADMIT-08", breaks=("ADMIT-08", "STATIC-23"))
class NobodyMakesRoom(Preemption):
    """On a full node a critical pod is refused like any other."""

    def victims(
        self, pod: Pod, others: Sequence[Pod], missing: int, frees: Callable[[Pod], int]
    ) -> Sequence[Pod]:
        return super().victims(pod, others[:0], missing, frees)


@bug("MUT-STATIC-23", breaks="STATIC-23")
class StaticPodsAreLikeOthers(Preemption):
    """On a full node a static pod is refused, as it has no priority."""

    def victims(
        self, pod: Pod, others: Sequence[Pod], missing: int, frees: Callable[[Pod], int]
    ) -> Sequence[Pod]:
        return () if pods.is_static(pod) else super().victims(pod, others, missing, frees)


@bug("MUT-DEADLINE-01", breaks="DEADLINE-01")
class CountsFromTheContainers(Deadlines):
    """A pod's deadline is counted from the start of its containers."""

    def is_past(self, pod: Pod) -> bool:
        status = self._stored(pods.uid(pod)) or pod.status or PodStatus()
        states = [one.state.running for one in status.containerStatuses or () if one.state]
        began = next((state.startedAt for state in states if state), None)
        seconds = pods.spec(pod).activeDeadlineSeconds
        if began is None or seconds is None:
            return False
        return self._clock.wall_ns() >= (began.timestamp() + seconds) * 1e9


@bug("MUT-DEADLINE-02", breaks="DEADLINE-02")
class CountsFromItsOwnStart(Deadlines):
    """A pod's deadline begins anew with every start of the kubelet."""

    def __init__(self, stored: Callable[[str], PodStatus | None], clock: Clock, recorder: Recorder) -> None:
        super().__init__(stored, clock, recorder)
        self._received_at: dict[str, float] = {}

    def is_past(self, pod: Pod) -> bool:
        seconds = pods.spec(pod).activeDeadlineSeconds
        received_at = self._received_at.setdefault(pods.uid(pod), self._clock.monotonic())
        return seconds is not None and self._clock.monotonic() >= received_at + seconds


def _asking(old: Handler, *new: Handler) -> WrongParts:
    """A kubelet that asks other handlers, or none, in the place of one."""
    asked = (one for handler in HANDLERS for one in (new if handler is old else (handler,)))
    return parts_with(admission_handlers=tuple(asked))


@bug("MUT-ADMIT-06", breaks="ADMIT-06")
def does_not_look_at_ports() -> WrongParts:
    """Two pods get the same port of the node."""
    return _asking(node_ports)


@bug("K8S-100184", breaks="SHUT-01")
def does_not_look_at_the_shutdown() -> WrongParts:
    """A node that goes down takes new pods."""
    return _asking(no_shutdown)


@bug("MUT-SIDECAR-01", breaks="SIDECAR-01")
def does_not_look_at_the_gate() -> WrongParts:
    """Pods with sidecars are run though the gate SidecarContainers is off."""
    return _asking(sidecars_allowed)


def _only_known_resources(candidate: Candidate) -> Rejection | None:
    asked = {name for one in pods.containers(candidate.pod) for name in requests(one)}
    unknown = sorted(asked - {"cpu", "memory", "ephemeral-storage"})
    return Rejection(f"OutOf{unknown[0]}", f"Node didn't have enough {unknown[0]}") if unknown else None


@bug("MUT-ADMIT-07", breaks="ADMIT-07")
def knows_few_resources() -> WrongParts:
    """A pod that asks for a resource the kubelet knows nothing of is refused."""
    return _asking(node_ports, node_ports, _only_known_resources)


def _critical_under_pressure(candidate: Candidate) -> Rejection | None:
    if not candidate.node_pressure.pressures or is_critical(candidate.pod):
        return None
    return Rejection("Evicted", "The node is under pressure.")


@bug("MUT-ADMIT-09", breaks="ADMIT-09")
def no_pressure_at_all() -> WrongParts:
    """A node that is short of memory refuses pods that ask for some too."""
    return _asking(no_pressure, _critical_under_pressure)


def _affinity_without_node(candidate: Candidate) -> Rejection | None:
    return node_affinity(replace(candidate, node=candidate.node or Node()))


@bug(
    "K8S-100467",
    breaks="RESTARTKUBELET-01",
    aliases=("K8S-92067", "K8S-94087", "K8S-76322", "K8S-99708", "K8S-123859", "K8S-123980", "K8S-124586"),
)
def reads_no_labels() -> WrongParts:
    """Running pods are refused by a kubelet that comes back and has not read its node's labels yet."""
    return _asking(node_affinity, _affinity_without_node)
