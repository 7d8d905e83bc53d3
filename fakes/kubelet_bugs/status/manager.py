"""Bugs of the status manager: what it reports, how it writes it, and when it deletes the object."""

from collections.abc import Container
from typing import Any

from lightkube.models.core_v1 import ContainerStatus, Pod, PodStatus
from msgspec import structs

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_reference.api import pods
from kubelet_reference.pod_workers.active_deadline import Deadlines
from kubelet_reference.pod_workers.worker import SyncFailed
from kubelet_reference.status import conditions, status_rules
from kubelet_reference.status.container_statuses import ContainerStatusRules
from kubelet_reference.status.phase import pod_phase
from kubelet_reference.status.pod_status import Ending, lasting_phase
from kubelet_reference.status.status_manager import Kept, StatusManager
from kubelet_reference.util.ports import ApiError, ApiServer
from kubelet_reference.util.versions import Behaviour


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
    """A deleted pod's phase does not follow from how its containers ended."""
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


@bug("MUT-STATUS-01", breaks="STATUS-01")
class AlwaysWrites(StatusManager):
    """Statuses are written every ten seconds, changed or not."""

    def _is_due(self, uid: str, kept: Kept) -> bool:
        return True

    def _patch(self, uid: str, stored: Pod, kept: Kept) -> dict[str, object] | None:
        phase = self._merged(uid, stored.status or kept.status, kept.status).phase
        unchanged: dict[str, object] = {"metadata": {"uid": pods.uid(stored)}, "status": {"phase": phase}}
        return super()._patch(uid, stored, kept) or unchanged


@bug("MUT-STATUS-07", breaks="STATUS-07")
class MarksAtOnce(StatusManager):
    """An evicted pod is marked as disrupted while its containers still run and its phase is Running."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        found = super()._merged(uid, stored, new)
        mark = conditions.condition(new.conditions, conditions.DISRUPTION_TARGET)
        if mark is None:
            return found
        return structs.replace(found, conditions=conditions.put(found.conditions or (), mark))


@bug("MUT-STATUS-02", breaks="STATUS-02")
class OldOverNew(StatusManager):
    """Of two statuses the older is written last."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._older: dict[str, Kept] = {}

    def _set(self, pod: Pod, status: PodStatus, *, force: bool = False, finished: bool = False) -> None:
        before = self._kept.get(pods.uid(pod))
        super()._set(pod, status, force=force, finished=finished)
        if before is not None and self._kept.get(pods.uid(pod)) is not before:
            self._older[pods.uid(pod)] = before

    async def _write_one(self, api: ApiServer, uid: str, kept: Kept) -> None:
        await super()._write_one(api, uid, kept)
        older = self._older.pop(uid, None)
        if older is not None and not kept.finished and not pods.deletion_asked(kept.pod):
            await super()._write_one(api, uid, older)


@bug("MUT-STATUS-03", breaks="STATUS-03", aliases=("K8S-88964", "K8S-8818"))
class BelievesTheApi(StatusManager):
    """What others write into the kubelet's fields stays there."""

    def _is_due(self, uid: str, kept: Kept) -> bool:
        return False


@bug("MUT-STATUS-05", breaks="STATUS-05")
class Insists(StatusManager):
    """A pod whose object is gone is asked for again and again."""

    async def _live(self, api: ApiServer, uid: str, kept: Kept) -> Pod | None:
        live: Pod | None = None
        for _ in range(10):
            try:
                return await api.get_pod(pods.namespace(kept.pod), pods.name(kept.pod))
            except ApiError as error:
                if not error.is_not_found:
                    raise
                await self.clock.sleep(0.1)
        return live


@bug("MUT-STATUS-10", breaks="STATUS-10")
class Resurrects(StatusManager):
    """A container that had ended for good is reported as running."""

    def _illegal_transition(self, pod: Pod, before: PodStatus, status: PodStatus) -> str | None:
        return None


@bug("MUT-STATUS-12", breaks="STATUS-12")
class LongMessages(StatusManager):
    """Containers may say as much at their end as they like."""

    def _limited(self, status: PodStatus) -> PodStatus:
        return status


@bug("MUT-STATUS-08", breaks="STATUS-08")
class YoungestStart(StatusManager):
    """A pod begins anew with every restart of its container."""

    def _limited(self, status: PodStatus) -> PodStatus:
        status = super()._limited(status)
        states = [one.state.running for one in status.containerStatuses or () if one.state]
        starts = [one.startedAt for one in states if one is not None and one.startedAt is not None]
        return structs.replace(status, startTime=min(starts)) if starts else status


@bug("MUT-STATUS-09", breaks="STATUS-09")
class DatesAnew(StatusManager):
    """Conditions are dated anew though they stay as they are."""

    def _limited(self, status: PodStatus) -> PodStatus:
        status = super()._limited(status)
        now = self._now()
        return structs.replace(
            status,
            conditions=[structs.replace(one, lastTransitionTime=now) for one in status.conditions or ()],
        )


@bug("MUT-STATUS-13", breaks="STATUS-13")
class ReadinessWaits(StatusManager):
    """A change of readiness is reported at the pod's next sync."""

    def set_container_readiness(self, uid: str, container_id: str, *, ready: bool) -> None:
        del uid, container_id, ready


@bug("MUT-STATUS-14", breaks="STATUS-14")
class RemembersAll(StatusManager):
    """Statuses of pods that are gone are kept for ever."""

    def remove_orphans(self, uids: Container[str]) -> None:
        del uids


@bug("MUT-STATUS-15", breaks="STATUS-15")
class NeedsAnApi(StatusManager):
    """Without an API server no pod is run."""

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        if self.api is None:
            raise SyncFailed("no client of an API server")
        super().set_pod_status(pod, status)


@bug("MUT-STATUS-17", breaks="STATUS-17")
class LosesReasons(StatusManager):
    """The reason of a pod's phase is reported once and then lost."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        result = super()._merged(uid, stored, new)
        return structs.replace(result, reason=None, message=None) if stored.phase == result.phase else result


@bug("MUT-STATUS-18", breaks="STATUS-18", kubernetes="1.34")
class FirstGeneration(StatusManager):
    """The generation that is reported is that of the pod's first spec."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        result = super()._merged(uid, stored, new)
        return structs.replace(
            result, observedGeneration=stored.observedGeneration or result.observedGeneration
        )


@bug("MUT-STATUS-19", breaks="STATUS-19")
class OnlyChanges(StatusManager):
    """A deleted pod that ended long ago stays, for its status has nothing new."""

    def _set(self, pod: Pod, status: PodStatus, *, force: bool = False, finished: bool = False) -> None:
        kept = self._kept.get(pods.uid(pod))
        ended = kept is not None and pods.is_terminal_phase(kept.status.phase)
        super()._set(pod, status, force=force and not ended, finished=finished)

    def _is_due(self, uid: str, kept: Kept) -> bool:
        stored = self._in_api(uid, kept)
        return stored is not None and self._patch(uid, stored, kept) is not None


@bug("K8S-17980", breaks="STATUS-20")
class WritesOnce(StatusManager):
    """A status that could not be written is not written again."""

    async def _write_one(self, api: ApiServer, uid: str, kept: Kept) -> None:
        await super()._write_one(api, uid, kept)
        if uid in self._unsent and self._kept.get(uid) is kept:
            del self._unsent[uid]

    def _is_due(self, uid: str, kept: Kept) -> bool:
        stored = self._in_api(uid, kept)
        return stored is not None and self._may_be_deleted(uid, stored, kept)
