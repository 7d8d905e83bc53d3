"""Bugs of the PLEG: what it inspects and how often, what it tells, and what it keeps."""

from __future__ import annotations

import asyncio
from typing import Any

from kubelet_bugs.bug import Bug
from kubelet_reference.labels import container_record, containers_of
from kubelet_reference.parts import Parts
from kubelet_reference.pleg import Happening, Pleg, PodLifecycleEvent
from kubelet_reference.pod_cache import PodCache
from kubelet_reference.records import ContainerRecord, ListedPod
from kubelet_reference.runtime_reader import RuntimeReader
from kubelet_reference.runtime_side import RuntimeParts


class _InspectsAll(Pleg):
    """Inspects every pod at every relist, whether it has changed or not."""

    async def relist(self) -> None:
        await super().relist()
        for pod in self._listed:
            await self._update_cache(pod.uid, pod)


class _Sleepy(Pleg):
    """Looks at the runtime twice a minute."""

    async def run(self) -> None:
        while True:
            await self.relist()
            await self._clock.sleep(30)


class _NoDeath(Pleg):
    """Tells that a running container's record went, and not that the container died."""

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        removed = {event.data for event in events if event.kind is Happening.REMOVED}
        told = (one for one in events if one.kind is not Happening.DIED or one.data not in removed)
        await super()._process(uid, pod, tuple(told))


class _OnlyContainers(Pleg):
    """Does not count sandboxes among what can start and die."""

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        listed = [one for one in (pod, self._pods.get(uid)) if one is not None]
        ids = {container.id for one in listed for container in one.containers}
        await super()._process(uid, pod, tuple(event for event in events if event.data in ids))


class _TakesTheFirstListForGranted(Pleg):
    """Compares only from the second relist on: what the first one finds is the starting point."""

    async def relist(self) -> None:
        if self._last_relist is None:
            self._listed = await self._list() or ()
            self._pods = {pod.uid: pod for pod in self._listed}
        await super().relist()


class _AlwaysHealthy(Pleg):
    """Has nothing to complain of, however long it has been blind."""

    def healthy(self) -> str | None:
        return None


class _WaitsForTheLoop(Pleg):
    """Has room for one event, and waits until the sync loop has taken it."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self.events = asyncio.Queue[PodLifecycleEvent](1)

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        while self.events.full():
            await self._clock.sleep(0.05)
        await super()._process(uid, pod, events)


class _NothingNew(Pleg):
    """Does not say that it has looked, if what it saw is what it had seen."""

    async def relist(self) -> None:
        before = self._listed
        listed = await self._list()
        if listed is not before or not listed:
            await super().relist()


class _RemembersTheDead(PodCache):
    """Keeps the last entry of a pod that has no records any more."""

    def delete(self, uid: str) -> None:
        """Keep it: nothing newer is known."""


class _AllOrNothing(RuntimeReader):
    """Gives up the inspection of a pod if one of its records is gone."""

    async def _containers(self, uid: str) -> tuple[ContainerRecord, ...]:
        listed = await self._client.list_containers(containers_of(uid))
        found = [await self._client.container_status(one.id) for one in listed.containers]
        records = [container_record(status, self._messages.message(status)) for status in found]
        return tuple(sorted(records, key=lambda record: -record.created_at))


class _AsListed(RuntimeReader):
    """Takes the record that the runtime lists first for the newest."""

    async def _containers(self, uid: str) -> tuple[ContainerRecord, ...]:
        return tuple(reversed(await super()._containers(uid)))


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-PLEG-02",
        "Every pod is inspected each second, whether anything about it has changed or not.",
        lambda: Parts(pleg=_InspectsAll),
        ("PLEG-02",),
    ),
    Bug(
        "MUT-PLEG-03",
        "A container whose record goes while it runs is taken for one that had ended long ago.",
        lambda: Parts(pleg=_NoDeath),
        ("PLEG-03",),
    ),
    Bug(
        "MUT-PLEG-04",
        "The death of a sandbox goes unnoticed as long as nothing happens to a container of its pod.",
        lambda: Parts(pleg=_OnlyContainers),
        ("PLEG-04",),
    ),
    Bug(
        "MUT-PLEG-06",
        "The worker of a pod that nothing happens to waits for something to happen.",
        lambda: Parts(pleg=_NothingNew),
        ("PLEG-06",),
    ),
    Bug(
        "MUT-PLEG-07",
        "What was last known of a pod is kept when nothing of it is left.",
        lambda: Parts(pod_cache=_RemembersTheDead),
        ("PLEG-07",),
    ),
    Bug(
        "MUT-PLEG-08",
        "Pods are begun though the runtime has not been listed for minutes.",
        lambda: Parts(pleg=_AlwaysHealthy),
        ("PLEG-08",),
    ),
    Bug(
        "K8S-72482",
        "The relist waits until the sync loop has taken its events.",
        lambda: Parts(pleg=_WaitsForTheLoop),
        ("PLEG-09",),
    ),
    Bug(
        "MUT-PLEG-11",
        "One record that is gone makes the inspection of its whole pod fail.",
        lambda: Parts(runtime=RuntimeParts(reader=_AllOrNothing)),
        ("PLEG-11",),
    ),
    Bug(
        "MUT-PLEG-12",
        "Of several records of a container the one that is listed first counts as the newest.",
        lambda: Parts(runtime=RuntimeParts(reader=_AsListed)),
        ("PLEG-12",),
    ),
    Bug(
        "MUT-PLEG-13",
        "The runtime is listed twice a minute.",
        lambda: Parts(pleg=_Sleepy),
        ("PLEG-13",),
    ),
    Bug(
        "MUT-PLEG-18",
        "What a kubelet finds when it starts is not inspected before it changes.",
        lambda: Parts(pleg=_TakesTheFirstListForGranted),
        ("PLEG-18",),
    ),
)
