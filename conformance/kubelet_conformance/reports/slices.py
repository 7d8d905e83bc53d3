"""The shortest part of a trace that shows a break: a second reading keeps the records the evidence names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kubelet_conformance.reports.lines import asked, replied, told
from kubelet_conformance.trace.errors import BodyError, TraceError
from kubelet_conformance.trace.learning import learn
from kubelet_conformance.trace.looking import key_of, look
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.reader import Reader
from kubelet_conformance.trace.records import Call, Record, Reply, Unknown
from kubelet_conformance.trace.world import World


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a slice: where its record stands, and what it says."""

    seq: int
    t: float
    text: str


def cut(path: str, wanted: Iterable[int]) -> dict[int, Line]:
    """The lines of these records (by seq) of a trace file; a call and its reply make one line under both.

    What cannot be read a second time, such as a pipe, or has changed since, gives no lines.
    """
    if not Path(path).is_file():
        return {}
    slicer = _Slicer(set(wanted))
    try:
        with Reader(path) as reader:
            slicer.read(reader)
    except (TraceError, BodyError):
        pass  # What was found up to here still shows something.
    return slicer.lines()


class _Slicer:
    """Follows a trace up to the last record that is wanted."""

    def __init__(self, wanted: set[int]) -> None:
        self._wanted = wanted
        self._missing = set(wanted)
        self._begun: dict[str, Line] = {}
        """Wanted calls that have no reply yet, by call id."""
        self._lines: dict[int, Line] = {}

    def read(self, reader: Reader) -> None:
        world = World(reader.header)
        for record in reader:
            if isinstance(record, Unknown):
                self._missing.discard(record.seq)
                continue
            moment = look(world, record, key_of(record))
            self._see(moment, record)
            if not self._missing and not self._begun:
                return
            learn(moment)

    def _see(self, moment: Moment, record: Record) -> None:
        is_wanted = record.seq in self._wanted
        if is_wanted:
            self._missing.discard(record.seq)
        if isinstance(record, Reply):
            begun = self._begun.pop(record.call.id, None)
            if begun is not None or is_wanted:
                self._answered(moment, record, begun)
        elif is_wanted and isinstance(record, Call):
            self._begun[record.id] = Line(record.seq, record.t, asked(moment))
        elif is_wanted:
            self._lines[record.seq] = Line(record.seq, record.t, told(moment))

    def _answered(self, moment: Moment, reply: Reply, begun: Line | None) -> None:
        call = reply.call
        question = begun.text if begun is not None else asked(moment)
        took = reply.t - call.t
        text = f"{question} -> {replied(moment)} (#{reply.seq}, {took:.3f} s later)"
        self._lines[call.seq] = self._lines[reply.seq] = Line(call.seq, call.t, text)

    def lines(self) -> dict[int, Line]:
        """What was found; a call without a reply says so."""
        for line in self._begun.values():
            self._lines[line.seq] = Line(line.seq, line.t, f"{line.text} (no reply)")
        return self._lines
