"""What the pod workers work with: rounds to run, records to read, times, tools and rules."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

import grpc
from lightkube.models.core_v1 import Pod, PodStatus

from kubelet_reference.events import Recorder
from kubelet_reference.grace import effective_grace
from kubelet_reference.ports import ApiError, Chance, Clock
from kubelet_reference.records import ListedPod, PodRecords
from kubelet_reference.updates import NetworkNotReady, SyncFailed, Update, Waits
from kubelet_reference.versions import Behaviour
from kubelet_reference.work_queue import WorkQueue
from kubelet_reference.worker_states import WorkerTable

#: What a round may end with besides success; anything else is a mistake in the kubelet and ends it.
ROUND_ERRORS = (SyncFailed, grpc.RpcError, ApiError, OSError)


class RecordsCache(Protocol):
    """What workers ask of the pod cache."""

    def get(self, uid: str) -> PodRecords:
        """What is known now."""
        ...

    async def get_newer_than(self, uid: str, moment: float) -> PodRecords:
        """What is known since `moment`, waiting for it if need be; raises what reading it raised."""
        ...


class Rounds(Protocol):
    """What a round does, by state; each method raises one of `ROUND_ERRORS` when it has to be repeated."""

    async def sync_pod(self, update: Update, records: PodRecords, waits: Waits) -> bool:
        """Bring the pod nearer to what is wanted; True says that it has ended by itself."""
        ...

    async def sync_terminating_pod(
        self,
        pod: Pod,
        records: PodRecords,
        grace: int | None,
        change_status: Callable[[PodStatus], PodStatus] | None,
    ) -> None:
        """Stop everything of the pod within `grace` seconds (None: those of the spec)."""
        ...

    async def sync_terminating_runtime_pod(self, running: ListedPod) -> None:
        """Stop everything of a pod of which only the runtime knows."""
        ...

    async def sync_terminated_pod(self, pod: Pod, records: PodRecords, waits: Waits) -> None:
        """Clean up behind a pod of which nothing runs."""
        ...


class Timing:
    """When a worker looks at its pod again by itself, in seconds (WORK-15).

    A round that failed with a wait of its own, such as the rest of a restart back-off, is repeated when that
    is over, though not later than a healthy one (WORK-16).
    """

    RETRY = 10.0
    RETRY_WITHOUT_NETWORK = 1.0
    JITTER = 0.5

    def __init__(self, chance: Chance, resync: float) -> None:
        self._chance = chance
        self._resync = resync

    def after_success(self) -> float:
        """The time from a round that went well to the next."""
        return self._chance.jitter(self._resync, self.JITTER)

    def after_failure(self, error: Exception | None) -> float:
        """The time from a failed round to the next."""
        seconds = self.RETRY_WITHOUT_NETWORK if isinstance(error, NetworkNotReady) else self.RETRY
        if isinstance(error, SyncFailed) and error.wait is not None:
            seconds = min(error.wait, self._resync)
        return self._chance.jitter(seconds, self.JITTER)


def _observe_nothing(operation: str, seconds: float, /) -> None:
    """Take no measure."""


@dataclass(frozen=True, slots=True)
class WorkerTools:
    """What the workers work with.

    `spawn` runs a coroutine as a task of the kubelet; `observe` is told the seconds that a round took, by the
    kind of update that it was for.
    """

    clock: Clock
    queue: WorkQueue
    recorder: Recorder
    spawn: Callable[[Coroutine[Any, Any, None]], object]
    observe: Callable[[str, float], None] = _observe_nothing


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """What decides: `grace` is `grace.effective_grace`, or one that is wrong on purpose."""

    table: WorkerTable
    timing: Timing
    behaviour: Behaviour
    grace: Callable[[int, Pod, int | None, Behaviour], int] = effective_grace
