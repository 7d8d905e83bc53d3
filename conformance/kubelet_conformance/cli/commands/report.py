"""`report`: render a record once more."""

import click

from kubelet_conformance.cli.options import DEBUG, OUTPUT, VERBOSE, OneOf, Settings, judging
from kubelet_conformance.cli.report_options import FORM, REPORTS
from kubelet_conformance.reports.delivery import Delivery
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.reader import opened
from kubelet_conformance.run_record.worker_pool import processors
from kubelet_conformance.targets.bugs import declared_bugs


@click.command(epilog=judging("report kept --format markdown --output summary.md"))
@click.argument("record", metavar="RECORD")
@FORM
@OUTPUT
@REPORTS
@click.option(
    "--timelines",
    type=OneOf(("broken", "all")),
    default="broken",
    show_default=True,
    help="Which timelines of html show requests and replies; all: each on a page of its own beside the file.",
)
@VERBOSE
@DEBUG
def report(*, record: str, form: str, output: str | None, reports: tuple[str, ...], timelines: str) -> int:
    """Report on the record of a run, without playing or judging again.

    RECORD is the folder that `run`, `check` or `runtime` kept with --record, or the same packed. The exit
    code is that of the run.
    """
    settings = click.get_current_context().ensure_object(Settings)
    delivery = Delivery(
        form,
        output,
        reports,
        settings.debug,
        settings.verbose,
        all_timelines=timelines == "all",
        bugs=declared_bugs,
        processes=processors(),
    )
    delivery.check()
    with opened(record) as found:
        return gravest(Exit(found.run.exit_code), delivery.deliver(found))
