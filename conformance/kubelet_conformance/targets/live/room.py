"""Room for kubelets side by side: as many as keep the processors busy, and no more."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path

from kubelet_conformance.run_record.worker_pool import processors

_LOOK_SECONDS = 1.0
_IDLE, _CROWDED = 0.87, 0.97
"""Processors that are less busy have room for one kubelet more, and those that are busier for one less."""
_STAT = Path("/proc/stat")
_COLUMNS, _IDLE_COLUMNS = slice(1, 9), slice(4, 6)
"""The times of a processor but for those of guests, which are in others; and those without work."""


class Room:
    """Lets `kubelets` live side by side at first, later up to `most`; `ready` more are prepared for that.

    Some kubelets take much of a processor and some little, and processors are not alike: while kubelets wait,
    there is room for one more at each look at idle processors, and for one less where all are taken. `busy`
    tells which share of the processors was taken since it was last asked, None where that is not known.
    """

    def __init__(
        self, kubelets: int, most: int = 0, ready: int = 0, busy: Callable[[], float | None] | None = None
    ) -> None:
        self._kubelets = self._least = kubelets
        self._most = most
        self._busy = busy or Processors().busy
        self._alive = 0
        self._end = asyncio.Event()
        """A kubelet has ended."""
        self._lanes = asyncio.Semaphore(kubelets + ready)
        self._queue, self._turn = asyncio.Lock(), asyncio.Lock()
        """One at a time waits for a lane, so that who is urgent has no queue before it; and one to live."""

    @asynccontextmanager
    async def lane(self, *, urgent: bool) -> AsyncGenerator[None]:
        """What a kubelet needs may be prepared; what is `urgent` goes before what waits."""
        async with nullcontext() if urgent else self._queue:
            await self._lanes.acquire()
        try:
            yield
        finally:
            self._lanes.release()

    @asynccontextmanager
    async def kubelet(self) -> AsyncGenerator[None]:
        """A kubelet may live."""
        async with self._turn:
            while self._alive >= self._kubelets:
                self._end.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._end.wait(), _LOOK_SECONDS)
                self._look()
            self._alive += 1
        try:
            yield
        finally:
            self._alive -= 1
            self._end.set()

    def _look(self) -> None:
        """Let one more live from now on if processors were idle, or one less if there were too many."""
        busy = self._busy()
        if busy is None:
            return
        if busy < _IDLE and self._kubelets < self._most:
            self._kubelets += 1
            self._lanes.release()
        elif busy > _CROWDED and self._kubelets > self._least:
            self._kubelets -= 1


class Processors:
    """How busy the processors are which this process may use."""

    def __init__(self) -> None:
        self._looked = _times()

    def busy(self) -> float | None:
        """The share of their time that was taken since the last look, if that is a while ago and Linux tells.

        This process uses one processor only: while it takes all of that, the others can do no more.
        """
        looked = _times()
        if self._looked is None or looked is None:
            return None
        seconds, taken, ours = (now - before for now, before in zip(looked, self._looked, strict=True))
        if seconds < _LOOK_SECONDS * processors() / 2:
            return None
        self._looked = looked
        return max(taken / seconds, ours * processors() / seconds)


def _times() -> tuple[float, float, float] | None:
    """Seconds of all processors, those in which they were busy, and those that this process took."""
    with suppress(OSError, ValueError):
        lines = [line.split() for line in _STAT.read_text(encoding="ascii").splitlines()]
        names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        found = [line for line in lines if line and line[0] in names]
        tick = os.sysconf("SC_CLK_TCK")
        whole = sum(int(each) for line in found for each in line[_COLUMNS]) / tick
        idle = sum(int(each) for line in found for each in line[_IDLE_COLUMNS]) / tick
        used = os.times()
        return whole, whole - idle, used.user + used.system
    return None
