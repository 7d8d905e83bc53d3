"""`list`: every contract of the catalogue with its fate."""

from __future__ import annotations

import click

from kubelet_conformance.cli.options import AREA, ending, reported
from kubelet_conformance.contract.catalogue import Level
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.catalogue import Fate, entries, list_report, print_list
from kubelet_conformance.reports.output import check_writable, deliver_as
from kubelet_conformance.reports.progress import Steps


@click.command("list", epilog=ending("list --area SANDBOX", code_0="the contracts were listed"))
@click.option("--area", type=AREA, metavar="A", help="List only this area, such as SANDBOX.")
@click.option(
    "--level", type=click.Choice(list(Level), case_sensitive=False), help="List only contracts of this level."
)
@click.option(
    "--fate", type=click.Choice(list(Fate), case_sensitive=False), help="List only contracts with this fate."
)
@click.option(
    "--coverage",
    "with_coverage",
    is_flag=True,
    help="Run every scenario; list the scenarios and bugs of each contract, and how often it is exercised.",
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
    """List the contracts of the catalogue, each with its fate.

    It is implemented (judged), planned, or excluded for the reason that is shown.
    """
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
