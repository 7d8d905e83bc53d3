"""What the verdicts of two records differ in: what is worse, what is better, and what takes another time."""

from collections.abc import Iterator
from dataclasses import dataclass

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.run_record.model import Run, ScenarioResult
from kubelet_conformance.run_record.record import Record

_BAD = frozenset({Verdict.BROKEN, Verdict.ERROR})
_IDLE = frozenset({Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE})
_SHIFT_SECONDS, _SHIFT_SHARE = 1.0, 0.1
"""A scenario takes another time if it differs by more than both."""
_LINES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Change:
    """What differs of a contract or a scenario: how it was, and how it is."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between two records.

    Attributes:
        worse: contracts that are broken now, and scenarios that end badly now.
        better: contracts that were broken, and scenarios that ended badly.
        exercised: contracts that are newly exercised, and kept.
        idle: contracts that are no longer exercised.
        shifted: scenarios that last longer or shorter, in the time of their traces, the largest shift first.
    """

    names: tuple[str, str]
    worse: tuple[Change, ...]
    better: tuple[Change, ...]
    exercised: tuple[Change, ...]
    idle: tuple[Change, ...]
    shifted: tuple[Change, ...]

    def parts(self) -> Iterator[tuple[str, tuple[Change, ...]]]:
        """The kinds of changes by their titles."""
        yield "worse", self.worse
        yield "better", self.better
        yield "newly exercised", self.exercised
        yield "no longer exercised", self.idle
        yield "takes another time", self.shifted


def changes_of(one: Record, other: Record) -> Changes:
    """What differs from one record to the other; what only one has is not compared."""
    before = {each.id: each.verdict for each in one.run.contracts}
    pairs = [(each.id, before[each.id], each.verdict) for each in other.run.contracts if each.id in before]
    contracts = {name: Change(name, old.words, new.words) for name, old, new in pairs}
    ends = list(_ends(one.run, other.run))
    return Changes(
        (one.name or "", other.name or ""),
        worse=(
            *(contracts[name] for name, old, new in pairs if new in _BAD and old not in _BAD),
            *(each for each in ends if each.before == _WELL),
        ),
        better=(
            *(contracts[name] for name, old, new in pairs if old in _BAD and new not in _BAD),
            *(each for each in ends if each.after == _WELL),
        ),
        exercised=tuple(
            contracts[name] for name, old, new in pairs if old in _IDLE and new not in _IDLE | _BAD
        ),
        idle=tuple(contracts[name] for name, old, new in pairs if old not in _IDLE | _BAD and new in _IDLE),
        shifted=tuple(_shifted(one.run, other.run)),
    )


_WELL = "ended well"


def _end(played: ScenarioResult) -> str:
    if played.failed:
        return "the suite failed"
    if played.died and not played.died_as_known:
        return "the kubelet ended by itself"
    return "timed out or failed an assertion" if played.unmet and not played.broken else _WELL


def _ends(one: Run, other: Run) -> Iterator[Change]:
    """The scenarios that end otherwise."""
    before = {each.name: _end(each) for each in one.scenarios}
    for each in other.scenarios:
        if before.get(each.name, _end(each)) != _end(each):
            yield Change(each.name, before[each.name], _end(each))


def _shifted(one: Run, other: Run) -> list[Change]:
    """The scenarios with traces of their own that last longer or shorter."""
    before = {each.scenario: each.seconds for each in one.traces if each.scenario}
    found: list[tuple[float, Change]] = []
    for each in other.traces:
        was = before.get(each.scenario or "")
        if each.scenario and was is not None:
            shift = abs(each.seconds - was)
            if shift > max(_SHIFT_SECONDS, _SHIFT_SHARE * was):
                found.append((shift, Change(each.scenario, f"{was:.1f} s", f"{each.seconds:.1f} s")))
    return [change for _, change in sorted(found, key=lambda pair: -pair[0])]


def text_of(changes: Changes) -> Iterator[str]:
    """The changes to read in a terminal, a line each, and what they come to."""
    for title, those in changes.parts():
        for each in those[:_LINES_SHOWN]:
            yield f"{title:19}  {safe(each.name)}: {each.before} -> {each.after}\n"
        if len(those) > _LINES_SHOWN:
            yield f"{title:19}  and {len(those) - _LINES_SHOWN} more; --format json lists them\n"
    yield f"{_conclusion(changes)}\n"


def markdown_of(changes: Changes) -> Iterator[str]:
    """The changes for a pull request: what is worse open, the rest folded."""
    yield f"# {_conclusion(changes)}\n\n"
    yield f"From {_code(changes.names[0])} to {_code(changes.names[1])}.\n"
    for title, those in changes.parts():
        if those:
            is_open = those is changes.worse
            head = f"{title} ({len(those)})"
            yield f"\n## {head}\n" if is_open else f"\n<details><summary>{head}</summary>\n"
            yield "\n| | before | after |\n|---|---|---|\n"
            yield from (f"| {_code(each.name)} | {each.before} | {each.after} |\n" for each in those)
            yield "" if is_open else "\n</details>\n"


def report_of(changes: Changes) -> dict[str, object]:
    """The changes for programs."""
    return {
        "schema": 1,
        "sides": list(changes.names),
        **{
            title.replace(" ", "_"): [
                {"name": each.name, "before": each.before, "after": each.after} for each in those
            ]
            for title, those in changes.parts()
        },
    }


def _conclusion(changes: Changes) -> str:
    counts = ", ".join(f"{len(those)} {title}" for title, those in changes.parts() if those)
    return f"{'WORSE' if changes.worse else 'NOT WORSE'}: {counts or 'nothing has changed'}"


def _code(text: str) -> str:
    return "`" + safe(text, 2000).replace("`", "'").replace("|", "/") + "`"
