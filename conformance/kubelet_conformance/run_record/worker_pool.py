"""Play scenarios ahead of their turn, or do other work for each of them, in a process for each processor.

Each scenario has a node of its own, so it makes no difference in which process it is played. The processes
are copies of this one, made once everything is loaded, and so only where the system makes such copies safely.
There is no thread here that could wait for a process that has been killed.
"""

import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar, cast

from kubelet_conformance.contract.deferred_gc import deferred_gc

_QUEUED = 3
"""How many scenarios a process has before it, so that it need not wait for the next one."""

T = TypeVar("T")


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


class ProcessDiedError(Exception):
    """A process that plays scenarios has ended by itself; the message says how."""


class Ahead(Generic[T]):
    """Calls `play` with these keys in this many processes, and hands out the result of each."""

    def __init__(self, play: Callable[[str], T], keys: Iterable[str], processes: int) -> None:
        self._waiting = deque[str]()
        self._results: dict[str, T | Exception] = {}
        self._due = set[str]()
        context = get_context("fork")
        self._workers: dict[Connection, BaseProcess] = {}
        self._given: dict[Connection, int] = {}
        """How many keys each process has before it."""
        for _ in range(processes):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(theirs, play, [*self._workers, ours]), daemon=True)
            worker.start()
            theirs.close()
            self._workers[ours], self._given[ours] = worker, 0
        self._begin(keys)

    def add(self, *keys: str) -> None:
        """Begin these as well, and take what there is of results; raises `ProcessDiedError`."""
        self._receive(0)
        self._begin(keys)

    def _begin(self, keys: Iterable[str]) -> None:
        new = list(keys)
        self._waiting.extend(new)
        self._due.update(new)
        for _ in range(_QUEUED):
            for connection in self._workers:
                self._send_next(connection)

    def take(self, key: str) -> T:
        """The result of this scenario, once it is there.

        Raises:
            LookupError: It is none of them, or was taken before.
            ProcessDiedError: A process has ended by itself.
            Exception: What playing it has raised.
        """
        if key not in self._due:
            raise LookupError(f"{key} is not played ahead")
        while key not in self._results:
            self._receive()
        self._due.remove(key)
        result = self._results.pop(key)
        if isinstance(result, Exception):
            raise result
        return result

    def close(self) -> None:
        """End the processes, whatever they are doing; they leave nothing behind. Again is fine."""
        for connection, worker in self._workers.items():
            worker.kill()
            worker.join()
            connection.close()
        self._workers.clear()

    def _send_next(self, connection: Connection) -> None:
        if self._waiting and self._given[connection] < _QUEUED:
            self._given[connection] += 1
            key = self._waiting.popleft()
            with contextlib.suppress(OSError):  # One that has died is noticed where its results are awaited.
                connection.send(key)

    def _receive(self, seconds: float | None = None) -> None:
        """Wait for the next results, and give their processes more to do."""
        for ready in wait(list(self._workers), seconds):
            connection = cast("Connection", ready)
            try:
                found, played = connection.recv()
            except (EOFError, OSError):  # It ended before a result, or in the middle of one.
                worker = self._workers[connection]
                worker.join()
                raise ProcessDiedError(
                    f"a process that plays scenarios ended by itself with code {worker.exitcode}"
                ) from None
            self._results[found] = played
            self._given[connection] -= 1
            self._send_next(connection)


def _work(connection: Connection, play: Callable[[str], object], inherited: Iterable[Connection]) -> None:
    """Play what is asked for; whether to go on is up to the process that asks.

    What was there before is never collected here: its threads are not in this process, to be waited for.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for each in inherited:
        each.close()  # Else no process would notice that the asking one is gone.
    with deferred_gc(), contextlib.suppress(EOFError, OSError):  # The asking process is gone.
        while True:
            key: str = connection.recv()
            connection.send((key, _result(play, key)))


def _result(play: Callable[[str], object], key: str) -> object:
    try:
        return play(key)
    except Exception as error:  # noqa: BLE001 - raised where the result is taken
        return error
