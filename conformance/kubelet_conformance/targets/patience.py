"""Waits on a machine that may stand still: the time in which it stalls does not count, up to a minute."""

from collections.abc import Awaitable, Callable

from kubelet_conformance.contract.stalls import Stalls
from kubelet_conformance.trace.format.recorder import Item, Recorder
from kubelet_conformance.trace.format.records import Stall

STALLED_SECONDS_MAX = 60.0
"""A wait takes at most so much longer; where the machine stood still for more, it proves nothing."""


async def reached_despite_stalls(
    recorder: Recorder, reaches: Callable[[float], Awaitable[bool]], within: float
) -> tuple[bool, float]:
    """Whether `reaches(seconds)` comes to hold, with so much time more as stalls took; how much that was."""
    began = recorder.now()
    met, lost = await reaches(within), 0.0
    while not met and (lost := _lost_since(recorder, began)):
        left = began + within + min(lost, STALLED_SECONDS_MAX) - recorder.now()
        if left <= 0:
            break
        met = await reaches(left)
    return met, lost


def _lost_since(recorder: Recorder, t: float) -> float:
    """How many seconds stalls have taken since then."""
    later = (each for each in recorder.records if isinstance(each, Item) and each.t > t)
    return Stalls(
        Stall(0, each.t, seconds=each.fields["seconds"]) for each in later if each.kind == "stall"
    ).lost_seconds
