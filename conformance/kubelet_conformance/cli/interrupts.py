"""SIGTERM ends a command as Ctrl-C does: it cleans up and reports what it has."""

import signal
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def terminable() -> Generator[None]:
    """SIGTERM is SIGINT while the context is open."""
    before = signal.signal(signal.SIGTERM, _interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupted(_number: int, _frame: object) -> None:
    signal.raise_signal(signal.SIGINT)
