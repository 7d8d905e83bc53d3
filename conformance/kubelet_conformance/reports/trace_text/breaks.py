"""Which breaks of a contract a report shows, and the slice of the trace that proves each.

A slice is the shortest part of a trace that shows a break: a second reading keeps the records the evidence
names.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from kubelet_conformance.reports.trace_text.expectations import expected, happened, offending
from kubelet_conformance.reports.trace_text.lines import asked, described, replied
from kubelet_conformance.run_record.model import ContractResult, Proof
from kubelet_conformance.run_record.record import Record as RunRecord
from kubelet_conformance.trace.format.errors import BodyError, TraceError
from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import (
    Call,
    Expect,
    Fault,
    Kubelet,
    Record,
    Reply,
    RuntimeEvent,
    Unknown,
)
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.observe import moments

BREAKS_SHOWN = 3
"""How many breaks of one contract a report shows in full."""
LINES_SHOWN = 40
"""How many lines of one slice are shown."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a slice: where its record stands, what it says, and the time of day on wall time."""

    seq: int
    t: float
    text: str
    clock: str = ""


_Lines: TypeAlias = dict[str, dict[int, Line]]


def cut(path: Path, wanted: Iterable[int]) -> dict[int, Line]:
    """The lines of these records (by seq) of a trace file; a call and its reply make one line under both.

    What cannot be read a second time, such as a pipe, or has changed since, gives no lines.
    """
    if not path.is_file():
        return {}
    slicer = _Slicer(set(wanted))
    try:
        with Reader(str(path)) as reader:
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
        self._header: Header | None = None

    def read(self, reader: Reader) -> None:
        self._header = reader.header
        for moment in moments(reader):
            self._see(moment, moment.record)
            if not self._missing and not self._begun:
                return

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
        elif is_wanted and not isinstance(record, Unknown):
            self._lines[record.seq] = Line(record.seq, record.t, described(moment))

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
        if self._header is None:
            return {}
        clock = self._header.time_of_day
        return {seq: replace(line, clock=clock(line.t)) for seq, line in self._lines.items()}


def last_lines(reader: Reader, count: int, reads: frozenset[str]) -> list[Line]:
    """The last records about pods, the kubelet and what happened to it; of `reads` those that failed."""
    lines: dict[int, Line] = {}
    with suppress(TraceError, BodyError):  # What was found up to here still shows something.
        for moment in moments(reader):
            record = moment.record
            if moment.pod is None and not isinstance(record, Kubelet | Fault | RuntimeEvent | Expect):
                continue
            call = record.call if isinstance(record, Reply) else record
            if isinstance(call, Call) and (
                call.rpc not in reads or (isinstance(record, Reply) and record.error)
            ):
                said = replied(moment) if isinstance(record, Reply) else "(no reply)"
                lines[call.seq] = Line(call.seq, call.t, f"{asked(moment)} -> {said}")
            elif not isinstance(call, Call | Unknown):
                lines[record.seq] = Line(record.seq, record.t, described(moment))
    return list(lines.values())[-count:]


def chosen(proofs: Iterable[Proof], length: Callable[[Proof], int] = lambda _: 0) -> list[list[Proof]]:
    """The breaks to show, each with those that are alike, the one with the shortest way to it first.

    Those that the baseline knows are left out. One of each clause comes before a second of any.
    """
    alike: dict[tuple[str, str], list[Proof]] = {}
    for each in proofs:
        if not each.deviation:
            alike.setdefault((each.clause, _NUMBER.sub("0", each.text)), []).append(each)
    kinds = list(alike)
    first = {clause: number for number, (clause, _) in reversed(list(enumerate(kinds)))}
    by_worth = sorted(range(len(kinds)), key=lambda number: (first[kinds[number][0]] != number, number))
    return [sorted(alike[kinds[number]], key=length) for number in sorted(by_worth[:BREAKS_SHOWN])]


def lines_of(proofs: Iterable[Proof], file: Callable[[str], Path]) -> _Lines:
    """The lines of all these breaks, by trace and seq; each trace is read once, from its file."""
    wanted: dict[str, set[int]] = {}
    for each in proofs:
        wanted.setdefault(each.trace, set()).update(each.seq)
    return {trace: cut(file(trace), seqs) for trace, seqs in wanted.items()}


@dataclass(frozen=True, slots=True)
class Break:
    """One break with the lines of its trace.

    Attributes:
        alike: all breaks that it stands for, itself included.
    """

    proof: Proof
    lines: _Lines
    alike: Sequence[Proof] = ()

    def parts(self, result: ContractResult) -> Iterator[tuple[str, list[str]]]:
        """What was expected, what happened, when, and by which clause: titles, each with its lines."""
        proof = self.proof
        yield "expected", [expected(result, proof)]
        line = self.lines.get(proof.trace, {}).get(offending(proof))
        yield "happened", happened(proof, "" if line is None else line.text).splitlines()
        yield "when", [self._when(), *self.slice()]
        if len(result.clauses) > 1:
            own = result.sentence(proof.clause)
            is_said = own == expected(result, proof)
            yield "clause", [proof.clause if is_said else f"{proof.clause}: {own}"]
        if proof.log:
            yield "log", list(proof.log)
        if len(self.alike) > 1:
            places = {each.scenario or each.trace for each in self.alike}
            word = "scenarios" if all(each.scenario for each in self.alike) else "traces"
            where = f", in {len(places)} {word}; this is the shortest" if len(places) > 1 else ""
            yield "count", [f"{len(self.alike)} times{where}"]

    def _when(self) -> str:
        """The moment at which it went wrong."""
        seq = offending(self.proof)
        line = self.lines.get(self.proof.trace, {}).get(seq)
        clock = f" ({line.clock})" if line is not None and line.clock else ""
        moment = f"#{seq}" if line is None else f"{line.t:.3f} s{clock}, #{seq}"
        seconds = self.proof.due
        return moment if seconds is None else f"{seconds:g} s after {moment}"

    def slice(self) -> Iterator[str]:
        """Its records, one a line, with the time since the first of them."""
        known = self.lines.get(self.proof.trace, {})
        found = {line.seq: line for seq in self.proof.seq if (line := known.get(seq)) is not None}
        in_order = sorted(found.values(), key=lambda line: line.seq)
        if not in_order:
            records = ", ".join(f"#{seq}" for seq in self.proof.seq[:LINES_SHOWN])
            yield f"records {records} (the trace could not be read again)"
            return
        start = in_order[0].t
        wide = max(len(str(line.seq)) for line in in_order) + 1
        for line in in_order[:LINES_SHOWN]:
            seq = f"#{line.seq}"
            yield f"{line.t - start:+10.3f} s  {seq:>{wide}} {line.text}"
        if len(in_order) > LINES_SHOWN:
            yield f"... and {len(in_order) - LINES_SHOWN} more records"


def names_rule(result: ContractResult, breaks: Iterable[Break]) -> bool:
    """Whether these breaks name the whole rule, as what was expected or as their clause."""
    has_clauses = len(result.clauses) > 1
    return any(
        expected(result, each.proof) == result.rule
        or (has_clauses and result.sentence(each.proof.clause) == result.rule)
        for each in breaks
    )


def in_lines(parts: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    """The parts of a break, a line each: titles before their first lines, the rest indented."""
    for title, (first, *others) in parts:
        yield f"{title}: {first}"
        yield from (f"  {line}" for line in others)


def breaks_of(contracts: Iterable[ContractResult], record: RunRecord) -> dict[str, list[Break]]:
    """The breaks of these contracts that are shown, by id, each with its lines."""
    lengths = {each.path: each.records for each in record.run.traces}
    own = {each.name: each.records for each in record.run.scenarios if each.records}

    def length(proof: Proof) -> int:
        return own.get(proof.scenario or "") or lengths.get(proof.trace, 0)

    shown = {each.id: chosen(each.evidence, length) for each in contracts}
    lines = lines_of((alike[0] for kinds in shown.values() for alike in kinds), record.file)
    return {name: [Break(alike[0], lines, alike) for alike in kinds] for name, kinds in shown.items()}


def shown(proofs: Sequence[Proof]) -> list[Break]:
    """The breaks of one contract that are shown, where traces go by the names of their files."""
    kinds = chosen(proofs)
    lines = lines_of((alike[0] for alike in kinds), Path)
    return [Break(alike[0], lines, alike) for alike in kinds]
