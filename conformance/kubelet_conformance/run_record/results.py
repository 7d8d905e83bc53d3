"""The results of a check as a record keeps them."""

from collections.abc import Callable
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
    """The run with what it ends with."""
    return msgspec.structs.replace(run, exit_code=int(concluded(run)))


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
