"""Which breaks of a contract a report shows, and the slice of the trace that proves each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kubelet_conformance.contract.verdicts import Evidence
from kubelet_conformance.reports.slices import Line, cut

BREAKS_SHOWN = 3
"""How many breaks of one contract a report shows in full."""
LINES_SHOWN = 40
"""How many lines of one slice are shown."""

_Lines: TypeAlias = dict[str, dict[int, Line]]


def chosen(evidence: list[Evidence]) -> list[Evidence]:
    """The breaks to show: those the baseline does not know, one of each clause before a second of any."""
    unknown = [each for each in evidence if not each.deviation]
    first = {each.clause: number for number, each in reversed(list(enumerate(unknown)))}
    by_worth = sorted(
        range(len(unknown)), key=lambda number: (first[unknown[number].clause] != number, number)
    )
    return [unknown[number] for number in sorted(by_worth[:BREAKS_SHOWN])]


def lines_of(evidence: Iterable[Evidence]) -> _Lines:
    """The lines of all these breaks, by trace and seq; each trace is read once."""
    wanted: dict[str, set[int]] = {}
    for each in evidence:
        wanted.setdefault(each.trace, set()).update(each.seq)
    return {path: cut(path, seqs) for path, seqs in wanted.items()}


@dataclass(frozen=True, slots=True)
class Break:
    """One break with the lines of its trace."""

    evidence: Evidence
    lines: _Lines

    def slice(self) -> Iterator[str]:
        """Its records, one a line, with the time since the first of them."""
        known = self.lines.get(self.evidence.trace, {})
        found = {line.seq: line for seq in self.evidence.seq if (line := known.get(seq)) is not None}
        in_order = sorted(found.values(), key=lambda line: line.seq)
        if not in_order:
            records = ", ".join(f"#{seq}" for seq in self.evidence.seq[:LINES_SHOWN])
            yield f"records {records} (the trace could not be read again)"
            return
        start = in_order[0].t
        wide = max(len(str(line.seq)) for line in in_order) + 1
        for line in in_order[:LINES_SHOWN]:
            seq = f"#{line.seq}"
            yield f"{line.t - start:+10.3f} s  {seq:>{wide}} {line.text}"
        if len(in_order) > LINES_SHOWN:
            yield f"... and {len(in_order) - LINES_SHOWN} more records"
