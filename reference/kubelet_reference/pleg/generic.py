"""The PLEG, the pod lifecycle event generator: it relists the runtime and reports what has changed.

Once a second it asks for all sandboxes and all containers, compares each pod with what it was, reads the
records of those that differ into the pod cache, and only then announces the differences. A relist that finds
what the last one found costs two calls and nothing else.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import grpc
import msgspec
from msgspec.structs import replace

from kubelet_reference.api.go_text import duration_text
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.api.records import NANOSECONDS, ContainerState, ListedPod, PodRecords
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.cri.runtime_reader import RuntimeReader
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.util.ports import Clock


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the runtime is listed.

    `period` is seconds from the end of one relist to the beginning of the next, `threshold` seconds without
    a successful relist after which the PLEG is not healthy (PLEG-08).
    """

    period: float
    threshold: float


USUAL = Pace(1.0, 180.0)
SLOW = Pace(300.0, 600.0)
"""While the runtime streams events (PLEG-14)."""
CAPACITY = 1000
"""How many events wait for the sync loop before more are dropped (PLEG-09)."""

_log = logging.getLogger("kubelet_reference.pleg")


class PodLifeCycleEventType(Enum):
    """What became of a container or a sandbox between two relists, or of what a pod was watched for."""

    STARTED = auto()
    DIED = auto()
    REMOVED = auto()
    CHANGED = auto()
    CONDITION_MET = auto()


class PodLifecycleEvent(msgspec.Struct, frozen=True):
    """Something happened to the container or sandbox with the id `data` of the pod `uid`."""

    uid: str
    kind: PodLifeCycleEventType
    data: str


def _states(pod: ListedPod | None) -> dict[str, ContainerState]:
    """The state of each container, then of each sandbox, by id: a sandbox counts as a container (PLEG-04)."""
    if pod is None:
        return {}
    return {record.id: record.state for record in (*pod.containers, *pod.sandboxes)}


def _event_types(old: ContainerState | None, new: ContainerState | None) -> tuple[PodLifeCycleEventType, ...]:
    """What the step from one state to the next means; None is no record at all (PLEG-03)."""
    match old, new:
        case (ContainerState.EXITED, None):
            return (PodLifeCycleEventType.REMOVED,)
        case (_, None):
            return PodLifeCycleEventType.DIED, PodLifeCycleEventType.REMOVED
        case (_, ContainerState.RUNNING):
            return (PodLifeCycleEventType.STARTED,)
        case (_, ContainerState.EXITED):
            return (PodLifeCycleEventType.DIED,)
        case _:
            return (PodLifeCycleEventType.CHANGED,)


def events_between(old: ListedPod | None, new: ListedPod | None) -> tuple[PodLifecycleEvent, ...]:
    """The events that turn one view of a pod into the next; None is a pod without records (PLEG-03)."""
    before, after = _states(old), _states(new)
    pod = new or old
    return tuple(
        PodLifecycleEvent(pod.uid if pod else "", kind, key)
        for key in before | after
        if before.get(key) is not after.get(key)
        for kind in _event_types(before.get(key), after.get(key))
    )


@dataclass(eq=False)
class Pleg:
    """Relists the runtime, keeps the cache and puts what happened on `events`, a bounded queue."""

    runtime: RuntimeReader
    cache: PodCache
    clock: Clock
    metrics: Metrics
    capacity: int = CAPACITY

    def __post_init__(self) -> None:
        self.events = asyncio.Queue[PodLifecycleEvent](self.capacity)
        self._listed: tuple[ListedPod, ...] = ()
        self._pods: dict[str, ListedPod] = {}
        """Each pod as it was when its cache entry was last written."""
        self._failed: dict[str, None] = {}
        """The pods whose last inspection failed, in order."""
        self._last_relist: float | None = None
        self._watched: dict[tuple[str, str], Callable[[PodRecords], bool]] = {}
        """The conditions that are waited for, by the pod's UID and a name."""
        self._turn = asyncio.Lock()
        self.pace = USUAL
        self.metrics.watch_listed(lambda: self._listed)

    async def run(self) -> None:
        """Relist for ever; the period counts from the end of each relist."""
        while True:
            await self.relist()
            await self.clock.sleep(self.pace.period)

    def healthy(self) -> str | None:
        """None if a relist succeeded lately, else what is wrong (PLEG-08)."""
        if self._last_relist is None:
            return "pleg has yet to be successful"
        silent = self.clock.monotonic() - self._last_relist
        limit = self.pace.threshold
        if silent <= limit:
            return None
        return f"pleg was last seen active {duration_text(silent)} ago; threshold is {duration_text(limit)}"

    @property
    def is_up_to_date(self) -> bool:
        """Whether a relist has succeeded and none is under way."""
        return self._last_relist is not None and not self._turn.locked()

    async def relist(self) -> None:
        """List everything, and bring the cache and the events up to date; a failed list changes nothing."""
        async with self._turn:
            await self._relist()

    async def _relist(self) -> None:
        began = self.clock.monotonic()
        listed = await self._list()
        if listed is None:
            return
        self._note_relist(began)
        if listed is not self._listed or self._failed:
            await self._catch_up(listed)
        for uid in {uid: None for uid, _ in self._watched}:
            await self._look_at_watched(uid)
        # Last of all: only now is every entry as new as this relist (PLEG-06).
        self.cache.update_time(began)
        self.metrics.relist_duration.observe(self.clock.monotonic() - began)

    def watch(self, uid: str, name: str, met: Callable[[PodRecords], bool]) -> None:
        """Inspect the pod at each relist until this holds of its records, then have it synced (PLEG-17)."""
        self._watched[uid, name] = met

    async def _look_at_watched(self, uid: str) -> None:
        pod = self._pods.get(uid)
        if pod is not None and not await self._update_cache(uid, pod):
            return
        records = self.cache.get(uid)
        met = [key for key, holds in self._watched.items() if key[0] == uid and holds(records)]
        for key in met:
            self._stop_watching(key)
        if met:
            self.deliver(PodLifecycleEvent(uid, PodLifeCycleEventType.CONDITION_MET, ""))

    def _stop_watching(self, key: tuple[str, str]) -> None:
        """What was waited for has come, or can come no more."""
        self._watched.pop(key, None)

    async def _list(self) -> tuple[ListedPod, ...] | None:
        """All pods, None if the list fails: an error is no empty list (PLEG-01, K8S-29012)."""
        try:
            return await self.runtime.list_pods()
        except grpc.RpcError as error:
            _log.warning("relist failed: %s", wrapped_text(error))
            return None

    def _note_relist(self, began: float) -> None:
        if self._last_relist is not None:
            self.metrics.relist_interval.observe(began - self._last_relist)
        self._last_relist = began
        self.metrics.pleg_last_seen.set(self.clock.wall_ns() // NANOSECONDS)

    async def _catch_up(self, listed: tuple[ListedPod, ...]) -> None:
        """Deal with every pod that is not as it was, or whose last inspection failed."""
        self._listed = listed
        failed, self._failed = self._failed, {}
        current = {pod.uid: pod for pod in listed}
        for uid in dict.fromkeys((*self._to_compare(current), *failed)):
            old, new = self._pods.get(uid), current.get(uid)
            if old != new or uid in failed:
                await self._process(uid, new, events_between(old, new))

    def _to_compare(self, current: dict[str, ListedPod]) -> Sequence[str]:
        """The pods of both lists: one that vanished has changed as well (K8S-22155)."""
        return tuple(self._pods | current)

    async def _process(self, uid: str, pod: ListedPod | None, events: tuple[PodLifecycleEvent, ...]) -> None:
        """Write the cache, then send events; after a failed read the next relist repeats it (PLEG-05)."""
        if not await self._update_cache(uid, pod):
            self._remember_failure(uid)
            return
        self._advance(uid, pod)
        for event in self._delivered(events):
            self.deliver(event)

    def _remember_failure(self, uid: str) -> None:
        """Have the pod inspected again at the next relist (K8S-53207, K8S-94829)."""
        self._failed[uid] = None

    def _advance(self, uid: str, pod: ListedPod | None) -> None:
        """Take the pod as it is now for what the next relist compares with."""
        if pod is None:
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = pod

    async def _update_cache(self, uid: str, pod: ListedPod | None) -> bool:
        """Inspect the pod and keep what comes out, an error too; whether it went well."""
        if pod is None:
            self.cache.delete(uid)
            return True
        began = self.clock.monotonic()
        try:
            records = await self.runtime.pod_records(uid, pod.name, pod.namespace)
        except grpc.RpcError as error:
            _log.warning("inspecting pod %s/%s failed: %s", pod.namespace, pod.name, wrapped_text(error))
            self.cache.set(uid, None, began, error)
            return False
        self.cache.set(uid, self.with_ips(records), began)
        return True

    def with_ips(self, records: PodRecords) -> PodRecords:
        """The records, with the last known IPs once no sandbox is ready: an ended pod keeps its IPs."""
        known = self.cache.get(records.uid).ips
        if records.ips or not known or any(sandbox.ready for sandbox in records.sandboxes):
            return records
        return replace(records, ips=known)

    def _delivered(self, events: Sequence[PodLifecycleEvent]) -> Iterator[PodLifecycleEvent]:
        """The events that others can rely on: an internal change has only led to an inspection (PLEG-03)."""
        return (event for event in events if event.kind is not PodLifeCycleEventType.CHANGED)

    def deliver(self, event: PodLifecycleEvent) -> None:
        """Hand an event over, or drop it when the sync loop is far behind: never wait for it (K8S-72482)."""
        try:
            self.events.put_nowait(event)
        except asyncio.QueueFull:
            self.metrics.pleg_discarded.inc()
