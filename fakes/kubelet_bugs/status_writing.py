"""Bugs in how statuses are written to the API server."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from lightkube.models.core_v1 import Pod, PodStatus
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference import conditions, pods
from kubelet_reference.ports import ApiError, ApiServer
from kubelet_reference.status_manager import Kept, StatusManager
from kubelet_reference.updates import SyncFailed

_NOT_FOUND = 404


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
                if error.code != _NOT_FOUND:
                    raise
                await self._clock.sleep(0.1)
        return live


@bug("MUT-STATUS-10", breaks="STATUS-10")
class Resurrects(StatusManager):
    """A container that had ended for good is told to run."""

    def _resurrected(self, pod: Pod, before: PodStatus, status: PodStatus) -> str | None:
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
    """A change of readiness is told when the pod is synced next."""

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
        if self._api is None:
            raise SyncFailed("no client of an API server")
        super().set_pod_status(pod, status)


@bug("MUT-STATUS-17", breaks="STATUS-17")
class LosesReasons(StatusManager):
    """Why a pod is in its phase is told once and then lost."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        result = super()._merged(uid, stored, new)
        return structs.replace(result, reason=None, message=None) if stored.phase == result.phase else result


@bug("MUT-STATUS-18", breaks="STATUS-18", kubernetes="1.34")
class FirstGeneration(StatusManager):
    """The generation that is told is that of the pod's first spec."""

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
