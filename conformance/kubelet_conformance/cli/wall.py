"""The one place that reads the machine's clock and draws chance: what real clients see is real."""

from __future__ import annotations

import os
from time import time_ns  # noqa: TID251 - here and nowhere else

__all__ = ("fresh_key", "wall_now_ns")


def wall_now_ns() -> int:
    """Nanoseconds since the epoch, now."""
    return time_ns()


def fresh_key() -> bytes:
    """A key that nobody knows."""
    return os.urandom(32)
