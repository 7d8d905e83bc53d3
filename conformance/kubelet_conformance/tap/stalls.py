"""Stalls: spans of time in which the tap, or a process at one of its ends, had to wait for a processor.

The tap's own are known by a heartbeat that comes late, those of its clients and of the runtime by what the
kernel says of how long their threads were ready to run and did not.
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

BEAT_SECONDS = 0.1
"""How long the heart rests between two beats."""
STALL_SECONDS = 0.1
"""Beats that were late by more in sum since the last look are a stall, as are threads that waited for longer:
many short waits delay a kubelet as one long wait does.
"""
_BEATS_OF_LOOK = 5
"""There is a look at the threads of the peers at each of so many beats, and where beats are late."""
_PROC = Path("/proc")
_NS = 1_000_000_000
_US = 1_000_000


class StallWatch:
    """Reports each stall at its end, as the fields of its record, while the context is open.

    `peers` returns the processes to look at: what each is, and its id.
    """

    def __init__(
        self, peers: Callable[[], Iterable[tuple[str, int]]], report: Callable[[dict[str, Any]], None]
    ) -> None:
        self._peers = peers
        self._report = report
        self._beats = 0
        self._late = 0.0
        """How late the beats since the last look were."""
        self._waited: dict[str, float] = {}
        """How long each thread had waited for a processor at the last look."""
        self._pressed = _pressed_seconds()

    def __enter__(self) -> Self:
        """Begin."""
        self._loop = asyncio.get_running_loop()
        self._looked = self._loop.time()
        self._rest()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._next.cancel()

    def _rest(self) -> None:
        self._due = self._loop.time() + BEAT_SECONDS
        self._next = self._loop.call_at(self._due, self._beat)

    def _beat(self) -> None:
        t = self._loop.time()
        self._beats += 1
        self._late += t - self._due
        if self._late > STALL_SECONDS or not self._beats % _BEATS_OF_LOOK:
            self._look(t)
        self._rest()

    def _look(self, t: float) -> None:
        """Report who stalled since the last look; when in the meantime is not known."""
        for of, seconds in {"recorder": self._late, **self._waits()}.items():
            if seconds > STALL_SECONDS:
                self._stalled(of, max(t - self._looked, seconds), t)
        self._looked, self._pressed, self._late = t, _pressed_seconds(), 0.0

    def _stalled(self, of: str, seconds: float, t: float) -> None:
        pressure = (_pressed_seconds() - self._pressed) / (t - self._looked)
        self._report({"of": of, "seconds": round(seconds, 3), "pressure": round(pressure, 2)})

    def _waits(self) -> dict[str, float]:
        """How long the threads of each peer have waited in sum since the last look."""
        before, self._waited = self._waited, {}
        waits: dict[str, float] = {}
        for of, pid in self._peers():
            waited = _waited_seconds(pid)
            new = sum(seconds - before.get(thread, seconds) for thread, seconds in waited.items())
            waits[of] = max(new, waits.get(of, 0.0))
            self._waited |= waited
        return waits


def _waited_seconds(pid: int) -> dict[str, float]:
    """How long each thread of a process was ready to run and did not, as far as the kernel says it."""
    waited: dict[str, float] = {}
    with suppress(OSError):
        # By plain names: this is done twice a second for every thread of every peer.
        for thread in os.listdir(tasks := f"{_PROC}/{pid}/task"):  # noqa: PTH208
            with suppress(OSError, IndexError, ValueError), open(f"{tasks}/{thread}/schedstat", "rb") as file:  # noqa: PTH123
                waited[f"{pid}/{thread}"] = int(file.read().split()[1]) / _NS
    return waited


def _pressed_seconds() -> float:
    """How long some task of the machine had to wait for a processor, 0 where the kernel does not say."""
    with suppress(OSError, IndexError, ValueError):
        some = (_PROC / "pressure" / "cpu").read_text(encoding="ascii").splitlines()[0]
        return int(some.rpartition("=")[2]) / _US
    return 0.0
