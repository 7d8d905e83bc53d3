"""Bugs in how the kubelet sees the runtime: what it misses, forgets, or makes up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference.parts import Parts
from kubelet_reference.pleg import Happening, Pleg, PodLifecycleEvent
from kubelet_reference.records import ListedPod, PodRecords
from kubelet_reference.runtime_reader import RuntimeReader
from kubelet_reference.runtime_side import RuntimeParts


class _OnlyThePresent(Pleg):
    """Compares only the pods that are still there."""

    def _to_compare(self, current: dict[str, ListedPod]) -> Sequence[str]:
        return tuple(current)


class _NoSecondLook(Pleg):
    """Has done with a pod whose inspection failed."""

    def _remember_failure(self, uid: str) -> None:
        """Remember nothing."""

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        await super()._process(uid, pod, events)
        self._advance(uid, pod)


class _SilenceIsDeath(RuntimeReader):
    """Takes a list that cannot be had for an empty one."""

    async def list_pods(self) -> tuple[ListedPod, ...]:
        try:
            return await super().list_pods()
        except grpc.RpcError:
            return ()


class _SpoilsTheCache(Pleg):
    """Loses a running container of a larger pod as it deals with the death of another one."""

    def deliver(self, event: PodLifecycleEvent) -> None:
        super().deliver(event)
        records = self._cache.get(event.uid)
        if event.kind is Happening.DIED and len(records.running) > 1:
            left = tuple(one for one in records.containers if one is not records.running[-1])
            self._cache.set(event.uid, replace(records, containers=left), self._clock.monotonic())


class _OldAddress(Pleg):
    """Keeps the first IPs of a pod for as long as it lives."""

    def with_ips(self, records: PodRecords) -> PodRecords:
        return replace(records, ips=self._cache.get(records.uid).ips or records.ips)


class _OnlyTheLiving(Pleg):
    """Takes no notice of containers that ended before this kubelet began."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._began = self._clock.wall_ns()

    def with_ips(self, records: PodRecords) -> PodRecords:
        seen = (one for one in records.containers if not one.has_exited or one.finished_at >= self._began)
        return super().with_ips(replace(records, containers=tuple(seen)))


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-22155",
        "A pod whose records all vanish between two relists is never looked at again.",
        lambda: Parts(pleg=_OnlyThePresent),
        ("LOOP-09", "RESTART-01"),
        ("K41",),
    ),
    Bug(
        "K8S-53207",
        "A change whose inspection failed is never looked at again.",
        lambda: Parts(pleg=_NoSecondLook),
        ("PLEG-05",),
        ("K8S-94829", "K8S-107749", "K8S-97362"),
    ),
    Bug(
        "K8S-29012",
        "While the runtime cannot be asked, its containers are thought to be gone.",
        lambda: Parts(runtime=RuntimeParts(reader=_SilenceIsDeath)),
        ("PLEG-01",),
        ("K43",),
    ),
    Bug(
        "K8S-90216",
        "The death of one container makes the kubelet forget that another one runs.",
        lambda: Parts(pleg=_SpoilsTheCache),
        ("RESTART-02",),
    ),
    Bug(
        "K8S-69723",
        "A pod shows the IP of its first sandbox for ever.",
        lambda: Parts(pleg=_OldAddress),
        ("STATUS-16",),
        ("K8S-69925",),
    ),
    Bug(
        "K8S-83705",
        "A kubelet that comes back takes no notice of containers that ended before.",
        lambda: Parts(pleg=_OnlyTheLiving),
        ("RESTARTKUBELET-04",),
    ),
)
