"""`record-writer`: the process that `record` starts to write; users do not call it."""

import signal
import sys
from pathlib import Path

import click
import msgspec

from kubelet_conformance.cli.options import Settings
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contract.verdicts import Evidence
from kubelet_conformance.recording.plan import Plan
from kubelet_conformance.recording.transcript import Counts
from kubelet_conformance.recording.writer_process import Recorded, write
from kubelet_conformance.reports.forms import in_form
from kubelet_conformance.reports.output import complain, deliver
from kubelet_conformance.reports.progress import Line
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.trace_text.expectations import in_one_sentence
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.files import as_json
from kubelet_conformance.run_record.record import Record
from kubelet_conformance.run_record.results import Scoring, check_result
from kubelet_conformance.run_record.system_clock import fresh_key, monotonic_ns
from kubelet_conformance.tap.pipeline import give_way, observations

SCHEMA = 1


@click.command("record-writer", hidden=True)
@click.argument("settled")
@click.pass_context
def record_writer(ctx: click.Context, *, settled: str) -> int:
    """Write what comes through standard input."""
    # The signal is for the process that relays: when it ends, so does the input of this one.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    plan = msgspec.json.decode(settled, type=Plan)
    ctx.ensure_object(Settings).debug = plan.debug
    give_way()
    listener = _ProgressReporter()
    try:
        recorded = write(plan, observations(sys.stdin.fileno()), fresh_key(), monotonic_ns, listener)
    except OSError as error:
        listener.clear()
        raise click.ClickException(
            f"{error.filename or plan.output}: cannot be written: {error.strerror or error}; nothing more is "
            "recorded, and calls go on passing"
        ) from None
    listener.clear()
    return Exit.OK if recorded is None else _concluded(plan, recorded)


def _concluded(plan: Plan, recorded: Recorded) -> int:
    check = recorded.check
    run = None if check is None else check_result(check, Scoring(), kubernetes=plan.kubernetes or "")
    code = Exit.OK if run is None else Exit(run.exit_code)
    if plan.form == "json":
        report = {
            "schema": SCHEMA,
            "recorded": recorded.as_json(),
            "exit_code": int(code),
            "check": None if run is None else msgspec.to_builtins(run),
        }
        deliver(as_json(report), plan.report)
        return code
    text = _summary(recorded)
    if run is not None:
        to_file = plan.report is not None
        text = in_form("terminal", Record(run, Path()), to_file=to_file, debug=plan.debug) + text
    deliver(text, plan.report)
    return code


def _summary(recorded: Recorded) -> str:
    counts, files = recorded.counts, ", ".join(safe(each) for each in recorded.files[-3:])
    more = len(recorded.files) - 3
    older = f" and {more} older" if more > 0 else ""
    lines = [f"recorded {files}{older}: {counts.records:,} records, {counts.calls:,} calls, {counts.t:.1f} s"]
    if recorded.removed:
        lines.append(f"{recorded.removed} older files were removed (--keep)")
    if counts.undecodable:
        lines.append(f"{counts.undecodable} connections could not be decoded to their end: calls are missing")
    return "".join(f"{line}\n" for line in lines)


class _ProgressReporter:
    """Reports its progress on standard error."""

    def __init__(self) -> None:
        self._line = Line()
        self._broken = 0

    def complain(self, problem: str) -> None:
        """Something could not be read."""
        self._line.clear()
        complain(problem, note=True)

    def broken(self, contract: Contract, evidence: Evidence) -> None:
        """A contract was broken."""
        self._broken += 1
        self._line.clear()
        records = " ".join(f"#{seq}" for seq in evidence.seq)
        click.echo(
            f"BROKEN  {contract.id}  {safe(evidence.trace)} {records}: {safe(in_one_sentence(evidence))}",
            err=True,
        )

    def progress(self, path: str, counts: Counts) -> None:
        """A second has passed."""
        broken = f", {self._broken} broken" if self._broken else ""
        minutes, seconds = divmod(int(counts.t), 60)
        self._line.show(
            f"{minutes:02}:{seconds:02} {safe(path)}: {counts.records:,} records, {counts.calls:,} calls, "
            f"{counts.clients} connected{broken}"
        )

    def clear(self) -> None:
        """Leave no line behind."""
        self._line.clear()
