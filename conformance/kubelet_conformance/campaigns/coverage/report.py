"""Coverage as text and as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console

from kubelet_conformance.campaigns.coverage.gathering import Coverage, Gathered
from kubelet_conformance.reports.catalogue import Fate


def coverage_report(found: Coverage) -> dict[str, Any]:
    """What contracts rest on and how often each row of a decision table decided, for programs."""
    return {
        "schema": 1,
        "totals": totals(found.contracts),
        "contracts": [_contract_report(each) for each in found.contracts],
        "decisions": dict(found.decisions),
    }


def totals(every: Sequence[Gathered]) -> dict[str, int]:
    """How many contracts have which fate, and how many lack something."""
    count = Counter(each.entry.fate for each in every)
    gaps = sum(1 for each in every if each.gaps)
    return {"contracts": len(every), **{fate.value: count[fate] for fate in Fate}, "with_gaps": gaps}


def _contract_report(each: Gathered) -> dict[str, Any]:
    return {
        "id": each.entry.row.id,
        "area": each.entry.row.area,
        "level": each.entry.row.level.value,
        "binds": each.entry.row.addressee,
        "fate": each.entry.fate.value,
        "reason": each.entry.reason,
        "witnesses": {one.name: one.activations for one in each.witnesses},
        "activations": each.activations,
        "bugs": list(each.bugs),
        "gaps": list(each.gaps),
    }


def print_coverage(found: Coverage, console: Console) -> None:
    """One line a contract, then the rows of decision tables that were never taken, then the totals."""
    every = found.contracts
    wide = max((len(each.entry.row.id) for each in every), default=0)
    for each in every:
        head = f"{each.entry.row.id:{wide}}  {each.entry.fate:11}"
        console.print(f"{head}  {'; '.join(_parts(each))}", style="red" if each.gaps else "", soft_wrap=True)
    for name in found.untaken:
        console.print(f"NEVER TAKEN: {name}", style="red", soft_wrap=True)
    counts = totals(every)
    summary = ", ".join(f"{counts[fate.value]} {fate}" for fate in Fate)
    console.print(f"\n{len(every)} contracts: {summary}; {counts['with_gaps']} lack something", style="bold")
    rows = len(found.decisions)
    console.print(f"{rows} rows of decision tables: {rows - len(found.untaken)} taken", style="bold")


def _parts(each: Gathered) -> Iterator[str]:
    if each.entry.fate is Fate.EXCLUDED:
        yield each.entry.reason
        return
    if each.entry.fate is Fate.IMPLEMENTED:
        yield f"{each.activations} activations"
    if each.witnesses:
        yield f"witnesses {' '.join(one.name for one in each.witnesses)}"
    if each.bugs:
        yield f"bugs {' '.join(each.bugs)}"
    if each.gaps:
        yield f"LACKS: {', '.join(each.gaps)}"
