"""Several inputs as one: what the sync loop waits for, one item at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from kubelet_reference.ports import Chance
from kubelet_reference.ticker import Ticker

T = TypeVar("T")


class Inputs(Generic[T]):
    """Takes one item of each source in advance, and hands out one of those that are there (LOOP-02).

    Which one is left to chance; 0 is the one that came first. A source whose item is not taken yet waits, and
    holds up no other one (LOOP-01).
    """

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._ready: dict[int, tuple[T, asyncio.Future[None]]] = {}
        """The item of each source, and what tells its source that it was taken."""
        self._waiting: asyncio.Future[None] | None = None

    async def next(self) -> T:
        """The next item."""
        while not self._ready:
            self._waiting = self._loop.create_future()
            await self._waiting
        sources = list(self._ready)
        item, taken = self._ready.pop(sources[self._chance.pick(len(sources))])
        _end(taken)
        return item

    async def feed(self, source: int, read: Callable[[], Awaitable[T]]) -> None:
        """Keep on reading from a source, whose number is its own, until cancelled."""
        while True:
            await self._offer(source, await read())

    async def feed_ticks(self, source: int, seconds: float, item: T) -> None:
        """Give `item` on a grid of `seconds`; ticks that nobody took in time are left out."""
        ticker = Ticker(seconds)
        while True:
            await ticker.next()
            await self._offer(source, item)

    async def _offer(self, source: int, item: T) -> None:
        """Have an item ready until it is taken."""
        taken = self._loop.create_future()
        self._ready[source] = item, taken
        if self._waiting is not None:
            _end(self._waiting)
        await taken


def _end(wait: asyncio.Future[None]) -> None:
    """End a wait that has not ended otherwise."""
    if not wait.done():
        wait.set_result(None)
