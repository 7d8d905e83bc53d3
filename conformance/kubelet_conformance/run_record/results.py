"""The results of a check as a record keeps them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import msgspec

from kubelet_conformance.contract.baseline import MAIN_CLAUSE, Deviation, clause_names
from kubelet_conformance.contract.checking import Check, Result, Trace
from kubelet_conformance.contract.stalls import Stalls
from kubelet_conformance.contract.verdicts import Evidence, Verdict
from kubelet_conformance.run_record.conclusion import concluded
from kubelet_conformance.run_record.model import (
    BaselineEntry,
    BaselineResult,
    ContractResult,
    Kind,
    Proof,
    Run,
    Target,
    TimedOut,
    TraceResult,
    Unreadable,
)

_MILLI = 3
Again = Callable[[str, Evidence], str]
"""The command that plays a break of a contract again; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """What decides, beside the verdicts, how a check ends."""

    strict: bool = False
    require_exercised: bool = False


def suite_version() -> str:
    """The version of this suite."""
    try:
        return version("kubelet-conformance")
    except PackageNotFoundError:
        return "unknown"


def check_result(check: Check, scoring: Scoring, command: tuple[str, ...] = (), kubernetes: str = "") -> Run:
    """A check of traces; `kubernetes` is the version that stands in for those that they state."""
    target = Target(kubernetes=kubernetes)
    return finished(run_of(check, scoring, Kind.CHECK, target, command, _never_again))


def _never_again(contract: str, evidence: Evidence) -> str:
    del contract, evidence
    return ""


def run_of(  # noqa: PLR0913, PLR0917 - the parts that every run has
    check: Check, scoring: Scoring, kind: Kind, target: Target, command: tuple[str, ...], again: Again
) -> Run:
    """What every run has: the verdicts, and how it was asked for."""
    return Run(
        suite=suite_version(),
        kind=kind,
        command=command,
        target=target,
        strict=scoring.strict,
        require_exercised=scoring.require_exercised,
        totals=check.totals(),
        contracts=tuple(contract_result(each, again) for each in check.results.values()),
        traces=tuple(map(_trace, check.traces)),
        unreadable=tuple(Unreadable(str(e.path), e.line, e.problem, e.remedy) for e in check.errors),
        baseline=_baseline(check),
        waits=tuple(TimedOut(w.trace, w.seq, w.contract, w.awaited) for w in check.unexplained()),
    )


def finished(run: Run) -> Run:
    """The run with what may follow from its runtime, and with what it ends with."""
    run = msgspec.structs.replace(run, contracts=with_consequences(run.contracts))
    return msgspec.structs.replace(run, exit_code=int(concluded(run)))


def with_consequences(contracts: Sequence[ContractResult]) -> tuple[ContractResult, ...]:
    """The contracts, each that may be broken for what the runtime did wrong with what that breaks.

    A break follows from one of the runtime that has begun before it in the same trace, about the same pod or
    the node as a whole. A contract of which one break has no such reason stands for itself. Deviations of the
    runtime that the baseline knows have consequences too.
    """
    wrong: dict[str, list[tuple[str, Proof]]] = {}
    for each in contracts:
        for proof in each.evidence if each.binds_runtime else ():
            wrong.setdefault(proof.trace, []).append((each.id, proof))
    return tuple(msgspec.structs.replace(each, follows_from=_causes(each, wrong)) for each in contracts)


def _causes(result: ContractResult, wrong: Mapping[str, list[tuple[str, Proof]]]) -> tuple[str, ...]:
    """Few contracts of the runtime that may be why each break came about; empty if one has no such reason."""
    if result.verdict is not Verdict.BROKEN or result.binds_runtime:
        return ()
    open_breaks = [
        {name for name, proof in wrong.get(each.trace, ()) if _may_follow(each, proof)}
        for each in result.evidence
        if not each.deviation
    ]
    found: list[str] = []
    while open_breaks and all(open_breaks):
        counts = Counter(name for names in open_breaks for name in names)
        most = max(counts.values())
        found.append(min(name for name, count in counts.items() if count == most))
        open_breaks = [names for names in open_breaks if found[-1] not in names]
    return () if open_breaks else tuple(found)


def _may_follow(proof: Proof, of_runtime: Proof) -> bool:
    """Whether what the runtime did wrong had begun when this went wrong, and is about the same."""
    is_before = min(of_runtime.seq, default=0) <= max(proof.seq, default=0)
    return is_before and (proof.pod == of_runtime.pod or not (proof.pod and of_runtime.pod))


def contract_result(result: Result, again: Again = _never_again) -> ContractResult:
    """The verdict on one contract."""
    contract, outcome = result.contract, result.outcome
    reasons = (outcome.reason,) if outcome.verdict is Verdict.ERROR else tuple(result.reasons)
    return ContractResult(
        id=contract.id,
        area=contract.row.area,
        level=contract.level,
        verdict=outcome.verdict,
        activations=outcome.activations,
        breaks=outcome.breaks,
        inconclusive=outcome.inconclusive,
        scored=outcome.verdict is not Verdict.BROKEN or result.counts,
        evidence=tuple(proof_of(each, again(contract.id, each)) for each in outcome.evidence),
        rule=contract.rule,
        source=contract.row.source,
        clauses=clause_names(contract),
        sentences={
            each.name: each.sentence
            for each in contract.clauses
            if each.name and each.sentence not in {"", contract.rule}
        },
        reasons=reasons,
        versions=dict(result.versions),
    )


def proof_of(evidence: Evidence, again: str = "") -> Proof:
    """One break, with the command that plays it again."""
    return Proof(
        trace=evidence.trace,
        seq=tuple(evidence.seq),
        text=evidence.text,
        clause=evidence.clause or MAIN_CLAUSE,
        scenario=evidence.scenario,
        pod=evidence.pod,
        due=evidence.due,
        t=round(evidence.t, _MILLI),
        deviation=evidence.deviation or None,
        log=tuple(evidence.log),
        again=again,
    )


def _trace(trace: Trace) -> TraceResult:
    return TraceResult(
        path=trace.path,
        kubernetes=trace.version,
        kubernetes_in_header=trace.stated,
        runtime=trace.runtime,
        scenario=trace.scenario,
        records=trace.records,
        seconds=round(trace.seconds, _MILLI),
        truncated_after_line=trace.cut_line,
        stalls=len(trace.stalls),
        stalled_seconds=round(float(Stalls(trace.stalls).seconds), _MILLI),
    )


def _baseline(check: Check) -> BaselineResult | None:
    baseline = check.baseline
    if baseline is None:
        return None
    return BaselineResult(
        baseline.path, tuple(map(_entry, check.stale())), tuple(map(_entry, baseline.matched()))
    )


def _entry(each: Deviation) -> BaselineEntry:
    return BaselineEntry(each.id, each.clause, each.scenario, each.reason, each.line)
