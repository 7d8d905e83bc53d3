"""The inotify instances of this machine: a user has 128 as a rule, and a kubelet that gets none ends."""

import ctypes
import os
import sys
from pathlib import Path

from kubelet_reference.server.host.clock import LoopClock

WATCHES = "fs.inotify.max_user_instances"
"""The setting of Linux that bounds them."""
_LIMIT = Path("/proc/sys") / WATCHES.replace(".", "/")
_OF_A_KUBELET = 6
_OF_A_START = 8
"""A kubelet has more of them while it starts than later."""
_WAIT_SECONDS = 60.0
_PAUSE_SECONDS = 0.5


def kubelets_max() -> int:
    """How many kubelets can run side by side here, if nothing else watches files."""
    try:
        return max(1, int(_LIMIT.read_text(encoding="ascii")) // _OF_A_KUBELET)
    except (OSError, ValueError):
        return sys.maxsize


async def watches_for_a_kubelet() -> None:
    """Wait until there are enough for one more kubelet; after a minute it may say itself what it lacks."""
    clock = LoopClock(0)
    deadline = clock.monotonic() + _WAIT_SECONDS
    while not _are_left() and clock.monotonic() < deadline:
        await clock.sleep(_PAUSE_SECONDS)


def _are_left() -> bool:
    make = getattr(ctypes.CDLL(None), "inotify_init1", None)
    made: list[int] = [make(os.O_CLOEXEC) for _ in range(_OF_A_START)] if make is not None else []
    for each in made:
        if each >= 0:
            os.close(each)
    return all(each >= 0 for each in made)
