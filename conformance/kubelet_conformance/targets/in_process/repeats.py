"""Ends a play on virtual time that would never end, by what repeats in it.

No clock of the machine has a say: the same play ends at the same record, however slow the machine is.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable

from kubelet_conformance.targets.controls import EndlessPlayError
from kubelet_conformance.trace.format.recorder import RecordedCall, RecordedReply, Recorder, Seen

BURST = 10_000
"""Nothing happens so often in a minute: a thousand pods that start at once make a third as many calls."""
_BURST_SECONDS = 60.0
REPEATS_MAX = 30_000
"""Nothing happens so often in a play: a node at rest makes as many relists in eight hours."""


class _Counter:
    """Counts the records of each kind; `endless` fails when those of one kind will not end."""

    def __init__(self) -> None:
        self.endless: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._counts: Counter[str] = Counter()
        self._began: dict[str, float] = {}

    def __call__(self, seen: Seen) -> None:
        if isinstance(seen, RecordedReply):
            return
        what = seen.rpc if isinstance(seen, RecordedCall) else f"a record of kind {seen.kind}"
        self._counts[what] += 1
        count = self._counts[what]
        place = count % BURST
        if place == 1:
            self._began[what] = seen.t
        elif not place and (count >= REPEATS_MAX or seen.t - self._began[what] < _BURST_SECONDS):
            self._end(f"{what} comes again and again, {count} times by {seen.t:g} s")

    def _end(self, text: str) -> None:
        if self.endless.done():
            # The task lets no other run: it ends as if it were cancelled.
            raise asyncio.CancelledError
        self.endless.set_exception(EndlessPlayError(f"the play does not end: {text}"))


async def until_it_repeats(work: Awaitable[None], recorder: Recorder) -> None:
    """Do it to its end; raises `EndlessPlayError` once it repeats itself without end."""
    counter = _Counter()
    recorder.listeners.append(counter)
    task = asyncio.ensure_future(work)
    await asyncio.wait([task, counter.endless], return_when=asyncio.FIRST_COMPLETED)
    recorder.listeners.remove(counter)
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if counter.endless.done():
        counter.endless.result()
    task.result()
