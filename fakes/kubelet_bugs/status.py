"""Bugs in what is told of a pod, and in when its object is deleted."""

from __future__ import annotations

from typing import Any

from lightkube.models.core_v1 import ContainerStatus, Pod, PodStatus
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import conditions, pods, status_rules
from kubelet_reference.container_statuses import ContainerStatusRules
from kubelet_reference.deadline import Deadlines
from kubelet_reference.parts import Parts
from kubelet_reference.phase import pod_phase
from kubelet_reference.pod_status import Ending, StatusDecisions, lasting_phase
from kubelet_reference.ports import ApiServer
from kubelet_reference.status_manager import Kept, StatusManager
from kubelet_reference.versions import Behaviour


def _phase_of_the_day(phase: str, *_earlier: str | None) -> str:
    """A phase that follows the containers for ever."""
    return phase


def _how_it_ended(phase: str, *earlier: str | None) -> str:
    """A terminal phase that the containers amount to counts more than any other."""
    return phase if pods.is_terminal_phase(phase) else lasting_phase(phase, *earlier)


def _phase_while_deleted(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """The phase without regard to the pod's end."""
    return pod_phase(pod, status, behaviour, terminating=terminating and pods.is_static(pod))


def _waiting_is_success(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """The phase at the end, with containers that never ran among those that succeeded."""
    waits = all(one.state and one.state.waiting for one in status.containerStatuses or ())
    if terminating and waits and pods.restart_policy(pod) != pods.ALWAYS:
        return pods.SUCCEEDED
    return pod_phase(pod, status, behaviour, terminating=terminating)


class _NothingRan(ContainerStatusRules):
    """Forgets that a container ran once its record is gone."""

    def vanished(self, pod: Pod, waits: ContainerStatus, before: ContainerStatus) -> ContainerStatus:
        return waits


class _EndsOnce(Deadlines):
    """Says once that the deadline is over; later the containers decide."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._said: dict[str, None] = {}

    def ending(self, pod: Pod) -> Ending | None:
        if pods.uid(pod) in self._said:
            return None
        found = super().ending(pod)
        if found is not None:
            self._said[pods.uid(pod)] = None
        return found


class _DeletesUnsaid(StatusManager):
    """Deletes an object without writing how its pod ended."""

    async def _write_one(self, api: ApiServer, uid: str, kept: Kept) -> None:
        if kept.finished and pods.deletion_asked(kept.pod):
            await self._delete(api, uid, kept.pod)
        else:
            await super()._write_one(api, uid, kept)


class _DeletesEarly(StatusManager):
    """Deletes an object as soon as its pod has a terminal phase, though containers still stop."""

    def _may_be_deleted(self, uid: str, stored: Pod, kept: Kept) -> bool:
        ends = pods.deletion_asked(stored) and not pods.is_mirror(stored)
        return ends and pods.is_terminal_phase(kept.status.phase)


class _DeletesUnstarted(StatusManager):
    """Deletes an object of which no status shows a running container, whatever its worker does."""

    def _may_be_deleted(self, uid: str, stored: Pod, kept: Kept) -> bool:
        ends = pods.deletion_asked(stored) and not pods.is_mirror(stored)
        return ends and status_rules.runs_nothing(kept.status)


class _DoneIsDone(StatusManager):
    """Takes no status of a pod any more once it has a terminal phase."""

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        if not pods.is_terminal_phase(self._before(pod).phase):
            super().set_pod_status(pod, status)

    def terminate_pod(self, pod: Pod) -> None:
        if pods.deletion_asked(pod):
            super().terminate_pod(pod)


class _ReadyToTheEnd(StatusManager):
    """Writes the terminal phase with the readiness that the pod had before."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        result = super()._merged(uid, stored, new)
        if not pods.is_terminal_phase(result.phase):
            return result
        for kind in (conditions.READY, conditions.CONTAINERS_READY):
            before = conditions.condition(stored.conditions, kind)
            if before is not None:
                result = replace(result, conditions=conditions.put(result.conditions or (), before))
        return result


class _NamesWillDo(StatusManager):
    """Writes to whatever pod has the name now."""

    async def _live(self, api: ApiServer, uid: str, kept: Kept) -> Pod | None:
        return await api.get_pod(pods.namespace(kept.pod), pods.name(kept.pod))


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-58711",
        "A pod that is Failed becomes Succeeded when its containers end well.",
        lambda: Parts(status=StatusDecisions(lasting_phase=_phase_of_the_day)),
        ("PHASE-05", "PHASE-11"),
        ("K35",),
    ),
    Bug(
        "K8S-118310",
        "A pod that was ended at its deadline has the phase that its exit codes make.",
        lambda: Parts(deadlines=_EndsOnce, status=StatusDecisions(lasting_phase=_how_it_ended)),
        ("EVENTS-08", "PHASE-05"),
        ("K50",),
    ),
    Bug(
        "K8S-95364",
        "A container whose record vanished while it ran waits to be created, as if it had never run.",
        lambda: Parts(status=StatusDecisions(container_statuses=_NothingRan().tell)),
        ("CSTAT-06",),
    ),
    Bug(
        "K8S-88440",
        "A deleted pod's object goes before it was written how its containers ended.",
        lambda: Parts(status_manager=_DeletesUnsaid),
        ("TERM-16",),
    ),
    Bug(
        "K8S-88613",
        "A failed pod's object goes while its containers are still stopping.",
        lambda: Parts(status_manager=_DeletesEarly),
        ("TERM-18",),
        ("K32",),
    ),
    Bug(
        "K8S-102344",
        "A pod that is deleted while its sandbox is being made goes at once, and is then started.",
        lambda: Parts(status_manager=_DeletesUnstarted),
        ("TERM-18",),
    ),
    Bug(
        "K8S-98718",
        "A pod that failed at its deadline shows its containers as running for ever.",
        lambda: Parts(status_manager=_DoneIsDone),
        ("WORK-13",),
        ("K8S-98742",),
    ),
    Bug(
        "K8S-110480",
        "A pod that has ended is Ready.",
        lambda: Parts(status_manager=_ReadyToTheEnd),
        ("TERM-31",),
        ("K30",),
    ),
    Bug(
        "K8S-120917",
        "A deleted pod's phase does not tell how its containers ended.",
        lambda: Parts(status=StatusDecisions(pod_phase=_phase_while_deleted)),
        ("PHASE-14",),
        ("K8S-115331",),
    ),
    Bug(
        "K8S-108882",
        "A deleted pod that never came to run has succeeded.",
        lambda: Parts(status=StatusDecisions(pod_phase=_waiting_is_success)),
        ("PHASE-02", "PHASE-15"),
        ("K34",),
    ),
    Bug(
        "K8S-82387",
        "The status of a pod is written to another one that has its name now.",
        lambda: Parts(status_manager=_NamesWillDo),
        ("STATUS-04", "TERM-30"),
        ("K31", "K8S-86320"),
    ),
)
