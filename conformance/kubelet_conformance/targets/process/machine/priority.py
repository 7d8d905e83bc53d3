"""Who gets a processor first: this process, as all kubelets of a run wait for what it serves."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

NICENESS = os.nice(0)
"""Of this process as it was started, and of the kubelets."""
_FIRST = 5
"""By so much this process is less nice than its kubelets."""


@contextmanager
def coming_first() -> Generator[None]:
    """Get a processor before the kubelets do while the context is open, where that is permitted."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS - _FIRST)
    try:
        yield
    finally:
        come_as_usual(0)


def come_as_usual(pid: int) -> None:
    """Let a process that was just started, or this one by 0, be as nice as any."""
    with suppress(ProcessLookupError, PermissionError):
        os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
