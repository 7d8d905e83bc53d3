"""The comparison as a page: a column for each record, a row for each contract and scenario."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubelet_conformance.campaigns.comparison.report import Compared, Difference, Report, Shown
from kubelet_conformance.campaigns.comparison.sides import PACKS, Side
from kubelet_conformance.campaigns.comparison.verdicts import kind_of, lasted
from kubelet_conformance.contract.checking import REPORTED
from kubelet_conformance.reports.html import (
    BreakView,
    break_views,
    levels_of,
    render,
    state_of,
    verdicts_shown,
)
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.model import ContractResult, ScenarioResult
from kubelet_conformance.run_record.reader import opened
from kubelet_conformance.run_record.results import suite_version

_STATES = {Exit.OK: "kept", Exit.FAILED: "broken"}
_DIFFERS, _WORSE, _BETTER = "differs", "worse", "better"
_CHANGES = ((_DIFFERS, "what differs"), (_WORSE, "what is worse"), (_BETTER, "what is better"))
Cell = tuple[str, str, str]
"""What one record says: the verdict that colours it, the words, and a note."""
_NOTHING: Cell = ("not_applicable", "not there", "")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row; `change` and `states` are what filters look for.

    Attributes:
        cells: what each record says.
        change: how the others differ from the first.
    """

    cells: list[Cell]
    change: str

    @property
    def states(self) -> str:
        """The verdicts of all records."""
        return " ".join(dict.fromkeys(state for state, *_ in self.cells))


@dataclass(frozen=True, slots=True)
class _ContractRow(_Row):
    """A contract, with its breaks by the record that shows them."""

    result: ContractResult
    breaks: list[tuple[str, list[BreakView]]]


@dataclass(frozen=True, slots=True)
class _ScenarioRow(_Row):
    """A scenario.

    Attributes:
        broken: what it breaks, by record.
        partings: where a record parts from the first: at what, why if that is known, and the steps of both.
        exercised: the contracts that it exercises, as bits by their numbers, in hexadecimal.
    """

    name: str
    broken: list[tuple[str, tuple[str, ...]]]
    partings: list[tuple[str, str, list[tuple[str, tuple[Shown, ...]]]]]
    exercised: str


def page(report: Report) -> str:
    """The whole page."""
    columns = _columns(report.sides)
    contracts = [*_contracts(report.sides, columns)]
    scenarios = [
        *_scenarios(report, columns, {each.result.id: place for place, each in enumerate(contracts)})
    ]
    has_changes = any(each.change for each in (*contracts, *scenarios))
    runs = [each.run for each in report.sides if each.run is not None]
    return render(
        "compare.html.j2",
        title=_title(report, columns),
        state=_STATES.get(report.conclusion, "error"),
        suite=suite_version(),
        sides=report.sides,
        columns=columns,
        words=["", *map(_words, report.others)],
        verdicts=REPORTED,
        shown_verdicts=verdicts_shown(runs) if runs else [],
        changes=[
            ("", "all", not has_changes),
            *((*each, has_changes and each[0] == _DIFFERS) for each in _CHANGES),
        ],
        areas=list(dict.fromkeys(each.result.area for each in contracts)),
        levels=levels_of(each.result for each in contracts),
        contracts=contracts,
        scenarios=scenarios,
    )


def _title(report: Report, columns: Sequence[str]) -> str:
    """What the comparison came to, as a sentence."""
    named = list(zip(columns[1:], report.others, strict=True))
    worse = [name for name, each in named if each.changes is not None and each.changes.worse]
    if len(worse) == 1:
        return f"{worse[0]} is worse than {columns[0]}"
    if worse:
        return f"{len(worse)} of {len(named)} are worse than {columns[0]}"
    match report.conclusion:
        case Exit.OK:
            return f"Nothing is worse than in {columns[0]}"
        case Exit.FAILED:
            return f"Something differs from {columns[0]}"
        case _:
            return "There is nothing to compare"


def _columns(sides: Sequence[Side]) -> list[str]:
    """What records are called above their columns: as their files, where that is enough."""
    short = [Path(each.name).name for each in sides]
    for ending in PACKS:
        short = [each.removesuffix(ending) for each in short]
    return [safe(each) for each in (short if len(set(short)) == len(short) else [s.name for s in sides])]


def _words(other: Compared) -> str:
    """What a record came to, beside the first."""
    steps = other.steps
    if other.changes is not None:
        return other.changes.words
    return "" if steps is None else f"{len(steps.equal)} scenarios equal, {len(steps.differences)} different"


def _change(pairs: Iterable[tuple[object, object, str]]) -> str:
    """How others differ from the first: pairs of what both are, and the kind of the change."""
    found = [(_DIFFERS, kind) for one, other, kind in pairs if one != other]
    return " ".join(dict.fromkeys(word for each in found for word in each if word))


def _contracts(sides: Sequence[Side], columns: Sequence[str]) -> Iterator[_ContractRow]:
    results = [{each.id: each for each in side.run.contracts} if side.run else {} for side in sides]
    breaks = [*map(_breaks, sides)]
    for name in dict.fromkeys(name for each in results for name in each):
        found = [each.get(name) for each in results]
        known = [each for each in found if each is not None]
        first = known[0].verdict
        yield _ContractRow(
            [_NOTHING if each is None else (each.verdict.value, each.verdict.words, "") for each in found],
            _change((first, each.verdict, kind_of(first, each.verdict)) for each in known),
            known[0],
            [(column, of[name]) for column, of in zip(columns, breaks, strict=True) if of.get(name)],
        )


def _breaks(side: Side) -> dict[str, list[BreakView]]:
    """The breaks of a record that are shown, by contract."""
    if side.run is None:
        return {}
    with opened(side.name) as record:
        return break_views(record, [each for each in record.run.contracts if each.breaks])


def _scenarios(report: Report, columns: Sequence[str], numbers: dict[str, int]) -> Iterator[_ScenarioRow]:
    partings = _partings(report, columns)
    played = [{each.name: each for each in side.run.scenarios} if side.run else {} for side in report.sides]
    seconds = [dict(lasted(side.run)) if side.run else {} for side in report.sides]
    for name in sorted({*partings, *(name for each in played for name in each)}):
        of = [each.get(name) for each in played]
        known = [each for each in of if each is not None]
        ends = [_end(each) for each in known]
        changes: list[tuple[object, object, str]] = [
            (ends[0], end, _worse(known[0], each)) for each, end in zip(known, ends, strict=True)
        ]
        changes += [(None, name, "")] if name in partings else []
        bits = {numbers[each] for one in known for each in (*one.exercised, *one.broken) if each in numbers}
        yield _ScenarioRow(
            [
                _NOTHING if each is None else (*_end(each), f"{lasts[name]:.1f} s" if name in lasts else "")
                for each, lasts in zip(of, seconds, strict=True)
            ],
            _change(changes),
            name,
            [(column, each.broken) for column, each in zip(columns, of, strict=True) if each and each.broken],
            partings.get(name, []),
            f"{sum(1 << each for each in bits):x}",
        )


def _end(played: ScenarioResult) -> tuple[str, str]:
    return state_of(played.broken, [played])


def _worse(one: ScenarioResult, other: ScenarioResult) -> str:
    """Whether a scenario is worse or better on the other side."""
    more = len({*other.broken} - {*one.broken}) - len({*one.broken} - {*other.broken})
    was, now = state_of((), [one]), state_of((), [other])
    if was != now and "kept" in {was[0], now[0]}:
        more = 1 if was[0] == "kept" else -1
    return _WORSE if more > 0 else _BETTER if more < 0 else ""


def _partings(
    report: Report, columns: Sequence[str]
) -> dict[str, list[tuple[str, str, list[tuple[str, tuple[Shown, ...]]]]]]:
    """By scenario where the others part from the first."""
    found: dict[str, list[tuple[str, str, list[tuple[str, tuple[Shown, ...]]]]]] = {}
    for column, other in zip(columns[1:], report.others, strict=True):
        for each in other.steps.differences if other.steps is not None else ():
            found.setdefault(each.parting.scenario, []).append(_halves(each, columns[0], column))
    return found


def _halves(
    difference: Difference, first: str, column: str
) -> tuple[str, str, list[tuple[str, tuple[Shown, ...]]]]:
    known = "" if difference.known is None else difference.known.reason
    return difference.parting.about, known, [(first, difference.one), (column, difference.other)]
