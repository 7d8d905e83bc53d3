"""Bugs of the pod workers: updates that are lost, syncs that overlap, and wake-ups that are missed."""

from collections.abc import Iterable

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import bug
from kubelet_bugs.pod_workers.wrong_rows import with_row
from kubelet_reference.api import pods
from kubelet_reference.api.records import PodRecords
from kubelet_reference.api.results import ProbeKind
from kubelet_reference.config import PodUpdate
from kubelet_reference.kubelet.housekeeping import Housekeeping
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.kubelet.sync_loop import SyncLoop
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pleg.generic import PodLifecycleEvent, PodLifeCycleEventType
from kubelet_reference.pod_workers.pod_workers import PodWorkers
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.pod_workers.worker import Update, UpdateKind, Worker
from kubelet_reference.pod_workers.worker_rules import WorkerRules, WorkerTools
from kubelet_reference.pod_workers.worker_table import Action, Event, Row, State, WorkerTable, worker_table
from kubelet_reference.prober.results import ProbeUpdate
from kubelet_reference.util.versions import Behaviour


@bug("K8S-52641", breaks="WORK-03", aliases="K23")
class NewestWins(PodWorkers):
    """A deletion is lost when another update follows while the pod's worker is busy."""

    def __init__(self, syncer: PodSyncer, cache: PodCache, tools: WorkerTools, rules: WorkerRules) -> None:
        super().__init__(syncer, cache, tools, rules)
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

    def _asks_termination(self, update: Update) -> bool:
        pod = update.pod
        is_over = pod is not None and pods.is_terminal_phase(pods.phase(pod))
        return (update.kind is not UpdateKind.SYNC or is_over) and super()._asks_termination(update)


@bug("K8S-104648", breaks="WORK-22", aliases=("K19", "K8S-104847", "K8S-105075"))
class ForgetsRestart(PodWorkers):
    """A static pod whose manifest comes back while it is being stopped never starts again."""

    def _remember_restart(self, worker: Worker, _update: Update | None) -> None:
        worker.restart_requested = False


@bug("K8S-98520", breaks="SANDBOX-02", aliases="K8S-139670")
class Hasty(PodWorkers):
    """After a start that timed out, though it was done, the pod is made a second time."""

    def __init__(self, syncer: PodSyncer, cache: PodCache, tools: WorkerTools, rules: WorkerRules) -> None:
        super().__init__(syncer, cache, tools, rules)
        self._failed: dict[str, None] = {}

    def _retry_soon(self, worker: Worker, _update: Update | None) -> None:
        super()._retry_soon(worker, _update)
        self._failed[worker.uid] = None

    async def _newest_records(self, worker: Worker, pod: Pod) -> PodRecords:
        if worker.uid in self._failed:
            del self._failed[worker.uid]
            return self._cache.get(worker.uid)
        return await super()._newest_records(worker, pod)


@bug("K8S-64224", breaks=("WORK-01", "CONFIG-07"))
class TwoHands(PodWorkers):
    """Two syncs of one pod run at the same time."""

    def _wake(self, worker: Worker) -> None:
        worker.is_working = True
        self._spawn(self._work(worker))


@bug("K8S-112814", breaks="STATIC-18", aliases="K24")
class AnyName(PodWorkers):
    """A changed manifest's pod is started while the pod before it still runs."""

    def _may_begin(self, worker: Worker) -> bool:
        if worker.state is State.WAITING:
            self._step(worker, Event.NAME_FREE, None)
        return True


@bug(
    "K8S-3355",
    breaks=("WORK-24", "LOOP-07", "RESTARTKUBELET-06", "RESTARTKUBELET-07"),
    aliases=("K28", "K8S-2495"),
)
class SkipsEmptyNode(Housekeeping):
    """On a node where no pod is wanted the leftovers of former ones go on running."""

    async def run_once(self) -> None:
        if self.manager.pods():
            await super().run_once()


@bug("K8S-113145", breaks="WORK-10", part="worker_table", aliases=("K27", "openshift-1439"))
def unknown_kills_only(behaviour: Behaviour) -> WorkerTable:
    """The kill of a pod that was force deleted is not tried again after an error."""
    row = Row(State.TERMINATING, Event.UNWANTED, State.TERMINATING, (Action.MARK_DELETED,))
    return with_row(worker_table(behaviour), row)


@bug("K8S-97288", breaks="WORK-12", part="worker_table")
def late_end(behaviour: Behaviour) -> WorkerTable:
    """A pod that has stopped is cleaned up and deleted only a minute later."""
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
        table = with_row(table, row)
    return table


@bug("MUT-LOOP-07", breaks=("LOOP-07", "STATIC-08"))
class NoPodsNoWord(SyncLoop):
    """A source that has no pods never counts as seen, and nothing is cleaned up."""

    async def take_update(self, update: PodUpdate) -> None:
        if update.pods:
            await super().take_update(update)


@bug("MUT-LOOP-10", breaks="LOOP-10")
class LeavesTheDead(SyncLoop):
    """When a container dies again its older instances are left to garbage collection."""

    def take_event(self, event: PodLifecycleEvent) -> None:
        if event.kind is not PodLifeCycleEventType.REMOVED:
            self.handlers.sync([event.uid])


@bug("MUT-LOOP-12", breaks="LOOP-12")
class ReadyInTime(SyncLoop):
    """A readiness probe's result is reported with the next resync."""

    def take_probe(self, update: ProbeUpdate) -> None:
        if update.kind is not ProbeKind.READINESS:
            super().take_probe(update)


@bug("MUT-LOOP-20", breaks="LOOP-20")
class RunningIsDone(PodHandlers):
    """A pod that runs is synced when its source changes it, and at no other time."""

    def sync(self, uids: Iterable[str]) -> None:
        found = {uid: self.manager.by_uid(uid) for uid in uids}
        super().sync(uid for uid, pod in found.items() if pod and pods.phase(pod) != pods.RUNNING)
