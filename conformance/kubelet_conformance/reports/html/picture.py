"""A timeline as a picture: lanes of SVG, with what belongs to each call in its title.

Everything that comes from a trace is escaped.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.timeline.axis import Axis, axis_of
from kubelet_conformance.reports.timeline.model import Item, Timeline, What

_ROW = 20
_PAD = 5
_TOP = 22
"""The height of the axis above the lanes."""
_TAG = 15
"""The height of one row of names of broken contracts, above the axis."""
_TAG_TOP = 12
_TAG_ROWS = 5
_TAG_CHAR = 6.4
_CHAR = 6.1
_LABELLED = frozenset({What.EXIT, What.KUBELET, What.WAIT})
"""The events that have a word beside them; others have a shape only."""
_GLYPH = 10.0
_TICK = 3.0
_FOLD_TEXT = 13
"""How far below the axis the length of a fold is written."""
_TICKS_APART = 64.0
_TITLE_CHARS = 600
_IN_SECONDS = 100
"""A longer time is said in minutes."""


@dataclass(frozen=True, slots=True)
class Row:
    """The name of a lane, as it stands beside the picture."""

    name: str
    pod: str
    kind: str
    height: int
    begins_pod: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture: the names of its lanes, and the SVG beside them."""

    rows: list[Row]
    top: int
    width: int
    height: int
    svg: Markup
    first_break: int | None


@dataclass(frozen=True, slots=True)
class _Slice:
    """The records that prove a break, from the first to the last: whose, how that is said, and in which row.

    Where names of others leave no room, it has no row, and no name.
    """

    begin: float
    end: float
    ids: list[str]
    said: str
    row: int | None


def picture_of(timeline: Timeline, *, reads: bool) -> Picture:
    """The picture of a timeline; without `reads` these are seen and cannot be pointed at."""
    return _Drawing(timeline, axis_of(timeline, _width), names_reads=reads).picture()


def _width(item: Item) -> float:
    if item.is_call and item.what is not What.READ:
        return len(item.label) * _CHAR + 8
    if item.what in _LABELLED:
        return _GLYPH + 3 + len(item.label) * _CHAR
    return _TICK if item.what is What.READ else _GLYPH


@dataclass(slots=True)
class _Drawing:
    timeline: Timeline
    axis: Axis
    names_reads: bool
    heights: dict[int, int] = field(default_factory=dict[int, int])
    tops: dict[int, int] = field(default_factory=dict[int, int])
    rows: list[int] = field(default_factory=list[int])
    """For each item its row in its lane."""
    out: list[str] = field(default_factory=list[str])
    top: int = _TOP
    bottom: int = 0

    def picture(self) -> Picture:
        """Draw it."""
        self._share_rows()
        slices = self._slices()
        self.top = _TOP + _TAG * (1 + max((each.row for each in slices if each.row is not None), default=-1))
        order = self.timeline.lane_order()
        y = self.top
        for lane in order:
            self.tops[lane] = y
            y += self.heights[lane]
        self.bottom = y
        self._lanes(order)
        self._ticks()
        named = [*self._lives()]
        self._folds()
        self.out += named
        self._mark(slices)
        self._reads()
        self.out += map(self._item, range(len(self.timeline.items)))
        return Picture(
            [*self._names(order)],
            self.top,
            round(self.axis.width),
            y + 4,
            Markup("".join(self.out)),  # noqa: S704 - every text in it was escaped
            self._first_break(),
        )

    def _share_rows(self) -> None:
        """Give items of a lane that overlap rows of their own."""
        ends: list[list[float]] = [[] for _ in self.timeline.lanes]
        self.rows = [0] * len(self.timeline.items)
        in_order = sorted(range(len(self.rows)), key=lambda number: self.axis.spans[number][0])
        for number in in_order:
            begin, end = self.axis.spans[number]
            used = ends[self.timeline.items[number].lane]
            row = next((row for row, until in enumerate(used) if until <= begin), len(used))
            used[row:] = [end, *used[row + 1 :]]
            self.rows[number] = row
        self.heights = {lane: 2 * _PAD + _ROW * max(1, len(used)) for lane, used in enumerate(ends)}

    def _names(self, order: list[int]) -> Iterator[Row]:
        before = ""
        for number in order:
            lane = self.timeline.lanes[number]
            yield Row(lane.name, lane.pod, lane.kind.value, self.heights[number], lane.pod != before)
            before = lane.pod

    def _lanes(self, order: list[int]) -> None:
        before = ""
        for number in order:
            lane, y = self.timeline.lanes[number], self.tops[number]
            kind = "podline" if lane.pod != before else "line"
            self.out.append(f'<path class="{kind}" d="M0 {y}h{self.axis.width:.0f}"/>')
            before = lane.pod

    def _folds(self) -> None:
        for fold in self.axis.folds:
            said = f"{_seconds(fold.seconds)} without news"
            said += f", {fold.records} records that say nothing new" if fold.records else ""
            height, middle = self.bottom - self.top, fold.x + fold.width / 2
            self.out.append(
                f'<g class="fold"><title>{said}</title><rect x="{fold.x:.0f}" y="{self.top}" '
                f'width="{fold.width:.0f}" height="{height}"/>'
                f'<text x="{middle:.0f}" y="{self.top + _FOLD_TEXT}">{_seconds(fold.seconds)}</text></g>'
            )

    def _ticks(self) -> None:
        for x, t in self.axis.ticks(_TICKS_APART):
            self.out.append(
                f'<g class="tick"><path d="M{x:.0f} {self.top - 5}V{self.bottom}"/>'
                f'<text x="{x + 3:.0f}" y="{self.top - 7}">{t:.3f}</text></g>'
            )

    def _lives(self) -> Iterator[str]:
        """Draw the spans; their names are yielded, to be written above what is drawn next."""
        for life in self.timeline.lives:
            y, height = self.tops[life.lane], self.heights[life.lane]
            x = self.axis.at(*life.begin)
            end = self.axis.width if life.end is None else self.axis.at(*life.end)
            self.out.append(
                f'<g class="life"><rect x="{x:.0f}" y="{y + 2}" width="{max(end - x, 2):.0f}" '
                f'height="{height - 4}" rx="3"/></g>'
            )
            yield (
                f'<g class="life"><text x="{x + 3:.0f}" y="{y + height - 5}">{escape(life.label)}</text></g>'
            )

    def _slices(self) -> list[_Slice]:
        """What is marked, the likeliest cause first; what the same records prove is marked once."""
        shared: dict[tuple[float, float], list[str]] = {}
        for finding in self.timeline.findings:
            spans = [
                self.axis.spans[number]
                for number, item in enumerate(self.timeline.items)
                if item.seq in finding.seqs or item.end_seq in finding.seqs
            ]
            if spans:
                place = min(begin for begin, _ in spans), max(end for _, end in spans)
                ids = shared.setdefault(place, [])
                ids += [finding.contract] if finding.contract not in ids else []
        rows: list[list[tuple[float, float]]] = [[] for _ in range(_TAG_ROWS)]
        found: list[_Slice] = []
        for (begin, end), ids in shared.items():
            said = ids[0] if len(ids) == 1 else f"{ids[0]} +{len(ids) - 1}"
            until = begin + len(said) * _TAG_CHAR + 12
            free = (
                number for number, row in enumerate(rows) if all(b >= until or e <= begin for b, e in row)
            )
            row = next(free, None)
            if row is not None:
                rows[row].append((begin, until))
            found.append(_Slice(begin, end, ids, said, row))
        return found

    def _mark(self, slices: list[_Slice]) -> None:
        """Mark where contracts are broken, above all by the likeliest cause, and draw what did not come."""
        for each in reversed(slices):
            y = _TAG_TOP + _TAG * (each.row or 0)
            kind = "slice" if slices[0].ids[0] in each.ids else "slice also"
            text = (
                ""
                if each.row is None
                else f'<text x="{each.begin - 2:.0f}" y="{y}">{escape(each.said)}</text>'
            )
            self.out.append(
                f'<g class="{kind}"><rect x="{each.begin - 3:.0f}" y="{y + 3}" '
                f'width="{each.end - each.begin + 6:.0f}" height="{self.bottom - y - 3}" rx="3"/>{text}</g>'
            )
        drawn: set[tuple[int, float, float]] = set()
        for finding in self.timeline.findings:
            at = finding.at
            if finding.by is None or (at.lane, at.t, finding.by) in drawn:
                continue
            drawn.add((at.lane, at.t, finding.by))
            x, end = self.axis.at(at.t, at.seq), self.axis.at(finding.by)
            y, height = self.tops[at.lane], self.heights[at.lane]
            text = f"expected by {finding.by:.3f} s: {safe(finding.text, _TITLE_CHARS)}"
            self.out.append(
                f'<g class="ghost"><title>{escape(text)}</title><rect x="{x:.0f}" y="{y + 3}" '
                f'width="{max(end - x, _GLYPH):.0f}" height="{height - 6}" rx="3"/>'
                f'<path d="M{max(end, x + _GLYPH):.0f} {y + 1}v{height - 2}"/></g>'
            )

    def _first_break(self) -> int | None:
        """Where the likeliest cause went wrong."""
        for finding in self.timeline.findings[:1]:
            return round(self.axis.at(finding.at.t, finding.at.seq))
        return None

    def _is_tick(self, item: Item) -> bool:
        return item.what is What.READ and not item.breaks

    def _reads(self) -> None:
        """All reads as one shape, where none has a title."""
        if self.names_reads:
            return
        ticks: list[str] = []
        for number, item in enumerate(self.timeline.items):
            if self._is_tick(item):
                y = self.tops[item.lane] + _PAD + _ROW * self.rows[number]
                ticks.append(f"M{self.axis.spans[number][0] + 1:.0f} {y + 5}v10")
        if ticks:
            self.out.append(f'<path class="read" d="{"".join(ticks)}"/>')

    def _item(self, number: int) -> str:
        item, (begin, end) = self.timeline.items[number], self.axis.spans[number]
        y = self.tops[item.lane] + _PAD + _ROW * self.rows[number]
        bad, broken = " bad" if item.failed else "", " mark" if item.breaks else ""
        if any(item is each.at for each in self.timeline.findings[:1]):
            broken += " first"
        if self._is_tick(item):
            if not self.names_reads:
                return ""
            tick = f'd="M{begin + 1:.0f} {y + 5}v10"'
            return f'<path class="i read{bad}" data-n="{number}" {tick}><title>{_title(item)}</title></path>'
        said = _title(item)
        head = f'<g class="i {item.what.value}{bad}{broken}" data-n="{number}"><title>{said}</title>'
        if item.is_call or item.what is What.READ:
            label = "" if item.what is What.READ else item.label
            return (
                f'{head}<rect x="{begin:.0f}" y="{y + 2}" width="{end - begin:.0f}" height="16" rx="3"/>'
                f'<text x="{begin + 4:.0f}" y="{y + 14}">{escape(label)}</text></g>'
            )
        word = ""
        if item.what in _LABELLED:
            word = f'<text x="{begin + _GLYPH + 2:.0f}" y="{y + 14}">{escape(item.label)}</text>'
        return f'{head}<use href="#g-{item.what.value}" x="{begin:.0f}" y="{y + 5}"/>{word}</g>'


def _title(item: Item) -> str:
    """What an item is, in words: when, which record, what, and what it is evidence against."""
    took = (
        f" (#{item.end_seq}, {item.end - item.t:.3f} s later)"
        if item.is_call and item.end is not None
        else ""
    )
    breaks = f"\nbreaks {', '.join(item.breaks)}" if item.breaks else ""
    return escape(f"{item.t:.3f} s  #{item.seq}  {item.text[:_TITLE_CHARS]}{took}{breaks}")


def _seconds(seconds: float) -> str:
    """A pause, as people say it."""
    if seconds < _IN_SECONDS:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"
