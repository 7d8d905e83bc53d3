"""The one place of the kubelet that reads the machine's clock and its source of random numbers."""

import os
from asyncio import get_running_loop
from time import time_ns  # noqa: TID251 - here and nowhere else

from kubelet_reference.server.host.clock import LoopClock, SeededRandom

_SEED_BYTES = 8


class WallClock(LoopClock):
    """The machine's time of day, and its monotonic clock from the moment this is made."""

    def __init__(self) -> None:
        loop = get_running_loop()
        made = loop.time()
        super().__init__(start_ns=0, monotonic=lambda: loop.time() - made)

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch; follows the machine's clock when somebody sets that."""
        return time_ns()


def wall_chance() -> SeededRandom:
    """Random choices that differ in each run of a kubelet."""
    return SeededRandom(int.from_bytes(os.urandom(_SEED_BYTES), "big"))
