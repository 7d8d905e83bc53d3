"""Bugs of the sync loop, of housekeeping, and of the order of first calls."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import grpc
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import bug
from kubelet_reference.api import pods
from kubelet_reference.api.records import ListedPod
from kubelet_reference.config import Op, PodUpdate
from kubelet_reference.cri.client import CriClient
from kubelet_reference.cri.runtime_reader import RuntimeReader, listed_pods
from kubelet_reference.kubelet.housekeeping import Housekeeping
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.kubelet.runtime_state import RuntimeState
from kubelet_reference.kubelet.sync_loop import Item, SyncLoop
from kubelet_reference.kuberuntime.container.stop_timeout import stop_timeout
from kubelet_reference.kuberuntime.sandbox_config import sandbox_config
from kubelet_reference.pleg.generic import PodLifecycleEvent
from kubelet_reference.pod_workers.worker import Worker
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

_PANICS = logging.getLogger("kubelet_reference.panics")
_NODES_SERVERS = ("10.0.0.2", "10.0.0.3", "10.0.0.4")


@bug("MUT-LOOP-03", breaks="LOOP-03")
class NeverWaits(SyncLoop):
    """Pods are synced although the runtime says that it is not ready."""

    async def wait_until_runtime_ready(self) -> None:
        return


@bug("MUT-LOOP-19", breaks="LOOP-19")
class Impatient(SyncLoop):
    """A loop that stands still for a minute is taken for dead."""

    def is_healthy(self) -> bool:
        entered = self._entered_at
        return entered is None or self.clock.monotonic() - entered <= 60  # noqa: PLR2004 - one minute


@bug("MUT-LOOP-04", breaks="LOOP-04")
class NetworkIsAll(RuntimeState):
    """No pod is synced while the network is not ready, not even one that needs none."""

    def errors(self) -> list[str]:
        return super().errors() + ([self._network] if self._network is not None else [])


@bug("MUT-LOOP-05", breaks="LOOP-05")
class SeldomAsks(RuntimeState):
    """The runtime is asked for its Status every 30 s only."""

    async def poll(self) -> None:
        await super().poll()
        if self._good_at is not None:
            await self.clock.sleep(25)


@bug("MUT-LOOP-08", breaks="LOOP-08")
class CleansAtOnce(SyncLoop):
    """A kubelet that starts kills the pods of sources that have not spoken yet."""

    async def run_housekeeping(self) -> None:
        await self.housekeeping.run_once()


@bug("MUT-LOOP-11", breaks="LOOP-11")
class LooksAtAll(SyncLoop):
    """Every pod is synced each second."""

    def due(self) -> list[str]:
        super().due()
        handlers = self.handlers
        return [pods.uid(pod) for pod in handlers.manager.pods()]


@bug("MUT-LOOP-13", breaks="LOOP-13")
class WaitsForStops(SyncLoop):
    """The loop waits until a deleted pod has stopped."""

    async def take_update(self, update: PodUpdate) -> None:
        await super().take_update(update)
        if update.op in {Op.DELETE, Op.REMOVE}:
            handlers = self.handlers
            workers = handlers.workers
            while any(workers.could_have_running_containers(pods.uid(pod)) for pod in update.pods):
                await self.clock.sleep(0.5)


@bug("MUT-LOOP-14", breaks="LOOP-14")
class AsTheyCome(PodHandlers):
    """New pods are admitted in no order, so that the older one may find its room taken."""

    async def add(self, added: Iterable[Pod]) -> None:
        for pod in added:
            await super().add([pod])


@bug("MUT-LOOP-15", breaks="LOOP-15", part="stop_timeout")
def no_time_to_end(base: int, override: int | None, waited: float, behaviour: Behaviour) -> int:
    """A deleted pod is killed without its grace."""
    return 0 if override is not None else stop_timeout(base, override, waited, behaviour)


@bug("MUT-LOOP-21", breaks="LOOP-21", part="sandbox_config")
def with_the_nodes_servers(pod: Pod, attempt: int, settings: Settings) -> cri.PodSandboxConfig:
    """A pod gets the node's name servers besides its own, more than resolv.conf takes."""
    config = sandbox_config(pod, attempt, settings)
    config.dns_config.servers.extend(_NODES_SERVERS)
    return config


@bug("MUT-CLEANUP-01", breaks="CLEANUP-01")
class KillsFirst(Housekeeping):
    """Pods that no source knows are killed before orphaned mirrors are deleted."""

    async def run_once(self) -> None:
        known = self.workers.sync_known_pods(self.manager.pods())
        self.kill_unknown(await self.list_running(), known)
        await self.statuses.clock.sleep(0.01)
        await super().run_once()


@bug("MUT-CLEANUP-02", breaks="CLEANUP-02")
class OldKnowledge(Housekeeping):
    """A pod that has started since the last housekeeping is killed for being unknown."""

    def __init__(self, **parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(**parts)
        self._before: dict[str, Worker] = {}

    def kill_unknown(self, running: Sequence[ListedPod], known: dict[str, Worker]) -> None:
        super().kill_unknown(running, dict(self._before))
        self._before = dict(known)


@bug("MUT-CLEANUP-08", breaks="CLEANUP-08")
class AtOnce(SyncLoop):
    """A pod that no source wants is killed as soon as it is found."""

    async def handle(self, item: Item) -> None:
        await super().handle(item)
        if isinstance(item, PodLifecycleEvent):
            await self.run_housekeeping()


@bug("MUT-CLEANUP-06", breaks="CLEANUP-06")
class HalfAList(RuntimeReader):
    """Where half of the runtime can be listed the other half is killed."""

    async def list_running_pods(self) -> tuple[ListedPod, ...]:
        try:
            return await super().list_running_pods()
        except grpc.RpcError:
            running = cri.ContainerFilter(state=cri.ContainerStateValue(state=cri.CONTAINER_RUNNING))
            containers = await self._client.list_containers(running)
            return listed_pods(cri.ListPodSandboxResponse(), containers)


@bug("MUT-CRI-41", breaks="CRI-41")
class RemovesAtOnce(CriClient):
    """A sandbox is removed without having been stopped."""

    async def stop_sandbox(self, sandbox_id: str) -> None:
        await self.remove_sandbox(sandbox_id)


@bug("MUT-CRI-42", breaks="CRI-42")
class AsksForNoConfig(RuntimeState):
    """The runtime is never asked how it is configured."""

    async def ask_config(self) -> None:
        """Ask for nothing."""


@bug("MUT-LOOP-22", breaks="LOOP-22")
class KnowsTheOldContainers(PodHandlers):
    """An edit that gives a pod a container of another name ends the kubelet."""

    def update(self, changed: Iterable[Pod]) -> None:
        changed = list(changed)
        for pod in changed:
            old = self.manager.by_uid(pods.uid(pod))
            if old is not None:
                before = {each.name: each for each in pods.spec(old).containers}
                for each in pods.spec(pod).containers:
                    before[each.name]
        super().update(changed)


@bug("MUT-LOOP-22-B", breaks="LOOP-22")
class LogsThatItPanics(KnowsTheOldContainers):
    """An edit that gives a pod a container of another name is lost in a panic, which is logged."""

    def update(self, changed: Iterable[Pod]) -> None:
        try:
            super().update(changed)
        except KeyError as error:
            _PANICS.error("Observed a panic: %r", error)
