"""Play scenarios ahead of their turn, in a process for each processor.

Each scenario has a node of its own, so it makes no difference in which process it is played. The processes
are copies of this one, made once everything is loaded, and so only where the system makes such copies safely.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import active_children, get_context
from typing import TypeAlias

from kubelet_conformance.reports.played_run import Played

_AT_A_TIME = 4
"""How many stories a process is given at once."""

Story: TypeAlias = "Callable[[], Played]"

_stories: dict[str, Story] = {}
"""In a process that plays: what to play."""


def processors() -> int:
    """How many processes it is worth to play in."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


class Ahead:
    """Plays these stories, by key, in so many processes; hands out what came of each in the same order."""

    def __init__(self, stories: Mapping[str, Story], processes: int) -> None:
        context, others = get_context("fork"), set(active_children())
        self._pool = ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(stories,))
        self._coming = self._pool.map(_played, stories, chunksize=_AT_A_TIME)
        self._processes = set(active_children()) - others

    def take(self, key: str) -> Played:
        """What came of this story; those before it are passed over.

        Raises:
            LookupError: It is none of them, or its turn is over.
            BrokenProcessPool: A process has died.
        """
        for found, played in self._coming:
            if found == key:
                return played
        raise LookupError(f"{key} is not played ahead")

    def close(self) -> None:
        """End the processes, whatever they are doing; they leave nothing behind.

        One that has just begun may still have this process's way to take a gentler signal.
        """
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.kill()


def _begin(stories: Mapping[str, Story]) -> None:
    """A process begins: whether to go on is up to the one that it plays for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _stories.update(stories)


def _played(key: str) -> tuple[str, Played]:
    return key, _stories[key]()
