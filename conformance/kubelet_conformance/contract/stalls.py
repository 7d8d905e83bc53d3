"""Stalls: what seems broken because the machine stood still is inconclusive.

A trace that records stalls, and in which something seems broken, is judged again in other views of its time.
Only what is broken in all of them counts. What depends on how long something took, and may have been the
stall, is not; what must never happen, at whatever time, is broken in each view.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate

import msgspec

from kubelet_conformance.contract.judge import Excused
from kubelet_conformance.contract.obligations import Obligation
from kubelet_conformance.trace.format.records import Call, Record, Reply, Stall

RECOVERY_SECONDS = 1.0
"""What a kubelet missed in a stall it makes up for at the next turn of its loops, which come each second."""


@dataclass(frozen=True, slots=True)
class View:
    """A view of a trace's time: when something took place that was recorded at a time; what is excused."""

    at: Callable[[float], float] | None = None
    excused: Excused | None = None

    def of(self, records: Iterable[Record]) -> Iterable[Record]:
        """The records at the times that they have in this view."""
        return records if self.at is None else (_moved(record, self.at(record.t)) for record in records)


AS_RECORDED = View()


def _moved(record: Record, t: float) -> Record:
    if type(record) is Call or type(record) is Reply:
        record.t = t
        return record
    return msgspec.structs.replace(record, t=t)


class Stalls:
    """The spans in which the machine stood still, each with the second in which a kubelet recovers."""

    def __init__(self, found: Iterable[Stall]) -> None:
        stood = [(max(0.0, one.t - one.seconds), one.t) for one in found]
        self.seconds = sum(end - begin for begin, end in _joined(stood))
        """How long the machine stood still in all."""
        spans = self._spans = _joined((begin, end + RECOVERY_SECONDS) for begin, end in stood)
        self._begins = [begin for begin, _ in spans]
        self._lost = list(accumulate((end - begin for begin, end in spans), initial=0.0))
        """How long the machine had stood still before each, and in the end."""
        self._begins_left = [begin - lost for begin, lost in zip(self._begins, self._lost, strict=False)]

    @property
    def lost_seconds(self) -> float:
        """How long a kubelet could not do what it had to, with the time in which it recovers."""
        return self._lost[-1]

    def views(self) -> tuple[View, ...]:
        """What is broken in each of them is not broken because of a stall."""
        return (
            View(lambda t: t - self._stood_still(t), self._excused_until),
            View(lambda t: t + self._stood_still(t)),
            View(self._at_their_begin),
        )

    def _stood_still(self, t: float) -> float:
        """How long the machine had stood still by then."""
        place = bisect_right(self._begins, t) - 1
        if place < 0:
            return 0.0
        begin, end = self._spans[place]
        return self._lost[place] + min(t, end) - begin

    def _at_their_begin(self, t: float) -> float:
        """All that a stall may have held up took place when it began."""
        place = bisect_right(self._begins, t) - 1
        return self._begins[place] if place >= 0 and t <= self._spans[place][1] else t

    def _excused_until(self, obligation: Obligation, now: float) -> float:
        """Until when an obligation may be met where stalls are left out: each gives it its time anew."""
        place = bisect_right(self._begins_left, now) - 1
        return self._begins_left[place] + (obligation.due.within or 0.0) if place >= 0 else -math.inf


def _joined(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The spans in their order, those that touch as one."""
    joined = list[tuple[float, float]]()
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined
