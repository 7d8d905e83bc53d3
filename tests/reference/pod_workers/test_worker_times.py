"""When a worker looks at its pod again by itself, and what it does not wait for."""

import asyncio

import pytest
from fixed_random import FixedRandom
from on_loop import run_by
from workers_bench import Bench, a_pod, on_bench

from kubelet_reference.api.sync_result import Action, ActionResult, Failure, SyncResult
from kubelet_reference.pod_workers.worker import NetworkNotReady, SyncFailed, UpdateKind
from kubelet_reference.pod_workers.worker_rules import Timing


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (SyncFailed("it failed"), 10),
        (OSError("no disk"), 10),
        (None, 10),
        (NetworkNotReady("no network"), 1),
        (SyncFailed("it waits", 3), 3),
        (SyncFailed("it waits", 0), 0),
        (SyncFailed("it waits for long", 300), 60),
    ],
)
def test_failed_round_comes_again(error: Exception | None, seconds: float) -> None:
    """A failed round is repeated after 10 s, or when its own wait is over, but within a minute (WORK-16)."""
    assert Timing(FixedRandom(), 60).after_failure(error) == seconds


def test_shortest_wait_counts() -> None:
    """Of several containers that wait for their back-off the first one decides."""
    waits = (None, 40.0, 7.0)
    refused = Failure.CRASH_LOOP_BACK_OFF
    results = tuple(ActionResult(Action.START_CONTAINER, "c", refused, "", wait) for wait in waits)

    assert SyncResult(results).wait == 7
    assert SyncResult(results[:1]).wait is None


@run_by(on_bench, version="1.26")
async def test_old_kubelets_wait_for_volumes_to_the_end(bench: Bench) -> None:
    """Up to 1.26 a deletion does not end the wait of a round that is under way (WORK-06)."""
    bench.syncer.waits_for = asyncio.Event()
    bench.tell(a_pod(), UpdateKind.CREATE)
    await bench.let(5)
    bench.tell(a_pod(deletion=30))
    await bench.let(20)
    before = list(bench.kinds)
    bench.syncer.waits_for.set()
    await bench.let(1)

    assert before == ["sync"]
    assert bench.kinds == ["sync", "terminating", "terminated"]
