"""Deviations that are known and accepted for now, read from a TOML file of `[[deviation]]` entries.

An entry has one cause. It names the contract that this breaks, or each of several.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, cast

from kubelet_conformance.contract.catalogue import UnknownContract, row
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contract.verdicts import Evidence, Outcome, Verdict
from kubelet_conformance.trace.format.errors import InputError

BASELINE_BYTES_MAX = 4 * 1024 * 1024
"""A longer baseline is bad input."""
MAIN_CLAUSE = "main"
"""The name in baselines and reports of the clause that has no name of its own."""

_BUNDLED = re.compile(r"kubernetes-\d+\.\d+")
_TEXTS = ("id", "clause", "scenario", "gate", "reason")
_KEYS = (*_TEXTS, "breaks", "sometimes")
_FORM = (
    "an entry is [[deviation]] with reason, id or breaks, and clause, scenario, gate, sometimes as they apply"
)


class BaselineError(InputError):
    """A baseline that cannot be used; `more` are the other mistakes in it, which its text tells too."""

    more: Sequence[BaselineError] = ()

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *map(str, self.more)])


@dataclass(frozen=True, slots=True)
class Deviation:
    """What an entry says of one contract, perhaps of one clause, perhaps in some scenarios only, and why.

    The scenarios are a name or a pattern, as `--scenario` takes it. With a `gate` it is known only where this
    feature gate is on. What is broken only `sometimes`, as it depends on timing, is never stale.
    """

    id: str
    reason: str
    clause: str | None = None
    scenario: str | None = None
    line: int | None = None
    sometimes: bool = False
    gate: str | None = None

    def covers(self, clause: str, scenario: str | None) -> bool:
        """Whether the entry is about this clause, in a trace of this scenario."""
        is_of = self.scenario in {None, scenario} or fnmatchcase(scenario or "", self.scenario or "")
        return is_of and self.clause in {None, clause or MAIN_CLAUSE}

    @property
    def has_one_scenario(self) -> bool:
        """Whether it names the only scenario that may break it."""
        return self.scenario is not None and "*" not in self.scenario

    def __str__(self) -> str:
        narrowed = ("clause", self.clause), ("scenario", self.scenario), ("gate", self.gate)
        return ", ".join([self.id, *(f"{key} {value}" for key, value in narrowed if value is not None)])


class Baseline:
    """The entries, and which of them have matched a deviation so far."""

    def __init__(self, path: str, deviations: Iterable[Deviation]) -> None:
        self.path = path
        self.deviations = tuple(deviations)
        self._of: dict[str, list[Deviation]] = {}
        for deviation in self.deviations:
            self._of.setdefault(deviation.id, []).append(deviation)
        self._broken: set[Deviation] = set()
        self._kept: set[Deviation] = set()
        self._doubtful: set[Deviation] = set()

    def anywhere(self) -> Baseline:
        """The same deviations in whatever is played, of which none is stale: it may not have come up."""
        return Baseline(self.path, (replace(each, scenario=None, sometimes=True) for each in self.deviations))

    @classmethod
    def read(cls, path: str, contracts: Mapping[str, Contract]) -> Baseline:
        """The baseline in a file, or the bundled one of this name, for these contracts by id.

        Raises: BaselineError: the file is no baseline, or names a contract, clause or scenario that does not
        exist.
        """
        text = _text(path)
        try:
            document = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise _no_toml(path, error) from None
        return cls(path, _Entries(path, text, contracts).read(document))

    def applied(self, contract: str, outcome: Outcome, gates: Collection[str] = ()) -> Outcome:
        """The outcome on one trace with known deviations marked; the baseline notes which entries matched.

        Args:
            contract: Its id.
            outcome: What the contract's judge found.
            gates: The feature gates that the trace says are on.
        """
        entries = [each for each in self._of.get(contract, ()) if each.gate is None or each.gate in gates]
        if not entries:
            return outcome
        self._broken |= {each for each in entries for place in outcome.broken_clauses if each.covers(*place)}
        self._kept |= {each for each in entries for place in outcome.kept_clauses if each.covers(*place)}
        if outcome.inconclusive:
            self._doubtful |= set(entries)
        evidence = [_marked(each, entries) for each in outcome.evidence]
        verdict = outcome.verdict
        if verdict is Verdict.BROKEN and all(
            any(each.covers(*place) for each in entries) for place in outcome.broken_clauses
        ):
            verdict = Verdict.KNOWN_DEVIATION
        return replace(outcome, verdict=verdict, evidence=evidence)

    def stale(self) -> list[Deviation]:
        """The entries that were exercised and never broken, not even while the machine stalled."""
        kept = (each for each in self.deviations if each in self._kept and not each.sometimes)
        return [each for each in kept if each not in self._broken | self._doubtful]

    def matched(self) -> list[Deviation]:
        """The entries that were broken, or may have been while the machine stalled."""
        return [each for each in self.deviations if each in self._broken | self._doubtful]


def _marked(evidence: Evidence, entries: list[Deviation]) -> Evidence:
    """The evidence with the reason of the entry that knows it."""
    for each in entries:
        if each.covers(evidence.clause, evidence.scenario):
            return replace(evidence, deviation=each.reason)
    return evidence


def clause_names(contract: Contract) -> tuple[str, ...]:
    """The names by which a baseline calls the clauses of a contract."""
    return tuple(dict.fromkeys(clause.name or MAIN_CLAUSE for clause in contract.clauses))


def bundled() -> list[str]:
    """The kubelet versions whose known deviations come along, such as kubernetes-1.36."""
    return sorted(each.name.removesuffix(".toml") for each in _folder().iterdir())


def is_bundled(name: str) -> bool:
    """Whether this names the known deviations of a kubelet version, such as kubernetes-1.36, and no file."""
    return _BUNDLED.fullmatch(name) is not None


class _Entries:
    """Reads the entries of one file and says what is wrong with them."""

    def __init__(self, path: str, text: str, contracts: Mapping[str, Contract]) -> None:
        self._path = path
        self._contracts = contracts
        lines = enumerate(text.splitlines(), start=1)
        self._lines = [number for number, line in lines if re.match(r"\s*\[\[\s*deviation\s*\]\]", line)]

    def read(self, document: dict[str, Any]) -> list[Deviation]:
        """Every entry, or BaselineError with a mistake of each entry that has one."""
        for key in document:
            if key != "deviation":
                raise self._bad(None, f"unknown key {key!r}", _FORM)
        tables: object = document.get("deviation", [])
        if not isinstance(tables, list):
            raise self._bad(
                None, "`deviation` is no list of tables", "write [[deviation]] in double brackets"
            )
        found: dict[tuple[str | None, ...], Deviation] = {}
        wrong: list[BaselineError] = []
        every = cast("list[object]", tables)
        for number, table in enumerate(every):
            line = self._lines[number] if len(self._lines) == len(every) else None
            try:
                entries = self._entries(table, line)
            except BaselineError as error:
                wrong.append(error)
                continue
            wrong += [
                self._bad(line, f"{entry} is listed twice", "keep one of them")
                for entry in entries
                if found.setdefault((entry.id, entry.clause, entry.scenario, entry.gate), entry) is not entry
            ]
        if wrong:
            wrong[0].more = wrong[1:]
            raise wrong[0]
        return list(found.values())

    def _entries(self, table: object, line: int | None) -> list[Deviation]:
        """What one table says: of one contract by `id` and `clause`, of several by `breaks`."""
        if not isinstance(table, dict):
            raise self._bad(line, "an entry is no table", _FORM)
        fields: dict[str, str] = {}
        for key, value in cast("dict[str, object]", table).items():
            if key not in _KEYS:
                raise self._bad(line, f"unknown key {key!r}", _nearest(key, _KEYS) or _FORM)
            if key not in _TEXTS:
                continue
            if not isinstance(value, str) or not value.strip():
                raise self._bad(line, f"{key} is no text", f"write {key} as text in quotes, and not empty")
            fields[key] = value
        places = self._places(fields, cast("dict[str, object]", table).get("breaks"), line)
        if "reason" not in fields:
            raise self._bad(line, "an entry has no reason", _FORM)
        sometimes: object = cast("dict[str, object]", table).get("sometimes", False)
        if not isinstance(sometimes, bool):
            raise self._bad(
                line, "sometimes is neither true nor false", "write sometimes = true, or leave it out"
            )
        found: list[Deviation] = []
        for name, named in places:
            contract = self._contract(name, line)
            clause = self._clause(contract, named, line)
            scenario, gate = fields.get("scenario"), fields.get("gate")
            found.append(Deviation(contract.id, fields["reason"], clause, scenario, line, sometimes, gate))
        return found

    def _places(
        self, fields: dict[str, str], breaks: object, line: int | None
    ) -> list[tuple[str, str | None]]:
        """Each contract of an entry, and the clause that is named with it."""
        if breaks is None:
            if "id" not in fields:
                raise self._bad(line, "an entry has no id", _FORM)
            return [(fields["id"], fields.get("clause"))]
        names = cast("list[object]", breaks) if isinstance(breaks, list) else []
        if not names or not all(isinstance(name, str) for name in names):
            form = 'write breaks as a list such as ["INIT-01/main", "INIT-12"]'
            raise self._bad(line, "breaks is no list of contracts", form)
        if "id" in fields or "clause" in fields:
            raise self._bad(line, "an entry has breaks and id or clause", "keep breaks alone")
        each = [str(name).partition("/") for name in names]
        return [(name, clause or None) for name, _, clause in each]

    def _contract(self, name: str, line: int | None) -> Contract:
        try:
            known = row(name).id
        except UnknownContract as error:
            nearest = ", ".join(error.nearest)
            remedy = f"the nearest are {nearest}" if nearest else "kubelet-conformance list shows the ids"
            raise self._bad(line, f"there is no contract {name}", remedy) from None
        if known not in self._contracts:
            raise self._bad(line, f"{known} is not judged", "remove the entry")
        return self._contracts[known]

    def _clause(self, contract: Contract, clause: str | None, line: int | None) -> str | None:
        names = clause_names(contract)
        choice = f"one of {', '.join(names)}"
        if clause is None:
            if len(names) > 1:
                raise self._bad(line, f"{contract.id} has several clauses", f"name the clause: {choice}")
            return None
        if clause not in names:
            remedy = _nearest(clause, names) or f"name {choice}"
            raise self._bad(line, f"{contract.id} has no clause {clause!r}", remedy)
        return clause

    def _bad(self, line: int | None, problem: str, remedy: str) -> BaselineError:
        return BaselineError(self._path, line, problem, remedy)


def _text(path: str) -> str:
    remedy = _nearest(path, bundled()) or "name a TOML file of [[deviation]] entries"
    if is_bundled(path):
        remedy = f"bundled are {', '.join(bundled())}"
    try:
        with (_folder() / f"{path}.toml" if is_bundled(path) else Path(path)).open("rb") as file:
            raw = file.read(BASELINE_BYTES_MAX + 1)
    except OSError as error:
        raise BaselineError(path, None, f"cannot be read: {error.strerror or error}", remedy) from None
    if len(raw) > BASELINE_BYTES_MAX:
        raise BaselineError(path, None, f"longer than {BASELINE_BYTES_MAX // 1024 // 1024} MiB", remedy)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BaselineError(path, line, "this is no UTF-8", remedy) from None


def _no_toml(path: str, error: Exception) -> BaselineError:
    if isinstance(error, RecursionError):
        return BaselineError(path, None, "nested too deeply", _FORM)
    found = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
    line = int(found[1]) if found else None
    problem = f"this is no TOML ({str(error)[: found.start()] if found else error})"
    return BaselineError(path, line, problem, "mend the line" if line else _FORM)


def _nearest(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), n=1)
    return f"did you mean {near[0]}?" if near else ""


def _folder() -> Traversable:
    return resources.files("kubelet_conformance.contract").joinpath("baselines")
