"""The report for a pull request or a job summary, in Markdown."""

from collections.abc import Iterator

from kubelet_conformance.contract.checking import REPORTED, Result
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.played_run import HistoryFound, PlayedRun
from kubelet_conformance.reports.run import by_area
from kubelet_conformance.reports.safe import counted, safe
from kubelet_conformance.reports.trace_text.breaks import shown


def as_markdown(run: PlayedRun) -> str:
    """The whole run: a table of areas, then what is broken, then what else wants a look."""
    return "\n".join(_lines(run)) + "\n" + "".join(map(_history, run.found))


def _lines(run: PlayedRun) -> Iterator[str]:
    yield f"# kubelet-conformance: {run.conclusion().name.replace('_', ' ').lower()}"
    yield ""
    scenarios, contracts = (len(run.scenarios), "scenario"), (len(run.check.results), "contract")
    yield f"Played {counted(*scenarios)} on {safe(run.target)}; judged by {counted(*contracts)}."
    if run.interrupted:
        yield ""
        yield "Incomplete: the run was interrupted."
    yield ""
    yield from _areas(run)
    broken = [each for each in run.check.results.values() if each.outcome.verdict is Verdict.BROKEN]
    if broken:
        yield ""
        yield "## Broken"
    for result in broken:
        yield from _broken(result, run)
    stale = run.check.stale()
    if stale:
        yield ""
        yield "## Stale in the baseline: exercised and never broken, remove them"
        yield from _code([str(each) for each in stale])
    for played in run.died:
        yield ""
        yield f"## The kubelet ended by itself: {safe(played.scenario)}"
        yield from _code(played.died.splitlines())
    for played in (*run.failed, *run.unexplained):
        yield ""
        what = "The suite failed" if played.failed else "Timed out or failed an assertion"
        yield f"## {what}: {safe(played.scenario)}"
        yield from _code((played.failed or played.unmet).splitlines())
    rest = run.not_played
    if rest is not None:
        yield ""
        yield f"{counted(len(rest.scenarios), 'scenario')} not played, because of `{rest.option}`."
    yield from _left_out(run)


def _history(found: HistoryFound) -> str:
    words = "\n".join(safe(line, 2000) for line in found.words)
    title = f"## History {safe(found.played.scenario)} broke {safe(found.what)}"
    return f"\n{title}\n\n```text\n{words}\n```\n\n```python\n{found.scenario}```\n"


def _left_out(run: PlayedRun) -> Iterator[str]:
    """The scenarios that are not applicable, folded away."""
    if not run.left_out:
        return
    yield ""
    yield f"<details><summary>{counted(len(run.left_out), 'scenario')} not applicable here</summary>"
    yield ""
    yield "| reason | scenarios |"
    yield "|---|---|"
    for reason, scenarios in run.reasons().items():
        yield f"| {safe(reason).replace('|', '/')} | {', '.join(map(_inline, scenarios))} |"
    yield ""
    yield "</details>"


def _areas(run: PlayedRun) -> Iterator[str]:
    counts = by_area(run.check)
    yield "| area | " + " | ".join(verdict.words for verdict in REPORTED) + " |"
    yield "|---|" + "---:|" * len(REPORTED)
    for area, count in counts.items():
        yield f"| {area} | " + " | ".join(str(count[verdict] or "") for verdict in REPORTED) + " |"


def _broken(result: Result, run: PlayedRun) -> Iterator[str]:
    breaks = shown(result.outcome.evidence)
    yield ""
    yield f"### {result.contract.id} ({result.contract.level})"
    yield ""
    yield result.contract.rule
    yield ""
    yield f"Source: {result.contract.row.source}"
    for each in breaks:
        yield ""
        scenario, trace = each.evidence.scenario, each.evidence.trace
        yield f"In scenario {_inline(scenario)}:" if scenario else f"In {_inline(trace)}:"
        log = (f"  log: {line}" for line in each.evidence.log)
        yield from _code([*each.slice(), *each.evidence.text.splitlines(), *log])
    yield ""
    yield f"Again: {_inline(run.again(result.contract.id, [each.evidence.trace for each in breaks]))}"


def _inline(text: str) -> str:
    """The text as code within a line; what it holds cannot end it."""
    return "`" + safe(text, 2000).replace("`", "'") + "`"


def _code(lines: list[str]) -> Iterator[str]:
    """The lines as they are; what they hold cannot end the block."""
    fence = "`" * 3
    yield ""
    yield f"{fence}text"
    yield from (safe(line, 2000).replace(fence, "'''") for line in lines)
    yield fence
