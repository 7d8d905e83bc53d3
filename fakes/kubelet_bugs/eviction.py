"""Bugs of evictions, and of who has a pod killed."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from lightkube.models.core_v1 import Pod, PodStatus
from msgspec import structs

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason
from kubelet_reference.api.records import PodRecords
from kubelet_reference.eviction.eviction_manager import EvictionManager
from kubelet_reference.eviction.eviction_rules import Threshold
from kubelet_reference.eviction.pod_killer import PodKiller
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.pod_workers.pod_workers import PodWorkers
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.pod_workers.worker import Update, Worker
from kubelet_reference.status import conditions
from kubelet_reference.status.status_manager import Kept, StatusManager
from kubelet_reference.util.ports import Amount

_FOR_EVER = 10.0**9


@bug("MUT-EVICT-01", breaks="EVICT-01")
class EvictsAll(EvictionManager):
    """A node that is short of memory evicts all of its pods at once."""

    async def evict_for(self, threshold: Threshold, active: Sequence[Pod]) -> Sequence[Pod]:
        message = f"The node was low on resource: {threshold.signal}."
        await asyncio.gather(*(self.evict(pod, message, threshold) for pod in active))
        return active


@bug("MUT-EVICT-01-RECLAIM", breaks="EVICT-01")
class ReclaimsNothing(EvictionManager):
    """A pod is evicted for a full disk that dead containers fill."""

    async def is_reclaimed(self, threshold: Threshold) -> bool:
        return not threshold.signal


@bug("MUT-EVICT-01-INODES", breaks="EVICT-01")
class CountsNoInodes(EvictionManager):
    """Nothing is evicted from a disk that is full of small files."""

    def observe(self, signals: Mapping[str, Amount]) -> None:
        super().observe({name: left for name, left in signals.items() if not name.endswith("inodesFree")})


@bug("K8S-76598", breaks="EVICT-04", aliases="K8S-71134")
class SparesNobody(EvictionManager):
    """Pods that the node cannot do without are evicted like any other."""

    def is_spared(self, pod: Pod) -> bool:
        return not pods.uid(pod)


@bug("K8S-115819", breaks="EVICT-03", aliases=("K8S-124063", "K8S-122890"))
class TakesZeroForNothing(EvictionManager):
    """A hard eviction gives a pod all of its own grace."""

    def grace(self, threshold: Threshold | None, pod: Pod) -> int | None:
        is_hard = threshold is None or threshold.grace_seconds is None
        return None if is_hard else super().grace(threshold, pod)


@bug("K8S-118172", breaks="EVICT-03", aliases="K8S-137624")
class TakesLessThanNothing(EvictionManager):
    """A negative maximum for the grace of evicted pods kills them at once."""

    def grace(self, threshold: Threshold | None, pod: Pod) -> int | None:
        most = self.settings.eviction_max_pod_grace_period
        return most if most < 0 else super().grace(threshold, pod)


@bug("MUT-EVICT-08", breaks="EVICT-08")
class WaitsForPressure(EvictionManager):
    """A pod above its own limits stays until the node runs short."""

    async def evict_above_limits(self, active: Iterable[Pod]) -> Sequence[Pod]:
        return await super().evict_above_limits(active) if self._met_since else []


@bug("K8S-105358", breaks=("EVICT-02", "ADMIT-08", "SHUT-02"), aliases="K8S-103623")
class EndsWithoutReason(PodSyncer):
    """Why the kubelet ended a pod is forgotten: its phase is what its containers make of it."""

    async def sync_terminating_pod(
        self,
        pod: Pod,
        records: PodRecords,
        grace: int | None,
        change_status: Callable[[PodStatus], PodStatus] | None,
    ) -> None:
        await super().sync_terminating_pod(pod, records, grace, change_status and _unchanged)


def _unchanged(status: PodStatus) -> PodStatus:
    return status


@bug("MUT-COND-08", breaks="COND-08")
class LosesTheMark(PodSyncer):
    """The last status of an evicted pod does not say that it was disrupted."""

    def publish_final_status(self, pod: Pod, records: PodRecords) -> None:
        status = self.generate(pod, records, terminal=True)
        found = [one for one in status.conditions or () if one.type != conditions.DISRUPTION_TARGET]
        self.statuses.set_pod_status(pod, structs.replace(status, conditions=found))


@bug("MUT-EVICT-02", breaks="EVICT-02")
class SaysSoTooEarly(StatusManager):
    """A pod is reported as Failed while its containers are still being stopped."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        result = super()._merged(uid, stored, new)
        return structs.replace(result, phase=new.phase, reason=new.reason, message=new.message)


@bug("MUT-EVICT-06", breaks="EVICT-06")
class DeletesEvicted(StatusManager):
    """The object of an evicted pod is deleted."""

    def _may_be_deleted(self, uid: str, stored: Pod, kept: Kept) -> bool:
        is_over = stored.status is not None and stored.status.reason == Reason.EVICTED and kept.finished
        return is_over or super()._may_be_deleted(uid, stored, kept)


class _ForgetsEvictions(PodWorkers):
    """Does not remember that a pod was evicted."""

    def _note(self, worker: Worker, update: Update) -> None:
        super()._note(worker, update)
        worker.is_evicted = False


class _ClearsNothingAway(PodHandlers):
    """Leaves the containers of evicted pods to others."""

    def reconcile(self, reported: Iterable[Pod]) -> None:
        super().reconcile(
            [pod for pod in reported if not (pod.status and pod.status.reason == Reason.EVICTED)]
        )


class _GivesUpTheEvicted(PodWorkers):
    """What is left of an evicted pod may go while it is still being stopped."""

    def should_content_be_removed(self, uid: str) -> bool:
        worker = self._workers.get(uid)
        return super().should_content_be_removed(uid) or (worker is not None and worker.is_evicted)


class _ClearsAwayWithEachSync(PodHandlers):
    """Removes dead containers that may go with each sync of their pod."""

    def sync(self, uids: Iterable[str]) -> None:
        found = list(uids)
        super().sync(found)
        for uid in found:
            if self.workers.should_content_be_removed(uid):
                self.remove_dead_containers(uid)


@bug("K8S-141857", breaks="EVICT-05", aliases="K8S-123782")
def clears_away_early() -> WrongParts:
    """The dead containers of an evicted pod are removed before anybody knows how they ended."""
    return parts_with(_GivesUpTheEvicted, _ClearsAwayWithEachSync)


@bug("MUT-EVICT-07", breaks="EVICT-07")
class EvictedAreNew(PodHandlers):
    """An evicted pod is run again by a kubelet that comes back."""

    async def add(self, added: Iterable[Pod]) -> None:
        await super().add([self._renewed(pod) for pod in added])

    @staticmethod
    def _renewed(pod: Pod) -> Pod:
        evicted = pod.status is not None and pod.status.reason == Reason.EVICTED
        return structs.replace(pod, status=None) if evicted else pod


@bug("MUT-WORK-20", breaks="WORK-20")
class WaitsForEver(PodKiller):
    """Who has a pod killed waits for that for ever."""

    def patience(self, pod: Pod, grace: int | None) -> float:
        return max(_FOR_EVER, super().patience(pod, grace))


@bug("MUT-WORK-21", breaks="WORK-21")
class FirstKillCounts(PodWorkers):
    """A pod that is killed for two reasons has the first one."""

    def _note(self, worker: Worker, update: Update) -> None:
        before = list(worker.status_changes)
        super()._note(worker, update)
        if before:
            worker.status_changes[:] = before


@bug("MUT-EVICT-05", breaks="EVICT-05")
def keeps_the_dead_of_evicted_pods() -> WrongParts:
    """What is dead of an evicted pod stays for as long as its object does."""
    return parts_with(_ForgetsEvictions, _ClearsNothingAway)
