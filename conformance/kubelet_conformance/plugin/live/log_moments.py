"""What a kubelet wrote in its log when a contract was broken.

A line of klog has the date and the time of day of the machine at its head; lines without them are left out.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice, takewhile
from pathlib import Path

from kubelet_conformance.contract.checking import Judged
from kubelet_conformance.contract.verdicts import Evidence
from kubelet_conformance.targets.live.namespaces import is_of_another
from kubelet_conformance.trace.format.reader import Reader

_KLOG = re.compile(r"\b[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6}) ")
_HEAD_CHARS = 40
_LINES_BEFORE, _LINES_AFTER = 4, 2
_SECONDS_BEFORE, _SECONDS_AFTER = 2.0, 1.0


def with_log(judged: Judged, trace: Path, log: Path, start: float, numbers: Mapping[str, int]) -> Judged:
    """The verdicts on a trace, each break with the lines of the log of that moment, where there is a log.

    The trace began at `start`, in seconds since the epoch. `numbers` are those of the scenarios that share
    the node: what is about pods of another is left out.
    """
    broken = [each for outcome in judged.outcomes.values() for each in outcome.evidence]
    if not broken or not log.is_file():
        return judged
    seconds = _times(trace, {max(each.seq) for each in broken})
    lines = _lines(log, datetime.fromtimestamp(start).astimezone().year)

    def moment(evidence: Evidence) -> float:
        return start + seconds[max(evidence.seq)]

    outcomes = dict(judged.outcomes)
    for contract, outcome in judged.outcomes.items():
        evidence = [
            replace(each, log=_around(lines, moment(each), numbers.get(each.scenario or "")))
            for each in outcome.evidence
        ]
        if evidence:
            outcomes[contract] = replace(outcome, evidence=evidence)
    return replace(judged, outcomes=outcomes)


def _times(trace: Path, wanted: set[int]) -> dict[int, float]:
    """After how many seconds these records came."""
    with Reader(trace) as reader:
        last = max(wanted)
        records = takewhile(lambda record: record.seq <= last, reader)
        return {record.seq: record.t for record in records if record.seq in wanted}


def _lines(log: Path, year: int) -> list[tuple[float, str]]:
    """The lines of a log by the time at which they were written, in seconds since the epoch."""
    found: list[tuple[float, str]] = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        written = _KLOG.search(line, 0, _HEAD_CHARS)
        if written is not None:
            at = datetime(year, *map(int, written.groups()))  # type: ignore[arg-type]  # noqa: DTZ001 - local, as klog's
            found.append((at.timestamp(), line))
    return sorted(found)


def _around(lines: list[tuple[float, str]], moment: float, number: int | None) -> tuple[str, ...]:
    place = bisect_right(lines, moment, key=lambda line: line[0])

    def near(some: Iterable[tuple[float, str]], seconds: float, most: int) -> Iterator[str]:
        these = takewhile(lambda line: abs(line[0] - moment) <= seconds, some)
        return islice((text for _, text in these if not is_of_another(text, number)), most)

    before = [*near(reversed(lines[:place]), _SECONDS_BEFORE, _LINES_BEFORE)]
    return *reversed(before), *near(lines[place:], _SECONDS_AFTER, _LINES_AFTER)
