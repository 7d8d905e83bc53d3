"""Graceful shutdown of the node: pods are ended in groups, those that matter most last (SHUT-01).

Each group has a priority, from which on pods belong to it, and its time. The next one begins when all pods of
a group are gone, or its time is over. From the first moment on no new pod is admitted.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.pods import SYSTEM_CRITICAL, priority
from kubelet_reference.eviction.pod_killer import PodKiller
from kubelet_reference.status.conditions import StatusChange, ended_by_kubelet
from kubelet_reference.util.ports import Clock, ShutdownSignal
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

REASON = "Terminated"
MESSAGE = "Pod was terminated in response to imminent node shutdown."
LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Group:
    """The pods from a priority on, up to that of the next group, and how many seconds they get."""

    priority: int
    seconds: int


def groups(settings: Settings) -> tuple[Group, ...]:
    """The groups by rising priority; none where the shutdown is not graceful, which is the default (SHUT-04).

    Without groups by priority there are two: what the critical pods do not need is for the others.
    """
    if settings.shutdown_grace_period_by_pod_priority:
        found = settings.shutdown_grace_period_by_pod_priority
        return tuple(Group(least, seconds) for least, seconds in sorted(found))
    critical = settings.shutdown_grace_period_critical_pods
    others = settings.shutdown_grace_period - critical
    if settings.shutdown_grace_period <= 0:
        return ()
    return Group(0, others), Group(SYSTEM_CRITICAL, critical)


def by_group(every: Sequence[Group], found: Iterable[Pod]) -> Mapping[Group, list[Pod]]:
    """Each group with its pods; what is below the first group belongs to it."""
    members: dict[Group, list[Pod]] = {group: [] for group in every}
    for pod in found:
        own = [group for group in every if group.priority <= priority(pod)]
        members[own[-1] if own else every[0]].append(pod)
    return members


@dataclass(eq=False)
class NodeShutdown:
    """Waits for the shutdown to be announced, and ends the pods.

    `active` gives the pods that run here, `is_gone` says whether one of them has left nothing behind, its
    volumes included, `is_reported` whether the API server has its status; `spawn` runs a coroutine as a
    task of the kubelet.
    """

    signal: ShutdownSignal
    settings: Settings
    behaviour: Behaviour
    clock: Clock
    killer: PodKiller
    active: Callable[[], Sequence[Pod]]
    is_gone: Callable[[Pod], bool]
    is_reported: Callable[[Pod], bool]
    spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

    def __post_init__(self) -> None:
        self._groups = self.groups(self.settings)
        self.has_begun = False
        """The node goes down: no pod is admitted any more."""

    def groups(self, settings: Settings) -> tuple[Group, ...]:
        """The groups by rising priority."""
        return groups(settings)

    async def run(self) -> None:
        """Wait, and act once; nothing at all where the shutdown is not graceful (SHUT-04)."""
        if not self._groups:
            return
        await self.signal.announced()
        self.has_begun = True
        end = self.clock.monotonic() + sum(group.seconds for group in self._groups)
        found = self.active()
        await self.end_all(by_group(self._groups, found))
        await self.wait_until_reported(found, end)
        self.signal.release()

    async def wait_until_reported(self, found: Sequence[Pod], end: float) -> None:
        """Hold the shutdown up till it is known how the pods ended, within the time of all (K8S-109531)."""
        clock = self.clock
        while clock.monotonic() < end and not all(self.is_reported(pod) for pod in found):
            await clock.sleep(LOOK_SECONDS)

    async def end_all(self, members: Mapping[Group, Sequence[Pod]]) -> None:
        """End group after group."""
        for group, found in members.items():
            if found:
                await self.end(group, found)

    async def end(self, group: Group, found: Sequence[Pod]) -> None:
        """End the pods of a group; return when they are gone, or their time is over (SHUT-03)."""
        clock = self.clock
        end = clock.monotonic() + group.seconds
        kills = [self.spawn(self.kill(pod, group)) for pod in found]
        await asyncio.wait(kills, timeout=group.seconds)
        while clock.monotonic() < end and not all(self.is_done(pod) for pod in found):
            await clock.sleep(LOOK_SECONDS)

    def is_done(self, pod: Pod) -> bool:
        """Whether the next group need not wait for the pod: up to 1.31 its volumes may still be there."""
        return not self.behaviour.shutdown_awaits_volumes or self.is_gone(pod)

    async def kill(self, pod: Pod, group: Group) -> None:
        """End a pod within the time of its group, or its own grace if that is less (SHUT-01)."""
        grace = min(group.seconds, pods.grace_seconds(pod))
        await self.killer.kill(pod, self.status_change(), grace, evict=False)

    def status_change(self) -> StatusChange:
        """What the pod's status becomes: Failed, unless it has succeeded before (SHUT-02)."""
        return ended_by_kubelet(REASON, MESSAGE, self.behaviour, spares_success=True)
