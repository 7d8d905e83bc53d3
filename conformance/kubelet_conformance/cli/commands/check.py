"""`check`: judge traces and report."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from kubelet_conformance.cli.options import BASELINE, VERSION, Settings, judging, reported, scored
from kubelet_conformance.cli.selection import chosen, known_deviations
from kubelet_conformance.contract.applicability import Version, version_text
from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.jsonreport import check_report
from kubelet_conformance.reports.output import check_writable, complain, deliver_as
from kubelet_conformance.reports.progress import Progress
from kubelet_conformance.reports.run import Run, concluded
from kubelet_conformance.reports.terminal import print_check
from kubelet_conformance.trace.format.errors import TraceError


@click.command(epilog=judging("check traces/ --strict"))
@click.argument("paths", metavar="TRACE|FOLDER...", nargs=-1, required=True)
@click.option(
    "--contract",
    "patterns",
    metavar="ID|GLOB",
    multiple=True,
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
@reported
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
    form: str,
    output: str | None,
) -> int:
    """Judge recorded traces by every contract that applies to them.

    A folder stands for all *.jsonl files below it.
    """
    otherwise = "not judged; `kubelet-conformance explain` says why"
    contracts = chosen(patterns, every_contract(), otherwise)
    known = known_deviations(baseline)
    files, errors = traces_of(paths)
    check_writable(output, *files, *filter(None, [baseline]))
    done = Check(contracts, known)
    for error in errors:
        _refuse(done, error)
    _judge(done, files, kubernetes, allow_truncated=allow_truncated)
    run = Run(
        None if kubernetes is None else version_text(kubernetes),
        strict,
        require_exercised,
        debug=ctx.ensure_object(Settings).debug,
    )
    if form == "json" or done.traces or output is not None:
        deliver_as(
            form, output, lambda: check_report(done, run), lambda console: print_check(done, run, console)
        )
    return concluded(done, run)


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
