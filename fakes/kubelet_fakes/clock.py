"""Virtual time: an asyncio loop whose clock jumps to the next deadline as soon as nothing can run.

A program that waits for ten minutes ends after some milliseconds, and each run of it goes the same way:

>>> import asyncio
>>> from kubelet_fakes.clock import run
>>> async def wait() -> float:
...     async with asyncio.timeout(3600):
...         await asyncio.Event().wait()
>>> try:
...     run(wait())
... except TimeoutError:
...     "an hour has passed"
'an hour has passed'

How it keeps time:

- Time starts at 0 and is counted in whole nanoseconds, so nothing is lost to rounding: 0.1 + 0.2 seconds and
  0.3 seconds are one deadline. Seconds since the epoch would keep no more than some 200 ns in a float.
- Callbacks whose deadlines are equal run in the order in which they were asked for. asyncio's own loops order
  them by deadline only, and a heap keeps no order among equals.
- A wait of more than nothing moves the clock by 1 ns at least. Otherwise a program that waits until a moment
  which the clock cannot show exactly would wait for nothing again and again.
- Nothing that happens outside can wake this loop: no sockets, no threads, no signals. When nothing can run
  and no timer is set, nothing ever will, and the run ends with `DeadlockError`, which names who waits.

What is random in asyncio itself is ordered here too: task groups and `asyncio.wait` keep tasks in sets, whose
order follows the address of each task in memory; the tasks of this loop hash by the order of their creation.
"""

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from heapq import heapify, heappop, heappush
from typing import Any, NoReturn, Protocol, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_NS = 1_000_000_000

#: So many rounds of callbacks without a step of the clock are a program that spins.
_ROUNDS_AT_ONE_MOMENT = 5_000

#: The list of tasks is cleared of those that are done whenever it has doubled; this is its least length.
_TASKS_KEPT = 1_000

#: Cancelled timers are dropped when there are many; so few are left to their turn.
_TIMERS_KEPT = 1_000


class Clock(Protocol):
    """Time, real or virtual, as the fakes ask for it."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""
        ...

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`; 0 lets others run."""
        ...


class LoopClock:
    """The clock of the event loop that runs, real or virtual.

    `start_ns` is the time of day when the loop is at 0; the default is 2026-01-01T00:00:00Z.
    """

    def __init__(self, start_ns: int = 1_767_225_600 * _NS) -> None:
        self.start_ns = start_ns

    def monotonic(self) -> float:
        """The time of the loop, in seconds."""
        return asyncio.get_running_loop().time()

    def wall_ns(self) -> int:
        """The time of day that goes with it, in nanoseconds since the epoch."""
        return self.start_ns + round(self.monotonic() * _NS)

    async def sleep(self, seconds: float) -> None:
        """Wait on the loop."""
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        timer = loop.call_later(seconds, _set, over)
        try:
            await over
        finally:
            timer.cancel()


def _set(over: asyncio.Future[None]) -> None:
    """End a wait that was not cancelled."""
    if not over.done():
        over.set_result(None)


class DeadlockError(RuntimeError):
    """Nothing can run and no timer is set: every waiting task would wait for ever."""


class LivelockError(RuntimeError):
    """Callbacks call for callbacks without end while the clock stands still."""


class TimeLimitError(TimeoutError):
    """The run would have gone on past its limit of virtual time."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop on virtual time; see the module for its rules.

    `limit_seconds` is the moment of virtual time after which no timer may fire; None is no limit.
    `rounds_limit` is how many rounds of callbacks there may be at one moment.
    """

    # The base class's own: what can run now, whether to end after this round, the thread that runs the loop.
    _ready: deque[asyncio.Handle]
    _stopping: bool
    _thread_id: int | None

    def __init__(
        self, *, limit_seconds: float | None = None, rounds_limit: int = _ROUNDS_AT_ONE_MOMENT
    ) -> None:
        super().__init__()
        self._now = 0
        self._limit = None if limit_seconds is None else round(limit_seconds * _NS)
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._timers_cancelled = 0
        self._numbers = itertools.count(1)
        self._task_numbers = itertools.count(1)
        self._tasks: list[asyncio.Task[Any]] = []
        self._tasks_kept = _TASKS_KEPT
        self._rounds = 0
        self._rounds_limit = rounds_limit

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now / _NS

    def time_ns(self) -> int:
        """Nanoseconds since the loop was made: the exact time."""
        return self._now

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Run the callback after everything that can run already."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run the callback in `delay` seconds; what is more than 0 is 1 ns at least."""
        wait = round(delay * _NS) or (delay > 0)
        return self._call_at_ns(self._now + wait, callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run the callback when `time()` has reached `when`."""
        moment = round(when * _NS)
        if moment == self._now and when > self.time():
            moment += 1
        return self._call_at_ns(moment, callback, args, context)

    def _call_at_ns(
        self, moment: int, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(moment / _NS, callback, args, self, context)
        heappush(self._timers, (moment, next(self._numbers), timer))
        return timer

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """Start a task; the loop keeps it until it is done, so that none is lost half way."""
        number = next(self._task_numbers)
        task = _Task(coro, number, loop=self, name=str(name or f"Task-{number}"), context=context)
        self._tasks.append(task)
        if len(self._tasks) > self._tasks_kept:
            self._tasks = self.pending_tasks()
            self._tasks_kept = max(_TASKS_KEPT, 2 * len(self._tasks))
        return task

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks that are not done, oldest first."""
        return [task for task in self._tasks if not task.done()]

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """The same as `call_soon`, and refused from another thread."""
        if self._thread_id not in {None, threading.get_ident()}:
            raise RuntimeError(
                "a call from another thread: virtual time cannot wait for threads, since it does not know "
                "how much of its time they take"
            )
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: object, func: Callable[..., object], *args: object) -> NoReturn:
        """Refused: nothing can be done beside the loop on virtual time."""
        del executor, args
        raise RuntimeError(
            f"{func!r} was to run in a thread: virtual time cannot wait for threads; call it directly"
        )

    def _run_once(self) -> None:
        """Run all that can run now, after moving on to the next deadline if that is nothing."""
        ready, timers = self._ready, self._timers
        if ready:
            self._rounds += 1
            if self._rounds > self._rounds_limit:
                self._rounds = 0
                raise LivelockError(f"the program spins at {self.time()} s: {self._waiting()}")
        elif not self._stopping:
            self._jump()
        while timers and timers[0][0] <= self._now:
            ready.append(heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def _jump(self) -> None:
        """Set the clock to the next deadline that still counts."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heappop(timers)
        if not timers:
            raise DeadlockError(f"nothing can run at {self.time()} s and no timer is set: {self._waiting()}")
        moment = timers[0][0]
        if self._limit is not None and moment > self._limit:
            raise TimeLimitError(f"not done after {self._limit / _NS} s of virtual time: {self._waiting()}")
        if moment > self._now:
            self._now = moment
            self._rounds = 0

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Forget cancelled timers whenever they may be half of all."""
        del handle
        self._timers_cancelled += 1
        if self._timers_cancelled > _TIMERS_KEPT + len(self._timers) // 2:
            self._timers[:] = [entry for entry in self._timers if not entry[2].cancelled()]
            heapify(self._timers)
            self._timers_cancelled = 0

    def lift_limit(self) -> None:
        """Let time go on past the limit, so that what is cancelled can clean up."""
        self._limit = None

    def _waiting(self) -> str:
        """The pending tasks in words."""
        return "; ".join(map(_where, self.pending_tasks())) or "no task is pending"


class _Task(asyncio.Task[T]):
    """A task whose hash is its number in the loop, so that sets of tasks have the same order in each run."""

    def __init__(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        number: int,
        *,
        loop: VirtualLoop,
        name: str,
        context: Context | None,
    ) -> None:
        # The base class's initialiser puts the task into a set.
        self._number = number
        super().__init__(coro, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self._number


def run(coro: Coroutine[Any, Any, T], *, limit_seconds: float | None = None) -> T:
    """Run a coroutine to its end on a virtual loop of its own, and return what it returns.

    Tasks that it leaves behind are cancelled, oldest first, and awaited.

    Args:
        coro: What to run.
        limit_seconds: The virtual time it may take; None is any.

    Raises:
        DeadlockError: Nothing can run any more, and the coroutine is not done.
        LivelockError: The program runs and runs while its time stands still.
        RuntimeError: An event loop runs already.
        TimeLimitError: It takes longer than `limit_seconds`.
    """
    if _runs_in_a_loop():
        coro.close()
        raise RuntimeError("run() inside a running event loop: await the coroutine instead")
    try:
        loop = VirtualLoop(limit_seconds=limit_seconds)
    except BaseException:
        # Ctrl-C, most likely: what has not begun must not be reported as never awaited.
        coro.close()
        raise
    try:
        return loop.run_until_complete(loop.create_task(coro, name="main"))
    except (KeyboardInterrupt, SystemExit):
        # The task that it interrupted would report it again, as an exception that was never retrieved.
        loop.set_exception_handler(_unobserved)
        raise
    finally:
        try:
            _cancel_all(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


def _unobserved(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """Report nothing."""


def _runs_in_a_loop() -> bool:
    """Whether the caller is called by an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _cancel_all(loop: VirtualLoop) -> None:
    """Cancel what is pending and wait for its end; a failure on the way goes to the exception handler."""
    loop.lift_limit()
    tasks = loop.pending_tasks()
    for task in tasks:
        task.cancel()
    loop.run_until_complete(_settled(tasks))
    for task in tasks:
        if not task.cancelled() and (error := task.exception()):
            message = f"{task.get_name()} failed while it was cancelled at the end of the run"
            loop.call_exception_handler({"message": message, "exception": error, "task": task})


async def _settled(tasks: list[asyncio.Task[Any]]) -> None:
    """Return when all the tasks are done, however they ended."""
    await asyncio.gather(*tasks, return_exceptions=True)


def _where(task: asyncio.Task[Any]) -> str:
    """A task's name and the innermost line it waits at."""
    innermost: Any = task.get_coro()
    while getattr(getattr(innermost, "cr_await", None), "cr_frame", None):
        innermost = innermost.cr_await
    frame = getattr(innermost, "cr_frame", None)
    if frame is None:
        return task.get_name()
    code = frame.f_code
    return f"{task.get_name()} waits in {code.co_qualname} ({code.co_filename}:{frame.f_lineno})"
