"""Waiting for something to be seen, and saying well what was awaited when it never came."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubelet_conformance.trace.recorder import Failed, RecordedCall, RecordedReply, Recorder, Seen

_TAIL_RECORDS = 20
_READS = frozenset(
    {
        "ContainerStatus",
        "ImageFsInfo",
        "ImageStatus",
        "ListContainers",
        "ListImages",
        "ListPodSandbox",
        "PodSandboxStatus",
        "Status",
        "Version",
    }
)


class WaitTimeoutError(AssertionError):
    """A scenario waited in vain: what was awaited, what was last seen, and the end of the trace."""


class Waiting:
    """Wakes whoever waits when a record made his condition true.

    `recheck_seconds` is how often conditions are looked at beside that; None where a record tells of every
    change.
    """

    def __init__(self, recorder: Recorder, recheck_seconds: float | None = None) -> None:
        self._recheck_seconds = recheck_seconds
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._due = False
        recorder.listeners.append(self._wake)

    def _wake(self, _: Seen) -> None:
        # Checked after the one who recorded has gone on: a condition may look at what the record is about.
        if self._waiters and not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._check)

    def _check(self) -> None:
        self._due = False
        for holds, future in list(self._waiters):
            if not future.done():
                _look(holds, future)

    async def until(self, holds: Callable[[], bool], within: float) -> bool:
        """Wait until `holds()`, at most `within` seconds; whether it came. Raises what `holds` raises."""
        if holds():
            return True
        future = asyncio.get_running_loop().create_future()
        waiter = (holds, future)
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(within):
                await self._told(future)
        except TimeoutError:
            return holds()
        else:
            return True
        finally:
            self._waiters.remove(waiter)

    async def _told(self, future: asyncio.Future[None]) -> None:
        """Wait until a waiter was told."""
        while self._recheck_seconds is not None and not future.done():
            await asyncio.wait([future], timeout=self._recheck_seconds)
            self._check()
        await future


def _look(holds: Callable[[], bool], future: asyncio.Future[None]) -> None:
    """Tell a waiter that what he waits for holds, or why nobody can look any more."""
    try:
        if holds():
            future.set_result(None)
    except Exception as error:  # noqa: BLE001 - the waiter's own, who gets it
        future.set_exception(error)


def tail(recorder: Recorder, count: int = _TAIL_RECORDS) -> list[str]:
    """The last records in a line each; reads of an unchanged runtime are left out."""
    lines: list[str] = []
    for seen in reversed(recorder.records):
        line = _line(seen)
        if line:
            lines.append(line)
        if len(lines) == count:
            break
    return lines[::-1]


def _line(seen: Seen) -> str:
    match seen:
        case RecordedCall(rpc=rpc) | RecordedReply(call=RecordedCall(rpc=rpc), outcome=_) if rpc in _READS:
            failed = isinstance(seen, RecordedReply) and isinstance(seen.outcome, Failed)
            return f"{seen.t:9.3f}  {rpc} failed" if failed else ""
        case RecordedCall():
            return f"{seen.t:9.3f}  {seen.rpc} begins"
        case RecordedReply(outcome=Failed() as failed):
            return f"{seen.t:9.3f}  {seen.call.rpc} failed: {failed.code} {failed.message}"
        case RecordedReply():
            return f"{seen.t:9.3f}  {seen.call.rpc} done"
        case _:
            told = ", ".join(f"{name}={value}" for name, value in seen.fields.items() if name in _TOLD)
            return f"{seen.t:9.3f}  {seen.kind} {told}"


_TOLD = frozenset(
    {"op", "name", "reason", "message", "what", "exit_code", "verb", "resource", "code", "awaited"}
)
