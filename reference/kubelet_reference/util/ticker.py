"""A ticker: wakes its one waiter on a grid of equal periods, or earlier when it is triggered."""

import asyncio


class Ticker:
    """Ticks at start + `period`, start + 2 * `period` and so on, in seconds of the running loop.

    Like a Go ticker it owes its waiter one tick at most: a late waiter is woken at once, and then on the
    old grid again.
    """

    def __init__(self, period: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._period = period
        self._due = self._loop.time() + period
        self._triggered = False
        self._waiting: asyncio.Future[None] | None = None

    def restart(self) -> None:
        """Begin a new grid now."""
        self._due = self._loop.time() + self._period

    def trigger(self) -> None:
        """Wake the waiter now, or at once when it next waits; several times count as one."""
        self._triggered = True
        self._wake()

    async def next(self) -> bool:
        """Wait for the next tick or trigger; returns whether it was a trigger."""
        if not self._triggered and self._due > self._loop.time():
            await self._sleep()
        if self._triggered:
            self._triggered = False
            return True
        self._advance()
        return False

    async def _sleep(self) -> None:
        self._waiting = self._loop.create_future()
        timer = self._loop.call_at(self._due, self._wake)
        try:
            await self._waiting
        finally:
            self._waiting = None
            timer.cancel()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _advance(self) -> None:
        """Leave out the ticks that are past; the tick that is due now counts as had."""
        self._due += self._period
        while self._due <= self._loop.time():
            self._due += self._period
