"""The rules of the pod workers: grace periods, and when a pod is synced again.

`effective_grace` says how long a pod may take to stop: the grace period that its worker passes to the runtime
manager. `Timing` says when a worker syncs its pod again by itself.
"""

from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import grpc
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.events import Recorder
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.pod_workers.worker import NetworkNotReady, SyncFailed
from kubelet_reference.pod_workers.worker_table import WorkerTable
from kubelet_reference.util.ports import ApiError, Clock, Random
from kubelet_reference.util.versions import Behaviour
from kubelet_reference.util.work_queue import WorkQueue

MINIMUM_SECONDS = 1
"""A worker never asks for less."""


def effective_grace(previous: int, pod: Pod, override: int | None, behaviour: Behaviour) -> int:
    """The grace period after one more request to end the pod, in seconds, at least 1 (WORK-07).

    `previous` is the one so far, 0 if there was no request yet; `override` is what another part of the
    kubelet asked for. What is asked for can only shorten it; the spec counts without a request. A 0 asked
    for explicitly counts as 1; up to 1.26 it was taken for "not asked" (WORK-08).
    """
    grace = previous
    is_zero_asked = False
    for seconds in _requests(pod, override):
        if grace == 0 or seconds < grace:
            grace = seconds
            is_zero_asked = behaviour.explicit_zero_grace_counts
    if grace == 0 and not is_zero_asked:
        grace = pods.grace_seconds(pod)
    return max(grace, MINIMUM_SECONDS)


def _requests(pod: Pod, override: int | None) -> Iterator[int]:
    asked = pods.deletion_grace_seconds(pod)
    if asked is not None:
        yield asked
    if override is not None:
        yield override


#: The errors that a sync may end with; anything else is a mistake in the kubelet and ends it.
SYNC_ERRORS = (SyncFailed, grpc.RpcError, ApiError, OSError)


class Timing:
    """When a worker syncs its pod again by itself, in seconds (WORK-15).

    A sync that failed with a wait of its own, such as the rest of a restart back-off, is repeated when that
    is over, though not later than a healthy one (WORK-16).
    """

    RETRY = 10.0
    RETRY_WITHOUT_NETWORK = 1.0
    JITTER = 0.5

    def __init__(self, random: Random, resync: float) -> None:
        self._random = random
        self._resync = resync

    def after_success(self) -> float:
        """The time from a sync that went well to the next."""
        return self._random.jitter(self._resync, self.JITTER)

    def after_failure(self, error: Exception | None) -> float:
        """The time from a failed sync to the next."""
        seconds = self.RETRY_WITHOUT_NETWORK if isinstance(error, NetworkNotReady) else self.RETRY
        if isinstance(error, SyncFailed) and error.wait is not None:
            seconds = min(error.wait, self._resync)
        return self._random.jitter(seconds, self.JITTER)


@dataclass(frozen=True, slots=True)
class WorkerTools:
    """What all pod workers share; `spawn` runs a coroutine as a task of the kubelet."""

    clock: Clock
    queue: WorkQueue
    recorder: Recorder
    spawn: Callable[[Coroutine[Any, Any, None]], object]
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class WorkerRules:
    """The decisions of the workers: `grace` is `effective_grace`, or a wrong one in a kubelet with a bug."""

    table: WorkerTable
    timing: Timing
    behaviour: Behaviour
    grace: Callable[[int, Pod, int | None, Behaviour], int] = effective_grace
