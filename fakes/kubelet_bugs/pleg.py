"""Bugs of the PLEG, generic and evented: what it inspects, how often, what it misses, and what it keeps."""

import asyncio
from collections.abc import Sequence

import grpc
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.api.records import ContainerRecord, ListedPod, PodRecords
from kubelet_reference.cri.container_events import ContainerEvent
from kubelet_reference.cri.labels import container_record, containers_of
from kubelet_reference.cri.runtime_reader import RuntimeReader
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pleg.evented import EventedPleg
from kubelet_reference.pleg.generic import USUAL, Pleg, PodLifecycleEvent, PodLifeCycleEventType


@bug("K8S-22155", breaks=("LOOP-09", "RESTART-01"), aliases="K41")
class OnlyThePresent(Pleg):
    """A pod whose records all vanish between two relists is never looked at again."""

    def _to_compare(self, current: dict[str, ListedPod]) -> Sequence[str]:
        return tuple(current)


@bug("K8S-53207", breaks="PLEG-05", aliases=("K8S-94829", "K8S-107749", "K8S-97362"))
class NoSecondLook(Pleg):
    """A change whose inspection failed is never looked at again."""

    def _remember_failure(self, uid: str) -> None:
        """Remember nothing."""

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        await super()._process(uid, pod, events)
        self._advance(uid, pod)


@bug("K8S-29012", breaks="PLEG-01", aliases="K43")
class SilenceIsDeath(RuntimeReader):
    """While the runtime cannot be asked, its containers are thought to be gone."""

    async def list_pods(self) -> tuple[ListedPod, ...]:
        try:
            return await super().list_pods()
        except grpc.RpcError:
            return ()


@bug("K8S-90216", breaks="RESTART-02")
class SpoilsTheCache(Pleg):
    """The death of one container makes the kubelet forget that another one runs."""

    def deliver(self, event: PodLifecycleEvent) -> None:
        super().deliver(event)
        records = self.cache.get(event.uid)
        if event.kind is PodLifeCycleEventType.DIED and len(records.running) > 1:
            left = tuple(one for one in records.containers if one is not records.running[-1])
            self.cache.set(event.uid, structs.replace(records, containers=left), self.clock.monotonic())


@bug("K8S-69723", breaks="STATUS-16", aliases="K8S-69925")
class OldAddress(Pleg):
    """A pod shows the IP of its first sandbox for ever."""

    def with_ips(self, records: PodRecords) -> PodRecords:
        return structs.replace(records, ips=self.cache.get(records.uid).ips or records.ips)


@bug("K8S-83705", breaks="RESTARTKUBELET-04")
class OnlyTheLiving(Pleg):
    """A kubelet that comes back takes no notice of containers that ended before."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._began = self.clock.wall_ns()

    def with_ips(self, records: PodRecords) -> PodRecords:
        seen = (one for one in records.containers if not one.has_exited or one.finished_at >= self._began)
        return super().with_ips(structs.replace(records, containers=tuple(seen)))


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
            await self.clock.sleep(30)


@bug("MUT-PLEG-03", breaks="PLEG-03")
class NoDeath(Pleg):
    """A container whose record goes while it runs is taken for one that had ended long ago."""

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        removed = {event.data for event in events if event.kind is PodLifeCycleEventType.REMOVED}
        kept = (
            one for one in events if one.kind is not PodLifeCycleEventType.DIED or one.data not in removed
        )
        await super()._process(uid, pod, tuple(kept))


@bug("MUT-PLEG-04", breaks="PLEG-04")
class OnlyContainers(Pleg):
    """The death of a sandbox goes unnoticed as long as nothing happens to a container of its pod."""

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        listed = [one for one in (pod, self._pods.get(uid)) if one is not None]
        ids = {container.id for one in listed for container in one.containers}
        kept = tuple(event for event in events if event.data in ids)
        if kept:
            await super()._process(uid, pod, kept)
        else:
            self._advance(uid, pod)


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

    def __post_init__(self) -> None:
        super().__post_init__()
        self.events = asyncio.Queue[PodLifecycleEvent](1)

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        while self.events.full():
            await self.clock.sleep(0.05)
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


@bug("MUT-SANDBOX-04", breaks="SANDBOX-04")
class TakesTheSandboxForThePod(EventedPleg):
    """With a sandbox that is removed all that is known of its pod is forgotten."""

    def take(self, event: ContainerEvent) -> None:
        super().take(event)
        if event.sandbox_is_gone:
            self.cache.delete(event.uid)


@bug("MUT-SANDBOX-02", breaks="SANDBOX-02")
class KnowsAllAtOnce(EventedPleg):
    """The cache counts as up to date before the runtime has been looked at."""

    async def _keep_time(self) -> None:
        self.cache.update_time(self.clock.monotonic())
        await super()._keep_time()


@bug("MUT-PLEG-14", breaks="PLEG-14")
class LooksAllTheSame(EventedPleg):
    """The runtime is listed each second although it streams its events."""

    async def listen(self) -> None:
        self.pleg.pace = USUAL
        await super().listen()


@bug("MUT-PLEG-15", breaks="PLEG-15")
class LetsItGo(EventedPleg):
    """What happened while the stream of events was broken is not looked for."""

    async def _look(self) -> None:
        """Wait for the next relist, whenever that is."""


@bug("K8S-129827", breaks="PLEG-15")
class StaysSlow(EventedPleg):
    """After the stream of events was given up the runtime is still listed every five minutes only."""

    def _fall_back(self) -> None:
        """The pace stays what it was."""


@bug("K8S-123087", breaks="PLEG-16", aliases=("K8S-122721", "K8S-121349"))
class AsItComes(EventedPleg):
    """An event that comes late overwrites what a newer one has reported."""

    def is_late(self, event: ContainerEvent) -> bool:
        return False

    def _moment(self, event: ContainerEvent) -> float:
        return self.clock.monotonic()
