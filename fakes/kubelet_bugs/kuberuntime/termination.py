"""Bugs in how pods and containers are stopped: in which order, with how much grace, and what is reported."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

import grpc
from lightkube.models.core_v1 import LifecycleHandler, Pod
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerState, ListedPod, PodRecords
from kubelet_reference.api.results import KillReason
from kubelet_reference.api.sync_result import Action, ActionResult, SyncResult
from kubelet_reference.cri.client import CriClient
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.kuberuntime.container.hooks import HookError, Hooks
from kubelet_reference.kuberuntime.container.kill_container import (
    ContainerKill,
    ContainerKiller,
    TerminationOrder,
)
from kubelet_reference.kuberuntime.container.stop_timeout import base_grace, probe_grace, stop_timeout
from kubelet_reference.kuberuntime.container_gc.garbage_collector import GarbageCollector
from kubelet_reference.kuberuntime.runtime_manager import RuntimeManager
from kubelet_reference.pod_workers.pod_workers import PodWorkers
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.pod_workers.worker import KillOptions, SyncFailed, Update, UpdateKind, Waits, Worker
from kubelet_reference.pod_workers.worker_rules import MINIMUM_SECONDS, effective_grace
from kubelet_reference.pod_workers.worker_table import Event
from kubelet_reference.status.status_manager import Kept, StatusManager
from kubelet_reference.util.ports import ApiServer
from kubelet_reference.util.versions import Behaviour

_FOR_EVER = 10**9


@bug(
    "K8S-83916",
    breaks=("WORK-07", "WORK-09"),
    part="effective_grace",
    aliases=("K22", "K8S-113717", "K8S-113882", "K8S-98507"),
)
def first_grace_holds(previous: int, pod: Pod, override: int | None, behaviour: Behaviour) -> int:
    """A second deletion with a shorter grace changes nothing."""
    return previous or effective_grace(0, pod, override, behaviour)


@bug("K8S-104743", breaks="WORK-33", part="effective_grace")
def no_grace_for_static(previous: int, pod: Pod, override: int | None, behaviour: Behaviour) -> int:
    """A static pod is stopped without its grace."""
    return MINIMUM_SECONDS if pods.is_static(pod) else effective_grace(previous, pod, override, behaviour)


@bug("K8S-60631", breaks="TERM-03", part="stop_timeout")
def least_timeout(_base: int, _override: int | None, _waited: float, _behaviour: Behaviour) -> int:
    """Every container is stopped with the least grace, whatever was asked for."""
    return 2


@bug("K8S-49626", breaks="WORK-33", aliases="K8S-14266")
class NoGraceWhenRemoved(PodHandlers):
    """A pod that its source dropped is stopped without its grace."""

    def remove(self, gone: Iterable[Pod]) -> None:
        dropped = list(gone)
        for pod in dropped:
            if not pods.is_mirror(pod) and self.may_remove():
                kill = KillOptions(0, evict=False)
                self.workers.update_pod(Update(UpdateKind.KILL, pod, kill=kill))
        super().remove(dropped)


@bug("K8S-119377", breaks="TERM-03", aliases="K08")
class ForgetsProbeGrace(ContainerKiller):
    """A container that failed its probe gets the grace of its pod, not that of the probe."""

    def base_grace(self, kill: ContainerKill, container: AnyContainer) -> int:
        return base_grace(kill.pod, container, KillReason.UNKNOWN)


@bug("K8S-49449", breaks="TERM-07", aliases="K07")
class HookWithoutTime(ContainerKiller):
    """With a grace of 0 a preStop hook is begun all the same."""

    def runs_hook(self, grace: int) -> bool:
        return grace >= 0


@bug("K8S-9764", breaks="TERM-01", aliases="K11")
class AllAtOnce(ContainerKiller):
    """The sandbox is stopped while containers are still stopping."""

    async def kill_pod(
        self, pod: Pod, kills: Sequence[ContainerKill], sandbox_ids: Sequence[str]
    ) -> tuple[ActionResult, ...]:
        containers, sandboxes = await asyncio.gather(
            self.kill_containers(kills), self.stop_sandboxes(pod, sandbox_ids)
        )
        return (*containers, *sandboxes)


@bug("K8S-53727", breaks=("TERM-02", "HOOK-14"), aliases="K10")
class OneByOne(ContainerKiller):
    """The containers of a pod are stopped one after another."""

    async def kill_containers(
        self, kills: Sequence[ContainerKill], order: TerminationOrder | None = None
    ) -> Sequence[ActionResult]:
        return [await self.kill_container(kill, order) for kill in kills]


@bug("K8S-45140", breaks="HOOK-05", aliases="K8S-24695")
class WaitsOutTheGrace(ContainerKiller):
    """A preStop hook that has ended is followed by the rest of the grace, and only then by the stop."""

    async def _within(
        self, limit: int, kill: ContainerKill, container: AnyContainer, handler: LifecycleHandler
    ) -> None:
        began = self.tools.clock.monotonic()
        await super()._within(limit, kill, container, handler)
        await self.tools.clock.sleep(limit - (self.tools.clock.monotonic() - began))


@bug("K8S-8768", breaks="TERM-06", aliases="K8S-127339")
class WaitsForHooks(ContainerKiller):
    """A preStop hook that does not end holds up the stop for ever."""

    async def _within(
        self, limit: int, kill: ContainerKill, container: AnyContainer, handler: LifecycleHandler
    ) -> None:
        await super()._within(max(limit, _FOR_EVER), kill, container, handler)


@bug("MUT-TERM-04", breaks="TERM-04")
class ProbesGrace(ContainerKiller):
    """A container of a deleted pod gets the grace of its probe, and not that of the deletion."""

    async def kill_container(
        self, kill: ContainerKill, order: TerminationOrder | None = None
    ) -> ActionResult:
        container = pods.container(kill.pod, kill.name)
        own = probe_grace(container, KillReason.LIVENESS_PROBE) if container is not None else None
        return await super().kill_container(kill if own is None else replace(kill, grace_override=own), order)


@bug("MUT-TERM-09", breaks="TERM-09")
class SaysNothing(ContainerKiller):
    """Containers are stopped without an event."""

    def report_killing(self, kill: ContainerKill) -> None:
        del kill


@bug("MUT-TERM-10", breaks="TERM-10")
class NothingIsGone(ContainerKiller):
    """To stop what is gone already fails, and is tried again without end."""

    def is_gone(self, error: grpc.RpcError) -> bool:
        return False


@bug("MUT-TERM-13", breaks="TERM-13")
class Guesses(ContainerKiller):
    """A container that the spec does not name is stopped by guess."""

    async def kill_container(
        self, kill: ContainerKill, order: TerminationOrder | None = None
    ) -> ActionResult:
        if pods.container(kill.pod, kill.name) is None:
            await self.tools.client.stop_container(kill.container_id, pods.grace_seconds(kill.pod))
            return ActionResult(Action.KILL_CONTAINER, kill.name)
        return await super().kill_container(kill, order)


@bug("K8S-73993", breaks="HOOK-06")
class WaitsForTheLost(Hooks):
    """A preStop hook that was lost is waited for until the grace is over."""

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler
    ) -> None:
        try:
            await super().run(pod, container, container_id, handler)
        except HookError:
            if container.lifecycle and handler is container.lifecycle.preStop:
                await self.tools.clock.sleep(_FOR_EVER)
            raise


@bug("MUT-TERM-29", breaks="TERM-29")
class FirstEndsAll(ContainerKiller):
    """When one container of a deleted pod has ended the others get no more time."""

    async def kill_containers(
        self, kills: Sequence[ContainerKill], order: TerminationOrder | None = None
    ) -> Sequence[ActionResult]:
        stops = [asyncio.ensure_future(self.kill_container(kill, order)) for kill in kills]
        if stops:
            await asyncio.wait(stops, return_when=asyncio.FIRST_COMPLETED)
        return [stop.result() for stop in stops if stop.done()]


@bug("MUT-TERM-08", breaks=("TERM-08", "TERM-22"))
class StopsTheDead(RuntimeManager):
    """The preStop hooks of containers that have ended are run too."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        dead = [one for one in running.containers if one.state is ContainerState.EXITED]
        if pod is not None:
            kills = [ContainerKill(pod, one.id, one.name, grace_override=grace_override) for one in dead]
            await self.components.container_killer.kill_containers(kills)
        return await super().kill_pod(pod, running, grace_override)


@bug("MUT-TERM-12", breaks="TERM-12")
class UsualGrace(GarbageCollector):
    """A lost container is stopped with the usual grace and without its hook."""

    async def _stop_unknown(self, container_id: str) -> bool:
        await self.tools.client.stop_container(container_id, 30)
        return True


@bug("K8S-44970", breaks="TERM-03", aliases="K47")
class TwoMinutes(CriClient):
    """A stop that takes longer than two minutes is given up, whatever time it had."""

    def waiting_deadline(self, seconds: int) -> float:
        return self._timeout


@bug("MUT-TERM-15", breaks=("TERM-15", "TERM-32"))
class EndsEarly(PodWorkers):
    """A pod has failed as soon as its first container has, though others are still stopping."""

    def could_have_running_containers(self, uid: str) -> bool:
        return super().could_have_running_containers(uid) and not self.is_termination_requested(uid)


@bug("MUT-TERM-26", breaks="TERM-26")
class BreaksOff(PodWorkers):
    """A pull is broken off when its pod is deleted."""

    async def _sync(self, worker: Worker, update: Update, waits: Waits) -> Event:
        task = asyncio.ensure_future(super()._sync(worker, update, waits))
        self._tasks = getattr(self, "_tasks", {}) | {worker.uid: task}
        try:
            return await task
        except asyncio.CancelledError:
            raise SyncFailed("broken off") from None

    def _cancel_waits(self, worker: Worker, _update: Update | None) -> None:
        task = self._tasks.get(worker.uid)
        if task is not None:
            task.cancel()


@bug("MUT-TERM-24", breaks="TERM-24")
class NeedsASandbox(PodSyncer):
    """A pod of which nothing was made cannot be deleted."""

    async def kill(self, pod: Pod, records: PodRecords, grace: int | None) -> None:
        if not records.sandboxes:
            raise SyncFailed("no sandbox to stop")
        await super().kill(pod, records, grace)


@bug("MUT-TERM-25", breaks="TERM-25")
class FailsSilently(PodSyncer):
    """It is not reported that a pod could not be killed."""

    def require_killed(self, pod: Pod, result: SyncResult) -> None:
        if result.error is not None:
            raise SyncFailed(result.error)


@bug("MUT-WORK-11", breaks="WORK-11")
class Believes(PodSyncer):
    """A container that runs on although its stop was answered as done is forgotten."""

    def require_stopped(self, records: PodRecords) -> None:
        del records


@bug("MUT-TERM-17", breaks="TERM-17")
class EndsUnknown(StatusManager):
    """The end of a container whose record was lost is not reported."""

    def terminate_pod(self, pod: Pod) -> None:
        status = self._before(pod)
        if not pods.is_static(pod) and not pods.is_terminal_phase(status.phase):
            status = structs.replace(status, phase=pods.FAILED)
        self._set(pod, status, force=True, finished=True)


@bug("MUT-TERM-19", breaks="TERM-19")
class DeletesByName(StatusManager):
    """An ended pod's object is deleted by its name alone."""

    async def _delete(self, api: ApiServer, uid: str, pod: Pod) -> None:
        await api.delete_pod(pods.namespace(pod), pods.name(pod), grace_seconds=0, uid=None)
        self._forget(uid)


@bug("MUT-TERM-20", breaks="TERM-20")
class TidiesUp(StatusManager):
    """Pods that have finished are deleted."""

    def _may_be_deleted(self, uid: str, stored: Pod, kept: Kept) -> bool:
        if not pods.is_mirror(stored) and pods.is_terminal_phase(pods.phase(stored)) and kept.finished:
            return True
        return super()._may_be_deleted(uid, stored, kept)


@bug("MUT-TERM-05", breaks=("TERM-05", "TERM-06"), part="stop_timeout", aliases="K8S-115817")
def nothing_off(base: int, override: int | None, _waited: float, behaviour: Behaviour) -> int:
    """After its preStop hook a container has its whole grace once more."""
    return stop_timeout(base, override, 0.0, behaviour)


@bug("MUT-TERM-11", breaks="TERM-11", part="stop_timeout", kubernetes="1.26")
def as_of_today(base: int, override: int | None, waited: float, behaviour: Behaviour) -> int:
    """In a version that gives the whole grace after the hook, the hook's time is taken off it."""
    return stop_timeout(base, override, waited, replace(behaviour, grace_override_is_final=False))
