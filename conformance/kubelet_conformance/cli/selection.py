"""The contracts that a command judges by, and the baseline of known deviations."""

from collections.abc import Iterable, Mapping

import click

from kubelet_conformance.contract.baseline import Baseline
from kubelet_conformance.contract.catalogue import UnknownContract, select
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.targets.choice import Choice


def chosen(patterns: Iterable[str], every: Mapping[str, Contract], otherwise: str) -> list[Contract]:
    """The contracts of `every` that the patterns name, all if there are none.

    A pattern that names nothing of the catalogue, or nothing of `every`, is a usage error; `otherwise` says
    why the latter.
    """
    found: dict[str, Contract] = {}
    for pattern in patterns:
        try:
            ids = select([pattern])
        except UnknownContract as error:
            raise click.ClickException(f"{error}; `kubelet-conformance list` shows them all") from None
        judged = {each: every[each] for each in ids if each in every}
        if not judged:
            raise click.ClickException(f"{pattern}: {otherwise}")
        found |= judged
    return list((found or every).values())


def refuse_real_runtime(choice: Choice, campaign: str) -> None:
    """Raise ClickException for a runtime that does not do what the campaign makes it do."""
    if choice.is_live and not choice.is_process:
        raise click.ClickException(
            f"{campaign} the runtime misbehave: leave out --runtime, or choose a bug of the fake, bug:ID"
        )


def known_deviations(path: str | None) -> Baseline | None:
    """The baseline in that file; raises `BaselineError` for one that cannot be read."""
    return None if path is None else Baseline.read(path, every_contract())
