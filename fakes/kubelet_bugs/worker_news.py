"""Bugs of the pod workers: what becomes of news and of looks at the runtime, and when the next one comes."""

from __future__ import annotations

from dataclasses import replace

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.grace import effective_grace
from kubelet_reference.parts import Parts
from kubelet_reference.pod_workers import PodWorkers
from kubelet_reference.records import PodRecords
from kubelet_reference.runtime_state import RuntimeState
from kubelet_reference.sync_pod import PodSyncer
from kubelet_reference.sync_result import SyncResult
from kubelet_reference.updates import Update, UpdateKind
from kubelet_reference.versions import Behaviour
from kubelet_reference.worker import Worker
from kubelet_reference.worker_rules import (
    ROUND_ERRORS,
    RecordsCache,
    Rounds,
    Timing,
    WorkerRules,
    WorkerTools,
)
from kubelet_reference.worker_states import Action, Event, Row, State, WorkerTable, worker_table


class _InTurn(PodWorkers):
    """Carries every update out, in the order in which they came."""

    def __init__(self, rounds: Rounds, cache: RecordsCache, tools: WorkerTools, rules: WorkerRules) -> None:
        super().__init__(rounds, cache, tools, rules)
        self._line: list[Update] = []

    def update_pod(self, update: Update) -> None:
        worker = self._workers.get(update.uid)
        is_busy = worker is not None and worker.is_working and worker.state is State.SYNC
        if is_busy and update.pod is not None and not self._asks_termination(update, update.pod):
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
    """Goes by what it sees of the pod when it looks again, not by what it was told before."""

    def _asks_termination(self, update: Update, pod: Pod) -> bool:
        return update.kind is not UpdateKind.SYNC and super()._asks_termination(update, pod)


class _Remembers(PodWorkers):
    """Goes by what is in store, however old that is."""

    async def _newest_records(self, worker: Worker, pod: Pod) -> PodRecords:
        del pod
        return self._cache.get(worker.uid)


class _NoListingNeeded(RuntimeState):
    """Works as soon as the runtime says that it is ready, listed or not."""

    def errors(self) -> list[str]:
        return [self._problem] if self._problem else []


class _FirstAtOnce(PodWorkers):
    """Does not wait for the first listing."""

    async def _newest_records(self, worker: Worker, pod: Pod) -> PodRecords:
        if worker.last_round == float("-inf"):
            return self._cache.get(worker.uid)
        return await super()._newest_records(worker, pod)


class _TakesErrorsForNothing(PodWorkers):
    """Takes a pod that cannot be read for one that is not there."""

    async def _newest_records(self, worker: Worker, pod: Pod) -> PodRecords:
        try:
            return await self._cache.get_newer_than(worker.uid, worker.last_round)
        except ROUND_ERRORS:
            return PodRecords(worker.uid)


class _WaitsOut(PodWorkers):
    """Lets a sync wait for volumes as long as it takes."""

    def _cut_waits(self, worker: Worker, _update: Update | None) -> None:
        del worker


class _Leftovers(PodWorkers):
    """Takes the word of the API server for it that a pod is over."""

    def _ended_before(self, pod: Pod) -> bool:
        return pods.is_terminal_phase(pods.phase(pod))


class _Leisurely(Timing):
    """Repeats what failed as seldom as what went well."""

    def after_failure(self, error: Exception | None) -> float:
        del error
        return self.after_success()


class _Seldom(Timing):
    """Looks at a healthy pod again after ten minutes."""

    def after_success(self) -> float:
        return 10 * super().after_success()


class _BackOffIsNoError(PodSyncer):
    """Counts a sync as successful that did nothing but wait for a back-off."""

    def raise_for(self, result: SyncResult) -> None:
        if not result.backing_off_only:
            super().raise_for(result)


def _zero_is_nothing(previous: int, pod: Pod, override: int | None, behaviour: Behaviour) -> int:
    return effective_grace(previous, pod, override, replace(behaviour, explicit_zero_grace_counts=False))


def _gives_up_the_kill(behaviour: Behaviour) -> WorkerTable:
    """A pod whose kill failed is looked at as any other."""
    row = Row(State.TERMINATING, Event.FAILED, State.SYNC, (Action.RETRY_SOON,))
    return worker_table(behaviour).with_row(row)


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-WORK-02",
        "Every update of a busy pod is carried out in turn.",
        lambda: Parts(pod_workers=_InTurn),
        ("WORK-02",),
    ),
    Bug(
        "MUT-WORK-04",
        "A pod whose kill has failed is run again with the next look at it.",
        lambda: Parts(pod_workers=_Relents, worker_table=_gives_up_the_kill),
        ("WORK-04",),
    ),
    Bug(
        "MUT-WORK-06",
        "A deletion waits until a sync has given up its wait for volumes.",
        lambda: Parts(pod_workers=_WaitsOut),
        ("WORK-06", "TERM-24"),
    ),
    Bug(
        "MUT-WORK-08",
        "A deletion by force leaves the pod its whole grace.",
        lambda: Parts(effective_grace=_zero_is_nothing),
        ("WORK-08",),
    ),
    Bug(
        "MUT-WORK-15",
        "A sync that failed is repeated after a minute.",
        lambda: Parts(timing=_Leisurely),
        ("WORK-15",),
    ),
    Bug(
        "MUT-WORK-15-B",
        "A healthy pod is looked at again after ten minutes.",
        lambda: Parts(timing=_Seldom),
        ("WORK-15",),
    ),
    Bug(
        "MUT-WORK-16",
        "A pod in a crash loop is looked at only as often as a healthy one.",
        lambda: Parts(pod_syncer=_BackOffIsNoError),
        ("WORK-16",),
    ),
    Bug(
        "MUT-WORK-17",
        "A sync goes by what the runtime showed before the last one.",
        lambda: Parts(pod_workers=_Remembers),
        ("WORK-17",),
    ),
    Bug(
        "MUT-WORK-18",
        "A pod that cannot be read is taken for one that is not there.",
        lambda: Parts(pod_workers=_TakesErrorsForNothing),
        ("WORK-18",),
    ),
    Bug(
        "MUT-WORK-19",
        "A kubelet that starts acts before it has looked at the runtime.",
        lambda: Parts(pod_workers=_FirstAtOnce, runtime_state=_NoListingNeeded),
        ("WORK-19",),
    ),
    Bug(
        "MUT-WORK-30",
        "What still runs of a pod that is over for the API server is left alone.",
        lambda: Parts(pod_workers=_Leftovers),
        ("WORK-30",),
    ),
)
