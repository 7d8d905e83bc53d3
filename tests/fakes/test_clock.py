"""Virtual time: the loop keeps order and time, never blocks, and says so when nothing can go on."""

import asyncio
import doctest
import gc
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator

import pytest
from on_loop import in_virtual_time

from kubelet_fakes import clock
from kubelet_fakes.clock import DeadlockError, LivelockError, LoopClock, TimeLimitError, VirtualLoop, run

pause = LoopClock().sleep


def now() -> float:
    """The time of the loop that runs."""
    return asyncio.get_running_loop().time()


def test_example_in_the_docs_works() -> None:
    """The module's example does what it says."""
    result = doctest.testmod(clock)

    assert (result.failed, result.attempted > 0) == (0, True)


def test_time_starts_at_0_and_jumps() -> None:
    """Time starts at 0 and goes straight to each deadline, however far it is."""

    async def main() -> list[float]:
        times = [now()]
        for seconds in (1, 0.25, 86_400 * 30):
            await pause(seconds)
            times.append(now())
        return times

    assert run(main()) == [0.0, 1.0, 1.25, 2_592_001.25]


@in_virtual_time
async def test_equal_deadlines_are_first_in_first_out() -> None:
    """Timers that are due at one moment fire in the order in which they were set, whatever else is set."""
    order: list[int] = []
    loop = asyncio.get_running_loop()
    for number in range(100):
        loop.call_at(5, order.append, number)
        loop.call_at(9 - number % 7, lambda: None)
    await pause(6)

    assert order == list(range(100))


@in_virtual_time
async def test_deadlines_that_mean_the_same_are_equal() -> None:
    """0.1 s after 0.2 s is the same moment as 0.3 s: what was asked for first comes first."""
    order: list[str] = []
    loop = asyncio.get_running_loop()
    await pause(0.1)
    loop.call_later(0.2, order.append, "0.1 + 0.2")
    loop.call_at(0.3, order.append, "0.3")
    await pause(1)

    assert order == ["0.1 + 0.2", "0.3"]


def test_a_wait_until_an_exact_moment_ends() -> None:
    """A loop that waits for what is left until a moment ends, though the clock cannot show the moment."""

    async def main() -> float:
        moment = 1 / 3 + 1e-12
        while now() < moment:
            await pause(moment - now())
        return now()

    assert run(main()) == pytest.approx(1 / 3, abs=2e-9)


def test_a_timer_for_a_moment_within_the_clocks_resolution_moves_time() -> None:
    """`call_at` a moment just after now fires after now."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        fired = loop.create_future()
        loop.call_at(1e-12, fired.set_result, None)
        await fired
        return now()

    assert run(main()) == 1e-9


def test_time_stays_exact_for_long() -> None:
    """After 50 000 waits of 0.1 s it is 5 000 s, to the nanosecond."""

    async def main() -> float:
        for _ in range(50_000):
            await pause(0.1)
        return now()

    assert run(main()) == 5_000.0


def test_timers_do_not_starve_behind_a_busy_program() -> None:
    """A timer that is due fires though other callbacks never end."""

    async def main() -> int:
        fired = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0, fired.set_result, None)
        rounds = 0
        while not fired.done():
            rounds += 1
            await pause(0)
        return rounds

    assert run(main()) <= 2


def test_cancelled_timers_do_not_move_time_and_are_forgotten() -> None:
    """A timer that was cancelled neither sets the clock nor stays in memory."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        for number in range(10_000):
            loop.call_later(1_000 + number, lambda: None).cancel()
        await pause(2)
        await pause(0)
        return now()

    loop = VirtualLoop()
    ended = loop.run_until_complete(main())
    kept = len(loop._timers)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    loop.close()

    assert ended == 2.0
    assert kept < 3_000


def test_deadlock_names_who_waits() -> None:
    """When nothing can run and no timer is set, the run ends with the names and places of what waits."""

    async def main() -> None:
        waiter = asyncio.create_task(asyncio.Event().wait(), name="the waiter")
        await waiter

    with pytest.raises(DeadlockError, match=r"at 0.0 s.*main waits in .*; the waiter waits in Event.wait"):
        run(main())


def test_a_spinning_program_is_stopped() -> None:
    """Callbacks that go on for ever at one moment are an error, not a hang."""

    async def main() -> None:
        while True:
            await pause(0)

    loop = VirtualLoop(rounds_limit=1_000)
    task = loop.create_task(main())
    with pytest.raises(LivelockError, match=r"spins at 0.0 s: Task-1 waits in"):
        loop.run_until_complete(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(task)
    loop.close()


def test_limit_of_virtual_time() -> None:
    """A run past its limit ends; what is cancelled may still take time to clean up."""
    ended: list[float] = []

    async def main() -> None:
        try:
            await pause(100)
        finally:
            await pause(5)
            ended.append(now())

    with pytest.raises(TimeLimitError, match="not done after 20"):
        run(main(), limit_seconds=20)

    assert ended == [5.0]


def test_within_the_limit() -> None:
    """A run that ends at its limit has kept it."""
    run(pause(20), limit_seconds=20)


def test_leftover_tasks_are_cancelled_oldest_first() -> None:
    """Tasks that the coroutine leaves behind are cancelled and awaited in the order of their creation."""
    ended: list[str] = []

    async def linger(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await pause(1)
            ended.append(name)

    async def main() -> str:
        for name in "cab":
            asyncio.create_task(linger(name), name=name)  # noqa: RUF006
        await pause(1)
        return "done"

    assert run(main()) == "done"
    assert ended == ["c", "a", "b"]


def test_failure_while_cancelled_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """A leftover task that fails when it is cancelled is logged with its name."""

    async def fail() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError("broken") from None

    async def main() -> None:
        asyncio.create_task(fail(), name="worker 7")  # noqa: RUF006
        await pause(1)

    run(main())

    assert "worker 7 failed while it was cancelled" in caplog.text


def test_what_the_coroutine_raises_comes_out() -> None:
    """The error of the coroutine is the error of the run."""

    async def main() -> None:
        await pause(1)
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        run(main())


def test_threads_are_refused() -> None:
    """A thread's work takes no virtual time, so it is refused with the reason."""

    async def main() -> None:
        await asyncio.to_thread(int)

    with pytest.raises(RuntimeError, match="virtual time cannot wait for threads"):
        run(main())


def test_calls_from_other_threads_are_refused() -> None:
    """`call_soon_threadsafe` works in the loop's thread and is refused from another."""
    errors: list[str] = []

    def call(loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.call_soon_threadsafe(lambda: None)
        except RuntimeError as error:
            errors.append(str(error))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        called = loop.create_future()
        loop.call_soon_threadsafe(called.set_result, None)
        await called
        thread = threading.Thread(target=call, args=(loop,))
        thread.start()
        thread.join()

    run(main())

    assert [error.partition(":")[0] for error in errors] == ["a call from another thread"]


def test_asyncios_own_words_work() -> None:
    """Timeouts, task groups, queues, locks and waiting for the first run on virtual time."""

    async def main() -> tuple[float, list[int]]:
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
        taken: list[int] = []

        async def take() -> None:
            async with asyncio.timeout(100):
                while True:
                    taken.append(await queue.get())

        async def put() -> None:
            for number in range(5):
                await pause(10)
                await queue.put(number)

        taker = asyncio.create_task(take())
        async with asyncio.TaskGroup() as group:
            group.create_task(put())
        await asyncio.wait([taker], timeout=500)
        assert isinstance(taker.exception(), TimeoutError)
        return now(), taken

    assert run(main()) == (100.0, [0, 1, 2, 3, 4])


def test_a_task_without_other_owner_is_not_lost() -> None:
    """The loop keeps each task until it is done, so memory management never ends one."""
    done: list[int] = []

    async def work(number: int) -> None:
        waiting = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(1, waiting.set_result, None)
        await waiting
        done.append(number)

    async def main() -> None:
        for number in range(3_000):
            asyncio.create_task(work(number))  # noqa: RUF006
        await pause(2)

    run(main())

    assert done == list(range(3_000))


CANCELS = """
import asyncio
from kubelet_fakes.clock import run
padding = [bytearray(100 * {seed}) for _ in range(50)]
order = []
async def wait(number):
    try:
        await asyncio.Event().wait()
    finally:
        order.append(number)
async def fail():
    await asyncio.Event().wait() if False else None
    raise ValueError
async def main():
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(wait(number))
            group.create_task(fail())
    except* ValueError:
        pass
run(main())
print(order)
"""


@pytest.mark.slow
def test_cancellation_of_a_group_has_one_order() -> None:
    """A task group cancels its tasks in the same order in every process."""
    orders = {
        subprocess.run(
            [sys.executable, "-c", CANCELS.format(seed=seed)],
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }

    assert len(orders) == 1


def test_unfinished_generators_are_closed() -> None:
    """An asynchronous generator that nobody finished is closed at the end of the run."""
    closed: list[bool] = []

    async def numbers() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    async def main() -> AsyncGenerator[int, None]:
        generator = numbers()
        await anext(generator)
        return generator

    run(main())

    assert closed == [True]


def test_a_second_run_inside_a_run_is_refused() -> None:
    """One loop at a time: a run inside a run is a mistake, and says so."""

    async def inner() -> None: ...

    async def main() -> None:
        run(inner())

    with pytest.raises(RuntimeError, match="inside a running event loop"):
        run(main())


def test_loop_clock_tells_the_time_of_day() -> None:
    """The wall clock shows its start at 0 and goes on with the loop, to the nanosecond."""

    async def main() -> tuple[int, int, float]:
        clock = LoopClock(start_ns=1_795_215_978_000_000_001)
        begin = clock.wall_ns()
        await clock.sleep(0.1)
        return begin, clock.wall_ns() - begin, clock.monotonic()

    assert run(main()) == (1_795_215_978_000_000_001, 100_000_000, 0.1)


def test_interruption_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    """Ctrl-C in any task ends the run, and no task reports it again when it ends."""

    async def child() -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        task = asyncio.create_task(child())
        await asyncio.wait([task])

    with pytest.raises(KeyboardInterrupt):
        run(main())
    gc.collect()

    assert caplog.records == []
