"""Bugs of the shutdown of the node: in which order pods end, with which time, and what is reported."""

import asyncio
from collections.abc import Mapping, Sequence

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import bug
from kubelet_reference.eviction.nodeshutdown import MESSAGE, REASON, Group, NodeShutdown
from kubelet_reference.status.conditions import StatusChange, ended_by_kubelet
from kubelet_reference.util.settings import Settings


@bug("MUT-SHUT-01", breaks="SHUT-01")
class AllGroupsAtOnce(NodeShutdown):
    """As the node goes down all pods are ended at once, whatever they matter."""

    async def end_all(self, members: Mapping[Group, Sequence[Pod]]) -> None:
        await asyncio.gather(*(self.end(group, found) for group, found in members.items() if found))


@bug("MUT-SHUT-02", breaks="SHUT-02")
class OverwritesSuccess(NodeShutdown):
    """A pod that had succeeded is Failed by the shutdown of its node."""

    def status_change(self) -> StatusChange:
        return ended_by_kubelet(REASON, MESSAGE, self.behaviour)


@bug("MUT-SHUT-03", breaks="SHUT-03")
class WaitsItOut(NodeShutdown):
    """Pods that matter more wait for the whole time of those that matter less."""

    async def end(self, group: Group, found: Sequence[Pod]) -> None:
        clock = self.clock
        end = clock.monotonic() + group.seconds
        await super().end(group, found)
        await clock.sleep(max(0.0, end - clock.monotonic()))


@bug("K8S-109531", breaks="SHUT-02", aliases=("K8S-110755", "K8S-112443", "K8S-124448", "K8S-120168"))
class GoesUntold(NodeShutdown):
    """The machine goes down before the last statuses of its pods are written."""

    async def wait_until_reported(self, found: Sequence[Pod], end: float) -> None:
        await super().wait_until_reported(found[:0], end)


@bug("MUT-SHUT-04", breaks="SHUT-04")
class GracefulByDefault(NodeShutdown):
    """The shutdown of a node is graceful though that is not configured."""

    def groups(self, settings: Settings) -> tuple[Group, ...]:
        return super().groups(settings) or (Group(0, 30),)
