"""The report for a pull request or a job summary, in Markdown."""

from collections.abc import Iterator
from html import escape

from kubelet_conformance.contract.checking import REPORTED
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.playing import again, amount
from kubelet_conformance.reports.safe import counted, safe
from kubelet_conformance.reports.trace_text.breaks import Break, breaks_of, in_lines, names_rule
from kubelet_conformance.reports.trace_text.causes import groups_of
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.model import ContractResult, Ended, Found, Kind, Run
from kubelet_conformance.run_record.record import Record

BYTES_MAX = 1024 * 1024
"""A job summary of GitHub takes no more."""
_OPEN_MAX = 10
"""The likeliest causes of so many groups are unfolded; with more, each is folded."""
_LONG = 40
"""A text with more lines is folded."""


def as_markdown(record: Record) -> str:
    """The whole run: a table of areas, then what is broken, then what else wants a look.

    What does not fit into a job summary is left out from the end, and that is said.
    """
    parts = ["\n".join(each) + "\n" for each in _parts(record)]
    sizes = [len(each.encode("utf-8", "backslashreplace")) for each in parts]
    note = "\nThe rest is left out, as a job summary takes no more; `--format json` has it.\n"
    room = BYTES_MAX - len(note)
    if sum(sizes) <= BYTES_MAX:
        return "".join(parts)
    fitting = 0
    for size in sizes:
        room -= size
        fitting += room >= 0
    return "".join([*parts[:fitting], note])


def _parts(record: Record) -> Iterator[list[str]]:
    """The report in parts, each of which is whole without those that follow."""
    run = record.run
    yield [*_head(run)]
    yield from _all_broken(run.having(Verdict.BROKEN), record)
    for result in run.having(Verdict.ERROR):
        yield [
            "",
            f"## The suite failed in judging {result.id}",
            *_code("\n".join(result.reasons).splitlines()),
        ]
    if run.stale:
        title = "## Stale in the baseline: exercised and never broken, remove them"
        yield ["", title, *_code([str(each) for each in run.stale])]
    for played in run.died:
        yield ["", f"## The kubelet ended by itself: {safe(played.name)}", *_code(played.died.splitlines())]
    for played in (*run.failed, *run.unexplained):
        what = "The suite failed" if played.failed else "Timed out or failed an assertion"
        yield ["", f"## {what}: {safe(played.name)}", *_code((played.failed or played.unmet).splitlines())]
    if run.unreadable:
        yield ["", "## Could not be judged", *_code([str(each) for each in run.unreadable])]
    if run.not_played is not None:
        rest = run.not_played
        yield ["", f"{counted(len(rest.scenarios), 'scenario')} not played, because of `{rest.option}`."]
    yield [*_left_out(run)]
    for found in run.histories.found if run.histories is not None else ():
        yield [*_history(found)]


def _head(run: Run) -> Iterator[str]:
    yield f"# kubelet-conformance: {Exit(run.exit_code).name.replace('_', ' ').lower()}"
    yield ""
    did = "Judged" if run.kind is Kind.CHECK else f"Played {amount(run)} on"
    yield f"{did} {safe(run.target.words)}; judged by {counted(len(run.contracts), 'contract')}."
    if run.ended is not Ended.COMPLETE:
        yield ""
        yield f"Incomplete: the run was {run.ended.words}."
    yield ""
    yield from _areas(run)


def _areas(run: Run) -> Iterator[str]:
    yield "| area | " + " | ".join(verdict.words for verdict in REPORTED) + " |"
    yield "|---|" + "---:|" * len(REPORTED)
    for area, count in run.by_area().items():
        yield f"| {area} | " + " | ".join(str(count[verdict] or "") for verdict in REPORTED) + " |"


def _all_broken(broken: list[ContractResult], record: Record) -> Iterator[list[str]]:
    """What is broken, in groups that one decision may have broken; only likely causes are unfolded."""
    if broken:
        yield ["", "## Broken"]
    breaks, groups = breaks_of(broken, record), groups_of(broken, record.run)
    for group in groups:
        if group.words:
            yield ["", group.words]
        for number, result in enumerate(group.contracts):
            folded = number > 0 or len(groups) > _OPEN_MAX
            yield [*_broken(result, breaks[result.id], record, folded=folded)]


def _broken(result: ContractResult, breaks: list[Break], record: Record, *, folded: bool) -> Iterator[str]:
    yield ""
    follows = f", may follow from {', '.join(result.follows_from)}" if result.follows_from else ""
    if folded:
        yield f"<details><summary><b>{result.id}</b> ({result.level}{follows}) {_html(result.rule)}</summary>"
    else:
        yield f"### {result.id} ({result.level}{follows})"
    for each in breaks:
        yield ""
        scenario, trace = each.proof.scenario, record.shown(each.proof.trace)
        yield f"In scenario {_inline(scenario)}:" if scenario else f"In {_inline(trace)}:"
        yield from _code([*in_lines(each.parts(result))])
    if not names_rule(result, breaks):
        yield ""
        yield f"Rule: {safe(result.rule, 2000)}"
    yield ""
    yield f"Source: {safe(result.source, 2000)}"
    for command in dict.fromkeys(again(record, result.id, each.proof) for each in breaks):
        if command:
            yield ""
            yield f"Again: {_inline(command)}"
    if folded:
        yield ""
        yield "</details>"


def _left_out(run: Run) -> Iterator[str]:
    """The scenarios that are not applicable, folded away."""
    if not run.not_applicable:
        return
    yield ""
    yield f"<details><summary>{counted(len(run.not_applicable), 'scenario')} not applicable here</summary>"
    yield ""
    yield "| reason | scenarios |"
    yield "|---|---|"
    for reason, scenarios in run.reasons().items():
        yield f"| {safe(reason).replace('|', '/')} | {', '.join(map(_inline, scenarios))} |"
    yield ""
    yield "</details>"


def _history(found: Found) -> Iterator[str]:
    yield ""
    yield f"## History {safe(found.name)} broke {safe(found.broke)}"
    yield from _code(list(found.words))
    yield from _code(found.scenario.splitlines(), "python")


def _inline(text: str) -> str:
    """The text as code within a line; what it holds cannot end it."""
    return "`" + safe(text, 2000).replace("`", "'") + "`"


def _html(text: str) -> str:
    """The text within a line of HTML."""
    return escape(safe(text, 2000))


def _code(lines: list[str], language: str = "text") -> Iterator[str]:
    """The lines as they are, folded where they are many; what they hold cannot end the block."""
    fence = "`" * 3
    is_long = len(lines) > _LONG
    yield ""
    if is_long:
        yield f"<details><summary>{len(lines)} lines</summary>"
        yield ""
    yield f"{fence}{language}"
    yield from (safe(line, 2000).replace(fence, "'''") for line in lines)
    yield fence
    if is_long:
        yield ""
        yield "</details>"
