"""Bugs in how pods are ended: what is given, what is told, and what becomes of the ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import grpc
from lightkube.models.core_v1 import LifecycleHandler, Pod
from msgspec import structs

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.cri_client import CriClient
from kubelet_reference.garbage_collection import GarbageCollector
from kubelet_reference.hooks import HookError, Hooks
from kubelet_reference.parts import Parts
from kubelet_reference.pod_workers import PodWorkers
from kubelet_reference.pods import AnyContainer
from kubelet_reference.ports import ApiServer
from kubelet_reference.records import ContainerState, ListedPod, PodRecords
from kubelet_reference.results import KillReason
from kubelet_reference.runtime_manager import RuntimeManager
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.status_manager import Kept, StatusManager
from kubelet_reference.stop_timeout import probe_grace, stop_timeout
from kubelet_reference.sync_pod import PodSyncer
from kubelet_reference.sync_result import Action, ActionResult, SyncResult
from kubelet_reference.termination import ContainerKill, Terminator
from kubelet_reference.termination_order import TerminationOrder
from kubelet_reference.updates import SyncFailed, Update, Waits
from kubelet_reference.versions import Behaviour
from kubelet_reference.worker import Worker
from kubelet_reference.worker_states import Event

_FOR_EVER = 10**9


class _ProbesGrace(Terminator):
    """Gives a container the grace of its probe whenever it has one."""

    async def kill_container(
        self, kill: ContainerKill, order: TerminationOrder | None = None
    ) -> ActionResult:
        container = pods.container(kill.pod, kill.name)
        own = probe_grace(container, KillReason.LIVENESS_PROBE) if container is not None else None
        return await super().kill_container(kill if own is None else replace(kill, grace_override=own), order)


class _SaysNothing(Terminator):
    """Stops containers without a word."""

    def tell(self, kill: ContainerKill) -> None:
        del kill


class _NothingIsGone(Terminator):
    """Takes it for a failure that there is nothing to stop."""

    def is_gone(self, error: grpc.RpcError) -> bool:
        del error
        return False


class _Guesses(Terminator):
    """Stops what the spec does not name by what it guesses."""

    async def kill_container(
        self, kill: ContainerKill, order: TerminationOrder | None = None
    ) -> ActionResult:
        if pods.container(kill.pod, kill.name) is None:
            await self._client.stop_container(kill.container_id, pods.grace_seconds(kill.pod))
            return ActionResult(Action.KILL_CONTAINER, kill.name)
        return await super().kill_container(kill, order)


class _WaitsForTheLost(Hooks):
    """Does not notice that a hook was lost, with its container or otherwise."""

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler
    ) -> None:
        try:
            await super().run(pod, container, container_id, handler)
        except HookError:
            if container.lifecycle and handler is container.lifecycle.preStop:
                await self._clock.sleep(_FOR_EVER)
            raise


class _FirstEndsAll(Terminator):
    """Goes on to the sandbox when the first container has stopped."""

    async def kill_containers(
        self, kills: Sequence[ContainerKill], order: TerminationOrder | None = None
    ) -> Sequence[ActionResult]:
        stops = [asyncio.ensure_future(self.kill_container(kill, order)) for kill in kills]
        if stops:
            await asyncio.wait(stops, return_when=asyncio.FIRST_COMPLETED)
        return [stop.result() for stop in stops if stop.done()]


class _StopsTheDead(RuntimeManager):
    """Stops every container of a pod, ended or not."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        dead = [one for one in running.containers if one.state is ContainerState.EXITED]
        if pod is not None:
            kills = [ContainerKill(pod, one.id, one.name, grace_override=grace_override) for one in dead]
            await self._hands.terminator.kill_containers(kills)
        return await super().kill_pod(pod, running, grace_override)


class _UsualGrace(GarbageCollector):
    """Stops a container that it knows nothing of in the usual way."""

    async def _stop_unknown(self, container_id: str) -> bool:
        await self._client.stop_container(container_id, 30)
        return True


class _TwoMinutes(CriClient):
    """Waits for every call two minutes at most."""

    def waiting_deadline(self, seconds: int) -> float:
        del seconds
        return self._timeout


class _EndsEarly(PodWorkers):
    """Thinks that nothing of a pod runs any more as soon as its end was asked for."""

    def could_have_running_containers(self, uid: str) -> bool:
        return super().could_have_running_containers(uid) and not self.is_termination_requested(uid)


class _BreaksOff(PodWorkers):
    """Breaks off a sync, calls to the runtime and all, when the pod is to go."""

    async def _sync(self, worker: Worker, update: Update, waits: Waits) -> Event:
        task = asyncio.ensure_future(super()._sync(worker, update, waits))
        self._tasks = getattr(self, "_tasks", {}) | {worker.uid: task}
        try:
            return await task
        except asyncio.CancelledError:
            raise SyncFailed("broken off") from None

    def _cut_waits(self, worker: Worker, _update: Update | None) -> None:
        task = self._tasks.get(worker.uid)
        if task is not None:
            task.cancel()


class _NeedsASandbox(PodSyncer):
    """Cannot end a pod that has no sandbox."""

    async def kill(self, pod: Pod, records: PodRecords, grace: int | None) -> None:
        if not records.sandboxes:
            raise SyncFailed("no sandbox to stop")
        await super().kill(pod, records, grace)


class _FailsSilently(PodSyncer):
    """Does not tell that a pod could not be killed."""

    def require_killed(self, pod: Pod, result: SyncResult) -> None:
        del pod
        if result.error is not None:
            raise SyncFailed(result.error)


class _Believes(PodSyncer):
    """Believes the runtime that everything has stopped."""

    def require_stopped(self, records: PodRecords) -> None:
        del records


class _EndsUnknown(StatusManager):
    """Leaves the states of lost containers as they were last told."""

    def terminate_pod(self, pod: Pod) -> None:
        status = self._before(pod)
        if not pods.is_static(pod) and not pods.is_terminal_phase(status.phase):
            status = structs.replace(status, phase=pods.FAILED)
        self._set(pod, status, force=True, finished=True)


class _DeletesByName(StatusManager):
    """Deletes whatever has the pod's name."""

    async def _delete(self, api: ApiServer, uid: str, pod: Pod) -> None:
        await api.delete_pod(pods.namespace(pod), pods.name(pod), grace_seconds=0, uid=None)
        self._forget(uid)


class _TidiesUp(StatusManager):
    """Deletes pods that have finished."""

    def _may_be_deleted(self, uid: str, stored: Pod, kept: Kept) -> bool:
        if not pods.is_mirror(stored) and pods.is_terminal_phase(pods.phase(stored)) and kept.finished:
            return True
        return super()._may_be_deleted(uid, stored, kept)


def _nothing_off(base: int, override: int | None, _waited: float, behaviour: Behaviour) -> int:
    return stop_timeout(base, override, 0.0, behaviour)


def _as_of_today(base: int, override: int | None, waited: float, behaviour: Behaviour) -> int:
    return stop_timeout(base, override, waited, replace(behaviour, grace_override_is_final=False))


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-WORK-11",
        "A container that runs on although its stop was answered as done is forgotten.",
        lambda: Parts(pod_syncer=_Believes),
        ("WORK-11",),
    ),
    Bug(
        "MUT-TERM-04",
        "A container of a deleted pod gets the grace of its probe, and not that of the deletion.",
        lambda: Parts(runtime=RuntimeParts(terminator=_ProbesGrace)),
        ("TERM-04",),
    ),
    Bug(
        "MUT-TERM-05",
        "After its preStop hook a container has its whole grace once more.",
        lambda: Parts(runtime=RuntimeParts(stop_timeout=_nothing_off)),
        ("TERM-05", "TERM-06"),
        ("K8S-115817",),
    ),
    Bug(
        "MUT-TERM-08",
        "The preStop hooks of containers that have ended are run too.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_StopsTheDead)),
        ("TERM-08", "TERM-22"),
    ),
    Bug(
        "MUT-TERM-09",
        "Containers are stopped without an event.",
        lambda: Parts(runtime=RuntimeParts(terminator=_SaysNothing)),
        ("TERM-09",),
    ),
    Bug(
        "MUT-TERM-10",
        "To stop what is gone already fails, and is tried again without end.",
        lambda: Parts(runtime=RuntimeParts(terminator=_NothingIsGone)),
        ("TERM-10",),
    ),
    Bug(
        "MUT-TERM-11",
        "In a version that gives the whole grace after the hook, the hook's time is taken off it.",
        lambda: Parts(runtime=RuntimeParts(stop_timeout=_as_of_today)),
        ("TERM-11",),
        kubernetes="1.26",
    ),
    Bug(
        "MUT-TERM-12",
        "A lost container is stopped with the usual grace and without its hook.",
        lambda: Parts(runtime=RuntimeParts(garbage_collector=_UsualGrace)),
        ("TERM-12",),
    ),
    Bug(
        "MUT-TERM-13",
        "A container that the spec does not name is stopped by guess.",
        lambda: Parts(runtime=RuntimeParts(terminator=_Guesses)),
        ("TERM-13",),
    ),
    Bug(
        "MUT-TERM-15",
        "A pod has failed as soon as its first container has, though others are still stopping.",
        lambda: Parts(pod_workers=_EndsEarly),
        ("TERM-15", "TERM-32"),
    ),
    Bug(
        "MUT-TERM-17",
        "Of a container whose record was lost nobody hears that it has ended.",
        lambda: Parts(status_manager=_EndsUnknown),
        ("TERM-17",),
    ),
    Bug(
        "MUT-TERM-19",
        "An ended pod's object is deleted by its name alone.",
        lambda: Parts(status_manager=_DeletesByName),
        ("TERM-19",),
    ),
    Bug(
        "MUT-TERM-20",
        "Pods that have finished are deleted.",
        lambda: Parts(status_manager=_TidiesUp),
        ("TERM-20",),
    ),
    Bug(
        "MUT-TERM-24",
        "A pod of which nothing was made cannot be deleted.",
        lambda: Parts(pod_syncer=_NeedsASandbox),
        ("TERM-24",),
    ),
    Bug(
        "MUT-TERM-25",
        "Nobody is told that a pod could not be killed.",
        lambda: Parts(pod_syncer=_FailsSilently),
        ("TERM-25",),
    ),
    Bug(
        "MUT-TERM-26",
        "A pull is broken off when its pod is deleted.",
        lambda: Parts(pod_workers=_BreaksOff),
        ("TERM-26",),
    ),
    Bug(
        "MUT-TERM-29",
        "When one container of a deleted pod has ended the others get no more time.",
        lambda: Parts(runtime=RuntimeParts(terminator=_FirstEndsAll)),
        ("TERM-29",),
    ),
    Bug(
        "K8S-73993",
        "A preStop hook that was lost is waited for until the grace is over.",
        lambda: Parts(runtime=RuntimeParts(hooks=_WaitsForTheLost)),
        ("HOOK-06",),
    ),
    Bug(
        "K8S-44970",
        "A stop that takes longer than two minutes is given up, whatever time it had.",
        lambda: Parts(cri_client=_TwoMinutes),
        ("TERM-03",),
        ("K47",),
    ),
)
