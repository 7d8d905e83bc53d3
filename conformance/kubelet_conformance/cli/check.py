"""`check`: judge traces and report."""

from __future__ import annotations

import click

from kubelet_conformance.cli.choosing import chosen
from kubelet_conformance.cli.inputs import traces_of
from kubelet_conformance.cli.options import VERSION, Settings, reported
from kubelet_conformance.contract.baseline import Baseline, BaselineError
from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contract.versions import Version
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.jsonreport import as_json, check_report
from kubelet_conformance.reports.output import check_writable, complain, deliver, drawn
from kubelet_conformance.reports.progress import Progress
from kubelet_conformance.reports.run import Run, concluded
from kubelet_conformance.reports.terminal import TerminalReport
from kubelet_conformance.trace.errors import TraceError


@click.command()
@click.argument("paths", metavar="TRACE|FOLDER...", nargs=-1, required=True)
@click.option(
    "--contract", "patterns", metavar="ID|GLOB", multiple=True, help="Judge only these; repeatable."
)
@click.option("--kubernetes", type=VERSION, metavar="V", help="Judge by this version, not by the header's.")
@click.option("--strict", is_flag=True, help="Fail on a broken SHOULD too.")
@click.option("--require-exercised", is_flag=True, help="Fail on a contract that was not exercised.")
@click.option("--baseline", metavar="FILE", help="Known deviations, in TOML.")
@reported
@click.pass_context
def check(  # noqa: PLR0913 - one parameter an option
    ctx: click.Context,
    *,
    paths: tuple[str, ...],
    patterns: tuple[str, ...],
    kubernetes: Version | None,
    strict: bool,
    require_exercised: bool,
    baseline: str | None,
    form: str,
    output: str | None,
) -> int:
    """Judge each trace by every contract that applies to it. A folder stands for all *.jsonl below it."""
    otherwise = "not judged; `kubelet-conformance explain` tells why"
    contracts = chosen(patterns, every_contract(), otherwise)
    known = _known(baseline)
    files, errors = traces_of(paths)
    check_writable(output, *files, *filter(None, [baseline]))
    done = Check(contracts, known)
    for error in errors:
        _refuse(done, error)
    _judge(done, files, kubernetes)
    version = None if kubernetes is None else f"{kubernetes[0]}.{kubernetes[1]}"
    run = Run(version, strict, require_exercised, debug=ctx.ensure_object(Settings).debug)
    if form == "json":
        deliver(as_json(check_report(done, run)), output)
    elif done.traces or output is not None:
        deliver(
            drawn(lambda console: TerminalReport(done, run, console).print(), to_file=bool(output)), output
        )
    return concluded(done, run)


def _known(path: str | None) -> Baseline | None:
    if path is None:
        return None
    try:
        return Baseline.read(path, every_contract())
    except BaselineError as error:
        raise click.ClickException(str(error)) from None


def _judge(done: Check, files: list[str], kubernetes: Version | None) -> None:
    progress = Progress(len(files))
    try:
        for file in files:
            progress.begin(file)
            try:
                done.add(judge_file(file, done.contracts, kubernetes=kubernetes, progress=progress.records))
            except TraceError as error:
                progress.clear()
                _refuse(done, error)
    finally:
        progress.clear()


def _refuse(done: Check, error: TraceError) -> None:
    done.errors.append(error)
    complain(str(error))
