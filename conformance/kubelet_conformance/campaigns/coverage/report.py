"""Coverage as text and as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console

from kubelet_conformance.campaigns.coverage.gathering import Gathered
from kubelet_conformance.reports.catalogue import Fate


def coverage_report(every: Sequence[Gathered]) -> dict[str, Any]:
    """What contracts rest on, for programs."""
    return {"schema": 1, "totals": totals(every), "contracts": [_contract_report(each) for each in every]}


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


def print_coverage(every: Sequence[Gathered], console: Console) -> None:
    """One line a contract, more where it lacks something, then the totals."""
    wide = max((len(each.entry.row.id) for each in every), default=0)
    for each in every:
        head = f"{each.entry.row.id:{wide}}  {each.entry.fate:11}"
        console.print(f"{head}  {'; '.join(_parts(each))}", style="red" if each.gaps else "", soft_wrap=True)
    counts = totals(every)
    summary = ", ".join(f"{counts[fate.value]} {fate}" for fate in Fate)
    console.print(f"\n{len(every)} contracts: {summary}; {counts['with_gaps']} lack something", style="bold")


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
