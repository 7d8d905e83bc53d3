"""A timeline in characters: a row for each call or event, a column for each lane."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.timeline.axis import FOLDED_SECONDS
from kubelet_conformance.reports.timeline.model import Item, Lane, Timeline, What

_SIGNS = {
    What.START: "+",
    What.STOP: "-",
    What.REMOVE: "x",
    What.EXEC: "e",
    What.PULL: "p",
    What.CALL: "c",
    What.READ: "?",
    What.EXIT: "o",
    What.PROBE: "~",
    What.STATUS: "s",
    What.WRITE: "w",
    What.POD: "*",
    What.EVENT: "!",
    What.KUBELET: "k",
    What.FAULT: "#",
    What.WAIT: "=",
}
_NO_CHANGE = frozenset({What.READ, What.EXEC, What.PROBE, What.EVENT, What.WAIT})
_TEXT_CHARS = 300


@dataclass(frozen=True, slots=True)
class Extract:
    """What of a timeline is drawn.

    Attributes:
        pods: what is about these pods, as NAMESPACE/NAME, or about the node; all if there are none.
        begin, end: the seconds of the trace.
        changes: whether only what changes something is drawn.
    """

    pods: Collection[str] = ()
    begin: float | None = None
    end: float | None = None
    changes: bool = False

    def has(self, item: Item) -> bool:
        """Whether an item is drawn."""
        return (
            (not self.pods or not item.pod or item.pod in self.pods)
            and (self.begin is None or item.t >= self.begin)
            and (self.end is None or item.t <= self.end)
            and not (self.changes and item.what in _NO_CHANGE)
        )


def drawn_lines(timeline: Timeline, extract: Extract) -> Iterator[str]:
    """The lanes, and then the rows: the time, the record, the columns, and what happened in words."""
    items = [each for each in timeline.items if extract.has(each)]
    items.sort(key=lambda each: each.seq)
    used = {each.lane for each in items}
    lanes = [number for number in timeline.lane_order() if number in used]
    for place, number in enumerate(lanes):
        yield head_of(timeline.lanes[number], "|" * place, len(lanes) - place)
    before = items[0].t if items else 0.0
    for item in items:
        if item.t - before > FOLDED_SECONDS:
            yield pause_of(item.t - before, columns_of(timeline, lanes, item.t, item.seq - 1))
        before = item.t
        yield row_of(item, columns_of(timeline, lanes, item.t, item.seq, item))
    if timeline.problem:
        yield f"the rest cannot be read: {safe(timeline.problem)}"


def head_of(lane: Lane, columns: str, width: int) -> str:
    """The name of a lane, with a line of this width to it, behind the columns before its own."""
    name = lane.name if lane.name == lane.kind.value else f"{lane.kind.value} {lane.name}"
    return f"{'':23}{columns}.{'-' * width} {f'{lane.pod} ' if lane.pod else ''}{name}"


def pause_of(seconds: float, columns: str) -> str:
    """A row for a time without news."""
    return f"{'':23}{columns}  ({seconds:.1f} s later)"


def row_of(item: Item, columns: str) -> str:
    """The row of an item: its time, its record, the columns, and what happened in words."""
    mark = f"  breaks {' '.join(item.breaks)}" if item.breaks else ""
    bad = "FAILED " if item.failed and item.what is not What.EVENT else ""
    return f"{item.t:10.3f} s  #{item.seq:<7} {columns}  {bad}{safe(item.text, _TEXT_CHARS)}{mark}"


def columns_of(
    timeline: Timeline, lanes: Sequence[int | None], t: float, seq: int, item: Item | None = None
) -> str:
    """A character for each lane: the item, a line where something lasts, or nothing."""
    lasting = {
        each.lane
        for each in timeline.lives
        if each.begin <= (t, seq) and (each.end is None or each.end > (t, seq))
    }
    return "".join(
        _SIGNS[item.what] if item is not None and number == item.lane else "|" if number in lasting else " "
        for number in lanes
    )
