"""Bugs of the pod workers: updates that are lost, rounds that overlap, ends that are not led to their end."""

from __future__ import annotations

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.housekeeping import Housekeeping
from kubelet_reference.parts import Parts
from kubelet_reference.pod_workers import PodWorkers
from kubelet_reference.records import PodRecords
from kubelet_reference.updates import Update, UpdateKind
from kubelet_reference.versions import Behaviour
from kubelet_reference.worker import Worker
from kubelet_reference.worker_rules import RecordsCache, Rounds, WorkerRules, WorkerTools
from kubelet_reference.worker_states import Action, Event, Row, State, WorkerTable, worker_table


class _NewestWins(PodWorkers):
    """Keeps one update while a worker works, the newest, even where it replaces a deletion."""

    def __init__(self, rounds: Rounds, cache: RecordsCache, tools: WorkerTools, rules: WorkerRules) -> None:
        super().__init__(rounds, cache, tools, rules)
        self._undelivered: dict[str, Update] = {}

    def update_pod(self, update: Update) -> None:
        worker = self._workers.get(update.uid)
        if worker is not None and worker.is_working:
            self._undelivered[update.uid] = update
        else:
            super().update_pod(update)

    async def _work(self, worker: Worker) -> None:
        await super()._work(worker)
        update = self._undelivered.pop(worker.uid, None)
        if update is not None:
            self.update_pod(update)

    def _asks_termination(self, update: Update, pod: Pod) -> bool:
        is_look = update.kind is UpdateKind.SYNC and not pods.is_terminal_phase(pods.phase(pod))
        return not is_look and super()._asks_termination(update, pod)


class _ForgetsRestart(PodWorkers):
    """Drops the news that a pod which is ending was created anew."""

    def _remember_restart(self, worker: Worker, _update: Update | None) -> None:
        worker.restart_requested = False


class _Hasty(PodWorkers):
    """Goes on after an error with what it knew before, not with what the failed step has brought about."""

    def __init__(self, rounds: Rounds, cache: RecordsCache, tools: WorkerTools, rules: WorkerRules) -> None:
        super().__init__(rounds, cache, tools, rules)
        self._failed: dict[str, None] = {}

    def _retry_soon(self, worker: Worker, _update: Update | None) -> None:
        super()._retry_soon(worker, _update)
        self._failed[worker.uid] = None

    async def _newest_records(self, worker: Worker, pod: Pod) -> PodRecords:
        if worker.uid in self._failed:
            del self._failed[worker.uid]
            return self._cache.get(worker.uid)
        return await super()._newest_records(worker, pod)


class _TwoHands(PodWorkers):
    """Begins a round at once, though another one of the pod is under way."""

    def _wake(self, worker: Worker) -> None:
        worker.is_working = True
        self._spawn(self._work(worker))


class _AnyName(PodWorkers):
    """Lets a static pod begin while another one still has its name."""

    def _may_begin(self, worker: Worker) -> bool:
        if worker.state is State.WAITING:
            self._step(worker, Event.NAME_FREE, None)
        return True


class _SkipsEmptyNode(Housekeeping):
    """Has nothing to do where no pod is wanted."""

    async def run_once(self) -> None:
        if self._tools.manager.pods():
            await super().run_once()


def _unknown_kills_only(behaviour: Behaviour) -> WorkerTable:
    """Housekeeping leaves a pod alone whose worker is at work on its end."""
    row = Row(State.TERMINATING, Event.UNWANTED, State.TERMINATING, (Action.MARK_DELETED,))
    return worker_table(behaviour).with_row(row)


def _late_end(behaviour: Behaviour) -> WorkerTable:
    """What is stopped is cleaned up with the next resync."""
    table = worker_table(behaviour)
    for row in (
        Row(
            State.TERMINATING,
            Event.DONE,
            State.TERMINATED,
            (Action.RELEASE_KILLERS, Action.RESYNC_LATER),
        ),
        Row(State.TERMINATED, Event.TERMINATE, State.TERMINATED, (Action.RELEASE_KILLERS,)),
    ):
        table = table.with_row(row)
    return table


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-52641",
        "A deletion is lost when another update follows while the pod's worker is busy.",
        lambda: Parts(pod_workers=_NewestWins),
        ("WORK-03",),
        ("K23",),
    ),
    Bug(
        "K8S-104648",
        "A static pod whose manifest comes back while it is being stopped never starts again.",
        lambda: Parts(pod_workers=_ForgetsRestart),
        ("WORK-22",),
        ("K19", "K8S-104847", "K8S-105075"),
    ),
    Bug(
        "K8S-98520",
        "After a start that timed out, though it was done, the pod is made a second time.",
        lambda: Parts(pod_workers=_Hasty),
        ("SANDBOX-02",),
        ("K8S-139670",),
    ),
    Bug(
        "K8S-64224",
        "Two syncs of one pod run at the same time.",
        lambda: Parts(pod_workers=_TwoHands),
        ("WORK-01", "CONFIG-07"),
    ),
    Bug(
        "K8S-112814",
        "A changed manifest's pod is started while the pod before it still runs.",
        lambda: Parts(pod_workers=_AnyName),
        ("STATIC-18",),
        ("K24",),
    ),
    Bug(
        "K8S-113145",
        "The kill of a pod that was force deleted is not tried again after an error.",
        lambda: Parts(worker_table=_unknown_kills_only),
        ("WORK-10",),
        ("K27", "openshift-1439"),
    ),
    Bug(
        "K8S-97288",
        "A pod that has stopped is cleaned up and deleted only a minute later.",
        lambda: Parts(worker_table=_late_end),
        ("WORK-12",),
    ),
    Bug(
        "K8S-3355",
        "On a node where no pod is wanted the leftovers of former ones go on running.",
        lambda: Parts(housekeeping=_SkipsEmptyNode),
        ("WORK-24", "LOOP-07", "RESTARTKUBELET-06", "RESTARTKUBELET-07"),
        ("K28", "K8S-2495"),
    ),
)
