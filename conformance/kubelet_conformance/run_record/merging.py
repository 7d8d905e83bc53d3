"""Joins the results of several runs, or of several scenarios of one."""

from collections.abc import Iterable, Sequence
from functools import reduce

from msgspec.structs import replace

from kubelet_conformance.contract.catalogue import rows
from kubelet_conformance.contract.checking import REPORTED
from kubelet_conformance.contract.verdicts import MERGED_EVIDENCE_MAX, Verdict, graver
from kubelet_conformance.run_record.model import (
    BaselineResult,
    ContractResult,
    Ended,
    Histories,
    NotPlayed,
    Proof,
    Run,
)

_EXPLAINS_WAITS = frozenset({Verdict.ERROR, Verdict.BROKEN, Verdict.KNOWN_DEVIATION})


def joined_runs(runs: Sequence[Run]) -> Run:
    """One run of several of the same suite on the same target; how it ends is still to be concluded."""
    first = runs[0]
    contracts = joined_contracts(each for run in runs for each in run.contracts)
    scenarios = tuple(each for run in runs for each in run.scenarios)
    played = {each.name for each in scenarios}
    left_out = {each.name: each for run in runs for each in run.not_applicable if each.name not in played}
    explained = {each.id for each in contracts if each.verdict in _EXPLAINS_WAITS}
    return replace(
        first,
        ended=next(each for each in reversed(Ended) if any(run.ended is each for run in runs)),
        started=min(run.started for run in runs),
        seconds=round(sum(run.seconds for run in runs), 3),
        strict=any(run.strict for run in runs),
        require_exercised=any(run.require_exercised for run in runs),
        chosen=tuple(dict.fromkeys(name for run in runs for name in run.chosen)),
        totals=totals(contracts),
        contracts=contracts,
        scenarios=scenarios,
        traces=tuple(each for run in runs for each in run.traces),
        not_applicable=tuple(left_out.values()),
        not_played=_not_played(runs, played, contracts),
        histories=_histories(runs),
        plays=sum(run.plays for run in runs),
        unreadable=tuple(each for run in runs for each in run.unreadable),
        baseline=_baseline(runs),
        waits=tuple(each for run in runs for each in run.waits if each.contract not in explained),
    )


def totals(contracts: Iterable[ContractResult]) -> dict[Verdict, int]:
    """How many contracts have each verdict."""
    counts = dict.fromkeys(REPORTED, 0)
    for each in contracts:
        counts[each.verdict] += 1
    return counts


def joined_contracts(results: Iterable[ContractResult]) -> tuple[ContractResult, ...]:
    """One verdict for each contract, in the order of the catalogue."""
    by_id: dict[str, list[ContractResult]] = {}
    for each in results:
        by_id.setdefault(each.id, []).append(each)
    place = {contract: number for number, contract in enumerate(rows())}
    # One that this suite does not know comes last.
    in_order = sorted(by_id, key=lambda name: place.get(name, len(place)))
    return tuple(reduce(_joined, by_id[name]) for name in in_order)


def _joined(first: ContractResult, second: ContractResult) -> ContractResult:
    verdict = graver(first.verdict, second.verdict)
    broken = [each for each in (first, second) if each.verdict is verdict is Verdict.BROKEN]
    versions = dict(first.versions)
    for version, each in second.versions.items():
        versions[version] = graver(versions.get(version, each), each)
    return replace(
        first,
        verdict=verdict,
        activations=first.activations + second.activations,
        breaks=first.breaks + second.breaks,
        inconclusive=first.inconclusive + second.inconclusive,
        scored=not broken or any(each.scored for each in broken),
        evidence=_proofs(first.evidence, second.evidence),
        reasons=_reasons(verdict, first, second),
        versions=versions,
    )


def _reasons(verdict: Verdict, *results: ContractResult) -> tuple[str, ...]:
    """Why it is not applicable somewhere; where its judge failed only what failed first."""
    if verdict is Verdict.ERROR:
        results = tuple(each for each in results if each.verdict is Verdict.ERROR)[:1]
    return tuple(dict.fromkeys(reason for each in results for reason in each.reasons))


def _proofs(first: tuple[Proof, ...], second: tuple[Proof, ...]) -> tuple[Proof, ...]:
    """All evidence up to the bound, and beyond it a break of each clause and scenario that has none yet."""
    found = list(first)
    shown = {(each.clause, each.scenario) for each in first}
    for each in second:
        place = each.clause, each.scenario
        if len(found) < MERGED_EVIDENCE_MAX or place not in shown:
            found.append(each)
            shown.add(place)
    return tuple(found)


def _not_played(
    runs: Sequence[Run], played: set[str], contracts: Iterable[ContractResult]
) -> NotPlayed | None:
    """What no run has played; its option is that of the first that left something out."""
    rests = [run.not_played for run in runs if run.not_played is not None]
    names = dict.fromkeys(name for rest in rests for name in rest.scenarios if name not in played)
    if not names:
        return None
    idle = {each.id for each in contracts if not each.activations}
    missed = dict.fromkeys(each for rest in rests for each in rest.contracts if each in idle)
    return NotPlayed(rests[0].option, tuple(names), tuple(missed))


def _histories(runs: Sequence[Run]) -> Histories | None:
    known = [run.histories for run in runs if run.histories is not None]
    if not known:
        return None
    found = tuple(one for each in known for one in each.found)
    return Histories(sum(each.played for each in known), sum(each.repeated for each in known), found)


def _baseline(runs: Sequence[Run]) -> BaselineResult | None:
    """An entry is stale that was exercised in a run and broken in none."""
    known = [run.baseline for run in runs if run.baseline is not None]
    if not known:
        return None
    matched = dict.fromkeys(entry for each in known for entry in each.matched)
    stale = dict.fromkeys(entry for each in known for entry in each.stale if entry not in matched)
    return BaselineResult(known[0].path, tuple(stale), tuple(matched))
