"""The one module that reads the machine's clock and random numbers, for calls to real runtimes."""

import os
from datetime import UTC, datetime
from time import monotonic_ns, time_ns  # noqa: TID251 - here and nowhere else

__all__ = ("fresh_key", "monotonic_ns", "rfc3339", "system_time_ns")


def system_time_ns() -> int:
    """Nanoseconds since the epoch, now."""
    return time_ns()


def fresh_key() -> bytes:
    """A random key, which is not stored anywhere."""
    return os.urandom(32)


def rfc3339(ns: int) -> str:
    """A time of day, in nanoseconds since the epoch, as people write it, to the microsecond."""
    return f"{datetime.fromtimestamp(ns // 1000 / 1e6, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
