"""`slice` and `show`: cut pods or a span of time out of a trace, or show them as a timeline."""

import contextlib
import math
import os
from collections.abc import Generator
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from threading import Event
from typing import BinaryIO

import click

from kubelet_conformance.cli.options import DEBUG, OUTPUT, REDACTS, ending
from kubelet_conformance.reports.output import check_writable, deliver, print_now
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.timeline.drawing import Extract, drawn_lines
from kubelet_conformance.reports.timeline.following import followed_lines
from kubelet_conformance.reports.timeline.reading import timeline_of
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.system_clock import fresh_key
from kubelet_conformance.trace.format.errors import BodyError
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.redaction.redactor import Redactor
from kubelet_conformance.trace.redaction.slicing import Cut, UnknownPodsError, slice_trace

_OTHERS_SHOWN = 10
_POLL_SECONDS = 0.2
_AROUND_SECONDS = 5.0


class _RecordNumber(click.ParamType[int]):
    """The number of a record, as reports write it: #77."""

    name = "number"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        digits = str(value).removeprefix("#")
        if not digits.isdecimal():
            self.fail(
                f"{safe(str(value))!r} is no record: write its number as a report does, '#77'", param, ctx
            )
        return int(digits)


_FROM = click.option(
    "--from", "begin", type=float, metavar="SECONDS", help="Begin at this time, in seconds of the trace."
)
_TO = click.option(
    "--to", "end", type=float, metavar="SECONDS", help="End at this time, in seconds of the trace."
)
_AROUND = click.option(
    "--around",
    type=_RecordNumber(),
    metavar="#SEQ",
    help=f"Begin {_AROUND_SECONDS:g} s before the record that a report calls so, and end as long after it.",
)


@click.command(
    "slice",
    epilog=ending("slice trace.jsonl --pod default/web -o web.jsonl", code_0="the slice was written"),
)
@click.argument("path", metavar="TRACE")
@click.option(
    "--pod",
    "pods",
    metavar="NAMESPACE/NAME|UID",
    multiple=True,
    help="Keep only the records of this pod; may be repeated.",
)
@_FROM
@_TO
@_AROUND
@REDACTS
@click.option("-o", "--output", metavar="FILE", required=True, help="The file to write.")
@DEBUG
def slice_command(  # noqa: PLR0913 - one parameter an option
    *,
    path: str,
    pods: tuple[str, ...],
    begin: float | None,
    end: float | None,
    around: int | None,
    redacts: bool,
    output: str,
) -> None:
    """Cut some pods or a span of time out of TRACE, and write them as a trace of their own.

    Secrets are replaced by digests. `check` judges a slice as it judges any trace.
    """
    begin, end = _span(path, begin, end, around)
    for pod in pods:
        if not pod.strip("/") or pod.count("/") > 1:
            raise click.UsageError(f"{safe(pod)!r} is no pod: write it as NAMESPACE/NAME, or its UID")
    if pods and not Path(path).is_file() and Path(path).exists():
        raise click.ClickException(f"{path}: is no plain file, and cutting pods out reads it twice: copy it")
    check_writable(output, path)
    redactor = Redactor(fresh_key()) if redacts else None
    try:
        with _whole_or_not_at_all(output) as file:
            count = slice_trace(path, Cut(tuple(dict.fromkeys(pods)), begin, end), file, redactor)
    except UnknownPodsError as error:
        known = ", ".join(map(safe, error.others[:_OTHERS_SHOWN]))
        more = f" and {len(error.others) - _OTHERS_SHOWN} more" if len(error.others) > _OTHERS_SHOWN else ""
        others = f"; the trace has {known}{more}" if known else ""
        raise click.ClickException(
            f"{path}: knows no pod {safe(str(error))}: name it as NAMESPACE/NAME or by its UID{others}"
        ) from None
    except (RecursionError, ValueError) as error:
        reason = "a record is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise click.ClickException(f"{path}: cannot be cut: {reason}") from None
    except OSError as error:
        raise click.ClickException(f"{output}: cannot be written: {error.strerror or error}") from None
    kept = " and ".join(safe(pod) for pod in pods) or "all pods"
    state = "without secrets; names, images and commands are in the open" if redacts else "with every secret"
    deliver(f"{output}: {count} records of {kept}, {state}\n", None)


@click.command(
    epilog=ending(
        "show trace.jsonl --pod default/web --changes",
        code_0="the trace was shown; with --follow, up to its end or to Ctrl-C",
    )
)
@click.argument("path", metavar="TRACE")
@click.option(
    "--pod",
    "pods",
    metavar="NAMESPACE/NAME",
    multiple=True,
    help="Show only this pod, beside the node; may be repeated.",
)
@_FROM
@_TO
@_AROUND
@click.option(
    "--changes", is_flag=True, help="Show only what changes something: no reads, probes and events."
)
@click.option(
    "--follow",
    is_flag=True,
    help="Go on while `record` writes TRACE, and print each row as it comes, a call when it is answered.",
)
@OUTPUT
@DEBUG
def show(  # noqa: PLR0913 - one parameter an option
    *,
    path: str,
    pods: tuple[str, ...],
    begin: float | None,
    end: float | None,
    around: int | None,
    changes: bool,
    follow: bool,
    output: str | None,
) -> int:
    """Show TRACE as a timeline: a row for each call or event, a column for each pod, sandbox and container.

    What is asked again and again with the same answer is left out.
    """
    if follow and around is not None:
        raise click.UsageError("--around is for a trace that is there: leave out --follow")
    begin, end = _span(path, begin, end, around)
    if follow and output is not None:
        raise click.UsageError("--follow prints each row as it comes: leave out --output")
    check_writable(output, path)
    if follow:
        _follow(Path(path), Extract(pods, begin, end, changes))
        return Exit.OK
    timeline = timeline_of(Path(path))
    known = sorted({lane.pod for lane in timeline.lanes if lane.pod})
    for pod in pods:
        if pod not in known:
            near = get_close_matches(pod, known, n=1) or known[:_OTHERS_SHOWN]
            others = f"; the trace has {', '.join(near)}" if near else ""
            raise click.ClickException(f"{path}: knows no pod {safe(pod)}: name it as NAMESPACE/NAME{others}")
    if timeline.problem and not timeline.items:
        raise click.ClickException(timeline.problem)
    lines = drawn_lines(timeline, Extract(pods, begin, end, changes))
    deliver("".join(f"{line}\n" for line in lines), output)
    return Exit.BAD_INPUT if timeline.problem else Exit.OK


def _follow(path: Path, extract: Extract) -> None:
    """Print rows as they come, until the trace ends, nobody reads them, or Ctrl-C."""
    never = Event()
    try:
        for line in followed_lines(path, extract, partial(never.wait, _POLL_SECONDS)):
            if not print_now(f"{line}\n"):
                return
    except BodyError as error:
        raise click.ClickException(f"{path}: {error}") from None
    except KeyboardInterrupt:
        return


def _span(
    path: str, begin: float | None, end: float | None, around: int | None
) -> tuple[float | None, float | None]:
    """From when to when; raises a usage error for what is no span."""
    if around is not None:
        if begin is not None or end is not None:
            raise click.UsageError("--around says from when to when: leave out --from and --to")
        at = _time_of(path, around)
        return max(at - _AROUND_SECONDS, 0.0), at + _AROUND_SECONDS
    _check_span(begin, end)
    return begin, end


def _time_of(path: str, seq: int) -> float:
    if Path(path).exists() and not Path(path).is_file():
        raise click.ClickException(f"{path}: is no plain file, and --around reads it twice: copy it")
    last = 0
    with Reader(path) as reader:
        for record in reader:
            if record.seq >= seq:
                return record.t
            last = record.seq
    raise click.ClickException(f"{path}: has no record #{seq}; its last is #{last}")


def _check_span(begin: float | None, end: float | None) -> None:
    for name, value in (("--from", begin), ("--to", end)):
        if value is not None and not (0 <= value < math.inf):
            raise click.UsageError(f"{name} {value:g} is no time: write seconds since the start of the trace")
    if begin is not None and end is not None and begin > end:
        raise click.UsageError(f"--from {begin:g} is after --to {end:g}")


@contextlib.contextmanager
def _whole_or_not_at_all(output: str) -> Generator[BinaryIO]:
    """A file that takes the place of `output` when all is written to it; a device is written to directly."""
    target = Path(os.path.realpath(output))
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        # A trace may hold what is not for everybody.
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
        beside.replace(target)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
