"""The ticker that probe workers wait on."""

from kubelet_fakes.clock import run
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.util.ticker import Ticker


def test_ticks_fall_on_a_grid() -> None:
    """A waiter that works between the ticks is still woken on the grid of its start."""

    async def main() -> list[float]:
        clock, ticker = LoopClock(0), Ticker(3)
        ticks: list[float] = []
        for work in (0.5, 2.9, 0.0):
            assert not await ticker.next()
            ticks.append(clock.monotonic())
            await clock.sleep(work)
        return ticks

    assert run(main()) == [3, 6, 9]


def test_missed_ticks_count_as_one() -> None:
    """Who comes late for several ticks is woken once at once, and then on the old grid."""

    async def main() -> list[float]:
        clock, ticker = LoopClock(0), Ticker(3)
        await clock.sleep(10)
        ticks: list[float] = []
        for _ in range(3):
            await ticker.next()
            ticks.append(clock.monotonic())
        return ticks

    assert run(main()) == [10, 12, 15]


def test_a_period_that_no_float_shows_gives_no_double_tick() -> None:
    """With a period such as 0.1 s each tick comes once."""

    async def main() -> list[float]:
        clock, ticker = LoopClock(0), Ticker(0.1)
        ticks: list[float] = []
        for _ in range(100):
            await ticker.next()
            ticks.append(round(clock.monotonic(), 6))
        return ticks

    assert run(main()) == [round(0.1 * number, 6) for number in range(1, 101)]


def test_a_trigger_wakes_at_once_and_keeps_the_grid() -> None:
    """A trigger is no tick: the next tick comes when it was due; several triggers count as one."""

    async def main() -> list[tuple[bool, float]]:
        clock, ticker = LoopClock(0), Ticker(3)
        ticker.trigger()
        ticker.trigger()
        found = [(await ticker.next(), clock.monotonic())]
        found.append((await ticker.next(), clock.monotonic()))
        return found

    assert run(main()) == [(True, 0), (False, 3)]


def test_a_restart_begins_a_new_grid() -> None:
    """After a restart the period counts from now."""

    async def main() -> float:
        clock, ticker = LoopClock(0), Ticker(3)
        await clock.sleep(2)
        ticker.restart()
        await ticker.next()
        return clock.monotonic()

    assert run(main()) == 5
