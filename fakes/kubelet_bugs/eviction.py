"""Bugs of evictions, of the node's shutdown, and of who has a pod killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from lightkube.models.core_v1 import Pod, PodStatus
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import conditions, pods
from kubelet_reference.admission import HANDLERS, no_shutdown
from kubelet_reference.conditions import StatusChange, ended_by_kubelet
from kubelet_reference.eviction import Threshold
from kubelet_reference.eviction_manager import EvictionManager
from kubelet_reference.kill_now import PodKiller
from kubelet_reference.node_shutdown import MESSAGE, REASON, Group, NodeShutdown
from kubelet_reference.parts import NodeParts, Parts
from kubelet_reference.pod_handlers import EVICTED, PodHandlers
from kubelet_reference.pod_workers import PodWorkers
from kubelet_reference.records import PodRecords
from kubelet_reference.settings import Settings
from kubelet_reference.status_manager import Kept, StatusManager
from kubelet_reference.sync_pod import PodSyncer
from kubelet_reference.updates import Update
from kubelet_reference.worker import Worker

_FOR_EVER = 10.0**9


class _EvictsAll(EvictionManager):
    """Evicts every pod at once."""

    async def evict_for(self, threshold: Threshold, active: Sequence[Pod]) -> Sequence[Pod]:
        message = f"The node was low on resource: {threshold.signal}."
        await asyncio.gather(*(self.evict(pod, message, threshold) for pod in active))
        return active


class _ReclaimsNothing(EvictionManager):
    """Does not look for what could go instead of a pod."""

    async def is_reclaimed(self, threshold: Threshold) -> bool:
        return not threshold.signal


class _SparesNobody(EvictionManager):
    """Takes any pod for one that can go."""

    def is_spared(self, pod: Pod) -> bool:
        return not pods.uid(pod)


class _TakesZeroForNothing(EvictionManager):
    """Has no grace of its own to give."""

    def grace(self, threshold: Threshold | None, pod: Pod) -> int | None:
        is_hard = threshold is None or threshold.grace_seconds is None
        return None if is_hard else super().grace(threshold, pod)


class _TakesLessThanNothing(EvictionManager):
    """Hands the configured maximum down as it is."""

    def grace(self, threshold: Threshold | None, pod: Pod) -> int | None:
        most = self._tools.settings.eviction_max_pod_grace_period
        return most if most < 0 else super().grace(threshold, pod)


class _WaitsForPressure(EvictionManager):
    """Looks at the limits of pods only when the node runs short."""

    async def evict_above_limits(self, active: Iterable[Pod]) -> Sequence[Pod]:
        return await super().evict_above_limits(active) if self._met_since else []


class _EndsWithoutReason(PodSyncer):
    """Leaves the status of a pod that is killed to its containers."""

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


class _LosesTheMark(PodSyncer):
    """Makes the last status anew, without what others have put there."""

    def publish_final_status(self, pod: Pod, records: PodRecords) -> None:
        status = self._tools.generate(pod, records, terminal=True)
        found = [one for one in status.conditions or () if one.type != conditions.DISRUPTION_TARGET]
        self._tools.statuses.set_pod_status(pod, replace(status, conditions=found))


class _SaysSoTooEarly(StatusManager):
    """Writes a terminal phase as soon as it is decided."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        result = super()._merged(uid, stored, new)
        return replace(result, phase=new.phase, reason=new.reason, message=new.message)


class _DeletesEvicted(StatusManager):
    """Takes an evicted pod for one that may go."""

    def _may_be_deleted(self, uid: str, stored: Pod, kept: Kept) -> bool:
        is_over = stored.status is not None and stored.status.reason == EVICTED and kept.finished
        return is_over or super()._may_be_deleted(uid, stored, kept)


class _ForgetsEvictions(PodWorkers):
    """Does not remember that a pod was evicted."""

    def _note(self, worker: Worker, update: Update) -> None:
        super()._note(worker, update)
        worker.is_evicted = False


class _ClearsNothingAway(PodHandlers):
    """Leaves the containers of evicted pods to others."""

    def reconcile(self, reported: Iterable[Pod]) -> None:
        super().reconcile([pod for pod in reported if not (pod.status and pod.status.reason == EVICTED)])


class _ClearsAwayEarly(PodHandlers):
    """Removes what is dead of an evicted pod whenever something happens to it."""

    def sync(self, uids: Iterable[str]) -> None:
        found = list(uids)
        super().sync(found)
        for uid in found:
            if self._tools.workers.should_content_be_removed(uid):
                self._tools.clear_away(uid)


class _EvictedAreNew(PodHandlers):
    """Takes an evicted pod that it sees for the first time for a new one."""

    async def add(self, added: Iterable[Pod]) -> None:
        await super().add([self._renewed(pod) for pod in added])

    @staticmethod
    def _renewed(pod: Pod) -> Pod:
        evicted = pod.status is not None and pod.status.reason == EVICTED
        return replace(pod, status=None) if evicted else pod


class _WaitsForEver(PodKiller):
    """Waits for a kill until it is done."""

    def patience(self, pod: Pod, grace: int | None) -> float:
        return max(_FOR_EVER, super().patience(pod, grace))


class _FirstKillCounts(PodWorkers):
    """Keeps the reason of the first kill."""

    def _note(self, worker: Worker, update: Update) -> None:
        before = list(worker.status_changes)
        super()._note(worker, update)
        if before:
            worker.status_changes[:] = before


class _AllGroupsAtOnce(NodeShutdown):
    """Ends all pods together, whatever they matter."""

    async def end_all(self, members: Mapping[Group, Sequence[Pod]]) -> None:
        await asyncio.gather(*(self.end(group, found) for group, found in members.items() if found))


class _OverwritesSuccess(NodeShutdown):
    """Calls every pod failed."""

    def status_change(self) -> StatusChange:
        return ended_by_kubelet(REASON, MESSAGE, self._tools.behaviour)


class _WaitsItOut(NodeShutdown):
    """Gives every group all of its time."""

    async def end(self, group: Group, found: Sequence[Pod]) -> None:
        clock = self._tools.clock
        end = clock.monotonic() + group.seconds
        await super().end(group, found)
        await clock.sleep(max(0.0, end - clock.monotonic()))


class _GoesUntold(NodeShutdown):
    """Lets the machine go as soon as nothing runs."""

    async def wait_until_told(self, found: Sequence[Pod], end: float) -> None:
        await super().wait_until_told(found[:0], end)


class _GracefulByDefault(NodeShutdown):
    """Takes thirty seconds where nobody said how many."""

    def groups(self, settings: Settings) -> tuple[Group, ...]:
        return super().groups(settings) or (Group(0, 30),)


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-EVICT-01",
        "A node that is short of memory evicts all of its pods at once.",
        lambda: Parts(node=NodeParts(eviction_manager=_EvictsAll)),
        ("EVICT-01",),
    ),
    Bug(
        "MUT-EVICT-01-RECLAIM",
        "A pod is evicted for a full disk that dead containers fill.",
        lambda: Parts(node=NodeParts(eviction_manager=_ReclaimsNothing)),
        ("EVICT-01",),
    ),
    Bug(
        "MUT-EVICT-02",
        "A pod is told to be Failed while its containers are still being stopped.",
        lambda: Parts(status_manager=_SaysSoTooEarly),
        ("EVICT-02",),
    ),
    Bug(
        "K8S-105358",
        "Why the kubelet ended a pod is forgotten: its phase is what its containers make of it.",
        lambda: Parts(pod_syncer=_EndsWithoutReason),
        ("EVICT-02", "ADMIT-08", "SHUT-02"),
        ("K8S-103623",),
    ),
    Bug(
        "K8S-115819",
        "A hard eviction gives a pod all of its own grace.",
        lambda: Parts(node=NodeParts(eviction_manager=_TakesZeroForNothing)),
        ("EVICT-03",),
        ("K8S-124063", "K8S-122890"),
    ),
    Bug(
        "K8S-118172",
        "A negative maximum for the grace of evicted pods kills them at once.",
        lambda: Parts(node=NodeParts(eviction_manager=_TakesLessThanNothing)),
        ("EVICT-03",),
        ("K8S-137624",),
    ),
    Bug(
        "K8S-76598",
        "Pods that the node cannot do without are evicted like any other.",
        lambda: Parts(node=NodeParts(eviction_manager=_SparesNobody)),
        ("EVICT-04",),
        ("K8S-71134",),
    ),
    Bug(
        "MUT-EVICT-05",
        "What is dead of an evicted pod stays for as long as its object does.",
        lambda: Parts(pod_workers=_ForgetsEvictions, pod_handlers=_ClearsNothingAway),
        ("EVICT-05",),
    ),
    Bug(
        "K8S-141857",
        "The dead containers of an evicted pod are removed before anybody knows how they ended.",
        lambda: Parts(pod_handlers=_ClearsAwayEarly),
        ("EVICT-05",),
        ("K8S-123782",),
    ),
    Bug(
        "MUT-EVICT-06",
        "The object of an evicted pod is deleted.",
        lambda: Parts(status_manager=_DeletesEvicted),
        ("EVICT-06",),
    ),
    Bug(
        "MUT-EVICT-07",
        "An evicted pod is run again by a kubelet that comes back.",
        lambda: Parts(pod_handlers=_EvictedAreNew),
        ("EVICT-07",),
    ),
    Bug(
        "MUT-EVICT-08",
        "A pod above its own limits stays until the node runs short.",
        lambda: Parts(node=NodeParts(eviction_manager=_WaitsForPressure)),
        ("EVICT-08",),
    ),
    Bug(
        "MUT-WORK-20",
        "Who has a pod killed waits for that for ever.",
        lambda: Parts(node=NodeParts(pod_killer=_WaitsForEver)),
        ("WORK-20",),
    ),
    Bug(
        "MUT-WORK-21",
        "A pod that is killed for two reasons has the first one.",
        lambda: Parts(pod_workers=_FirstKillCounts),
        ("WORK-21",),
    ),
    Bug(
        "MUT-COND-08",
        "The last status of an evicted pod does not say that it was disrupted.",
        lambda: Parts(pod_syncer=_LosesTheMark),
        ("COND-08",),
    ),
    Bug(
        "MUT-SHUT-01",
        "As the node goes down all pods are ended at once, whatever they matter.",
        lambda: Parts(node=NodeParts(node_shutdown=_AllGroupsAtOnce)),
        ("SHUT-01",),
    ),
    Bug(
        "K8S-100184",
        "A node that goes down takes new pods.",
        lambda: Parts(admission_handlers=tuple(one for one in HANDLERS if one is not no_shutdown)),
        ("SHUT-01",),
    ),
    Bug(
        "MUT-SHUT-02",
        "A pod that had succeeded is Failed by the shutdown of its node.",
        lambda: Parts(node=NodeParts(node_shutdown=_OverwritesSuccess)),
        ("SHUT-02",),
    ),
    Bug(
        "K8S-109531",
        "The machine goes down before anybody was told how its pods ended.",
        lambda: Parts(node=NodeParts(node_shutdown=_GoesUntold)),
        ("SHUT-02",),
        ("K8S-110755", "K8S-112443", "K8S-124448", "K8S-120168"),
    ),
    Bug(
        "MUT-SHUT-03",
        "Pods that matter more wait for the whole time of those that matter less.",
        lambda: Parts(node=NodeParts(node_shutdown=_WaitsItOut)),
        ("SHUT-03",),
    ),
    Bug(
        "MUT-SHUT-04",
        "The shutdown of a node is graceful though nobody has asked for it.",
        lambda: Parts(node=NodeParts(node_shutdown=_GracefulByDefault)),
        ("SHUT-04",),
    ),
)
