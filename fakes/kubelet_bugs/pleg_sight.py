"""Bugs of the PLEG: what it inspects and how often, what it tells, and what it keeps."""

from __future__ import annotations

import asyncio
from typing import Any

from kubelet_bugs.bug import bug
from kubelet_reference.labels import container_record, containers_of
from kubelet_reference.pleg import Happening, Pleg, PodLifecycleEvent
from kubelet_reference.pod_cache import PodCache
from kubelet_reference.records import ContainerRecord, ListedPod
from kubelet_reference.runtime_reader import RuntimeReader


@bug("MUT-PLEG-02", breaks="PLEG-02")
class InspectsAll(Pleg):
    """Every pod is inspected each second, whether anything about it has changed or not."""

    async def relist(self) -> None:
        await super().relist()
        for pod in self._listed:
            await self._update_cache(pod.uid, pod)


@bug("MUT-PLEG-13", breaks="PLEG-13")
class Sleepy(Pleg):
    """The runtime is listed twice a minute."""

    async def run(self) -> None:
        while True:
            await self.relist()
            await self._clock.sleep(30)


@bug("MUT-PLEG-03", breaks="PLEG-03")
class NoDeath(Pleg):
    """A container whose record goes while it runs is taken for one that had ended long ago."""

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        removed = {event.data for event in events if event.kind is Happening.REMOVED}
        told = (one for one in events if one.kind is not Happening.DIED or one.data not in removed)
        await super()._process(uid, pod, tuple(told))


@bug("MUT-PLEG-04", breaks="PLEG-04")
class OnlyContainers(Pleg):
    """The death of a sandbox goes unnoticed as long as nothing happens to a container of its pod."""

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        listed = [one for one in (pod, self._pods.get(uid)) if one is not None]
        ids = {container.id for one in listed for container in one.containers}
        await super()._process(uid, pod, tuple(event for event in events if event.data in ids))


@bug("MUT-PLEG-18", breaks="PLEG-18")
class TakesTheFirstListForGranted(Pleg):
    """What a kubelet finds when it starts is not inspected before it changes."""

    async def relist(self) -> None:
        if self._last_relist is None:
            self._listed = await self._list() or ()
            self._pods = {pod.uid: pod for pod in self._listed}
        await super().relist()


@bug("MUT-PLEG-08", breaks="PLEG-08")
class AlwaysHealthy(Pleg):
    """Pods are begun though the runtime has not been listed for minutes."""

    def healthy(self) -> str | None:
        return None


@bug("K8S-72482", breaks="PLEG-09")
class WaitsForTheLoop(Pleg):
    """The relist waits until the sync loop has taken its events."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self.events = asyncio.Queue[PodLifecycleEvent](1)

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        while self.events.full():
            await self._clock.sleep(0.05)
        await super()._process(uid, pod, events)


@bug("MUT-PLEG-06", breaks="PLEG-06")
class NothingNew(Pleg):
    """The worker of a pod that nothing happens to waits for something to happen."""

    async def relist(self) -> None:
        before = self._listed
        listed = await self._list()
        if listed is not before or not listed:
            await super().relist()


@bug("MUT-PLEG-07", breaks="PLEG-07")
class RemembersTheDead(PodCache):
    """What was last known of a pod is kept when nothing of it is left."""

    def delete(self, uid: str) -> None:
        """Keep it: nothing newer is known."""


@bug("MUT-PLEG-11", breaks="PLEG-11")
class AllOrNothing(RuntimeReader):
    """One record that is gone makes the inspection of its whole pod fail."""

    async def _containers(self, uid: str) -> tuple[ContainerRecord, ...]:
        listed = await self._client.list_containers(containers_of(uid))
        found = [await self._client.container_status(one.id) for one in listed.containers]
        records = [container_record(status, self._messages.message(status)) for status in found]
        return tuple(sorted(records, key=lambda record: -record.created_at))


@bug("MUT-PLEG-12", breaks="PLEG-12")
class AsListed(RuntimeReader):
    """Of several records of a container the one that is listed first counts as the newest."""

    async def _containers(self, uid: str) -> tuple[ContainerRecord, ...]:
        return tuple(reversed(await super()._containers(uid)))
