"""How long a client waits before it asks the API server again (client-go tools/cache/reflector.go)."""

from kubelet_reference.util.ports import Clock, Random

_FIRST_DELAY_SECONDS, _DELAY_SECONDS_MAX, _CALM_SECONDS = 0.8, 30.0, 120.0


class BackoffManager:
    """Growing delays with jitter; they begin anew after two minutes without one."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._delay = _FIRST_DELAY_SECONDS
        self._last = 0.0

    async def wait(self) -> None:
        """Wait for the next delay."""
        if self._clock.monotonic() - self._last > _CALM_SECONDS:
            self._delay = _FIRST_DELAY_SECONDS
        self._last = self._clock.monotonic()
        delay, self._delay = self._delay, min(2 * self._delay, _DELAY_SECONDS_MAX)
        await self._clock.sleep(self._random.jitter(delay, 1.0))
