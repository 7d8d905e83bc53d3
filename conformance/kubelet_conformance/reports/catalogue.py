"""The catalogue as the suite has it: every contract with its fate, and one contract in full."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from textwrap import wrap
from typing import Any

from rich.console import Console

from kubelet_conformance.contract.applicability import Need
from kubelet_conformance.contract.baseline import clause_names
from kubelet_conformance.contract.catalogue import Row, row, rows
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.reports.safe import counted, safe
from kubelet_conformance.reports.source_lines import SourceLines

_WIDTH_MAX = 110
_RULE_CHARS = 70
_WORDS_CHARS = 2000


class Fate(StrEnum):
    """What has become of a contract so far."""

    IMPLEMENTED = "implemented"
    PLANNED = "planned"
    EXCLUDED = "excluded"


_STYLES = {Fate.IMPLEMENTED: "green", Fate.PLANNED: "", Fate.EXCLUDED: "yellow"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the catalogue, and the contract that judges it where there is one."""

    row: Row
    contract: Contract | None

    @property
    def fate(self) -> Fate:
        """What has a judge is implemented; the rest is excluded for a reason, or planned."""
        if self.contract is not None:
            return Fate.IMPLEMENTED
        return Fate.EXCLUDED if self.row.excluded else Fate.PLANNED

    @property
    def reason(self) -> str:
        """Why it is left out."""
        return self.row.excluded if self.fate is Fate.EXCLUDED else ""


@dataclass(frozen=True, slots=True)
class CodePath:
    """A clause, a scenario or a bug: its name, a sentence about it ("" for a scenario), and its lines."""

    name: str
    sentence: str
    lines: SourceLines | None


@dataclass(frozen=True, slots=True)
class CodePaths:
    """The code behind a contract.

    Attributes:
        clauses: its judges.
        scenarios: the scenarios that declare to exercise it.
        bugs: the seeded bugs that declare to break it.
        kept_by: the code that those bugs replace, in the reference or in the fake runtime.
    """

    clauses: tuple[CodePath, ...]
    scenarios: tuple[CodePath, ...]
    bugs: tuple[CodePath, ...]
    kept_by: tuple[SourceLines, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A scenario that exercises a contract, as a timeline.

    Attributes:
        scenario: its name.
        lines: the lanes of the timeline, and its rows.
        left_out: how many rows are not among these.
        title: what it shows.
        words: how the contract is broken in it, and how to see that again; empty where it is kept.
    """

    scenario: str
    lines: tuple[str, ...]
    left_out: int
    title: str = "how the reference keeps it"
    words: tuple[str, ...] = ()


def entries(contracts: Mapping[str, Contract]) -> list[Entry]:
    """Every row of the catalogue, in its order."""
    return [Entry(each, contracts.get(each.id)) for each in rows().values()]


def entry(name: str, contracts: Mapping[str, Contract]) -> Entry:
    """The row with this id; UnknownContract where there is none."""
    found = row(name)
    return Entry(found, contracts.get(found.id))


def mentions(each: Entry, text: str) -> bool:
    """Whether its id, its rules, its source or its stimulus contain the text, in whatever case."""
    judged = each.contract.rule if each.contract else ""
    parts = (each.row.id, judged, each.row.rule, each.row.source, each.row.stimulus, each.row.observation)
    return any(text.casefold() in part.casefold() for part in parts)


def list_report(listed: Iterable[Entry]) -> dict[str, Any]:
    """The list for programs."""
    every = list(listed)
    count = Counter(each.fate for each in every)
    return {
        "schema": 1,
        "totals": {fate.value: count[fate] for fate in Fate},
        "contracts": [_listed(each) for each in every],
    }


def _listed(each: Entry) -> dict[str, Any]:
    return {
        "id": each.row.id,
        "area": each.row.area,
        "level": each.row.level.value,
        "fate": each.fate.value,
        "reason": each.reason,
        "rule": each.contract.rule if each.contract else each.row.rule,
        "versions": each.row.versions,
        "source": each.row.source,
        "package": each.row.package or None,
    }


def entry_report(each: Entry, paths: CodePaths, shown: Shown | None) -> dict[str, Any]:
    """One contract for programs."""
    judged = each.contract
    return {
        "schema": 1,
        **_listed(each),
        "catalogue_rule": each.row.rule,
        "binds": each.row.addressee,
        "stimulus": each.row.stimulus,
        "observation": each.row.observation,
        "typical_wrong_implementation": each.row.mutant,
        "versions_judged": judged.versions.text if judged else None,
        "gate": judged.gate if judged else None,
        "needs": {need.channel: list(need.enough) for need in judged.needs} if judged else {},
        "clauses": list(clause_names(judged)) if judged else [],
        "judges": [
            {"clause": one.name, "sentence": one.sentence, **_located(one.lines)} for one in paths.clauses
        ],
        "scenarios": [{"name": one.name, **_located(one.lines)} for one in paths.scenarios],
        "bugs": [{"id": one.name, "title": one.sentence, **_located(one.lines)} for one in paths.bugs],
        "kept_by": [{"name": lines.name, **_located(lines)} for lines in paths.kept_by],
        "shown_by": None
        if shown is None
        else {"scenario": shown.scenario, "break": list(shown.words), "timeline": list(shown.lines)},
    }


def _located(lines: SourceLines | None) -> dict[str, Any]:
    """File and lines for programs; null where there is no source."""
    if lines is None:
        return {"file": None, "first_line": None, "last_line": None}
    return {"file": lines.file, "first_line": lines.first, "last_line": lines.last}


def print_list(listed: Iterable[Entry], console: Console) -> None:
    """The list for people: one line a contract, then how many have which fate."""
    every = list(listed)
    wide = max((len(each.row.id) for each in every), default=0)
    for each in every:
        said = f"left out: {each.reason}" if each.reason else _rule(each, whole=not console.is_terminal)
        head = f"{each.row.id:{wide}}  {each.row.level:6}  {each.fate:11}"
        said += f" ({each.row.package})" if each.row.package else ""
        console.print(f"{head}  {said}", style=_STYLES[each.fate], soft_wrap=True)
    count = Counter(each.fate for each in every)
    totals = ", ".join(f"{count[fate]} {fate}" for fate in Fate)
    console.print(f"\n{len(every)} contracts: {totals}", style="bold", soft_wrap=True)


def _rule(each: Entry, *, whole: bool) -> str:
    """Its rule; a terminal shows how it begins, and what reads a pipe may search for any of its words."""
    rule = each.contract.rule if each.contract else each.row.rule
    return rule if whole or len(rule) <= _RULE_CHARS else f"{rule[:_RULE_CHARS].rsplit(' ', 1)[0]} …"


def print_entry(each: Entry, paths: CodePaths, shown: Shown | None, console: Console) -> None:
    """One contract in full, for people."""
    width = min(console.width, _WIDTH_MAX) if console.is_terminal else _WIDTH_MAX
    head = f"{each.row.id}  {each.row.level}  {each.fate}"
    console.print(head, style=f"bold {_STYLES[each.fate]}".strip(), soft_wrap=True)
    for title, text in explained(each):
        console.print(f"\n{title}", style="bold", soft_wrap=True)
        _print_text(text, console, width, indent=4)
    for title, items in _code_sections(each, paths):
        console.print(f"\n{title}", style="bold", soft_wrap=True)
        for line, text in items:
            console.print(f"    {line}", soft_wrap=True)
            _print_text(text, console, width, indent=8)
    if shown is not None:
        console.print(f"\n{shown.title} in {safe(shown.scenario)}", style="bold", soft_wrap=True)
        for line in shown.words:
            console.print(f"    {safe(line, _WORDS_CHARS)}", soft_wrap=True)
        more = [f"({counted(shown.left_out, 'more row')})"] if shown.left_out else []
        for line in ("", *shown.lines, *more) if shown.words else (*shown.lines, *more):
            console.print(f"    {line}"[: console.width if console.is_terminal else None], soft_wrap=True)


def _print_text(text: str, console: Console, width: int, *, indent: int) -> None:
    for line in wrap(text, width - indent, break_long_words=False, break_on_hyphens=False):
        console.print(f"{' ' * indent}{line}", soft_wrap=True)


def _code_sections(each: Entry, paths: CodePaths) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Titles, each with its lines; a line may have a text below it."""
    for title, found in (
        ("clauses", paths.clauses),
        ("scenarios that exercise it", paths.scenarios),
        ("seeded bugs that break it", paths.bugs),
    ):
        if found:
            yield title, [(f"{one.name}  {_start(one.lines)}", one.sentence) for one in found]
    if paths.kept_by:
        where = "fake runtime" if each.row.addressee == "runtime" else "reference"
        yield f"code of the {where} that keeps it", [(f"{one}  {one.name}", "") for one in paths.kept_by]


def _start(lines: SourceLines | None) -> str:
    return "(no source)" if lines is None else lines.start


def explained(each: Entry) -> Iterator[tuple[str, str]]:
    """What is known of a contract, as titles and texts."""
    if each.contract is not None:
        yield "rule, as it is judged", each.contract.rule
    if each.reason:
        yield "why it is left out", each.reason
    if each.row.package:
        yield "package", each.row.package
    else:
        yield "rule in the catalogue", each.row.rule
    yield "binds", f"the {each.row.addressee}"
    yield "source", each.row.source
    yield "versions", each.row.versions
    if each.contract is not None:
        yield "versions judged", each.contract.versions.text
        if each.contract.gate is not None:
            yield "feature gate", each.contract.gate
        yield "needs", "; ".join(_needed(need) for need in each.contract.needs)
    if not each.row.package:
        yield "stimulus", each.row.stimulus
        yield "observation", each.row.observation
        yield "typical wrong implementation", each.row.mutant


def _needed(need: Need) -> str:
    return f"channel {need.channel}, {' or '.join(need.enough)}"
