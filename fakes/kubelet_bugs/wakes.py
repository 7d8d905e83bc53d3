"""Bugs in what wakes the workers: news that go unheard, and looks that nobody takes."""

from __future__ import annotations

from collections.abc import Iterable

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.config import PodUpdate
from kubelet_reference.parts import Parts
from kubelet_reference.pleg import Happening, PodLifecycleEvent
from kubelet_reference.pod_handlers import PodHandlers
from kubelet_reference.probe_results import ProbeUpdate
from kubelet_reference.results import ProbeKind
from kubelet_reference.sync_loop import SyncLoop


class _NoPodsNoWord(SyncLoop):
    """Does not count as heard who brings no pods."""

    async def take_update(self, update: PodUpdate) -> None:
        if update.pods:
            await super().take_update(update)


class _LeavesTheDead(SyncLoop):
    """Looks at a pod of which a container died, and leaves what died before."""

    def take_event(self, event: PodLifecycleEvent) -> None:
        if event.kind is not Happening.REMOVED:
            self._tools.handlers.sync([event.uid])


class _ReadyInTime(SyncLoop):
    """Leaves the news of readiness to the next sync, whenever that is."""

    def take_probe(self, update: ProbeUpdate) -> None:
        if update.kind is not ProbeKind.READINESS:
            super().take_probe(update)


class _RunningIsDone(PodHandlers):
    """Takes a pod that is told to run for done, until its source changes it."""

    def sync(self, uids: Iterable[str]) -> None:
        found = {uid: self._tools.manager.by_uid(uid) for uid in uids}
        super().sync(uid for uid, pod in found.items() if pod and pods.phase(pod) != pods.RUNNING)


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-LOOP-07",
        "A source that has no pods never counts as heard, and nothing is cleaned up.",
        lambda: Parts(sync_loop=_NoPodsNoWord),
        ("LOOP-07", "STATIC-08"),
    ),
    Bug(
        "MUT-LOOP-10",
        "When a container dies again its older instances are left to garbage collection.",
        lambda: Parts(sync_loop=_LeavesTheDead),
        ("LOOP-10",),
    ),
    Bug(
        "MUT-LOOP-12",
        "A readiness probe's result is told with the next resync.",
        lambda: Parts(sync_loop=_ReadyInTime),
        ("LOOP-12",),
    ),
    Bug(
        "MUT-LOOP-20",
        "A pod that runs is synced when its source changes it, and at no other time.",
        lambda: Parts(pod_handlers=_RunningIsDone),
        ("LOOP-20",),
    ),
)
