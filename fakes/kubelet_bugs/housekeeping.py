"""Bugs of housekeeping: what it kills, and what it runs again."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_bugs.bug import bug
from kubelet_reference.housekeeping import Housekeeping, HouseTools
from kubelet_reference.pleg import PodLifecycleEvent
from kubelet_reference.records import ListedPod
from kubelet_reference.runtime_reader import RuntimeReader
from kubelet_reference.sync_loop import Item, SyncLoop
from kubelet_reference.worker import KnownPod


@bug("MUT-CLEANUP-01", breaks="CLEANUP-01")
class KillsFirst(Housekeeping):
    """Pods that nobody knows are killed before orphaned mirrors are deleted."""

    async def run_once(self) -> None:
        known = self._tools.workers.sync_known_pods(self._tools.manager.pods())
        self.kill_unknown(await self._tools.list_running(), known)
        await self._tools.clock.sleep(0.01)
        await super().run_once()


@bug("MUT-CLEANUP-02", breaks="CLEANUP-02")
class OldKnowledge(Housekeeping):
    """A pod that has started since the last housekeeping is killed for being unknown."""

    def __init__(self, tools: HouseTools) -> None:
        super().__init__(tools)
        self._before: dict[str, KnownPod] = {}

    def kill_unknown(self, running: Sequence[ListedPod], known: dict[str, KnownPod]) -> None:
        super().kill_unknown(running, dict(self._before))
        self._before = dict(known)


@bug("MUT-CLEANUP-08", breaks="CLEANUP-08")
class AtOnce(SyncLoop):
    """What nobody wants is killed as soon as it is found."""

    async def handle(self, item: Item) -> None:
        await super().handle(item)
        if isinstance(item, PodLifecycleEvent):
            await self.keep_house()


@bug("MUT-CLEANUP-06", breaks="CLEANUP-06")
class HalfAList(RuntimeReader):
    """Where half of the runtime can be listed the other half is killed."""

    async def list_running_pods(self) -> tuple[ListedPod, ...]:
        try:
            return await super().list_running_pods()
        except grpc.RpcError:
            running = cri.ContainerFilter(state=cri.ContainerStateValue(state=cri.CONTAINER_RUNNING))
            containers = await self._client.list_containers(running)
            return self._running.pods(cri.ListPodSandboxResponse(), containers)
