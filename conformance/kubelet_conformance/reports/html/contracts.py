"""What a page says of each contract."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.playing import again
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.trace_text.breaks import Break, breaks_of
from kubelet_conformance.reports.trace_text.causes import Group
from kubelet_conformance.run_record.model import ContractResult, Proof, ScenarioResult
from kubelet_conformance.run_record.record import Record

_WITNESSES = 5
_ORDER = Verdict.BROKEN, Verdict.ERROR, Verdict.KNOWN_DEVIATION


@dataclass(frozen=True, slots=True)
class BreakView:
    """One break: its parts, titles with their lines, and how to see it again."""

    proof: Proof
    parts: list[tuple[str, list[str]]]
    place: str
    again: str


@dataclass(frozen=True, slots=True)
class ContractView:
    """One contract.

    Attributes:
        number: its place in the record, by which scenarios name what they exercised.
        fails: whether its verdict makes the run fail.
        wrong: what a kubelet that breaks it does.
        witnesses: the shortest scenarios that exercised it, of so many.
    """

    number: int
    result: ContractResult
    fails: bool
    wrong: str
    witnesses: list[str]
    witness_count: int
    breaks: list[BreakView]


def contract_views(record: Record, groups: Sequence[Group]) -> list[ContractView]:
    """All contracts: what is broken first, the likeliest causes first, and then the catalogue's order."""
    run = record.run
    catalogue, witnesses = rows(), _witnesses(run.scenarios)
    breaks = break_views(record, [each for each in run.contracts if each.verdict in _ORDER])
    found = [
        ContractView(
            number,
            each,
            run.fails(each),
            catalogue[each.id].mutant if each.id in catalogue else "",
            [safe(played.name) for played in witnesses.get(each.id, ())[:_WITNESSES]],
            len(witnesses.get(each.id, ())),
            breaks.get(each.id, []),
        )
        for number, each in enumerate(run.contracts)
    ]
    likely = {each.id: place for place, each in enumerate(one for group in groups for one in group.contracts)}

    def worth(view: ContractView) -> tuple[int, int]:
        verdict = view.result.verdict
        return _ORDER.index(verdict) if verdict in _ORDER else len(_ORDER), likely.get(view.result.id, 0)

    return sorted(found, key=worth)


def break_views(record: Record, contracts: Sequence[ContractResult]) -> dict[str, list[BreakView]]:
    """The breaks of these contracts that are shown, by id."""
    found = breaks_of(contracts, record)
    return {each.id: [_view(record, each, one) for one in found[each.id]] for each in contracts}


def _view(record: Record, result: ContractResult, shown: Break) -> BreakView:
    proof = shown.proof
    place, command = safe(proof.scenario or proof.trace), again(record, result.id, proof)
    return BreakView(proof, [*shown.parts(result)], place, command)


def _witnesses(scenarios: Iterable[ScenarioResult]) -> dict[str, list[ScenarioResult]]:
    """By contract the scenarios that exercised it, the shortest first."""
    found: dict[str, list[ScenarioResult]] = {}
    for played in sorted(scenarios, key=lambda each: each.records):
        for contract in played.exercised:
            found.setdefault(contract, []).append(played)
    return found
