"""Bugs in what wakes the workers: news that go unheard, and looks that nobody takes."""

from __future__ import annotations

from collections.abc import Iterable

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.config import PodUpdate
from kubelet_reference.pleg import Happening, PodLifecycleEvent
from kubelet_reference.pod_handlers import PodHandlers
from kubelet_reference.probe_results import ProbeUpdate
from kubelet_reference.results import ProbeKind
from kubelet_reference.sync_loop import SyncLoop


@bug("MUT-LOOP-07", breaks=("LOOP-07", "STATIC-08"))
class NoPodsNoWord(SyncLoop):
    """A source that has no pods never counts as heard, and nothing is cleaned up."""

    async def take_update(self, update: PodUpdate) -> None:
        if update.pods:
            await super().take_update(update)


@bug("MUT-LOOP-10", breaks="LOOP-10")
class LeavesTheDead(SyncLoop):
    """When a container dies again its older instances are left to garbage collection."""

    def take_event(self, event: PodLifecycleEvent) -> None:
        if event.kind is not Happening.REMOVED:
            self._tools.handlers.sync([event.uid])


@bug("MUT-LOOP-12", breaks="LOOP-12")
class ReadyInTime(SyncLoop):
    """A readiness probe's result is told with the next resync."""

    def take_probe(self, update: ProbeUpdate) -> None:
        if update.kind is not ProbeKind.READINESS:
            super().take_probe(update)


@bug("MUT-LOOP-20", breaks="LOOP-20")
class RunningIsDone(PodHandlers):
    """A pod that runs is synced when its source changes it, and at no other time."""

    def sync(self, uids: Iterable[str]) -> None:
        found = {uid: self._tools.manager.by_uid(uid) for uid in uids}
        super().sync(uid for uid, pod in found.items() if pod and pods.phase(pod) != pods.RUNNING)
