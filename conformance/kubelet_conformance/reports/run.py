"""What a report says beside the results: how the run was asked for, and how it ended."""

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum

from kubelet_conformance.contract.checking import Check, Result
from kubelet_conformance.contract.verdicts import Verdict


class Exit(IntEnum):
    """The exit codes of the command."""

    OK = 0
    FAILED = 1
    BAD_INPUT = 2
    INCONCLUSIVE = 3
    INTERNAL_ERROR = 4
    INTERRUPTED = 130


_BY_GRAVITY = (
    Exit.INTERRUPTED,
    Exit.INTERNAL_ERROR,
    Exit.BAD_INPUT,
    Exit.FAILED,
    Exit.INCONCLUSIVE,
    Exit.OK,
)


def gravest(*ends: Exit) -> Exit:
    """The one that counts where several things happened."""
    return min(ends, key=_BY_GRAVITY.index)


@dataclass(frozen=True, slots=True)
class Run:
    """The options of a check that its report repeats or depends on."""

    kubernetes: str | None = None
    """The version that stands in for those of the traces."""
    strict: bool = False
    require_exercised: bool = False
    debug: bool = False


def concluded(check: Check, run: Run) -> Exit:
    """How the run ends: the gravest of what happened."""
    results = check.results.values()
    if any(result.outcome.verdict is Verdict.ERROR for result in results):
        return Exit.INTERNAL_ERROR
    if check.errors:
        return Exit.BAD_INPUT
    if check.stale() or any(fails(result, run) for result in results):
        return Exit.FAILED
    if check.unexplained() or not any(result.outcome.activations for result in results):
        return Exit.INCONCLUSIVE
    return Exit.OK


def fails(result: Result, run: Run) -> bool:
    """The contract's verdict makes the run fail."""
    if result.outcome.verdict is Verdict.NOT_EXERCISED:
        return run.require_exercised
    levels = {"MUST", "SHOULD"} if run.strict else {"MUST"}
    return result.outcome.verdict is Verdict.BROKEN and result.contract.level in levels and result.counts


def by_area(check: Check) -> dict[str, Counter[Verdict]]:
    """How many contracts of each area have which verdict."""
    counts: dict[str, Counter[Verdict]] = {}
    for result in check.results.values():
        counts.setdefault(result.contract.row.area, Counter())[result.outcome.verdict] += 1
    return counts
