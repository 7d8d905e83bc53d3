"""A limit to how often something is done."""

from __future__ import annotations

from kubelet_reference.ports import Clock


class Throttle:
    """Lets `burst` through at once and then `per_second`; what comes too often is refused, not delayed.

    With 0 per second there is no limit.
    """

    def __init__(self, clock: Clock, per_second: float, burst: int) -> None:
        self._clock = clock
        self._rate = per_second
        self._burst = burst
        self._left = float(burst)
        self._since = clock.monotonic()

    def accepts(self) -> bool:
        """Whether one more may be done now; if so it counts as done."""
        if not self._rate:
            return True
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._since) * self._rate)
        self._since = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
