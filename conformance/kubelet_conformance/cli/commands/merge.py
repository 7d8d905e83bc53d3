"""`merge`: join the records of the parts of a run."""

from contextlib import ExitStack, closing
from pathlib import Path

import click

from kubelet_conformance.cli.options import ending
from kubelet_conformance.reports.output import complain
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.merge import merged, missing_parts
from kubelet_conformance.run_record.reader import opened
from kubelet_conformance.run_record.writer import RecordError, RecordWriter


@click.command(epilog=ending("merge night-1 night-2 --output night", code_0="the records were joined"))
@click.argument("records", metavar="RECORD...", nargs=-1, required=True)
@click.option(
    "--output",
    metavar="DIR|NAME.tar.gz",
    required=True,
    help="Write the joined record to this folder, or packed to this file.",
)
def merge(records: tuple[str, ...], output: str) -> int:
    """Join the records of runs that played parts of the same, on the same target, with the same suite.

    Verdicts are those over the traces of all. `report` says how the whole ended.
    """
    if Path(output).resolve() in {Path(each).resolve() for each in records}:
        raise RecordError(f"{output}: is one of the records to be joined; name another output")
    with ExitStack() as open_records:
        parts = [open_records.enter_context(opened(each)) for each in records]
        missing = missing_parts(parts)
        with closing(RecordWriter(output)) as writer:
            command = ("kubelet-conformance", "merge", *records)
            whole = writer.finish(merged(parts, missing, writer, command))
            if writer.problem:
                complain(writer.problem)
                return Exit.BAD_INPUT
    if missing:
        complain(f"without the parts {', '.join(missing)} the run is unfinished", note=True)
    click.echo(f"{output}: {len(records)} records with {len(whole.run.traces)} traces")
    return Exit.OK
