"""The pod cache: what the runtime was last seen to know of each pod, and since when that is known.

The PLEG fills it; pod workers wait in it for a state that is newer than their last sync, so that no worker
acts twice on what it has itself changed meanwhile.
"""

import asyncio
from dataclasses import dataclass

import msgspec

from kubelet_reference.api.records import PodRecords


class _Entry(msgspec.Struct, frozen=True):
    """What one inspection brought: records or an error, and when it began, in seconds of the clock."""

    records: PodRecords
    error: Exception | None
    moment: float


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """A worker that waits for something newer than `moment` of the pod `uid`."""

    uid: str
    moment: float
    found: asyncio.Future[_Entry]


class PodCache:
    """The records of each pod by UID; a moment is in seconds of the kubelet's clock.

    A pod without an entry has no records. Records are never changed in place (K8S-90216).
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._waiters: list[_Waiter] = []
        self._moment = float("-inf")
        """All entries are at least as new as this."""

    def get(self, uid: str) -> PodRecords:
        """The records that were read last, at once, whether reading them has failed since or not."""
        return self._entry(uid).records

    async def get_newer_than(self, uid: str, moment: float) -> PodRecords:
        """The records as they were after `moment`, waiting if need be; raises the inspection's error."""
        entry = self._entry(uid)
        if not self._is_newer(entry, moment):
            entry = await self._next(uid, moment)
        if entry.error is not None:
            raise entry.error
        return entry.records

    def set(
        self, uid: str, records: PodRecords | None, moment: float, error: Exception | None = None
    ) -> None:
        """Keep what an inspection begun at `moment` brought; with an error, None keeps the older records.

        What is older than what is there is left alone (PLEG-16).
        """
        if self.is_older(uid, moment):
            return
        self._entries[uid] = _Entry(self.get(uid) if records is None else records, error, moment)
        self._wake()

    def is_older(self, uid: str, moment: float) -> bool:
        """Whether the pod's entry is newer than `moment`."""
        entry = self._entries.get(uid)
        return entry is not None and entry.moment > moment

    def delete(self, uid: str) -> None:
        """Forget a pod of which the runtime has no records left (PLEG-07)."""
        self._entries.pop(uid, None)

    def update_time(self, moment: float) -> None:
        """Declare every entry as new as `moment`: workers that wait for an unchanged pod go on (PLEG-06)."""
        self._moment = max(self._moment, moment)
        self._wake()

    def _entry(self, uid: str) -> _Entry:
        return self._entries.get(uid) or _Entry(PodRecords(uid), None, self._moment)

    def _is_newer(self, entry: _Entry, moment: float) -> bool:
        return entry.moment > moment or self._moment > moment

    async def _next(self, uid: str, moment: float) -> _Entry:
        waiter = _Waiter(uid, moment, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            return await waiter.found
        finally:
            self._waiters.remove(waiter)

    def _wake(self) -> None:
        for waiter in self._waiters:
            entry = self._entry(waiter.uid)
            if self._is_newer(entry, waiter.moment) and not waiter.found.done():
                waiter.found.set_result(entry)
