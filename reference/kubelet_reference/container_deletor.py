"""Removes old instances of a container as soon as another one has died (LOOP-10, GC-10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kubelet_reference.records import ContainerRecord, ContainerState, PodRecords

KEPT = 1
"""Dead instances of one container that a wanted pod keeps: the newest tells the last state."""


def superfluous(records: PodRecords, died_id: str, *, remove_all: bool) -> tuple[ContainerRecord, ...]:
    """The dead instances to remove after the container `died_id` has died, newest first.

    They are those of the same container but the newest; with `remove_all` every dead one of the pod.
    """
    dead = [record for record in records.containers if record.state is ContainerState.EXITED]
    if remove_all:
        return tuple(dead)
    died = next((record for record in records.containers if record.id == died_id), None)
    if died is None:
        return ()
    return tuple(record for record in dead if record.name == died.name)[KEPT:]


class ContainerDeletor:
    """Removes containers one after another, in the background: nobody waits for that.

    Several containers of a pod may die between two looks at the runtime. What one death has made due is not
    due once more by the next one, whose records still show what may be gone by now.
    """

    def __init__(self, remove: Callable[[str], Awaitable[bool]]) -> None:
        self._remove = remove
        self._due = asyncio.Queue[str]()
        self._waiting = set[str]()
        self._records: PodRecords | None = None
        self._dealt_with = set[str]()

    def container_died(self, records: PodRecords, died_id: str, *, remove_all: bool) -> None:
        """Have the superfluous instances removed; `remove_all` says that the pod's content may go."""
        if records is not self._records:
            self._records, self._dealt_with = records, self._waiting.copy()
        for record in superfluous(records, died_id, remove_all=remove_all):
            if record.id not in self._dealt_with:
                self._dealt_with.add(record.id)
                self._waiting.add(record.id)
                self._due.put_nowait(record.id)

    async def run(self) -> None:
        """Remove what is due, for ever; what fails is left to the garbage collector."""
        while True:
            container_id = await self._due.get()
            await self._remove(container_id)
            self._waiting.discard(container_id)
