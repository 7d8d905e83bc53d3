"""The report for programs; `check.schema.json` beside this module is its published schema."""

from typing import Any

from kubelet_conformance.contract.baseline import MAIN_CLAUSE, Baseline
from kubelet_conformance.contract.checking import Check, Result, Trace
from kubelet_conformance.contract.stalls import Stalls
from kubelet_conformance.contract.verdicts import Evidence, Verdict
from kubelet_conformance.reports.run import Run, concluded
from kubelet_conformance.reports.safe import counted

SCHEMA = 2
"""The version of the report's form; a change that can break a reader raises it."""


def check_report(check: Check, run: Run) -> dict[str, Any]:
    """The whole report of a check."""
    return {
        "schema": SCHEMA,
        "target": {"traces": [_trace(trace) for trace in check.traces]},
        "totals": {verdict.value: count for verdict, count in check.totals().items()},
        "contracts": [_contract(result) for result in check.results.values()],
        "exit_code": int(concluded(check, run)),
        "unreadable": [
            {"path": str(e.path), "line": e.line, "problem": e.problem, "remedy": e.remedy}
            for e in check.errors
        ],
        "baseline": None if check.baseline is None else _baseline(check.baseline, check),
        "waits": [
            {"trace": wait.trace, "seq": wait.seq, "contract": wait.contract, "awaited": wait.awaited}
            for wait in check.unexplained()
        ],
    }


def _trace(trace: Trace) -> dict[str, Any]:
    return {
        "path": trace.path,
        "kubernetes": trace.version,
        "kubernetes_in_header": trace.stated,
        "runtime": trace.runtime,
        "scenario": trace.scenario,
        "records": trace.records,
        "truncated_after_line": trace.cut_line,
        "stalls": len(trace.stalls),
        "stalled_seconds": round(Stalls(trace.stalls).seconds, 3),
    }


def _contract(result: Result) -> dict[str, Any]:
    contract, outcome = result.contract, result.outcome
    return {
        "id": contract.id,
        "level": contract.level,
        "verdict": outcome.verdict.value,
        "activations": outcome.activations,
        "breaks": outcome.breaks,
        "inconclusive": outcome.inconclusive,
        "scored": outcome.verdict is not Verdict.BROKEN or result.counts,
        "evidence": [_evidence(each) for each in outcome.evidence],
        "rule": contract.rule,
        "source": contract.row.source,
        "reason": _reason(result),
        "versions": {version: verdict.value for version, verdict in result.versions.items()},
    }


def _reason(result: Result) -> str:
    """Why there is no verdict by what was seen."""
    outcome = result.outcome
    if outcome.verdict is Verdict.NOT_EXERCISED and outcome.inconclusive:
        return f"inconclusive, as the machine stalled meanwhile: {counted(outcome.inconclusive, 'break')}"
    return outcome.reason if outcome.verdict is Verdict.ERROR else "; ".join(result.reasons)


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "trace": evidence.trace,
        "seq": list(evidence.seq),
        "text": evidence.text,
        "clause": evidence.clause or MAIN_CLAUSE,
        "scenario": evidence.scenario,
        "deviation": evidence.deviation or None,
        "log": list(evidence.log),
    }


def _baseline(baseline: Baseline, check: Check) -> dict[str, Any]:
    fields = ("id", "clause", "scenario", "reason", "line")
    stale = [{name: getattr(each, name) for name in fields} for each in check.stale()]
    return {"path": baseline.path, "stale": stale}
