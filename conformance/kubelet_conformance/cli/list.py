"""`list`: every contract of the catalogue with its fate."""

from __future__ import annotations

import click

from kubelet_conformance.cli.options import AREA, reported
from kubelet_conformance.contract.catalogue import Level
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.catalogue import Fate, entries, list_report, print_list
from kubelet_conformance.reports.jsonreport import as_json
from kubelet_conformance.reports.output import check_writable, deliver, drawn

__all__ = ("list_contracts",)


@click.command("list")
@click.option("--area", type=AREA, metavar="A", help="Only this area, such as SANDBOX.")
@click.option("--level", type=click.Choice(list(Level), case_sensitive=False), help="Only this level.")
@click.option("--fate", type=click.Choice(list(Fate), case_sensitive=False), help="Only with this fate.")
@reported
def list_contracts(
    *, area: str | None, level: Level | None, fate: Fate | None, form: str, output: str | None
) -> None:
    """List every contract of the catalogue: implemented, planned, or excluded with the reason."""
    check_writable(output)
    listed = [
        each
        for each in entries(every_contract())
        if area in {None, each.row.area} and level in {None, each.row.level} and fate in {None, each.fate}
    ]
    if form == "json":
        deliver(as_json(list_report(listed)), output)
    else:
        deliver(drawn(lambda console: print_list(listed, console), to_file=bool(output)), output)
