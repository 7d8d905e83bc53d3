"""A timeline in characters of a trace that is still written to: a row appears when its record does."""

from collections.abc import Callable, Iterator
from pathlib import Path

from kubelet_conformance.reports.timeline.axis import FOLDED_SECONDS
from kubelet_conformance.reports.timeline.drawing import Extract, columns_of, head_of, pause_of, row_of
from kubelet_conformance.reports.timeline.model import Item, Timeline, What
from kubelet_conformance.reports.timeline.reading import Reading
from kubelet_conformance.trace.format.errors import TraceError
from kubelet_conformance.trace.format.growing import GrowingFile
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import End
from kubelet_conformance.trace.world.observe import moments

_GAP = 2
"""The columns between a lane's own and its name."""


def followed_lines(path: Path, extract: Extract, wait: Callable[[], object]) -> Iterator[str]:
    """The rows of a recording, up to the `end` of its last file; `wait` is called when nothing new is there.

    A call has its row when it is answered. Where `record` began another file, that one goes on. Raises
    TraceError and BodyError for what is no trace.
    """
    following: Path | None = path
    while following is not None:
        yield from _Drawing(extract).rows(following, wait)
        wait()
        following = _next_file(following)


def _next_file(path: Path) -> Path | None:
    """The file after this one, `trace.1.jsonl` after `trace.jsonl`, if it is there."""
    stem, dot, number = path.stem.rpartition(".")
    if not (dot and number.isdecimal()):
        stem, number = path.stem, "0"
    found = path.with_name(f"{stem}.{int(number) + 1}{path.suffix}")
    return found if found.exists() else None


class _Drawing:
    """The rows of one file, and the lanes that have a column now."""

    def __init__(self, extract: Extract) -> None:
        self._extract = extract
        self._timeline = Timeline()
        self._columns: list[int | None] = []
        """The lane of each column, None for one that is free."""
        self._before: float | None = None

    def rows(self, path: Path, wait: Callable[[], object]) -> Iterator[str]:
        reading = Reading(self._timeline, (), bodies=False)
        try:
            file = GrowingFile(path, wait)
        except OSError as error:
            problem = f"cannot be read: {error.strerror or error}"
            raise TraceError(path, None, problem, "name a trace file") from None
        with Reader(path, file) as reader:
            for moment in moments(reader):
                if not reading.passes(moment.record):
                    reading.take(moment)
                yield from self._drawn()
                end = self._extract.end
                if isinstance(moment.record, End) or (end is not None and moment.record.t > end):
                    break
        reading.finish()
        yield from self._drawn()

    def _drawn(self) -> Iterator[str]:
        """Rows for what is new, which is forgotten then."""
        timeline = self._timeline
        for item in timeline.items:
            if self._extract.has(item):
                yield from self._row(item)
        timeline.items.clear()
        timeline.lives[:] = [each for each in timeline.lives if each.end is None]
        del timeline.quiet[:-1]

    def _row(self, item: Item) -> Iterator[str]:
        if item.lane not in self._columns:
            yield self._new_column(item.lane)
        t, seq = (item.t, item.seq) if item.end is None else (item.end, item.end_seq)
        columns = columns_of(self._timeline, self._columns, t, seq, item)
        if self._before is not None and t - self._before > FOLDED_SECONDS:
            yield pause_of(t - self._before, columns_of(self._timeline, self._columns, t, seq - 1))
        self._before = t
        yield row_of(item, columns)
        if item.what is What.REMOVE and not item.failed:
            self._free(self._timeline.lanes[item.lane].pod)

    def _new_column(self, lane: int) -> str:
        """Give a lane the first free column; returns the line with its name."""
        if None not in self._columns:
            self._columns.append(None)
        place = self._columns.index(None)
        before = "".join(" " if each is None else "|" for each in self._columns[:place])
        self._columns[place] = lane
        return head_of(self._timeline.lanes[lane], before, len(self._columns) - place + _GAP)

    def _free(self, pod: str) -> None:
        """Free the columns of a pod of which nothing lasts any more."""
        lanes = {number for number, lane in enumerate(self._timeline.lanes) if lane.pod == pod and pod}
        if not any(life.lane in lanes and life.end is None for life in self._timeline.lives):
            self._columns = [None if each in lanes else each for each in self._columns]
