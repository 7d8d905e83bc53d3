"""Bugs in how the kubelet sees the runtime: what it misses, forgets, or makes up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.pleg import Happening, Pleg, PodLifecycleEvent
from kubelet_reference.records import ListedPod, PodRecords
from kubelet_reference.runtime_reader import RuntimeReader


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
        records = self._cache.get(event.uid)
        if event.kind is Happening.DIED and len(records.running) > 1:
            left = tuple(one for one in records.containers if one is not records.running[-1])
            self._cache.set(event.uid, structs.replace(records, containers=left), self._clock.monotonic())


@bug("K8S-69723", breaks="STATUS-16", aliases="K8S-69925")
class OldAddress(Pleg):
    """A pod shows the IP of its first sandbox for ever."""

    def with_ips(self, records: PodRecords) -> PodRecords:
        return structs.replace(records, ips=self._cache.get(records.uid).ips or records.ips)


@bug("K8S-83705", breaks="RESTARTKUBELET-04")
class OnlyTheLiving(Pleg):
    """A kubelet that comes back takes no notice of containers that ended before."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._began = self._clock.wall_ns()

    def with_ips(self, records: PodRecords) -> PodRecords:
        seen = (one for one in records.containers if not one.has_exited or one.finished_at >= self._began)
        return super().with_ips(structs.replace(records, containers=tuple(seen)))
