"""`list`: every contract of the catalogue with its fate."""

from __future__ import annotations

import click

from kubelet_conformance.cli.options import AREA, reported
from kubelet_conformance.contract.catalogue import Level
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.catalogue import Fate, entries, list_report, print_list
from kubelet_conformance.reports.output import check_writable, deliver_as
from kubelet_conformance.reports.progress import Steps


@click.command("list")
@click.option("--area", type=AREA, metavar="A", help="Only this area, such as SANDBOX.")
@click.option("--level", type=click.Choice(list(Level), case_sensitive=False), help="Only this level.")
@click.option("--fate", type=click.Choice(list(Fate), case_sensitive=False), help="Only with this fate.")
@click.option(
    "--coverage",
    "with_coverage",
    is_flag=True,
    help="Play every scenario, and tell what each contract rests on: witnesses, activations, bugs.",
)
@reported
def list_contracts(  # noqa: PLR0913 - one parameter an option
    *,
    area: str | None,
    level: Level | None,
    fate: Fate | None,
    with_coverage: bool,
    form: str,
    output: str | None,
) -> None:
    """List every contract of the catalogue: implemented, planned, or excluded with the reason."""
    check_writable(output)
    listed = [
        each
        for each in entries(every_contract())
        if area in {None, each.row.area} and level in {None, each.row.level} and fate in {None, each.fate}
    ]
    if with_coverage:
        _cover({each.row.id for each in listed}, form, output)
    else:
        deliver_as(form, output, lambda: list_report(listed), lambda console: print_list(listed, console))


def _cover(ids: set[str], form: str, output: str | None) -> None:
    # Late: nothing else here plays scenarios.
    from kubelet_conformance.campaigns.coverage import gather  # noqa: PLC0415
    from kubelet_conformance.campaigns.coverage.report import coverage_report, print_coverage  # noqa: PLC0415
    from kubelet_conformance.scenarios import every_scenario  # noqa: PLC0415

    progress = Steps(len(every_scenario()), "scenarios played")
    try:
        covered = [each for each in gather(progress.begin) if each.entry.row.id in ids]
    finally:
        progress.clear()
    deliver_as(
        form, output, lambda: coverage_report(covered), lambda console: print_coverage(covered, console)
    )
