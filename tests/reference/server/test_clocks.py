"""Time and chance, as the kubelet takes them."""

import asyncio

import pytest
from fixed_random import FixedRandom

from kubelet_fakes.clock import run
from kubelet_reference.server.host.clock import LoopClock, SeededRandom
from kubelet_reference.util.ports import Random


def test_wall_time_runs_with_the_loop() -> None:
    """The time of day starts where it was set and moves as far as the loop does."""

    async def work() -> tuple[float, int]:
        clock = LoopClock(1_000_000_000)
        await clock.sleep(2.5)
        return clock.monotonic(), clock.wall_ns()

    assert run(work()) == (2.5, 3_500_000_000)


def test_a_clock_keeps_the_time_it_is_given() -> None:
    """The clock is given the time, and its time of day runs with it."""
    clock = LoopClock(7, lambda: 2.5)

    assert (clock.monotonic(), clock.wall_ns()) == (2.5, 2_500_000_007)


@pytest.mark.parametrize("seconds", [0, -1])
def test_sleeping_for_nothing_lets_others_run(seconds: float) -> None:
    """A sleep of nothing takes no time, but what was ready before runs first."""

    async def work() -> tuple[list[str], float]:
        order: list[str] = []
        asyncio.get_running_loop().call_soon(order.append, "other")
        await LoopClock(0).sleep(seconds)
        order.append("sleeper")
        return order, LoopClock(0).monotonic()

    assert run(work()) == (["other", "sleeper"], 0.0)


def test_a_sleep_can_be_cancelled() -> None:
    """A cancelled sleep ends at once and leaves no timer behind."""

    async def work() -> float:
        task = asyncio.ensure_future(LoopClock(0).sleep(100))
        await LoopClock(0).sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return LoopClock(0).monotonic()

    assert run(work()) == 1.0


def test_a_seed_gives_the_same_choices() -> None:
    """Two kubelets of one seed choose alike; another seed chooses otherwise."""

    def choices(seed: int) -> list[object]:
        random = SeededRandom(seed)
        return [random.jitter(10, 0.5), random.pick(1000), random.token(), random.jitter(10, 0.5)]

    assert choices(1) == choices(1)
    assert choices(1) != choices(2)


def test_choices_keep_their_bounds() -> None:
    """Jitter lies in [seconds, seconds * (1 + factor)), a pick below its count, and both are spread."""
    random = SeededRandom(3)
    jitters = [random.jitter(10, 0.5) for _ in range(500)]
    picks = [random.pick(3) for _ in range(500)]

    assert all(10 <= jitter < 15 for jitter in jitters)
    assert max(jitters) - min(jitters) > 4
    assert set(picks) == {0, 1, 2}
    assert all(picks.count(choice) > 100 for choice in range(3))


def test_tokens_are_not_given_twice() -> None:
    """Names differ within a life, and between lives of different seeds or prefixes."""
    makers: list[Random] = [SeededRandom(1), SeededRandom(2), FixedRandom("a"), FixedRandom("b")]
    tokens = [maker.token() for maker in makers for _ in range(50)]

    assert len(set(tokens)) == len(tokens)


def test_no_chance_takes_the_first() -> None:
    """Without chance there is no jitter, and of several the first is taken."""
    random = FixedRandom()

    assert (random.jitter(10, 0.5), random.pick(7)) == (10, 0)
