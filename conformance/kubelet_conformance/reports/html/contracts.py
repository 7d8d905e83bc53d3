"""What a page says of each contract."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.playing import again
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.trace_text.breaks import Break, breaks_of
from kubelet_conformance.reports.trace_text.expectations import is_expectation
from kubelet_conformance.run_record.model import ContractResult, Proof, ScenarioResult
from kubelet_conformance.run_record.record import Record

_WITNESSES = 5
_ORDER = Verdict.BROKEN, Verdict.ERROR, Verdict.KNOWN_DEVIATION


@dataclass(frozen=True, slots=True)
class BreakView:
    """One break: its records in words, and how to see it again."""

    proof: Proof
    lines: list[str]
    place: str
    again: str
    expected: bool


@dataclass(frozen=True, slots=True)
class ContractView:
    """One contract.

    Attributes:
        number: its place in the record, by which scenarios name what they exercised.
        fails: whether its verdict makes the run fail.
        wrong: what a kubelet that breaks it does.
        witnesses: the shortest scenarios that exercised it, of so many.
        first_in: in how many traces no contract was broken before it, of so many that it was broken in.
    """

    number: int
    result: ContractResult
    fails: bool
    wrong: str
    witnesses: list[str]
    witness_count: int
    breaks: list[BreakView]
    first_in: int = 0
    broken_in: int = 0


def contract_views(record: Record) -> list[ContractView]:
    """All contracts: what is broken first, by what broke first, and then in the order of the catalogue."""
    run = record.run
    catalogue, witnesses = rows(), _witnesses(run.scenarios)
    wanted = [each for each in run.contracts if each.verdict in _ORDER]
    breaks = breaks_of(wanted, record)
    firsts, broken_in = _firsts(run.contracts)
    found = [
        ContractView(
            number,
            each,
            run.fails(each),
            catalogue[each.id].mutant if each.id in catalogue else "",
            [safe(played.name) for played in witnesses.get(each.id, ())[:_WITNESSES]],
            len(witnesses.get(each.id, ())),
            [_view(record, each.id, one) for one in breaks.get(each.id, ())],
            firsts[each.id],
            broken_in[each.id],
        )
        for number, each in enumerate(run.contracts)
    ]
    return sorted(found, key=_worth)


def first_breaks(contracts: Sequence[ContractView]) -> list[ContractView]:
    """The contracts to show at the top: what was broken before anything else, in some trace."""
    broken = [each for each in contracts if each.result.verdict is Verdict.BROKEN]
    return [each for each in broken if each.first_in] or broken


def _worth(view: ContractView) -> tuple[int, int]:
    verdict = view.result.verdict
    place = _ORDER.index(verdict) if verdict in _ORDER else len(_ORDER)
    return place, -view.first_in if verdict is Verdict.BROKEN else 0


def _view(record: Record, contract: str, shown: Break) -> BreakView:
    proof = shown.proof
    place, command = safe(proof.scenario or proof.trace), again(record, contract, proof)
    return BreakView(proof, [*shown.slice()], place, command, is_expectation(proof))


def _witnesses(scenarios: Iterable[ScenarioResult]) -> dict[str, list[ScenarioResult]]:
    """By contract the scenarios that exercised it, the shortest first."""
    found: dict[str, list[ScenarioResult]] = {}
    for played in sorted(scenarios, key=lambda each: each.records):
        for contract in played.exercised:
            found.setdefault(contract, []).append(played)
    return found


def _firsts(contracts: Iterable[ContractResult]) -> tuple[Counter[str], Counter[str]]:
    """In how many traces each contract was the first to be broken, and in how many it was broken."""
    first: dict[str, tuple[int, list[str]]] = {}
    broken_in: Counter[str] = Counter()
    for each in contracts:
        if each.verdict is not Verdict.BROKEN:
            continue
        earliest: dict[str, int] = {}
        for proof in each.evidence:
            if not proof.deviation:
                seq = max(proof.seq, default=0)
                earliest[proof.trace] = min(seq, earliest.get(proof.trace, seq))
        broken_in[each.id] = len(earliest)
        for trace, seq in earliest.items():
            before, ids = first.get(trace, (seq, []))
            if seq <= before:
                first[trace] = seq, [each.id] if seq < before else [*ids, each.id]
    return Counter(name for _, ids in first.values() for name in ids), broken_in
