"""The pod workers: one state machine for each pod UID, driven by the table in `worker_table`."""

from collections.abc import Callable, Iterable, Mapping

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason
from kubelet_reference.api.records import PodRecords
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pod_workers.pod_state_queries import PodStateQueries, StaticNames
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.pod_workers.worker import Update, UpdateKind, Waits, Worker
from kubelet_reference.pod_workers.worker_rules import SYNC_ERRORS, WorkerRules, WorkerTools
from kubelet_reference.pod_workers.worker_table import Action, Event, Guard, State


class PodWorkers(PodStateQueries):
    """Takes updates of pods, and runs the syncs of each pod one after another (WORK-01).

    No task waits: one is started when a worker has something to do, and ends when nothing is pending.
    """

    def __init__(self, syncer: PodSyncer, cache: PodCache, tools: WorkerTools, rules: WorkerRules) -> None:
        super().__init__()
        self._syncer = syncer
        self._cache = cache
        self._clock = tools.clock
        self._queue = tools.queue
        self._recorder = tools.recorder
        self._spawn = tools.spawn
        self.metrics = tools.metrics
        self._table = rules.table
        self._timing = rules.timing
        self._behaviour = rules.behaviour
        self._grace = rules.grace
        self._names = StaticNames()
        self._actions: Mapping[Action, Callable[[Worker, Update | None], None]] = {
            Action.QUEUE: self._queue_update,
            Action.QUEUE_AGAIN: self._queue_again,
            Action.SET_GRACE: self._set_grace,
            Action.CANCEL_WAITS: self._cancel_waits,
            Action.RESYNC_LATER: self._resync_later,
            Action.RETRY_SOON: self._retry_soon,
            Action.REMEMBER_RESTART: self._remember_restart,
            Action.TAKE_NAME: self._take_name,
            Action.RELEASE_NAME: self._release_name,
            Action.RELEASE_KILLERS: self._release_killers,
            Action.MARK_DELETED: self._mark_deleted,
            Action.FORGET: self._forget,
        }

    # --- what comes in

    def update_pod(self, update: Update) -> None:
        """Send the update to the pod's worker; returns at once."""
        worker = self._workers.get(update.uid) or Worker(update.uid, update.full_name)
        event = self._event(worker, update)
        self._note(worker, update)
        self._step(worker, event, update)

    def sync_known_pods(self, desired: Iterable[Pod]) -> dict[str, Worker]:
        """Compare the workers with the pods that the sources want, and return those that remain, by UID.

        A worker whose pod no source wants is led to its end, or forgotten when it is there; one whose pod was
        created anew is forgotten when its end is reached, so that the caller can begin it afresh (WORK-22).
        """
        self._is_synced = True
        wanted = {pods.uid(pod) for pod in desired}
        for uid, worker in tuple(self._workers.items()):
            if uid not in wanted:
                self._step(worker, Event.UNWANTED, None)
            elif worker.restart_requested:
                self._step(worker, Event.RESTART, None)
        return self.all()

    def all(self) -> dict[str, Worker]:
        """The workers that there are now, by UID."""
        return dict(self._workers)

    def _event(self, worker: Worker, update: Update) -> Event:
        """What the update means to the worker."""
        if update.kind is UpdateKind.CREATE and worker.is_ending:
            return Event.CREATE
        return Event.TERMINATE if self._asks_termination(update) else Event.UPDATE

    def _asks_termination(self, update: Update) -> bool:
        """Whether the pod has to end, or did (WORK-05); what the runtime alone knows has to (WORK-24)."""
        pod = update.pod
        return (
            update.kind is UpdateKind.KILL
            or pod is None
            or pods.deletion_asked(pod)
            or pods.is_terminal_phase(pods.phase(pod))
        )

    def _note(self, worker: Worker, update: Update) -> None:
        """Keep what the worker has to remember of the update, whatever becomes of it."""
        if update.pod is None or pods.deletion_asked(update.pod):
            worker.is_deleted = True
        kill = update.kill
        if kill is None:
            return
        if kill.evict and not worker.is_ending:
            worker.is_evicted = True
        if kill.done is not None:
            worker.killers.append(kill.done)
        if kill.status is not None:
            worker.status_changes.append(kill.status)

    # --- the table

    def _step(self, worker: Worker, event: Event, update: Update | None) -> None:
        """Take the row that counts."""
        row = self._table.find(worker.state, event, lambda guard: self._holds(guard, update))
        if row.next is not State.NONE:
            self._workers[worker.uid] = worker
        if row.next is State.WAITING:
            self._names.wait(worker.full_name, worker.uid)
        worker.state = row.next
        for action in row.actions:
            self._actions[action](worker, update)
        if worker.state in {State.NONE, State.FINISHED}:
            worker.pending = None

    def _holds(self, guard: Guard, update: Update | None) -> bool:
        pod = update.pod if update is not None else None
        match guard:
            case Guard.STATIC:
                return pod is not None and pods.is_static(pod)
            case Guard.ENDED_BEFORE:
                return pod is not None and self._ended_before(pod)

    def _ended_before(self, pod: Pod) -> bool:
        """Whether the pod's phase is terminal and nothing of it runs (WORK-29)."""
        return pods.is_terminal_phase(pods.phase(pod)) and not self._cache.get(pods.uid(pod)).is_running

    # --- the actions

    def _queue_update(self, worker: Worker, update: Update | None) -> None:
        if update is not None:
            worker.pending = update
            self._wake(worker)

    def _queue_again(self, worker: Worker, _update: Update | None) -> None:
        if worker.pending is None:
            worker.pending = worker.active
        self._wake(worker)

    def _set_grace(self, worker: Worker, update: Update | None) -> None:
        """Take the update's wishes into the grace period; what the runtime alone knows has one of its own."""
        if update is not None and update.pod is not None:
            override = update.kill.grace_override if update.kill is not None else None
            worker.grace = self._grace(worker.grace, update.pod, override, self._behaviour)

    def _cancel_waits(self, worker: Worker, _update: Update | None) -> None:
        if self._behaviour.cancels_volume_waits:
            worker.waits.cancel()

    def _resync_later(self, worker: Worker, _update: Update | None) -> None:
        self._queue.enqueue(worker.uid, self._timing.after_success())

    def _retry_soon(self, worker: Worker, _update: Update | None) -> None:
        self._queue.enqueue(worker.uid, self._timing.after_failure(worker.error))

    def _remember_restart(self, worker: Worker, _update: Update | None) -> None:
        worker.restart_requested = True

    def _take_name(self, worker: Worker, _update: Update | None) -> None:
        self._names.take(worker.full_name, worker.uid)

    def _release_name(self, worker: Worker, _update: Update | None) -> None:
        self._names.release(worker.full_name, worker.uid)

    def _release_killers(self, worker: Worker, _update: Update | None) -> None:
        for done in worker.killers:
            done.set()

    def _mark_deleted(self, worker: Worker, _update: Update | None) -> None:
        worker.is_deleted = True

    def _forget(self, worker: Worker, _update: Update | None) -> None:
        self._workers.pop(worker.uid, None)

    # --- the syncs

    def _wake(self, worker: Worker) -> None:
        if not worker.is_working:
            worker.is_working = True
            self._spawn(self._work(worker))

    async def _work(self, worker: Worker) -> None:
        """Run syncs until nothing is pending, or the pod may not begin yet."""
        try:
            while worker.pending is not None and self._may_begin(worker):
                update, worker.pending = worker.pending, None
                await self._run_sync(worker, update)
        finally:
            worker.is_working = False

    def _may_begin(self, worker: Worker) -> bool:
        """Whether the pod may be synced; a static pod waits for its name, and asks again later."""
        if worker.state is not State.WAITING:
            return True
        if not self._names.may_take(worker.full_name, worker.uid, self._still_waits):
            self._retry_soon(worker, None)
            return False
        self._step(worker, Event.NAME_FREE, None)
        return True

    async def _run_sync(self, worker: Worker, update: Update) -> None:
        state, begun = worker.state, self._clock.monotonic()
        worker.active, worker.waits, worker.error = update, Waits(), None
        try:
            event = await self._sync(worker, update, worker.waits)
        except SYNC_ERRORS as error:
            worker.error = error
            event = Event.FAILED
        self.metrics.pod_worker_duration.labels(update.kind).observe(self._clock.monotonic() - begun)
        if worker.state is state:
            self._step(worker, event, None)

    async def _sync(self, worker: Worker, update: Update, waits: Waits) -> Event:
        """Run the sync that the worker's state asks for, and return how it ended."""
        pod, state = update.pod, worker.state
        if pod is None:
            if update.running is not None:
                await self._syncer.sync_terminating_runtime_pod(update.running)
            return Event.ENDED
        records = await self._newest_records(worker, pod)
        if worker.state is not state:
            return Event.DONE  # Overtaken while it waited: the next sync does what is desired now.
        try:
            if state is State.TERMINATED:
                await self._syncer.sync_terminated_pod(pod, records, waits)
            elif state is State.TERMINATING:
                change = worker.status_changes[-1] if worker.status_changes else None
                await self._syncer.sync_terminating_pod(pod, records, worker.grace or None, change)
            elif await self._syncer.sync_pod(pod, update.mirror, records, waits):
                return Event.ENDED
        finally:
            worker.last_sync_ended = self._clock.monotonic()
        return Event.DONE

    async def _newest_records(self, worker: Worker, pod: Pod) -> PodRecords:
        """What the runtime shows since the last sync, so that nothing is done twice (WORK-17, WORK-19)."""
        try:
            return await self._cache.get_newer_than(worker.uid, worker.last_sync_ended)
        except SYNC_ERRORS as error:
            self._recorder.warning(
                pod, Reason.FAILED_SYNC, f"error determining status: {wrapped_text(error)}"
            )
            raise
