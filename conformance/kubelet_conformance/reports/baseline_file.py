"""A baseline of what a run broke, to be edited: each entry still needs its reason."""

import json
from collections.abc import Iterator

from kubelet_conformance.contract.baseline import MAIN_CLAUSE, Deviation, clause_names
from kubelet_conformance.contract.checking import Check, Result
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.trace_text.expectations import in_one_sentence

REASON = "To be explained."
"""Stands for the reason of an entry until somebody writes one."""
_BAD = frozenset({Verdict.BROKEN, Verdict.KNOWN_DEVIATION})


def baseline_text(check: Check, target: str) -> str:
    """Everything that was broken; entries of the check's own baseline that match keep their reasons."""
    known = () if check.baseline is None else check.baseline.deviations
    bad = [result for result in check.results.values() if result.outcome.verdict in _BAD]
    lines = [f"# What was broken on {safe(target)}: write each reason."]
    for result in bad:
        entries = [each for each in known if each.id == result.contract.id]
        for entry in dict.fromkeys(_entries(result, entries)):
            lines += ["", *_comment(result, entry), *_table(entry)]
    return "".join(f"{line}\n" for line in lines)


def _entries(result: Result, known: list[Deviation]) -> Iterator[Deviation]:
    """The entries that cover its breaks; of one scenario where the clause was broken in that alone."""
    contract = result.contract
    has_several = len(clause_names(contract)) > 1
    new: dict[str, list[str | None]] = {}
    places = sorted(result.outcome.broken_clauses, key=lambda place: (place[0], place[1] or ""))
    for clause, scenario in places:
        covering = [each for each in known if each.covers(clause, scenario)]
        yield from covering
        if not covering:
            new.setdefault(clause or MAIN_CLAUSE, []).append(scenario)
    for clause, scenarios in new.items():
        scenario = scenarios[0] if len(scenarios) == 1 else None
        yield Deviation(contract.id, REASON, clause if has_several else None, scenario)


def _comment(result: Result, entry: Deviation) -> Iterator[str]:
    """What an entry without a reason is about, and one of its breaks."""
    if entry.reason != REASON:
        return
    yield f"# {safe(result.contract.rule)}"
    for evidence in result.outcome.evidence:
        if entry.covers(evidence.clause, evidence.scenario):
            where = safe(evidence.scenario or evidence.trace)
            yield f"# Such as in {where}: {safe(in_one_sentence(evidence))}"
            return


def _table(entry: Deviation) -> Iterator[str]:
    yield "[[deviation]]"
    for key in ("id", "clause", "scenario", "gate", "reason"):
        value: str | None = getattr(entry, key)
        if value is not None:
            # What JSON escapes, TOML escapes alike.
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
    if entry.sometimes:
        yield "sometimes = true"
