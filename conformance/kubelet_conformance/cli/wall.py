"""The one place that reads the machine's clock: what is served to real clients lives in real time."""

from __future__ import annotations

from time import time_ns  # noqa: TID251 - here and nowhere else

__all__ = ("wall_now_ns",)


def wall_now_ns() -> int:
    """Nanoseconds since the epoch, now."""
    return time_ns()
