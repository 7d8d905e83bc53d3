"""`check`: judge traces and report."""

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import click

from kubelet_conformance.cli.completion import contract_ids
from kubelet_conformance.cli.options import (
    BASELINE,
    DEBUG,
    OUTPUT,
    RECORD,
    VERBOSE,
    VERSION,
    Settings,
    judging,
    scored,
)
from kubelet_conformance.cli.report_options import FORM, REPORTS
from kubelet_conformance.cli.selection import chosen, known_deviations
from kubelet_conformance.contract.applicability import Version, version_text
from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.delivery import Delivery
from kubelet_conformance.reports.output import complain
from kubelet_conformance.reports.progress import Progress
from kubelet_conformance.run_record.changes import free_name
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.model import Run
from kubelet_conformance.run_record.record import Record
from kubelet_conformance.run_record.results import Scoring, check_result
from kubelet_conformance.run_record.writer import RecordError, RecordWriter
from kubelet_conformance.targets.bugs import declared_bugs
from kubelet_conformance.trace.format.errors import TraceError


@click.command(epilog=judging("check traces/ --strict"))
@click.argument("paths", metavar="TRACE|FOLDER...", nargs=-1, required=True)
@click.option(
    "--contract",
    "patterns",
    metavar="ID|GLOB",
    multiple=True,
    shell_complete=contract_ids,
    help="Judge only by these contracts; may be repeated.",
)
@click.option(
    "--kubernetes",
    type=VERSION,
    metavar="V",
    help="Judge as this Kubernetes version, not as the one in the trace's header.",
)
@click.option("--allow-truncated", is_flag=True, help="Judge a trace that is cut off up to there.")
@scored
@BASELINE
@RECORD
@FORM
@OUTPUT
@REPORTS
@VERBOSE
@DEBUG
@click.pass_context
def check(  # noqa: PLR0913 - one parameter an option
    ctx: click.Context,
    *,
    paths: tuple[str, ...],
    patterns: tuple[str, ...],
    kubernetes: Version | None,
    allow_truncated: bool,
    strict: bool,
    require_exercised: bool,
    baseline: str | None,
    record: str | None,
    form: str,
    output: str | None,
    reports: tuple[str, ...],
) -> int:
    """Judge recorded traces by every contract that applies to them.

    A folder stands for all *.jsonl files below it.
    """
    otherwise = "not judged; `kubelet-conformance explain` says why"
    contracts = chosen(patterns, every_contract(), otherwise)
    known = known_deviations(baseline)
    files, errors = traces_of(paths)
    settings = ctx.ensure_object(Settings)
    delivery = Delivery(form, output, reports, settings.debug, settings.verbose, bugs=declared_bugs)
    delivery.check(*files, *filter(None, [baseline]))
    done, version = Check(contracts, known), "" if kubernetes is None else version_text(kubernetes)

    def result() -> Run:
        return check_result(done, Scoring(strict, require_exercised), settings.command, version)

    def judged(traces: list[str]) -> Run:
        for error in errors:
            _refuse(done, error)
        _judge(done, traces, kubernetes, allow_truncated=allow_truncated)
        return result()

    def delivered(found: Record) -> Exit:
        ended = Exit(found.run.exit_code)
        is_wanted = form != "terminal" or done.traces or output is not None or reports
        return gravest(ended, delivery.deliver(found)) if is_wanted else ended

    if record is None:
        return delivered(Record(judged(files), Path()))
    _refuse_own(files, record)
    with closing(RecordWriter(record)) as writer:
        writer.begin(result())
        found = writer.finish(judged(_copied(files, writer.traces)))
        if writer.problem:
            complain(writer.problem)
        return delivered(found)


def _refuse_own(files: Iterable[str], record: str) -> None:
    """A record may not take the place of the traces that it is to be of."""
    inside = [file for file in files if Path(file).resolve().is_relative_to(Path(record).resolve())]
    if inside:
        raise RecordError(f"{record}: {inside[0]} is in it, and an earlier record is replaced; name another")


def _judge(done: Check, files: list[str], kubernetes: Version | None, *, allow_truncated: bool) -> None:
    progress = Progress(len(files))
    try:
        for file in files:
            progress.begin(file)
            try:
                done.add(
                    judge_file(
                        file,
                        done.contracts,
                        kubernetes=kubernetes,
                        progress=progress.records,
                        allow_truncated=allow_truncated,
                    )
                )
            except TraceError as error:
                progress.clear()
                _refuse(done, error)
    finally:
        progress.clear()


def _copied(files: Iterable[str], folder: Path) -> list[str]:
    """The traces of a record, copied from these files, each under a name of its own."""
    copies: dict[str, str] = {}
    for file in files:
        name = free_name(Path(file).stem, lambda name: f"{name}.jsonl" in copies)
        copy = folder / f"{name}.jsonl"
        try:
            shutil.copyfile(file, copy)
        except OSError as error:
            at = error.filename2 if error.filename is None else error.filename
            raise RecordError(
                f"{at or copy}: {error.strerror or error}; the record needs its traces"
            ) from None
        copies[copy.name] = str(copy)
    return list(copies.values())


def _refuse(done: Check, error: TraceError) -> None:
    done.errors.append(error)
    complain(str(error))


def traces_of(paths: Iterable[str]) -> tuple[list[str], list[TraceError]]:
    """Every trace file that these paths mean, each file once, and what is wrong with the others.

    A folder means all `*.jsonl` below it in the order of their names. Links to folders are followed, each
    folder once.
    """
    errors: list[TraceError] = []
    found: dict[tuple[int, int] | str, str] = {}
    for path in paths:
        for file in _below(path, errors) if Path(path).is_dir() else [path]:
            found.setdefault(_identity(file), file)
    return list(found.values()), errors


def _below(folder: str, errors: list[TraceError]) -> list[str]:
    unreadable: list[OSError] = []
    files = sorted(_walk(folder, unreadable), key=lambda path: Path(path).parts)
    for error in unreadable:
        reason = f"cannot be read: {error.strerror or error}"
        errors.append(TraceError(str(error.filename), None, reason, "give access, or name the traces"))
    if not files and not unreadable:
        errors.append(
            TraceError(folder, None, "the folder holds no trace", "name a folder with *.jsonl files")
        )
    return files


def _walk(folder: str, unreadable: list[OSError]) -> Iterator[str]:
    seen: set[tuple[int, int] | str] = set()
    for here, folders, files in os.walk(folder, followlinks=True, onerror=unreadable.append):
        identity = _identity(here)
        if identity in seen:
            folders.clear()
            continue
        seen.add(identity)
        below = (Path(here, name) for name in files if name.endswith(".jsonl"))
        # A pipe in a folder would be waited for without end; a broken link is an input like any other.
        yield from (str(path) for path in below if path.is_file() or not path.exists())


def _identity(path: str) -> tuple[int, int] | str:
    """What distinguishes a file from others, under whatever name."""
    try:
        found = Path(path).stat()
    except OSError:
        return str(Path(path).absolute())
    return found.st_dev, found.st_ino
