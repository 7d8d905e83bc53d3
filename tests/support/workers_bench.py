"""A bench for pod workers: a syncer that records its rounds, a cache that answers at once, virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

from fixed_random import FixedRandom
from lightkube.models.core_v1 import Container, Pod, PodSpec, PodStatus
from lightkube.models.meta_v1 import ObjectMeta

from kubelet_fakes.clock import run
from kubelet_reference.api import names, pods
from kubelet_reference.api.events import Recorder
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.api.records import ListedPod, PodRecords
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.pod_workers.pod_workers import PodWorkers
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.pod_workers.worker import SyncFailed, Update, UpdateKind, Waits
from kubelet_reference.pod_workers.worker_rules import Timing, WorkerRules, WorkerTools
from kubelet_reference.pod_workers.worker_table import WorkerTable, worker_table
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.util.ports import PodEvent
from kubelet_reference.util.versions import Behaviour
from kubelet_reference.util.work_queue import WorkQueue

StatusChange = Callable[[PodStatus], PodStatus]


def a_pod(
    uid: str = "u1",
    name: str = "web",
    *,
    static: bool = False,
    grace: int = 30,
    deletion: int | None = None,
    phase: str = "",
    version: str = "1",
) -> Pod:
    """A pod with one container; `deletion` is the grace period that its deletion asks for."""
    return Pod(
        metadata=ObjectMeta(
            uid=uid,
            name=name,
            namespace="default",
            labels={"version": version},
            annotations={names.CONFIG_SOURCE: "file"} if static else {},
            deletionTimestamp=None if deletion is None else "2026-01-01T00:00:00Z",  # type: ignore[arg-type]
            deletionGracePeriodSeconds=deletion,
        ),
        spec=PodSpec(containers=[Container(name="app", image="image")], terminationGracePeriodSeconds=grace),
        status=PodStatus(phase=phase) if phase else None,
    )


@dataclass(slots=True)
class Round:
    """One call of the syncer."""

    kind: str
    uid: str
    begun: float
    grace: int | None = None
    ended: float | None = None
    changes_status: bool = False


@dataclass(slots=True)
class ScriptedSyncer:
    """Records rounds; `seconds` and `failures` say how long rounds of a kind take, and what they raise."""

    clock: LoopClock
    rounds: list[Round] = field(default_factory=list[Round])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    failures: dict[str, list[Exception]] = field(default_factory=dict[str, list[Exception]])
    has_ended: bool = False
    waits_for: asyncio.Event | None = None

    async def sync_pod(self, pod: Pod, mirror: Pod | None, records: PodRecords, waits: Waits) -> bool:
        """Wait for the event, if there is one, and then take the round's time."""
        del mirror, records
        waiting = waits.wait(self.waits_for.wait()) if self.waits_for is not None else None
        await self._round("sync", pod, waiting=waiting)
        return self.has_ended

    async def sync_terminating_pod(
        self, pod: Pod, records: PodRecords, grace: int | None, change_status: StatusChange | None
    ) -> None:
        """Take the round's time."""
        del records
        await self._round("terminating", pod, grace, changes_status=change_status is not None)

    async def sync_terminating_runtime_pod(self, running: ListedPod) -> None:
        """Take the round's time."""
        await self._round("runtime", Pod(metadata=ObjectMeta(uid=running.uid)))

    async def sync_terminated_pod(self, pod: Pod, records: PodRecords, waits: Waits) -> None:
        """Take the round's time."""
        del records, waits
        await self._round("terminated", pod)

    async def _round(
        self,
        kind: str,
        pod: Pod,
        grace: int | None = None,
        *,
        changes_status: bool = False,
        waiting: Coroutine[Any, Any, Any] | None = None,
    ) -> None:
        now = self.clock.monotonic()
        one = Round(kind, pods.uid(pod), now, grace)
        one.changes_status = changes_status
        self.rounds.append(one)
        try:
            if waiting is not None:
                await waiting
            await self.clock.sleep(self.seconds.get(kind, 0))
            if self.failures.get(kind):
                raise self.failures[kind].pop(0)
        finally:
            one.ended = self.clock.monotonic()


class OpenCache:
    """A cache that is always new enough and has no records; `errors` once each."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.asked: list[float] = []
        self.delay = 0.0

    def get(self, uid: str) -> PodRecords:
        """No records."""
        return PodRecords(uid)

    async def get_newer_than(self, uid: str, moment: float) -> PodRecords:
        """The same, or the next error."""
        self.asked.append(moment)
        await LoopClock(0).sleep(self.delay)
        if self.errors:
            raise self.errors.pop(0)
        return self.get(uid)


class Bench:
    """Workers under test, with everything around them; `tick` does what the sync loop does each second."""

    def __init__(
        self, group: asyncio.TaskGroup, behaviour: Behaviour, table: WorkerTable | None, cls: type[PodWorkers]
    ) -> None:
        self.clock = LoopClock(0)
        self.syncer = ScriptedSyncer(self.clock)
        self.cache = OpenCache()
        self.events: list[PodEvent] = []
        self.queue = WorkQueue(self.clock)
        self.recorder = Recorder(self)
        self.pods: dict[str, Pod] = {}
        self.workers = cls(
            cast("PodSyncer", self.syncer),
            cast("PodCache", self.cache),
            WorkerTools(self.clock, self.queue, self.recorder, group.create_task, Metrics()),
            WorkerRules(table or worker_table(behaviour), Timing(FixedRandom(), 60), behaviour),
        )

    def emit(self, event: PodEvent) -> None:
        """Keep the event."""
        self.events.append(event)

    def tell(self, pod: Pod, kind: UpdateKind = UpdateKind.UPDATE, **fields: Any) -> None:
        """Update the worker of the pod."""
        self.pods[(pod.metadata or ObjectMeta()).uid or ""] = pod
        self.workers.update_pod(Update(kind, pod, **fields))

    async def let(self, seconds: float) -> None:
        """Let time go by, a tick each second."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            await self.clock.sleep(min(1.0, end - self.clock.monotonic()))
            for uid in self.queue.due():
                if uid in self.pods:
                    self.tell(self.pods[uid], UpdateKind.SYNC)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the rounds so far."""
        return [one.kind for one in self.syncer.rounds]


def on_bench(
    work: Callable[[Bench], Coroutine[Any, Any, None]],
    *,
    version: str = "1.32",
    table: WorkerTable | None = None,
    cls: type[PodWorkers] = PodWorkers,
) -> None:
    """Do this work on a new bench, in virtual time."""

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            await work(Bench(group, Behaviour.of(version), table, cls))

    run(main())


def failure(text: str = "did not work") -> SyncFailed:
    """What a round that must be repeated raises."""
    return SyncFailed(text)
