"""Node-pressure evictions, the shell: every ten seconds it looks whether a pod has to go (EVICT-01).

What the node can free by itself goes first: dead containers, and unused images. Only if that does
not help one pod is ended, the first in the order of `eviction.ranked` that is not critical, and the next look
waits until it is gone. A pod above its own limits is ended whatever the node has left (EVICT-08).
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason, Recorder
from kubelet_reference.api.pods import is_critical
from kubelet_reference.eviction import eviction_rules
from kubelet_reference.eviction.eviction_rules import Threshold
from kubelet_reference.eviction.pod_killer import PodKiller
from kubelet_reference.status.conditions import ended_by_kubelet
from kubelet_reference.util.ports import Amount, Clock, NodeStats, PodUsage
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

PERIOD = 10.0
"""Seconds from one look to the next."""
CLEANUP_SECONDS = 30
"""So long at most the next look waits for a pod to be gone, which is asked every second."""

_log = logging.getLogger("kubelet_reference.eviction_manager")


@dataclass(eq=False)
class EvictionManager:
    """Watches the signals, keeps the node's pressures, and evicts.

    `active` gives the pods that run here, `reclaim` removes what no pod needs, `is_gone` says whether a pod
    has left nothing behind.
    """

    stats: NodeStats
    settings: Settings
    behaviour: Behaviour
    clock: Clock
    recorder: Recorder
    killer: PodKiller
    active: Callable[[], Sequence[Pod]]
    reclaim: Callable[[], Awaitable[None]]
    is_gone: Callable[[Pod], bool]

    def __post_init__(self) -> None:
        self._thresholds = eviction_rules.thresholds(self.settings)
        self._met_since: dict[Threshold, float] = {}
        self._pressed_at: dict[str, float] = {}
        self._usage: Mapping[str, PodUsage] = {}

    async def run(self) -> None:
        """Look for ever."""
        while True:
            evicted = await self.check()
            if evicted:
                await self.wait_until_gone(evicted)
            else:
                await self.clock.sleep(PERIOD)

    def pressures(self) -> frozenset[str]:
        """The conditions of the node as of the latest look, however long what follows it takes (ADMIT-09)."""
        return frozenset(self._pressed_at)

    async def check(self) -> Sequence[Pod]:
        """Check the signals once; returns the pods that were evicted."""
        stats = self.stats
        self.observe(await stats.read())
        self._usage = await stats.usage()
        active = self.active()
        evicted = await self.evict_above_limits(active)
        threshold = next((one for one in self._thresholds if self.is_due(one)), None)
        if evicted or threshold is None or await self.is_reclaimed(threshold):
            return evicted
        return await self.evict_for(threshold, active)

    def observe(self, signals: Mapping[str, Amount]) -> None:
        """Keep which thresholds are met, since when, and what that means for a while after it was seen."""
        now = self.clock.monotonic()
        met = [one for one in self._thresholds if eviction_rules.is_met(one, signals.get(one.signal))]
        self._met_since = {one: self._met_since.get(one, now) for one in met}
        seen = self._pressed_at | {eviction_rules.condition_of(one.signal): now for one in met}
        since = now - self.settings.eviction_pressure_transition_period
        self._pressed_at = {condition: t for condition, t in seen.items() if t > since}

    def is_due(self, threshold: Threshold) -> bool:
        """Whether the threshold has been met for long enough."""
        since = self._met_since.get(threshold)
        return since is not None and self.clock.monotonic() - since >= (threshold.grace_seconds or 0)

    async def is_reclaimed(self, threshold: Threshold) -> bool:
        """Whether the node could free something by itself: only disks hold what is not needed."""
        if eviction_rules.condition_of(threshold.signal) != "DiskPressure":
            return False
        await self.reclaim()
        self.observe(await self.stats.read())
        return threshold not in self._met_since

    async def evict_above_limits(self, active: Iterable[Pod]) -> Sequence[Pod]:
        """End each pod that uses more storage than it may."""
        exceeded = [(pod, next(eviction_rules.exceeded_limits(pod, self.usage(pod)), "")) for pod in active]
        return [pod for pod, broken in exceeded if broken and await self.evict(pod, broken, None)]

    async def evict_for(self, threshold: Threshold, active: Sequence[Pod]) -> Sequence[Pod]:
        """End one pod, the first that may be ended."""
        resource = eviction_rules.resource_of(threshold.signal)
        message = f"The node was low on resource: {resource}. Threshold quantity: {threshold.limit}."
        for pod in self.ranked(active, resource):
            if await self.evict(pod, message, threshold):
                return [pod]
        _log.warning("%s is below %s, and no pod may be evicted", threshold.signal, threshold.limit)
        return []

    def ranked(self, active: Sequence[Pod], resource: str) -> Sequence[Pod]:
        """The pods in the order in which they have to go."""
        return eviction_rules.ranked(active, resource, self.usage)

    def usage(self, pod: Pod) -> PodUsage:
        """What the pod uses, as far as that is known."""
        return self._usage.get(pods.uid(pod), PodUsage())

    def is_spared(self, pod: Pod) -> bool:
        """Whether the node cannot do without the pod (EVICT-04)."""
        return is_critical(pod)

    async def evict(self, pod: Pod, message: str, threshold: Threshold | None) -> bool:
        """End a pod and wait for that; False if it is not to be ended at all."""
        if self.is_spared(pod):
            return False
        self.recorder.warning(pod, Reason.EVICTED, message)
        change = ended_by_kubelet(Reason.EVICTED, message, self.behaviour)
        await self.killer.kill(pod, change, self.grace(threshold, pod), evict=True)
        return True

    def grace(self, threshold: Threshold | None, pod: Pod) -> int | None:
        """How many seconds the pod gets, None for its own grace period (EVICT-03)."""
        return eviction_rules.kill_grace(threshold, pod, self.settings, self.behaviour)

    async def wait_until_gone(self, evicted: Sequence[Pod]) -> None:
        """Let the pods free what they had before anything is measured again."""
        for _ in range(CLEANUP_SECONDS):
            await self.clock.sleep(1)
            if all(self.is_gone(pod) for pod in evicted):
                return
