"""The reference kubelet as a process within this one: started, stopped and killed like one."""

import asyncio
import logging
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from itertools import cycle

from kubelet_conformance.targets.controls import KubeletControl, KubeletEndedError
from kubelet_conformance.targets.in_process.ordering import Orders
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_reference.kubelet.kubelet import Kubelet

_CRASHED = 2
"""The exit code of a Go program that panics."""
_RECORDER: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
"""The record of the kubelet that a task belongs to."""


class _Panics(logging.Handler):
    """Puts the panics that a kubelet of this process logs on its record."""

    def emit(self, record: logging.LogRecord) -> None:
        recorder = _RECORDER.get()
        if recorder is not None:
            recorder.record("kubelet", op="panicked", log=record.getMessage().splitlines())


logging.getLogger("kubelet_reference.panics").addHandler(_Panics())


def in_turn(versions: Sequence[str]) -> Iterator[str] | None:
    """The version of each start where kubelets of two versions take turns, None where there is one."""
    return cycle(versions) if len(versions) > 1 else None


def record_start(recorder: Recorder, versions: Iterator[str] | None) -> None:
    """Record that a kubelet starts: the next of those versions, if several take turns."""
    said = {} if versions is None else {"kubernetes": next(versions)}
    recorder.record("kubelet", op="started", **said)


class InProcessKubelet(KubeletControl):
    """Runs one kubelet after another on the same node; `make` builds a new one, which knows nothing yet.

    `orders` are the choices that all of them share, where choices can be made. Where kubelets of two versions
    take turns, `versions` has that of each start.
    """

    def __init__(
        self,
        make: Callable[[], Kubelet],
        recorder: Recorder,
        orders: Orders | None = None,
        versions: Iterator[str] | None = None,
    ) -> None:
        self._make = make
        self._recorder = recorder
        self._orders = orders
        self._versions = versions
        self._kubelet: Kubelet | None = None
        self._task: asyncio.Task[None] | None = None
        self._ending: KubeletEndedError | None = None
        self.died = asyncio.Event()
        """It ended by itself."""

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._task is not None and not self._task.done()

    async def start(self) -> None:
        """Start a new one, unless one runs."""
        if self.running:
            return
        self._kubelet = self._make()
        record_start(self._recorder, self._versions)
        _RECORDER.set(self._recorder)
        self._task = asyncio.create_task(self._kubelet.run(), name="kubelet")
        self._task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """An error that nothing caught ends a kubelet, as it ends a process."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._ending = KubeletEndedError(
                f"the kubelet ended by itself: {error!r}\n{''.join(traceback.format_exception(error))}"
            )
            self._recorder.record("kubelet", op="ended", code=_CRASHED)
            self.died.set()

    async def stop(self) -> None:
        """Ask it to end; containers go on."""
        if self._kubelet is not None and self.running:
            await self._kubelet.stop()
        await self._ended("stopped")

    async def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        if self._task is not None:
            self._task.cancel()
        await self._ended("killed")

    async def _ended(self, how: str) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            self.raise_if_failed()
        else:
            self._recorder.record("kubelet", op=how)

    def raise_if_failed(self) -> None:
        """Raise `KubeletEndedError` if it ended by itself."""
        if self._ending is not None:
            raise self._ending

    async def metrics(self) -> str:
        """What its /metrics says."""
        return "" if self._kubelet is None else self._kubelet.metrics_text()

    async def healthy(self) -> bool:
        """What its /healthz says; one that cannot answer is not healthy."""
        try:
            return self._kubelet is not None and self.running and bool(self._kubelet.healthy())
        except Exception:  # noqa: BLE001 - a server answers 500 then
            return False

    def choose_orders(self, *choices: int) -> None:
        """Which comes first of several things that are ready, choice by choice and over and over."""
        if self._orders is None:
            super().choose_orders(*choices)
        else:
            self._orders.choose(*choices)
