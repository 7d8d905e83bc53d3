"""Time and random choices: the clock of the running loop, and choices drawn from a seed."""

from asyncio import Future, get_running_loop
from collections.abc import Callable
from hashlib import blake2s

_DRAWS = 1 << 32
"""How many different values one draw can have."""


class LoopClock:
    """The time of the running asyncio loop, be it virtual or the machine's.

    Args:
        start_ns: The time of day when `monotonic` is 0, in nanoseconds since the epoch.
        monotonic: Seconds that never go back. Who knows his loop gives its time: asking which loop runs takes
            longer than asking for the time.
    """

    def __init__(self, start_ns: int, monotonic: Callable[[], float] | None = None) -> None:
        self._start_ns = start_ns
        self.monotonic = monotonic or _running_time

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch; runs evenly with `monotonic`."""
        return self._start_ns + round(self.monotonic() * 1e9)

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`; 0 and less lets what is ready run first."""
        loop = get_running_loop()
        waking = loop.create_future()
        handle = loop.call_later(seconds, _wake, waking) if seconds > 0 else loop.call_soon(_wake, waking)
        try:
            await waking
        finally:
            handle.cancel()


def _running_time() -> float:
    """The time of the loop that runs now."""
    return get_running_loop().time()


def _wake(waking: Future[None]) -> None:
    if not waking.done():
        waking.set_result(None)


class SeededRandom:
    """Chance that comes out the same for the same seed, whatever the Python version.

    Each draw is a hash of the seed and the number of the draw.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn = 0
        self._prefix = f"{self._draw():08x}"
        self._tokens = 0

    def jitter(self, seconds: float, factor: float) -> float:
        """A duration from `seconds` up to `seconds * (1 + factor)`, the end excluded."""
        return seconds * (1 + factor * self._draw() / _DRAWS)

    def pick(self, count: int) -> int:
        """One of `count` choices, as an index."""
        return self._draw() * count // _DRAWS

    def token(self) -> str:
        """A name that neither this seed nor, most likely, another gives twice."""
        self._tokens += 1
        return f"{self._prefix}-{self._tokens}"

    def _draw(self) -> int:
        """A whole number from 0 up to `_DRAWS`, the end excluded."""
        self._drawn += 1
        drawn = blake2s(f"{self._seed} {self._drawn}".encode(), digest_size=4)
        return int.from_bytes(drawn.digest(), "big")
