"""Virtual time on a loop with sockets: it passes only when nothing is on its way over loopback."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

P = ParamSpec("P")
_ON_ITS_WAY_SECONDS = 0.001
"""Real time in which whatever was sent has arrived."""


class _Selector(selectors.DefaultSelector):
    """Waits for sockets a moment; then the time that it was to wait is over."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready."""
        found = super().select(_ON_ITS_WAY_SECONDS if timeout is None or timeout > 0 else 0)
        if not found and timeout is None:
            return super().select(None)
        if not found and timeout is not None and timeout > 0:
            self.now += timeout
        return found


class LoopbackLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is virtual and whose sockets are real."""

    def __init__(self) -> None:
        self._time = _Selector()
        super().__init__(self._time)

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._time.now


def on_loopback(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run the test on such a loop."""

    @wraps(test)
    def run_it(*arguments: P.args, **fixtures: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=LoopbackLoop) as runner:
            runner.run(test(*arguments, **fixtures))

    return run_it
