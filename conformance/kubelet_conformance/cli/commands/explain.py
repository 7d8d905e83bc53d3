"""`explain`: show one contract, and where the code of it is."""

import click

from kubelet_conformance.campaigns.code_paths import code_paths
from kubelet_conformance.campaigns.shortest_witness import shortest_witness, witness_in
from kubelet_conformance.cli.completion import contract_ids
from kubelet_conformance.cli.options import ending, reported
from kubelet_conformance.contract.catalogue import UnknownContract
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.catalogue import Shown, entry, entry_report, print_entry
from kubelet_conformance.reports.output import check_writable, deliver_as
from kubelet_conformance.run_record.reader import opened


@click.command(epilog=ending("explain SANDBOX-04", code_0="the contract was shown"))
@click.argument("contract_id", metavar="ID", shell_complete=contract_ids)
@click.option(
    "--record",
    metavar="RECORD",
    help="Show the scenario of this record that breaks it, and how; or else one that keeps it.",
)
@reported
def explain(*, contract_id: str, record: str | None, form: str, output: str | None) -> None:
    """Show one contract: its rule, source and versions, and the code of its judge, scenarios and bugs.

    The last list names the code of the reference that keeps the rule: what the seeded bugs replace. The
    shortest scenario that exercises the contract follows, as a timeline; with --record, the one that broke
    it.
    """
    check_writable(output)
    try:
        found = entry(contract_id, every_contract())
    except UnknownContract as error:
        raise click.ClickException(f"{error}; `kubelet-conformance list` shows them all") from None
    paths, shown = code_paths(found), _witness(found.row.id, record)
    deliver_as(
        form,
        output,
        lambda: entry_report(found, paths, shown),
        lambda console: print_entry(found, paths, shown, console),
    )


def _witness(contract: str, record: str | None) -> Shown | None:
    """The scenario that shows a contract: of a record, or played now."""
    if record is None:
        return shortest_witness(contract)
    with opened(record) as kept:
        return witness_in(kept, contract)
