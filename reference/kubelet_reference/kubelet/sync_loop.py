"""The sync loop: waits for five inputs, and deals with one item at a time (LOOP-01).

- updates of pods from the config queue,
- events of the PLEG,
- a tick each second, at which the pods are synced whose time has come,
- changed results of probes,
- a tick every two seconds, at which housekeeping compares the kubelet with the world.

It never waits for a pod: the pod workers do the work. While the runtime is not ready, nothing is taken from
any input (LOOP-03).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

import grpc

from kubelet_reference.api.results import ProbeKind, ProbeOutcome
from kubelet_reference.config import Mux, Op, PodUpdate
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.kubelet.housekeeping import Housekeeping
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.kubelet.runtime_state import RuntimeState
from kubelet_reference.pleg.generic import PodLifecycleEvent, PodLifeCycleEventType
from kubelet_reference.pod_workers.active_deadline import Deadlines
from kubelet_reference.prober.results import ProbeUpdate
from kubelet_reference.status.status_manager import StatusManager
from kubelet_reference.util.ports import Clock, Random
from kubelet_reference.util.ticker import Ticker
from kubelet_reference.util.work_queue import WorkQueue

T = TypeVar("T")


class Inputs(Generic[T]):
    """A fair `select` over several inputs: buffers one item of each, and returns one of those (LOOP-02).

    Which one is left to chance; 0 is the one that came first. A source whose item is not taken yet waits, and
    holds up no other one (LOOP-01).
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._loop = asyncio.get_running_loop()
        self._ready: list[tuple[T, asyncio.Future[None]]] = []
        """The item of each source that has one, and the future that says that it was taken."""
        self._waiting: asyncio.Future[None] | None = None

    async def next(self) -> T:
        """The next item."""
        while not self._ready:
            self._waiting = self._loop.create_future()
            await self._waiting
        item, taken = self._ready.pop(self._random.pick(len(self._ready)))
        _end(taken)
        return item

    async def feed(self, read: Callable[[], Awaitable[T]]) -> None:
        """Keep on reading from a source until cancelled."""
        while True:
            await self._offer(await read())

    async def feed_ticks(self, seconds: float, item: T) -> None:
        """Give `item` on a grid of `seconds`; ticks that were not taken in time are left out."""
        ticker = Ticker(seconds)
        while True:
            await ticker.next()
            await self._offer(item)

    async def _offer(self, item: T) -> None:
        """Have an item ready until it is taken."""
        taken = self._loop.create_future()
        self._ready.append((item, taken))
        if self._waiting is not None:
            _end(self._waiting)
        await taken


def _end(wait: asyncio.Future[None]) -> None:
    """End a wait that has not ended otherwise."""
    if not wait.done():
        wait.set_result(None)


TICK_SECONDS = 1.0
HOUSEKEEPING_SECONDS = 2.0
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
SILENT_SECONDS = 300.0
"""So long without an iteration the loop is not healthy, or twice the sync frequency (LOOP-19)."""

_log = logging.getLogger("kubelet_reference.sync_loop")


@dataclass(frozen=True, slots=True)
class Tick:
    """A second has passed."""


@dataclass(frozen=True, slots=True)
class Housekeep:
    """Housekeeping is due."""


Item: TypeAlias = PodUpdate | PodLifecycleEvent | ProbeUpdate | Tick | Housekeep


@dataclass(eq=False)
class SyncLoop:
    """Handles one item at a time, until cancelled.

    `container_died` is called with the pod's UID and the container's id.
    """

    mux: Mux
    pleg_events: asyncio.Queue[PodLifecycleEvent]
    probe_updates: asyncio.Queue[ProbeUpdate]
    queue: WorkQueue
    handlers: PodHandlers
    housekeeping: Housekeeping
    statuses: StatusManager
    deadlines: Deadlines
    state: RuntimeState
    clock: Clock
    random: Random
    container_died: Callable[[str, str], None]
    sync_frequency: float

    _entered_at: float | None = field(default=None, init=False)

    async def run(self) -> None:
        """Take items one by one."""
        inputs = Inputs[Item](self.random)
        async with asyncio.TaskGroup() as feeding:
            feeding.create_task(inputs.feed(self.mux.updates.get))
            feeding.create_task(inputs.feed(self.pleg_events.get))
            feeding.create_task(inputs.feed(self.probe_updates.get))
            feeding.create_task(inputs.feed_ticks(TICK_SECONDS, Tick()))
            feeding.create_task(inputs.feed_ticks(HOUSEKEEPING_SECONDS, Housekeep()))
            while True:
                await self.wait_until_runtime_ready()
                await self.handle(await inputs.next())

    async def wait_until_runtime_ready(self) -> None:
        """Return when the runtime is ready; check after 100 ms, then twice that, up to 5 s (LOOP-03)."""
        pause = FIRST_PAUSE_SECONDS
        while errors := self.state.errors():
            _log.info("no pod is synced: %s", "; ".join(errors))
            await self.clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        self._entered_at = self.clock.monotonic()

    def is_healthy(self) -> bool:
        """Whether an iteration has begun lately (LOOP-19)."""
        if self._entered_at is None:
            return True
        silent = self.clock.monotonic() - self._entered_at
        return silent <= max(SILENT_SECONDS, 2 * self.sync_frequency)

    async def handle(self, item: Item) -> None:
        """Deal with one item."""
        match item:
            case Tick():
                self.handlers.sync(self.due())
            case Housekeep():
                await self.run_housekeeping()
            case PodLifecycleEvent():
                self.take_event(item)
            case PodUpdate():
                await self.take_update(item)
            case ProbeUpdate():
                self.take_probe(item)

    async def take_update(self, update: PodUpdate) -> None:
        """Hand pods to the handler of what happened to them; then their source has been seen (LOOP-07)."""
        handlers = self.handlers
        match update.op:
            case Op.ADD:
                await handlers.add(update.pods)
            case Op.UPDATE | Op.DELETE:
                handlers.update(update.pods)
            case Op.REMOVE:
                handlers.remove(update.pods)
            case Op.RECONCILE:
                handlers.reconcile(update.pods)
        self.mux.mark_seen(update.source)

    def take_event(self, event: PodLifecycleEvent) -> None:
        """Sync the pod, unless only a record was removed; a death removes older containers (LOOP-10)."""
        if event.kind is not PodLifeCycleEventType.REMOVED:
            self.handlers.sync([event.uid])
        if event.kind is PodLifeCycleEventType.DIED:
            self.container_died(event.uid, event.data)

    def take_probe(self, update: ProbeUpdate) -> None:
        """Keep the probe's result and sync the pod; a liveness success changes nothing (LOOP-12)."""
        succeeded = update.outcome is ProbeOutcome.SUCCESS
        uid, container = update.uid, update.container_id
        match update.kind:
            case ProbeKind.LIVENESS:
                if update.outcome is not ProbeOutcome.FAILURE:
                    return
            case ProbeKind.READINESS:
                self.statuses.set_container_readiness(uid, container, ready=succeeded)
            case ProbeKind.STARTUP:
                self.statuses.set_container_startup(uid, container, started=succeeded)
        self.handlers.sync([uid])

    def due(self) -> list[str]:
        """The pods to sync at this tick: their time has come, or their deadline is over (LOOP-11)."""
        due = self.queue.due()
        return list(dict.fromkeys((*due, *self.deadlines.due(self.handlers.manager.pods()))))

    async def run_housekeeping(self) -> None:
        """Clean up, unless a source was not seen yet: its pods would look removed (LOOP-08)."""
        if not self.mux.all_seen():
            return
        try:
            await self.housekeeping.run_once()
        except (grpc.RpcError, OSError) as error:
            _log.warning("housekeeping given up for now: %s", wrapped_text(error))
