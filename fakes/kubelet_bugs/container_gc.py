"""Bugs of garbage collection: what is left for ever, and what goes too early."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import bug
from kubelet_reference.api import pods
from kubelet_reference.api.records import ListedPod
from kubelet_reference.images.image_gc_manager import ImageGCManager
from kubelet_reference.kubelet.housekeeping import Housekeeping
from kubelet_reference.kuberuntime.container_gc.container_deletor import RecordRemover
from kubelet_reference.kuberuntime.container_gc.garbage_collector import GarbageCollector
from kubelet_reference.pod_workers.pod_workers import PodWorkers
from kubelet_reference.pod_workers.worker import Worker
from kubelet_reference.util.ports import Amount

_OLD_NS = 100 * 10**9


@bug("CTRD-10865", breaks="GC-05")
class KeepsSandboxes(GarbageCollector):
    """Dead sandboxes are never removed."""

    async def collect_sandboxes(self) -> None:
        """Remove nothing."""


@bug("MUT-GC-04", breaks="GC-04")
class TakesUnknownForDead(GarbageCollector):
    """A container that may still run is removed without a stop."""

    async def _stop_unknown(self, container_id: str) -> bool:
        return True


@bug("MUT-GC-09", breaks=("GC-01", "GC-09", "GC-10"))
class ByAge(GarbageCollector):
    """Containers that have run for long are removed."""

    async def collect_containers(self, has_ended: Callable[[str], bool] = lambda _: False) -> None:
        await super().collect_containers(has_ended)
        listed = await self.tools.client.list_containers()
        for one in listed.containers:
            if self.tools.clock.wall_ns() - one.created_at > _OLD_NS:
                await self.remover.remove(one.id)


@bug("MUT-GC-03", breaks="GC-03")
class NewestFirst(GarbageCollector):
    """Where too many dead containers are left the newest go."""

    def choose(
        self, containers: Iterable[cri.Container], all_may_go: Callable[[str], bool]
    ) -> list[cri.Container]:
        containers = list(containers)
        count = len(super().choose(containers, all_may_go))
        dead = [one for one in containers if one.state != cri.CONTAINER_RUNNING]
        return sorted(dead, key=lambda one: one.created_at, reverse=True)[:count]


@bug("MUT-GC-08", breaks="GC-08")
class OnlyEnded(GarbageCollector):
    """Containers that were never started stay for ever."""

    def choose(
        self, containers: Iterable[cri.Container], all_may_go: Callable[[str], bool]
    ) -> list[cri.Container]:
        found = super().choose(containers, all_may_go)
        return [one for one in found if one.state != cri.CONTAINER_CREATED]


@bug("MUT-GC-07", breaks="GC-07")
class KeepsLogs(GarbageCollector):
    """Logs of pods that are gone stay for ever."""

    def collect_logs(self) -> None:
        """Remove nothing."""


@bug("MUT-GC-02", breaks="GC-02")
class NothingMayGo(PodWorkers):
    """Records of pods that are gone stay for ever."""

    def should_content_be_removed(self, uid: str) -> bool:
        return False


def _tell_nobody(why: str) -> None:
    del why


@bug("MUT-GC-11", breaks="GC-11")
class FailsInSilence(GarbageCollector):
    """Failures of garbage collection are not reported."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self.rules = replace(self.rules, failed=_tell_nobody)


@bug("MUT-GC-06", breaks="GC-06")
class LeavesLogs(RecordRemover):
    """A container is removed though its log stays."""

    async def _remove_logs(self, container_id: str) -> None:
        with suppress(OSError):
            await super()._remove_logs(container_id)


@bug("MUT-GC-12", breaks="GC-12")
class TakesAll(ImageGCManager):
    """Images are removed from under the containers that were made from them."""

    def names_in_use(self, containers: Iterable[cri.Container]) -> set[str]:
        return set()


@bug("MUT-GC-12-ROOM", breaks="GC-12")
class MakesRoomAnyway(ImageGCManager):
    """Images are removed from a disk that has room."""

    async def full_disk(self) -> Amount | None:
        return Amount(0, 100)


@bug("MUT-GC-02-EVICTED", breaks="GC-02")
class KeepsTheEvicted(PodWorkers):
    """The sandbox of an evicted pod stays until the pod is deleted."""

    def should_content_be_removed(self, uid: str) -> bool:
        worker = self._workers.get(uid)
        return super().should_content_be_removed(uid) and (worker is None or worker.is_deleted)


@bug("MUT-CLEANUP-03", breaks="CLEANUP-03")
class FoldersOfTheRunning(Housekeeping):
    """The folder of a deleted pod goes while its containers are still being stopped."""

    def remove_orphan_folders(
        self, wanted: Sequence[Pod], running: Sequence[ListedPod], known: Mapping[str, Worker]
    ) -> None:
        super().remove_orphan_folders(wanted, (), {})


@bug("MUT-CLEANUP-03-B", breaks="CLEANUP-03")
class FoldersOfTheGone(Housekeeping):
    """The folders of pods that are gone stay for ever."""

    def remove_orphan_folders(
        self, wanted: Sequence[Pod], running: Sequence[ListedPod], known: Mapping[str, Worker]
    ) -> None:
        """Remove nothing."""


@bug("MUT-CLEANUP-04", breaks="CLEANUP-04")
class FoldersOfTheEnded(Housekeeping):
    """The folder of a pod goes as soon as the pod has ended."""

    def remove_orphan_folders(
        self, wanted: Sequence[Pod], running: Sequence[ListedPod], known: Mapping[str, Worker]
    ) -> None:
        active = [pod for pod in wanted if self.activity.is_active(pod)]
        ended = {pods.uid(pod) for pod in wanted} - {pods.uid(pod) for pod in active}
        left = {uid: worker for uid, worker in known.items() if uid not in ended}
        super().remove_orphan_folders(active, running, left)


@bug("MUT-CLEANUP-05", breaks="CLEANUP-05")
class FreesCgroups(Housekeeping):
    """The cgroup of a pod that is gone goes before the memory that is charged to it."""

    def remove_orphan_cgroups(
        self, wanted: Sequence[Pod], running: Sequence[ListedPod], known: Mapping[str, Worker]
    ) -> None:
        kept = {pods.uid(pod) for pod in wanted} | {pod.uid for pod in running} | known.keys()
        for uid in self.cgroups.uids() if self.cgroups is not None else ():
            if uid not in kept and self.cgroups is not None:
                self.cgroups.remove(uid)
