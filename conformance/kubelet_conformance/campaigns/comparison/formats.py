"""The report of a comparison, as text for a terminal, as Markdown, and for programs."""

from collections.abc import Iterator

from kubelet_conformance.campaigns.comparison.report import Compared, Comparison, Difference, Report, Shown
from kubelet_conformance.campaigns.comparison.sides import Side
from kubelet_conformance.campaigns.comparison.verdicts import Change, Changes
from kubelet_conformance.reports.formats.markdown import BYTES_MAX
from kubelet_conformance.reports.safe import counted, safe
from kubelet_conformance.run_record.model import Ended

SCHEMA = 2
_LINES_SHOWN = 50
_TEXT_CHARS = 2000


def text_of(report: Report) -> Iterator[str]:
    """The report to read in a terminal."""
    for other in report.others:
        if len(report.others) > 1:
            yield f"{safe(other.side.title)}, compared with {safe(report.first.title)}\n"
        for side in (report.first, other.side):
            yield from _not_whole(side)
        for title, those in () if other.changes is None else other.changes.parts():
            for each in those[:_LINES_SHOWN]:
                yield f"{title:19}  {safe(each.name)}: {each.before} -> {each.after}\n"
                yield f"{'':19}      {safe(each.text)}\n" if title == "worse" and each.text else ""
            if len(those) > _LINES_SHOWN:
                yield f"{title:19}  and {len(those) - _LINES_SHOWN} more; --format json lists them\n"
        yield from _steps_in_text(report, other)
        yield f"{other.changes.words}\n" if other.changes is not None else ""


def _not_whole(side: Side) -> Iterator[str]:
    """That a record is only a part of its run."""
    if side.run is not None and side.run.ended is not Ended.COMPLETE:
        yield f"{safe(side.name)}: the run was {side.run.ended.words}\n"


def _steps_in_text(report: Report, other: Compared) -> Iterator[str]:
    steps = other.steps
    if steps is None:
        return
    for each in steps.differences:
        if each.known is not None:
            yield f"known      {each.parting.scenario}: {safe(each.known.cause)}: {safe(each.known.reason)}\n"
    for each in steps.differences:
        if each.known is None:
            yield f"different  {each.parting.scenario}: {safe(each.parting.about)}\n"
            yield from (f"    {line}\n" for line in _sides(each, steps))
    for name in steps.stale:
        yield f"stale      {name}: is listed as different, and is equal: remove the entry\n"
    if other.left_out:
        yield f"{_left_out(other)}\n"
    if report.asks_steps:
        yield f"{_steps_words(steps)}\n"


def _left_out(other: Compared) -> str:
    more = counted(other.left_out, "further scenario")
    return f"{more} changed too; --scenario '*' shows where both part in each"


def _sides(difference: Difference, steps: Comparison) -> Iterator[str]:
    """The steps around the one at which both part, a line each."""
    for name, side in zip(steps.names, (difference.one, difference.other), strict=True):
        yield safe(name)
        yield from (f"{'>' if each.parts else ' '} {each.t:8.2f}  {safe(each.text, 2000)}" for each in side)


def _steps_words(steps: Comparison) -> str:
    known = sum(each.known is not None for each in steps.differences)
    new = len(steps.differences) - known
    parts = [f"{len(steps.equal)} equal", f"{new} different", f"{known} known"]
    parts += [f"{len(steps.stale)} stale"] if steps.stale else []
    rest = len(steps.not_compared)
    parts += [f"{rest} not compared, as one side has them alone"] if rest else []
    total = counted(len(steps.equal) + len(steps.differences), "scenario")
    return f"{'EQUAL' if steps.is_equal else 'DIFFERENT'}: {', '.join(parts)}, of {total} compared"


def markdown_of(report: Report) -> str:
    """The report for a pull request: what is worse open, the rest folded; as much as one takes."""
    note = "\nThe rest is left out, as a job summary takes no more; `--format json` has it.\n"
    room, kept = BYTES_MAX - len(note), list[str]()
    for other in report.others:
        for part in _markdown(report, other):
            room -= len(part.encode("utf-8", "backslashreplace"))
            if room < 0:
                return "".join([*kept, note])
            kept.append(part)
    return "".join(kept)


def _markdown(report: Report, other: Compared) -> Iterator[str]:
    """The report on one side, in parts that are whole."""
    words = [] if other.changes is None else [other.changes.words]
    words += [_steps_words(other.steps)] if report.asks_steps and other.steps is not None else []
    yield f"# {'; '.join(words)}\n\nFrom {_code(report.first.title)} to {_code(other.side.title)}.\n"
    for side in (report.first, other.side):
        yield from (f"\n{line}" for line in _not_whole(side))
    for title, those in () if other.changes is None else other.changes.parts():
        if those:
            yield _table(title, those, is_open=title == "worse")
    if other.steps is not None:
        for each in other.steps.differences:
            yield _parting(each, other.steps)
    if other.left_out:
        yield f"\n{_left_out(other)}\n"


def _table(title: str, those: tuple[Change, ...], *, is_open: bool) -> str:
    columns = ["", "before", "after", *(["what happened"] if is_open else [])]
    lines = [columns, ["---"] * len(columns)]
    lines += (
        [_code(each.name), each.before, each.after, *([_cell(each.text)] if is_open else [])]
        for each in those
    )
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    head = f"{title} ({len(those)})"
    if is_open:
        return f"\n## {head}\n\n{table}\n"
    return f"\n<details><summary>{head}</summary>\n\n{table}\n\n</details>\n"


def _parting(each: Difference, steps: Comparison) -> str:
    """The first step at which both part in a scenario, folded."""
    fence = "`" * 3
    lines = "\n".join(line.replace(fence, "'''") for line in _sides(each, steps))
    known = "" if each.known is None else f", known: {safe(each.known.reason)}"
    head = _cell(f"{each.parting.scenario} parts at {each.parting.about}{known}")
    return f"\n<details><summary>{head}</summary>\n\n{fence}text\n{lines}\n{fence}\n\n</details>\n"


def _code(text: str) -> str:
    return "`" + safe(text, _TEXT_CHARS).replace("`", "'").replace("|", "/") + "`"


def _cell(text: str) -> str:
    """The text within a cell; what it holds neither ends it nor is markup."""
    plain = safe(text, _TEXT_CHARS).replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return "".join(f"\\{char}" if char in "`*_[]\\" else char for char in plain)


def report_of(report: Report) -> dict[str, object]:
    """The report for programs; `compare.schema.json` is its schema."""
    verdicts = [
        {} if side.run is None else {each.id: each for each in side.run.contracts} for side in report.sides
    ]
    return {
        "schema": SCHEMA,
        "exit_code": int(report.conclusion),
        "sides": [_side(each) for each in report.sides],
        "contracts": [
            {
                "id": name,
                "verdicts": [each[name].verdict.value if name in each else None for each in verdicts],
            }
            for name in dict.fromkeys(name for each in verdicts for name in each)
        ],
        "compared": [
            {
                "with": other.side.name,
                "verdicts": None if other.changes is None else _changes(other.changes),
                "steps": None if other.steps is None else _steps_of(other.steps),
                "left_out": other.left_out,
            }
            for other in report.others
        ],
    }


def _side(side: Side) -> dict[str, object]:
    run = side.run
    return {
        "name": side.name,
        "title": side.title,
        "target": "" if run is None else run.target.words,
        "ended": None if run is None else run.ended.value,
        "totals": None if run is None else {name.value: count for name, count in run.totals.items()},
    }


def _changes(changes: Changes) -> dict[str, list[dict[str, str]]]:
    return {title.replace(" ", "_"): [*map(_change, those)] for title, those in changes.parts()}


def _change(change: Change) -> dict[str, str]:
    return {"name": change.name, "before": change.before, "after": change.after, "text": change.text}


def _steps_of(steps: Comparison) -> dict[str, object]:
    return {
        "equal": list(steps.equal),
        "different": [
            {
                "scenario": each.parting.scenario,
                "about": each.parting.about,
                "known": None
                if each.known is None
                else {"cause": each.known.cause, "reason": each.known.reason},
                "steps": [_shown(each.one), _shown(each.other)],
            }
            for each in steps.differences
        ],
        "not_compared": dict(steps.not_compared),
        "stale": list(steps.stale),
    }


def _shown(side: tuple[Shown, ...]) -> list[dict[str, object]]:
    return [{"t": round(each.t, 3), "text": each.text, "parts": each.parts} for each in side]
