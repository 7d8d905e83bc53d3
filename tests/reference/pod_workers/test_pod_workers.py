"""The pod workers: serial, one pending update, no way back."""

import asyncio

from on_loop import run_by
from workers_bench import Bench, a_pod, failure, on_bench

from kubelet_reference.api.records import ListedPod
from kubelet_reference.eviction.pod_killer import PodKiller
from kubelet_reference.pod_workers.worker import KillOptions, NetworkNotReady, Update, UpdateKind
from kubelet_reference.pod_workers.worker_table import State
from kubelet_reference.util.ports import ApiError


@run_by(on_bench)
async def test_whole_life(bench: Bench) -> None:
    """A pod that is wanted and then deleted is synced, stopped, cleaned up and finished, in that order."""
    bench.tell(a_pod(), UpdateKind.CREATE)
    await bench.let(1)
    bench.tell(a_pod(deletion=30))
    await bench.let(1)

    assert bench.kinds == ["sync", "terminating", "terminated"]
    assert bench.syncer.rounds[1].grace == 30
    assert bench.workers.sync_known_pods([a_pod()])["u1"].state is State.FINISHED


@run_by(on_bench)
async def test_rounds_of_one_pod_are_serial_and_of_two_are_not(bench: Bench) -> None:
    """The rounds of one UID never overlap, and a slow pod holds up no other one (WORK-01)."""
    bench.syncer.seconds["sync"] = 10
    bench.tell(a_pod("u1", "one"), UpdateKind.CREATE)
    bench.tell(a_pod("u2", "two"), UpdateKind.CREATE)
    await bench.let(1)
    bench.tell(a_pod("u1", "one", version="2"))
    await bench.let(20)
    begun = [(one.uid, one.begun) for one in bench.syncer.rounds]

    assert begun == [("u1", 0), ("u2", 0), ("u1", 10)]


@run_by(on_bench)
async def test_each_way_into_termination(bench: Bench) -> None:
    """Deletion, terminal phase, kill and the pod's own end each lead to a terminating round (WORK-05)."""
    for uid in ("deleted", "failed", "killed", "ended"):
        bench.tell(a_pod(uid, uid), UpdateKind.CREATE)
    await bench.let(1)
    bench.syncer.rounds.clear()
    bench.tell(a_pod("deleted", "deleted", deletion=7))
    bench.tell(a_pod("failed", "failed", phase="Failed"))
    bench.tell(a_pod("killed", "killed"), UpdateKind.KILL, kill=KillOptions(3, evict=False))
    await bench.let(1)
    bench.syncer.has_ended = True
    bench.tell(a_pod("ended", "ended"))
    await bench.let(1)
    graces = {one.uid: one.grace for one in bench.syncer.rounds if one.kind == "terminating"}

    assert graces == {"deleted": 7, "failed": 30, "killed": 3, "ended": None}


@run_by(on_bench)
async def test_grace_shrinks_between_attempts(bench: Bench) -> None:
    """The next attempt carries the shorter grace; a longer one is ignored (WORK-07, WORK-09)."""
    bench.syncer.seconds["terminating"] = 20
    bench.syncer.failures["terminating"] = [failure(), failure()]
    bench.tell(a_pod(), UpdateKind.CREATE)
    bench.tell(a_pod(deletion=60))
    await bench.let(1)
    bench.tell(a_pod(deletion=5))
    await bench.let(25)
    bench.tell(a_pod(deletion=30))
    await bench.let(60)

    assert [one.grace for one in bench.syncer.rounds if one.kind == "terminating"] == [60, 5, 5]


@run_by(on_bench)
async def test_failed_termination_is_repeated(bench: Bench) -> None:
    """A terminating round that fails is repeated every 10 to 15 s until it succeeds (WORK-10)."""
    bench.syncer.failures["terminating"] = [failure(), failure()]
    bench.tell(a_pod(), UpdateKind.CREATE)
    await bench.let(1)
    bench.tell(a_pod(deletion=30))
    await bench.let(60)
    rounds = [(one.kind, one.begun) for one in bench.syncer.rounds]

    assert rounds == [
        ("sync", 0),
        ("terminating", 1),
        ("terminating", 11),
        ("terminating", 21),
        ("terminated", 21),
    ]


@run_by(on_bench)
async def test_cadence(bench: Bench) -> None:
    """The next look is a minute after success, 10 s after failure, 1 s without network (WORK-15)."""
    bench.syncer.failures["sync"] = [NetworkNotReady("network is not ready"), failure()]
    bench.tell(a_pod(), UpdateKind.CREATE)
    await bench.let(80)

    assert [one.begun for one in bench.syncer.rounds] == [0, 1, 11, 71]


@run_by(on_bench)
async def test_records_are_newer_than_the_last_round(bench: Bench) -> None:
    """Each round asks for records read after the round before it (WORK-17)."""
    bench.syncer.seconds["sync"] = 2
    bench.tell(a_pod(), UpdateKind.CREATE)
    bench.tell(a_pod(version="2"))
    await bench.let(5)
    bench.tell(a_pod(version="3"))
    await bench.let(5)

    assert bench.cache.asked == [float("-inf"), 2]


@run_by(on_bench)
async def test_unreadable_records(bench: Bench) -> None:
    """If the runtime cannot be read, an event says so and nothing is done until the next try (WORK-18)."""
    bench.cache.errors = [ApiError(0, "", "no answer")]
    bench.tell(a_pod(), UpdateKind.CREATE)
    await bench.let(15)

    assert [(one.kind, one.begun) for one in bench.syncer.rounds] == [("sync", 10)]
    assert [(event.reason, event.message) for event in bench.events] == [
        ("FailedSync", "error determining status: no answer")
    ]


@run_by(on_bench)
async def test_finished_pod_ignores_news(bench: Bench) -> None:
    """What is finished stays so until housekeeping finds it in no source (WORK-14)."""
    bench.tell(a_pod(), UpdateKind.CREATE)
    bench.tell(a_pod(deletion=1))
    await bench.let(1)
    bench.syncer.rounds.clear()
    bench.tell(a_pod(version="2"))
    bench.tell(a_pod(), UpdateKind.KILL)
    await bench.let(1)

    assert bench.kinds == []
    assert bench.workers.sync_known_pods([a_pod()])["u1"].state is State.FINISHED
    assert bench.workers.sync_known_pods([]) == {}


@run_by(on_bench)
async def test_first_create_is_no_restart(bench: Bench) -> None:
    """A pod that is ending when it is first seen is not started again afterwards."""
    bench.tell(a_pod(deletion=5), UpdateKind.CREATE)
    await bench.let(1)

    assert bench.kinds == ["terminating", "terminated"]
    assert "u1" in bench.workers.sync_known_pods([a_pod(deletion=5)])


@run_by(on_bench)
async def test_pod_that_only_the_runtime_knows(bench: Bench) -> None:
    """An orphan is killed by what the runtime lists of it, then forgotten (WORK-24)."""
    orphan = ListedPod("u9", "lost", "default", (), ())
    bench.workers.update_pod(Update(UpdateKind.KILL, running=orphan))
    during = bench.workers.sync_known_pods([])["u9"].state
    await bench.let(1)

    assert during is State.TERMINATING
    assert bench.kinds == ["runtime"]
    assert bench.workers.sync_known_pods([]) == {}


def test_over_before_it_was_seen() -> None:
    """A pod that is over and does not run is only cleaned up; 1.26 does not even that (WORK-29)."""

    async def work(bench: Bench) -> None:
        bench.tell(a_pod(phase="Succeeded"), UpdateKind.CREATE)
        ended = bench.workers.is_pod_known_terminated("u1")
        await bench.let(1)

        assert ended
        assert bench.kinds == ["terminated"]

    async def old_work(bench: Bench) -> None:
        bench.tell(a_pod(phase="Succeeded"), UpdateKind.CREATE)
        await bench.let(1)

        assert bench.kinds == []
        assert bench.workers.sync_known_pods([a_pod()])["u1"].state is State.FINISHED

    on_bench(work)
    on_bench(old_work, version="1.26")


@run_by(on_bench)
async def test_killers_are_released(bench: Bench) -> None:
    """Who waits for a kill goes on when nothing runs, at once if that is so already (WORK-32)."""
    first, second = asyncio.Event(), asyncio.Event()
    bench.syncer.seconds["terminating"] = 5
    bench.tell(a_pod(), UpdateKind.CREATE)
    bench.tell(a_pod(), UpdateKind.KILL, kill=KillOptions(None, evict=False, done=first))
    await bench.let(4)
    early = first.is_set()
    await bench.let(2)
    bench.tell(a_pod(), UpdateKind.KILL, kill=KillOptions(None, evict=False, done=second))

    assert not early
    assert first.is_set()
    assert second.is_set()


@run_by(on_bench)
async def test_evicted_pod_may_be_cleared_away(bench: Bench) -> None:
    """Content of an evicted pod may go, though nobody deleted it; its status is changed (WORK-31)."""
    bench.tell(a_pod(), UpdateKind.CREATE)
    bench.tell(a_pod("u2", "other"), UpdateKind.CREATE)
    await bench.let(1)
    kill = KillOptions(None, evict=True, status=lambda status: status)
    bench.tell(a_pod(), UpdateKind.KILL, kill=kill)
    bench.tell(a_pod("u2", "other"), UpdateKind.KILL)
    await bench.let(1)
    changed = [one.uid for one in bench.syncer.rounds if one.changes_status]

    assert changed == ["u1"]
    assert bench.workers.should_content_be_removed("u1")
    assert not bench.workers.should_content_be_removed("u2")


@run_by(on_bench)
async def test_killer_waits_and_gives_up(bench: Bench) -> None:
    """A killer is released by the kill, or after one and a half times the grace with an event (WORK-20)."""
    killer = PodKiller(bench.workers, bench.recorder)
    bench.tell(a_pod(), UpdateKind.CREATE)
    bench.tell(a_pod("u2", "stuck", grace=20), UpdateKind.CREATE)
    await bench.let(1)
    bench.syncer.seconds["terminating"] = 5
    await killer.kill(a_pod(), lambda status: status, 2, evict=True)
    released = bench.clock.monotonic()
    bench.syncer.seconds["terminating"] = 100
    await killer.kill(a_pod("u2", "stuck", grace=20), lambda status: status, None, evict=True)

    assert released == 6
    assert bench.clock.monotonic() == 36
    assert [event.reason for event in bench.events] == ["ExceededGracePeriod"]


@run_by(on_bench)
async def test_overtaken_sync_does_nothing(bench: Bench) -> None:
    """A sync that still waits for news of the runtime when the kill comes is not begun any more (WORK-04)."""
    bench.cache.delay = 5
    bench.tell(a_pod(), UpdateKind.CREATE)
    await bench.let(1)
    bench.tell(a_pod(deletion=30))
    await bench.let(20)

    assert bench.kinds == ["terminating", "terminated"]
