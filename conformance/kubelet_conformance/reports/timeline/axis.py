"""The axis of a timeline: where in a picture each moment lies, with time folded where nothing happens.

What happens one after the other lies side by side, however short the time between; time in which nothing
happens takes no more than a fold.
"""

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kubelet_conformance.reports.timeline.model import Item, Timeline

FOLDED_SECONDS = 1.5
"""Time without news that is longer is folded."""
_FOLD = 46.0
_STEP = 3.0
_PER_SECOND = 24.0
_GAP = 3.0
_EVENT = 10.0
_AFTER_ALL = 1 << 60
"""Stands for a record behind all others of the same time."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Time in which nothing happens: where it lies, how long it is, and how many records are in it."""

    x: float
    width: float
    seconds: float
    records: int = 0


@dataclass(frozen=True, slots=True)
class Axis:
    """Where everything lies.

    Attributes:
        spans: begin and end of each item of the timeline, in the order of the items.
        folds: where time is folded.
        width: how wide it is.
        moments: time, number of the record and place, in order.
    """

    spans: list[tuple[float, float]]
    folds: list[Fold]
    width: float
    moments: list[tuple[float, int, float]]

    def at(self, t: float, seq: int | None = None) -> float:
        """The place of a moment: of a record, or the last place of a time."""
        place = bisect_right(self.moments, (t, _AFTER_ALL if seq is None else seq, math.inf))
        if place == 0:
            return 0.0
        before, _, x = self.moments[place - 1]
        if place == len(self.moments) or t <= before:
            return x
        after, _, end = self.moments[place]
        return x + (end - x) * (t - before) / (after - before)

    def ticks(self, apart: float) -> list[tuple[float, float]]:
        """Places and times to write at the axis, at least so far from each other."""
        found: list[tuple[float, float]] = []
        for t, _, x in self.moments:
            if not found or (x - found[-1][0] >= apart and t > found[-1][1]):
                found.append((x, t))
        return found


@dataclass(frozen=True, slots=True)
class _Point:
    """What needs a place: the begin or the end of an item, or a time that something was expected by."""

    t: float
    seq: int
    number: int = -1
    ends: bool = False


def axis_of(timeline: Timeline, width_of: Callable[[Item], float]) -> Axis:
    """The axis of a timeline whose items need these widths."""
    placing = _Placing(timeline, width_of)
    for point in sorted(_points(timeline), key=lambda point: (point.t, point.seq)):
        placing.place(point)
    return placing.whole()


def _points(timeline: Timeline) -> Iterator[_Point]:
    for number, item in enumerate(timeline.items):
        yield _Point(item.t, item.seq, number)
        if item.is_call and item.end is not None:
            yield _Point(item.end, item.end_seq, number, ends=True)
    for finding in timeline.findings:
        if finding.by is not None:
            yield _Point(finding.by, _AFTER_ALL)


class _Placing:
    """Gives one point after the other its place."""

    def __init__(self, timeline: Timeline, width_of: Callable[[Item], float]) -> None:
        self._items = timeline.items
        self._widths = [width_of(each) for each in timeline.items]
        self._begun = [0.0] * len(timeline.items)
        self._spans = [(0.0, 0.0)] * len(timeline.items)
        self._free = [0.0] * len(timeline.lanes)
        """Up to where each lane is used."""
        self._quiet = deque(timeline.quiet)
        self._moments: list[tuple[float, int, float]] = []
        self._folds: list[Fold] = []
        self._x = 0.0
        self._t = timeline.items[0].t if timeline.items else 0.0

    def place(self, point: _Point) -> None:
        """Place the next point, after those before."""
        self._pass_time(point.t)
        number = point.number
        if number >= 0:
            item, width = self._items[number], self._widths[number]
            if point.ends:
                self._x = max(self._x, self._begun[number] + width)
                self._spans[number] = self._begun[number], self._x
                self._free[item.lane] = self._x + _GAP
            else:
                self._x = self._begun[number] = max(self._x, self._free[item.lane])
                self._spans[number] = self._x, self._x + width
                if not item.is_call:
                    self._free[item.lane] = self._x + width + _GAP
        self._moments.append((point.t, point.seq, self._x))

    def _pass_time(self, t: float) -> None:
        pause, self._t = t - self._t, max(self._t, t)
        if pause > FOLDED_SECONDS:
            self._folds.append(Fold(self._x + _STEP, _FOLD, pause, self._passed(t)))
            self._x += _FOLD + 2 * _STEP
        elif self._moments:
            self._x += max(_STEP, pause * _PER_SECOND)

    def _passed(self, t: float) -> int:
        """How many records without news came up to this time, and were not counted yet."""
        count = 0
        while self._quiet and self._quiet[0].t < t:
            count += self._quiet.popleft().records
        return count

    def whole(self) -> Axis:
        """The axis; a call without a reply lasts to its end."""
        width = max([self._x, *(end for _, end in self._spans)]) + _EVENT
        for number, item in enumerate(self._items):
            if item.is_call and item.end is None:
                self._spans[number] = self._begun[number], width
        return Axis(self._spans, self._folds, width, self._moments)
