"""Bugs in how statuses are written to the API server."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from lightkube.models.core_v1 import Pod, PodStatus
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import conditions, pods
from kubelet_reference.parts import Parts
from kubelet_reference.ports import ApiError, ApiServer
from kubelet_reference.status_manager import Kept, StatusManager
from kubelet_reference.updates import SyncFailed

_NOT_FOUND = 404


class _AlwaysWrites(StatusManager):
    """Writes the whole status at every batch, changed or not."""

    def _is_due(self, uid: str, kept: Kept) -> bool:
        del uid, kept
        return True

    def _patch(self, uid: str, stored: Pod, kept: Kept) -> dict[str, object] | None:
        phase = self._merged(uid, stored.status or kept.status, kept.status).phase
        unchanged: dict[str, object] = {"metadata": {"uid": pods.uid(stored)}, "status": {"phase": phase}}
        return super()._patch(uid, stored, kept) or unchanged


class _MarksAtOnce(StatusManager):
    """Marks a pod that it ends as disrupted while its containers still run."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        found = super()._merged(uid, stored, new)
        mark = conditions.condition(new.conditions, conditions.DISRUPTION_TARGET)
        if mark is None:
            return found
        return replace(found, conditions=conditions.put(found.conditions or (), mark))


class _OldOverNew(StatusManager):
    """Writes the statuses that it was given latest first, so that an older one comes last."""

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


class _BelievesTheApi(StatusManager):
    """Does not look again at what it has written once."""

    def _is_due(self, uid: str, kept: Kept) -> bool:
        del uid, kept
        return False


class _Insists(StatusManager):
    """Takes an object that is gone for one that will be there next time, and tries at once."""

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


class _Resurrects(StatusManager):
    """Takes any status for possible."""

    def _resurrected(self, pod: Pod, before: PodStatus, status: PodStatus) -> str | None:
        del pod, before, status
        return None


class _LongMessages(StatusManager):
    """Does not limit what containers say at their end."""

    def _limited(self, status: PodStatus) -> PodStatus:
        return status


class _YoungestStart(StatusManager):
    """Takes the start of the oldest container that runs for the start of its pod."""

    def _limited(self, status: PodStatus) -> PodStatus:
        status = super()._limited(status)
        states = [one.state.running for one in status.containerStatuses or () if one.state]
        starts = [one.startedAt for one in states if one is not None and one.startedAt is not None]
        return replace(status, startTime=min(starts)) if starts else status


class _DatesAnew(StatusManager):
    """Dates every condition anew with each status, whether its value is another or not."""

    def _limited(self, status: PodStatus) -> PodStatus:
        status = super()._limited(status)
        now = self._now()
        return replace(
            status, conditions=[replace(one, lastTransitionTime=now) for one in status.conditions or ()]
        )


class _ReadinessWaits(StatusManager):
    """Leaves it to the pod's next sync to tell what its readiness probes have found."""

    def set_container_readiness(self, uid: str, container_id: str, *, ready: bool) -> None:
        del uid, container_id, ready


class _RemembersAll(StatusManager):
    """Forgets no status as long as it lives."""

    def remove_orphans(self, uids: Container[str]) -> None:
        del uids


class _NeedsAnApi(StatusManager):
    """Cannot take a status where there is nobody to tell."""

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        if self._api is None:
            raise SyncFailed("no client of an API server")
        super().set_pod_status(pod, status)


class _LosesReasons(StatusManager):
    """Tells the reason of a phase only when the phase is new."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        result = super()._merged(uid, stored, new)
        return replace(result, reason=None, message=None) if stored.phase == result.phase else result


class _FirstGeneration(StatusManager):
    """Tells for ever the generation that it has seen first."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        result = super()._merged(uid, stored, new)
        return replace(result, observedGeneration=stored.observedGeneration or result.observedGeneration)


class _OnlyChanges(StatusManager):
    """Does nothing for a status that has not changed, be its pod deleted or not."""

    def _set(self, pod: Pod, status: PodStatus, *, force: bool = False, finished: bool = False) -> None:
        kept = self._kept.get(pods.uid(pod))
        ended = kept is not None and pods.is_terminal_phase(kept.status.phase)
        super()._set(pod, status, force=force and not ended, finished=finished)

    def _is_due(self, uid: str, kept: Kept) -> bool:
        stored = self._in_api(uid, kept)
        return stored is not None and self._patch(uid, stored, kept) is not None


class _WritesOnce(StatusManager):
    """Takes a status for written once it has tried, whatever the API server says."""

    async def _write_one(self, api: ApiServer, uid: str, kept: Kept) -> None:
        await super()._write_one(api, uid, kept)
        if uid in self._unsent and self._kept.get(uid) is kept:
            del self._unsent[uid]

    def _is_due(self, uid: str, kept: Kept) -> bool:
        stored = self._in_api(uid, kept)
        return stored is not None and self._may_be_deleted(uid, stored, kept)


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-STATUS-07",
        "An evicted pod is marked as disrupted while its containers still run and its phase is Running.",
        lambda: Parts(status_manager=_MarksAtOnce),
        ("STATUS-07",),
    ),
    Bug(
        "MUT-STATUS-01",
        "Statuses are written every ten seconds, changed or not.",
        lambda: Parts(status_manager=_AlwaysWrites),
        ("STATUS-01",),
    ),
    Bug(
        "MUT-STATUS-02",
        "Of two statuses the older is written last.",
        lambda: Parts(status_manager=_OldOverNew),
        ("STATUS-02",),
    ),
    Bug(
        "MUT-STATUS-03",
        "What others write into the kubelet's fields stays there.",
        lambda: Parts(status_manager=_BelievesTheApi),
        ("STATUS-03",),
        ("K8S-88964", "K8S-8818"),
    ),
    Bug(
        "MUT-STATUS-05",
        "A pod whose object is gone is asked for again and again.",
        lambda: Parts(status_manager=_Insists),
        ("STATUS-05",),
    ),
    Bug(
        "MUT-STATUS-08",
        "A pod begins anew with every restart of its container.",
        lambda: Parts(status_manager=_YoungestStart),
        ("STATUS-08",),
    ),
    Bug(
        "MUT-STATUS-09",
        "Conditions are dated anew though they stay as they are.",
        lambda: Parts(status_manager=_DatesAnew),
        ("STATUS-09",),
    ),
    Bug(
        "MUT-STATUS-10",
        "A container that had ended for good is told to run.",
        lambda: Parts(status_manager=_Resurrects),
        ("STATUS-10",),
    ),
    Bug(
        "MUT-STATUS-12",
        "Containers may say as much at their end as they like.",
        lambda: Parts(status_manager=_LongMessages),
        ("STATUS-12",),
    ),
    Bug(
        "MUT-STATUS-13",
        "A change of readiness is told when the pod is synced next.",
        lambda: Parts(status_manager=_ReadinessWaits),
        ("STATUS-13",),
    ),
    Bug(
        "MUT-STATUS-14",
        "Statuses of pods that are gone are kept for ever.",
        lambda: Parts(status_manager=_RemembersAll),
        ("STATUS-14",),
    ),
    Bug(
        "MUT-STATUS-15",
        "Without an API server no pod is run.",
        lambda: Parts(status_manager=_NeedsAnApi),
        ("STATUS-15",),
    ),
    Bug(
        "MUT-STATUS-17",
        "Why a pod is in its phase is told once and then lost.",
        lambda: Parts(status_manager=_LosesReasons),
        ("STATUS-17",),
    ),
    Bug(
        "MUT-STATUS-18",
        "The generation that is told is that of the pod's first spec.",
        lambda: Parts(status_manager=_FirstGeneration),
        ("STATUS-18",),
        kubernetes="1.34",
    ),
    Bug(
        "MUT-STATUS-19",
        "A deleted pod that ended long ago stays, for its status has nothing new.",
        lambda: Parts(status_manager=_OnlyChanges),
        ("STATUS-19",),
    ),
    Bug(
        "K8S-17980",
        "A status that could not be written is not written again.",
        lambda: Parts(status_manager=_WritesOnce),
        ("STATUS-20",),
    ),
)
