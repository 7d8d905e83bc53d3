"""Waits until something is observed; a wait that times out reports what was awaited and last observed."""

import asyncio
import io
from collections.abc import Callable, Iterable
from typing import TypedDict

from kubelet_conformance.node.observations import Observations
from kubelet_conformance.reports.trace_text.breaks import last_lines
from kubelet_conformance.targets.controls import Target
from kubelet_conformance.targets.patience import STALLED_SECONDS_MAX, reached_despite_stalls
from kubelet_conformance.trace.format.header import FORMAT_VERSION, Channels, Header
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.recorder import Recorder, Seen

LONG = 900.0
"""How long a scenario waits unless given a limit, in seconds: longer than the longest back-off."""
_TAIL_RECORDS = 20
_READS = frozenset(
    {
        *("ContainerStatus", "PodSandboxStatus", "ImageStatus", "Status", "Version"),
        *("ListContainers", "ListPodSandbox", "ListImages", "ImageFsInfo"),
    }
)


class Limits(TypedDict, total=False):
    """At most how long to wait, in seconds, and the contract whose judge reads the outcome."""

    within: float
    contract: str


class WaitTimeoutError(AssertionError):
    """A scenario timed out: what was awaited, what was last seen, and the end of the trace."""


class Observer:
    """What is observed of a node from outside, and waiting for it.

    Attributes:
        target: the kubelet and the runtime.
        observations: the statuses, calls and events so far.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.observations = Observations(target.recorder)
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._due = False
        target.recorder.listeners.append(self._wake)

    async def until(
        self,
        holds: Callable[[], bool],
        awaited: str | Callable[[], str],
        *,
        within: float = LONG,
        contract: str = "",
        last_seen: Callable[[], str] | None = None,
    ) -> None:
        """Wait until `holds()` is true of what was observed, at most `within` seconds.

        What is `awaited` may be put into words when the wait is over.
        Time in which the machine stalls does not count, up to a minute. With `contract`, the outcome is
        written as an `expect` record for the contract's judge, unless a fault that the scenario knows nothing
        of, or a machine that hardly ran, may have the wait fail. Raises WaitTimeoutError, which says what was
        awaited, what was last seen, and how the trace ends.
        """
        target = self.target
        within = min(max(within, target.wait_seconds_min), target.wait_seconds_max)
        deadline = target.now() + within
        met, lost = await reached_despite_stalls(
            target.recorder, lambda seconds: self.reaches(holds, seconds), within
        )
        is_fair = met or lost <= STALLED_SECONDS_MAX
        contract = contract if is_fair and not target.is_disturbed else ""
        awaited = awaited if isinstance(awaited, str) else awaited()
        if contract or not met:
            target.recorder.record(
                "expect", contract=contract, awaited=awaited, by=round(deadline, 3), met=met
            )
        if not met:
            seen = [] if last_seen is None else [f"last seen: {last_seen()}"]
            seen += [f"the machine stalled meanwhile, for {lost:.0f} s"] if lost else []
            trace = ["the trace ends:", *(f"  {line}" for line in tail(target.recorder))]
            timed_out = f"timed out after {within:g} s waiting for {awaited}"
            raise WaitTimeoutError("\n".join([timed_out, *seen, *trace]))

    async def expect(self, what: str, wrong: Callable[[], Iterable[str]], contract: str) -> None:
        """Write for the contract's judge whether something is as expected; `wrong` says what of it is not.

        It may take 1 s, or longer where the target's waits do. Raises WaitTimeoutError if anything is wrong.
        """
        await self.until(
            lambda: not any(wrong()), lambda: "; ".join([what, *wrong()]), within=1, contract=contract
        )

    def _wake(self, _: Seen) -> None:
        # Checked after the one who recorded has gone on: a condition may look at what the record is about.
        if self._waiters and not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._check)

    def _check(self) -> None:
        self._due = False
        for holds, future in list(self._waiters):
            if not future.done():
                _recheck(holds, future)

    async def reaches(self, holds: Callable[[], bool], within: float) -> bool:
        """Whether `holds()` becomes true within so many seconds; nothing is recorded.

        Raises what `holds` raises.
        """
        if holds():
            return True
        future = asyncio.get_running_loop().create_future()
        waiter = (holds, future)
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(within):
                await self._awaited(future)
        except TimeoutError:
            return holds()
        else:
            return True
        finally:
            self._waiters.remove(waiter)

    async def _awaited(self, future: asyncio.Future[None]) -> None:
        """Wait for a record after which it holds, and look beside that where not every change is recorded."""
        recheck_seconds = self.target.recheck_seconds
        while recheck_seconds is not None and not future.done():
            await asyncio.wait([future], timeout=recheck_seconds)
            self._check()
        await future


def _recheck(holds: Callable[[], bool], future: asyncio.Future[None]) -> None:
    """Wake a waiter if what it waits for holds, or pass on the exception that its condition raised."""
    try:
        if holds():
            future.set_result(None)
    except Exception as error:  # noqa: BLE001 - the waiter's own, who gets it
        future.set_exception(error)


def tail(recorder: Recorder) -> list[str]:
    """The last records in a line each; reads of an unchanged runtime are left out."""
    file = io.BytesIO()
    recorder.write(file, Header(trace=FORMAT_VERSION, channels=Channels(cri="full", pods="sent")))
    file.seek(0)
    with Reader("the trace", file) as reader:
        lines = last_lines(reader, _TAIL_RECORDS, _READS)
    return [f"{line.t:9.3f}  {line.text}" for line in lines]
