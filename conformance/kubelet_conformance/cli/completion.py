"""What a shell completes beside commands and options: ids of contracts and names of scenarios."""

import click

from kubelet_conformance.contract.catalogue import rows


def contract_ids(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """The ids of contracts that begin so, in upper or lower case."""
    return [each for each in rows() if each.startswith(begun.upper())]


def scenario_names(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """The names of scenarios that begin so."""
    from kubelet_conformance.scenarios import every_scenario  # noqa: PLC0415 - only here they are needed

    return [each for each in every_scenario() if each.startswith(begun)]
