"""Bugs of garbage collection: what is left for ever, and what goes too early."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.garbage_collection import GarbageCollector
from kubelet_reference.housekeeping import Housekeeping
from kubelet_reference.image_garbage import ImageCollector
from kubelet_reference.parts import Parts
from kubelet_reference.pod_workers import PodWorkers
from kubelet_reference.record_remover import RecordRemover
from kubelet_reference.records import ListedPod
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.worker import KnownPod

_OLD_NS = 100 * 10**9


class _KeepsSandboxes(GarbageCollector):
    """Does not remove sandboxes."""

    async def collect_sandboxes(self) -> None:
        """Remove nothing."""


class _TakesUnknownForDead(GarbageCollector):
    """Removes a container in an unknown state like any that has ended."""

    async def _stop_unknown(self, container_id: str) -> bool:
        del container_id
        return True


class _ByAge(GarbageCollector):
    """Removes what is old, whatever it does."""

    async def collect_containers(self, has_ended: Callable[[str], bool] = lambda _: False) -> None:
        await super().collect_containers(has_ended)
        listed = await self._client.list_containers()
        for one in listed.containers:
            if self._clock.wall_ns() - one.created_at > _OLD_NS:
                await self._remover.remove(one.id)


class _NewestFirst(GarbageCollector):
    """Makes room by removing what is newest."""

    def choose(
        self, containers: Iterable[cri.Container], all_may_go: Callable[[str], bool]
    ) -> list[cri.Container]:
        containers = list(containers)
        count = len(super().choose(containers, all_may_go))
        dead = [one for one in containers if one.state != cri.CONTAINER_RUNNING]
        return sorted(dead, key=lambda one: one.created_at, reverse=True)[:count]


class _OnlyEnded(GarbageCollector):
    """Removes what has ended, and not what never began."""

    def choose(
        self, containers: Iterable[cri.Container], all_may_go: Callable[[str], bool]
    ) -> list[cri.Container]:
        found = super().choose(containers, all_may_go)
        return [one for one in found if one.state != cri.CONTAINER_CREATED]


class _KeepsLogs(GarbageCollector):
    """Does not remove the folders of logs."""

    def collect_logs(self) -> None:
        """Remove nothing."""


class _NothingMayGo(PodWorkers):
    """Takes no pod for gone as long as it remembers it."""

    def should_content_be_removed(self, uid: str) -> bool:
        del uid
        return False


def _tell_nobody(why: str) -> None:
    del why


class _FailsInSilence(GarbageCollector):
    """Tells nobody that a round has failed."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._rules = replace(self._rules, failed=_tell_nobody)


class _LeavesLogs(RecordRemover):
    """Removes a container whether its log could be removed or not."""

    async def _remove_logs(self, container_id: str) -> None:
        with suppress(OSError):
            await super()._remove_logs(container_id)


class _TakesAll(ImageCollector):
    """Does not look which images containers were made from."""

    def names_in_use(self, containers: Iterable[cri.Container]) -> set[str]:
        del containers
        return set()


class _FoldersOfTheRunning(Housekeeping):
    """Removes the folders of pods that nobody wants, whether anything of them runs or not."""

    def remove_orphan_folders(
        self, wanted: Sequence[Pod], running: Sequence[ListedPod], known: Mapping[str, KnownPod]
    ) -> None:
        del running, known
        super().remove_orphan_folders(wanted, (), {})


class _FoldersOfTheEnded(Housekeeping):
    """Removes the folders of pods that have ended."""

    def remove_orphan_folders(
        self, wanted: Sequence[Pod], running: Sequence[ListedPod], known: Mapping[str, KnownPod]
    ) -> None:
        active = [pod for pod in wanted if self._tools.activity.is_active(pod)]
        ended = {pods.uid(pod) for pod in wanted} - {pods.uid(pod) for pod in active}
        left = {uid: worker for uid, worker in known.items() if uid not in ended}
        super().remove_orphan_folders(active, running, left)


class _FreesCgroups(Housekeeping):
    """Removes the cgroups of pods that are gone, whatever is left of their volumes."""

    def remove_orphan_cgroups(
        self, wanted: Sequence[Pod], running: Sequence[ListedPod], known: Mapping[str, KnownPod]
    ) -> None:
        kept = {pods.uid(pod) for pod in wanted} | {pod.uid for pod in running} | known.keys()
        for uid in self._tools.cgroups.uids() if self._tools.cgroups is not None else ():
            if uid not in kept and self._tools.cgroups is not None:
                self._tools.cgroups.remove(uid)


def _parts(collector: type[GarbageCollector]) -> Parts:
    """The parts of a kubelet with this collector."""
    return Parts(runtime=RuntimeParts(garbage_collector=collector))


BUGS: tuple[Bug, ...] = (
    Bug(
        "CTRD-10865",
        "Dead sandboxes are never removed.",
        lambda: _parts(_KeepsSandboxes),
        ("GC-05",),
    ),
    Bug(
        "MUT-GC-02",
        "Records of pods that are gone stay for ever.",
        lambda: Parts(pod_workers=_NothingMayGo),
        ("GC-02",),
    ),
    Bug(
        "MUT-GC-03",
        "Where too many dead containers are left the newest go.",
        lambda: _parts(_NewestFirst),
        ("GC-03",),
    ),
    Bug(
        "MUT-GC-06",
        "A container is removed though its log stays.",
        lambda: Parts(runtime=RuntimeParts(record_remover=_LeavesLogs)),
        ("GC-06",),
    ),
    Bug(
        "MUT-GC-07",
        "Logs of pods that are gone stay for ever.",
        lambda: _parts(_KeepsLogs),
        ("GC-07",),
    ),
    Bug(
        "MUT-GC-08",
        "Containers that were never started stay for ever.",
        lambda: _parts(_OnlyEnded),
        ("GC-08",),
    ),
    Bug(
        "MUT-GC-11",
        "Nobody learns that garbage cannot be collected.",
        lambda: _parts(_FailsInSilence),
        ("GC-11",),
    ),
    Bug(
        "MUT-GC-12",
        "Images are removed from under the containers that were made from them.",
        lambda: Parts(runtime=RuntimeParts(image_collector=_TakesAll)),
        ("GC-12",),
    ),
    Bug(
        "MUT-CLEANUP-03",
        "The folder of a deleted pod goes while its containers are still being stopped.",
        lambda: Parts(housekeeping=_FoldersOfTheRunning),
        ("CLEANUP-03",),
    ),
    Bug(
        "MUT-CLEANUP-04",
        "The folder of a pod goes as soon as the pod has ended.",
        lambda: Parts(housekeeping=_FoldersOfTheEnded),
        ("CLEANUP-04",),
    ),
    Bug(
        "MUT-CLEANUP-05",
        "The cgroup of a pod that is gone goes before the memory that is charged to it.",
        lambda: Parts(housekeeping=_FreesCgroups),
        ("CLEANUP-05",),
    ),
    Bug(
        "MUT-GC-04",
        "A container that may still run is removed without a stop.",
        lambda: _parts(_TakesUnknownForDead),
        ("GC-04",),
    ),
    Bug(
        "MUT-GC-09",
        "Containers that have run for long are removed.",
        lambda: _parts(_ByAge),
        ("GC-01", "GC-09", "GC-10"),
    ),
)
