"""Judges a trace for a test, and says what it breaks."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kubelet_conformance.contract.catalogue import select
from kubelet_conformance.contract.checking import Judged, Result, judge_file
from kubelet_conformance.contract.verdicts import Outcome, Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.trace_text.breaks import in_lines, shown
from kubelet_conformance.run_record.results import contract_result

_BAD = frozenset({Verdict.BROKEN, Verdict.ERROR})
_BREAKS_MAX = 1


def judged_by(ids: tuple[str, ...], path: Path) -> tuple[Judged, str]:
    """The verdicts on a trace by these ids or globs, or by all contracts; and what is wrong, if anything.

    A contract that is named in full is wrong if the trace does not exercise it. Raises UnknownContract.
    """
    every = every_contract()
    chosen = [each for each in select(ids or ["*"]) if each in every]
    judged = judge_file(str(path), [every[each] for each in chosen])
    bad = [each for each, outcome in judged.outcomes.items() if outcome.verdict in _BAD]
    idle = {Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE}
    named = [each for each in chosen if each in ids and judged.outcomes[each].verdict in idle]
    missed = [
        f"{each}: {judged.outcomes[each].verdict.words}"
        + (f": {judged.outcomes[each].reason}" if judged.outcomes[each].reason else "")
        for each in named
    ]
    return judged, "\n".join([*breaks_text(bad, judged.outcomes), *missed])


def breaks_text(ids: Iterable[str], outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """Each broken contract in a few lines: its rule, and the first break with its records."""
    for each in ids:
        contract, outcome = every_contract()[each], outcomes[each]
        yield f"{each} ({contract.level}): {contract.rule}"
        result = contract_result(Result(contract, outcome))
        for one in shown(result.evidence)[:_BREAKS_MAX]:
            yield from (f"    {line}" for line in in_lines(one.parts(result)))
        if outcome.verdict is Verdict.ERROR:
            yield f"    {outcome.reason}"
