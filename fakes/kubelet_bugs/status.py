"""Bugs in what is told of a pod, and in when its object is deleted."""

from __future__ import annotations

from typing import Any

from lightkube.models.core_v1 import ContainerStatus, Pod, PodStatus
from msgspec import structs

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_reference import conditions, pods, status_rules
from kubelet_reference.container_statuses import ContainerStatusRules
from kubelet_reference.deadline import Deadlines
from kubelet_reference.phase import pod_phase
from kubelet_reference.pod_status import Ending, lasting_phase
from kubelet_reference.ports import ApiServer
from kubelet_reference.status_manager import Kept, StatusManager
from kubelet_reference.versions import Behaviour


@bug("K8S-58711", breaks=("PHASE-05", "PHASE-11"), part="lasting_phase", aliases="K35")
def phase_of_the_day(phase: str, *_earlier: str | None) -> str:
    """A pod that is Failed becomes Succeeded when its containers end well."""
    return phase


def _how_it_ended(phase: str, *earlier: str | None) -> str:
    """A terminal phase that the containers amount to counts more than any other."""
    return phase if pods.is_terminal_phase(phase) else lasting_phase(phase, *earlier)


@bug("K8S-120917", breaks="PHASE-14", part="pod_phase", aliases="K8S-115331")
def phase_while_deleted(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """A deleted pod's phase does not tell how its containers ended."""
    return pod_phase(pod, status, behaviour, terminating=terminating and pods.is_static(pod))


@bug("K8S-108882", breaks=("PHASE-02", "PHASE-15"), part="pod_phase", aliases="K34")
def waiting_is_success(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """A deleted pod that never came to run has succeeded."""
    waits = all(one.state and one.state.waiting for one in status.containerStatuses or ())
    if terminating and waits and pods.restart_policy(pod) != pods.ALWAYS:
        return pods.SUCCEEDED
    return pod_phase(pod, status, behaviour, terminating=terminating)


@bug("K8S-95364", breaks="CSTAT-06")
class NothingRan(ContainerStatusRules):
    """A container whose record vanished while it ran waits to be created, as if it had never run."""

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


@bug("K8S-88440", breaks="TERM-16")
class DeletesUnsaid(StatusManager):
    """A deleted pod's object goes before it was written how its containers ended."""

    async def _write_one(self, api: ApiServer, uid: str, kept: Kept) -> None:
        if kept.finished and pods.deletion_asked(kept.pod):
            await self._delete(api, uid, kept.pod)
        else:
            await super()._write_one(api, uid, kept)


@bug("K8S-88613", breaks="TERM-18", aliases="K32")
class DeletesEarly(StatusManager):
    """A failed pod's object goes while its containers are still stopping."""

    def _may_be_deleted(self, uid: str, stored: Pod, kept: Kept) -> bool:
        ends = pods.deletion_asked(stored) and not pods.is_mirror(stored)
        return ends and pods.is_terminal_phase(kept.status.phase)


@bug("K8S-102344", breaks="TERM-18")
class DeletesUnstarted(StatusManager):
    """A pod that is deleted while its sandbox is being made goes at once, and is then started."""

    def _may_be_deleted(self, uid: str, stored: Pod, kept: Kept) -> bool:
        ends = pods.deletion_asked(stored) and not pods.is_mirror(stored)
        return ends and status_rules.runs_nothing(kept.status)


@bug("K8S-98718", breaks="WORK-13", aliases="K8S-98742")
class DoneIsDone(StatusManager):
    """A pod that failed at its deadline shows its containers as running for ever."""

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        if not pods.is_terminal_phase(self._before(pod).phase):
            super().set_pod_status(pod, status)

    def terminate_pod(self, pod: Pod) -> None:
        if pods.deletion_asked(pod):
            super().terminate_pod(pod)


@bug("K8S-110480", breaks="TERM-31", aliases="K30")
class ReadyToTheEnd(StatusManager):
    """A pod that has ended is Ready."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        result = super()._merged(uid, stored, new)
        if not pods.is_terminal_phase(result.phase):
            return result
        for kind in (conditions.READY, conditions.CONTAINERS_READY):
            before = conditions.condition(stored.conditions, kind)
            if before is not None:
                result = structs.replace(result, conditions=conditions.put(result.conditions or (), before))
        return result


@bug("K8S-82387", breaks=("STATUS-04", "TERM-30"), aliases=("K31", "K8S-86320"))
class NamesWillDo(StatusManager):
    """The status of a pod is written to another one that has its name now."""

    async def _live(self, api: ApiServer, uid: str, kept: Kept) -> Pod | None:
        return await api.get_pod(pods.namespace(kept.pod), pods.name(kept.pod))


@bug("K8S-118310", breaks=("EVENTS-08", "PHASE-05"), aliases="K50")
def exit_codes_undo_the_deadline() -> WrongParts:
    """A pod that was ended at its deadline has the phase that its exit codes make."""
    return parts_with(_EndsOnce, lasting_phase=_how_it_ended)
