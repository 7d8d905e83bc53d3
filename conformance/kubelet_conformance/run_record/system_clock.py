"""The one module that reads the machine's clock and random numbers, for calls to real runtimes."""

import os
from time import monotonic_ns, time_ns  # noqa: TID251 - here and nowhere else

__all__ = ("fresh_key", "monotonic_ns", "system_time_ns")


def system_time_ns() -> int:
    """Nanoseconds since the epoch, now."""
    return time_ns()


def fresh_key() -> bytes:
    """A random key, which is not stored anywhere."""
    return os.urandom(32)
