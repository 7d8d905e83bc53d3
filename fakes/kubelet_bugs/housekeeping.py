"""Bugs of housekeeping: what it kills, and what it runs again."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import Bug
from kubelet_reference.housekeeping import Housekeeping, HouseTools
from kubelet_reference.parts import Parts
from kubelet_reference.pleg import PodLifecycleEvent
from kubelet_reference.records import ListedPod
from kubelet_reference.runtime_reader import RuntimeReader
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.sync_loop import Item, SyncLoop
from kubelet_reference.worker import KnownPod


class _KillsFirst(Housekeeping):
    """Kills what nobody knows before it does anything else, and gives that a moment."""

    async def run_once(self) -> None:
        known = self._tools.workers.sync_known_pods(self._tools.manager.pods())
        self.kill_unknown(await self._tools.list_running(), known)
        await self._tools.clock.sleep(0.01)
        await super().run_once()


class _OldKnowledge(Housekeeping):
    """Goes by the workers that there were at its last pass."""

    def __init__(self, tools: HouseTools) -> None:
        super().__init__(tools)
        self._before: dict[str, KnownPod] = {}

    def kill_unknown(self, running: Sequence[ListedPod], known: dict[str, KnownPod]) -> None:
        super().kill_unknown(running, dict(self._before))
        self._before = dict(known)


class _AtOnce(SyncLoop):
    """Tidies up as soon as it hears of anything that runs."""

    async def handle(self, item: Item) -> None:
        await super().handle(item)
        if isinstance(item, PodLifecycleEvent):
            await self.keep_house()


class _HalfAList(RuntimeReader):
    """Takes sandboxes that cannot be listed for none, and goes on with the containers."""

    async def list_running_pods(self) -> tuple[ListedPod, ...]:
        try:
            return await super().list_running_pods()
        except grpc.RpcError:
            running = cri.ContainerFilter(state=cri.ContainerStateValue(state=cri.CONTAINER_RUNNING))
            containers = await self._client.list_containers(running)
            return self._running.pods(cri.ListPodSandboxResponse(), containers)


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-CLEANUP-01",
        "Pods that nobody knows are killed before orphaned mirrors are deleted.",
        lambda: Parts(housekeeping=_KillsFirst),
        ("CLEANUP-01",),
    ),
    Bug(
        "MUT-CLEANUP-02",
        "A pod that has started since the last housekeeping is killed for being unknown.",
        lambda: Parts(housekeeping=_OldKnowledge),
        ("CLEANUP-02",),
    ),
    Bug(
        "MUT-CLEANUP-08",
        "What nobody wants is killed as soon as it is found.",
        lambda: Parts(sync_loop=_AtOnce),
        ("CLEANUP-08",),
    ),
    Bug(
        "MUT-CLEANUP-06",
        "Where half of the runtime can be listed the other half is killed.",
        lambda: Parts(runtime=RuntimeParts(reader=_HalfAList)),
        ("CLEANUP-06",),
    ),
)
