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
"""There is a look at the threads of the peers at each of so many beats."""
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
        self._waited: dict[str, float] = {}
        """How long each thread had waited for a processor at the last look."""

    def __enter__(self) -> Self:
        """Begin."""
        loop = asyncio.get_running_loop()
        self._heart = _HEARTS.setdefault(loop, _Heart(loop))
        self._heart.keep(self)
        self._looked = loop.time()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._heart.leave(self)

    def look(self, t: float, pressure: float) -> None:
        """Report which peers stalled since the last look; when in the meantime is not known."""
        for of, seconds in self._waits().items():
            self.report(of, t - self._looked, seconds, pressure)
        self._looked = t

    def report(self, of: str, span: float, late: float, pressure: float) -> None:
        """Report that one was late by so many seconds in a span, if that is a stall."""
        if late > STALL_SECONDS:
            seconds = round(max(span, late), 3)
            self._report({"of": of, "seconds": seconds, "pressure": round(pressure, 2)})

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


class _Heart:
    """Beats on a loop for all its watches, as all share how late it is and how pressed the machine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watches: list[StallWatch] = []
        self._beats = 0
        self._late = 0.0
        """How late the beats since the last look were."""

    def keep(self, watch: StallWatch) -> None:
        """Beat for that watch too."""
        self._watches.append(watch)
        if len(self._watches) == 1:
            self._looked, self._pressed = self._loop.time(), _pressed_seconds()
            self._rest()

    def leave(self, watch: StallWatch) -> None:
        """Beat for it no more."""
        self._watches.remove(watch)
        if not self._watches:
            self._next.cancel()
            del _HEARTS[self._loop]

    def _rest(self) -> None:
        self._due = self._loop.time() + BEAT_SECONDS
        self._next = self._loop.call_at(self._due, self._beat)

    def _beat(self) -> None:
        t = self._loop.time()
        self._beats += 1
        self._late += t - self._due
        is_turn = not self._beats % _BEATS_OF_LOOK
        if self._late > STALL_SECONDS or is_turn:
            self._look(t, peers_too=is_turn)
        self._rest()

    def _look(self, t: float, *, peers_too: bool) -> None:
        pressed, span = _pressed_seconds(), t - self._looked
        pressure = (pressed - self._pressed) / span
        for watch in tuple(self._watches):
            watch.report("recorder", span, self._late, pressure)
            if peers_too:
                watch.look(t, pressure)
        self._looked, self._pressed, self._late = t, pressed, 0.0


_HEARTS: dict[asyncio.AbstractEventLoop, _Heart] = {}
"""That of each loop which is watched."""


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
        some = (_PROC / "pressure" / "cpu").read_bytes().splitlines()[0]
        return int(some.rpartition(b"=")[2]) / _US
    return 0.0
