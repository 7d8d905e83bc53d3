"""Bugs of the pod workers: what becomes of news and of looks at the runtime, and when the next one comes."""

from dataclasses import replace

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_bugs.pod_workers.wrong_rows import with_row
from kubelet_reference.api import pods
from kubelet_reference.api.records import PodRecords
from kubelet_reference.api.sync_result import Failure, SyncResult
from kubelet_reference.kubelet.runtime_state import RuntimeState
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pod_workers.pod_workers import PodWorkers
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.pod_workers.worker import Update, UpdateKind, Worker
from kubelet_reference.pod_workers.worker_rules import (
    SYNC_ERRORS,
    Timing,
    WorkerRules,
    WorkerTools,
    effective_grace,
)
from kubelet_reference.pod_workers.worker_table import Action, Event, Row, State, WorkerTable, worker_table
from kubelet_reference.util.versions import Behaviour


@bug("MUT-WORK-02", breaks="WORK-02")
class InTurn(PodWorkers):
    """Every update of a busy pod is carried out in turn."""

    def __init__(self, syncer: PodSyncer, cache: PodCache, tools: WorkerTools, rules: WorkerRules) -> None:
        super().__init__(syncer, cache, tools, rules)
        self._line: list[Update] = []

    def update_pod(self, update: Update) -> None:
        worker = self._workers.get(update.uid)
        is_busy = worker is not None and worker.is_working and worker.state is State.SYNC
        if is_busy and not self._asks_termination(update):
            self._line.append(update)
        else:
            super().update_pod(update)

    async def _work(self, worker: Worker) -> None:
        await super()._work(worker)
        mine = [update for update in self._line if update.uid == worker.uid]
        if mine:
            self._line.remove(mine[0])
            self.update_pod(mine[0])


class _Relents(PodWorkers):
    """Follows what it reads of the pod at the next look, not the update that it received before."""

    def _asks_termination(self, update: Update) -> bool:
        return update.kind is not UpdateKind.SYNC and super()._asks_termination(update)


@bug("MUT-WORK-17", breaks="WORK-17")
class Remembers(PodWorkers):
    """A sync goes by what the runtime showed before the last one."""

    async def _newest_records(self, worker: Worker, pod: Pod) -> PodRecords:
        return self._cache.get(worker.uid)


class _NoListingNeeded(RuntimeState):
    """Works as soon as the runtime says that it is ready, listed or not."""

    def errors(self) -> list[str]:
        return [self._problem] if self._problem else []


class _FirstAtOnce(PodWorkers):
    """Does not wait for the first listing."""

    async def _newest_records(self, worker: Worker, pod: Pod) -> PodRecords:
        if worker.last_sync_ended == float("-inf"):
            return self._cache.get(worker.uid)
        return await super()._newest_records(worker, pod)


@bug("MUT-WORK-18", breaks="WORK-18")
class TakesErrorsForNothing(PodWorkers):
    """A pod that cannot be read is taken for one that is not there."""

    async def _newest_records(self, worker: Worker, pod: Pod) -> PodRecords:
        try:
            return await self._cache.get_newer_than(worker.uid, worker.last_sync_ended)
        except SYNC_ERRORS:
            return PodRecords(worker.uid)


@bug("MUT-WORK-06", breaks=("WORK-06", "TERM-24"))
class WaitsOut(PodWorkers):
    """A deletion waits until a sync has given up its wait for volumes."""

    def _cancel_waits(self, worker: Worker, _update: Update | None) -> None:
        del worker


@bug("MUT-WORK-30", breaks="WORK-30")
class Leftovers(PodWorkers):
    """What still runs of a pod that is over for the API server is left alone."""

    def _ended_before(self, pod: Pod) -> bool:
        return pods.is_terminal_phase(pods.phase(pod))


@bug("MUT-WORK-15", breaks="WORK-15")
class Leisurely(Timing):
    """A sync that failed is repeated after a minute."""

    def after_failure(self, error: Exception | None) -> float:
        return self.after_success()


@bug("MUT-WORK-15-B", breaks="WORK-15")
class Seldom(Timing):
    """A healthy pod is looked at again after ten minutes."""

    def after_success(self) -> float:
        return 10 * super().after_success()


@bug("MUT-WORK-16", breaks="WORK-16")
class BackOffIsNoError(PodSyncer):
    """A pod in a crash loop is looked at only as often as a healthy one."""

    def raise_for(self, result: SyncResult) -> None:
        waiting = {Failure.CRASH_LOOP_BACK_OFF, Failure.IMAGE_PULL_BACK_OFF}
        if any(one.reason not in waiting for one in result.failures):
            super().raise_for(result)


@bug("MUT-WORK-08", breaks="WORK-08", part="effective_grace")
def zero_is_nothing(previous: int, pod: Pod, override: int | None, behaviour: Behaviour) -> int:
    """A deletion by force leaves the pod its whole grace."""
    return effective_grace(previous, pod, override, replace(behaviour, explicit_zero_grace_counts=False))


def _gives_up_the_kill(behaviour: Behaviour) -> WorkerTable:
    """A pod whose kill failed is looked at as any other."""
    row = Row(State.TERMINATING, Event.FAILED, State.SYNC, (Action.RETRY_SOON,))
    return with_row(worker_table(behaviour), row)


@bug("MUT-WORK-04", breaks="WORK-04")
def runs_again_what_it_could_not_kill() -> WrongParts:
    """A pod whose kill has failed is run again with the next look at it."""
    return parts_with(_Relents, worker_table=_gives_up_the_kill)


@bug("MUT-WORK-19", breaks="WORK-19")
def acts_before_the_first_list() -> WrongParts:
    """A kubelet that starts acts before it has looked at the runtime."""
    return parts_with(_FirstAtOnce, _NoListingNeeded)
