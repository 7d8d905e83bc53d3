"""`zoo`: show that each bug of the zoo is caught, and by which contracts."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TypeVar

import click

from kubelet_conformance.campaigns.zoo.hunt import Caught, hunt
from kubelet_conformance.campaigns.zoo.proof import lacks
from kubelet_conformance.cli.options import ending, reported
from kubelet_conformance.contract.catalogue import UnknownContract, select
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.output import check_writable, deliver
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.files import as_json
from kubelet_conformance.targets.bugs import bug_card, bug_ids

SCHEMA = 1

T = TypeVar("T")


@click.command(
    epilog=ending(
        "zoo K8S-35309",
        code_0="every bug breaks a contract that it declares",
        code_1="a bug breaks none of them, or a contract lacks a proof that it can fail",
        code_4="internal error, or the suite failed where it had to catch a bug",
    )
)
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option(
    "--full", is_flag=True, help="Run every scenario on every bug, not only those of its declared contracts."
)
@click.option(
    "--contract",
    "contracts",
    metavar="ID",
    multiple=True,
    help="Prove that these contracts (ids or globs) can be broken: each needs a scenario and a bug.",
)
@click.option("--list", "only_list", is_flag=True, help="List the bugs and run nothing.")
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    default=os.cpu_count() or 1,
    show_default="one per processor",
    help="How many processes run at the same time.",
)
@reported
def zoo(  # noqa: PLR0913 - one parameter an option
    *,
    ids: tuple[str, ...],
    full: bool,
    contracts: tuple[str, ...],
    only_list: bool,
    workers: int,
    form: str,
    output: str | None,
) -> int:
    """Run kubelets and runtimes with seeded bugs: each must break a contract that its bug declares.

    A bug is run with the scenarios that exercise the contracts it declares. Without an ID all bugs are run.
    """
    if contracts:
        return _prove(contracts, workers, form, output)
    try:
        cards = [bug_card(each) for each in ids or bug_ids()]
    except LookupError as error:
        raise click.ClickException(str(error)) from None
    check_writable(output)
    if only_list:
        deliver("".join(f"{card.id:<14} {safe(card.title)}\n" for card in cards), output)
        return Exit.OK
    names = [card.id for card in cards]
    caught = list(_each(partial(hunt, full=full), names, workers, "bugs hunted"))
    deliver(as_json(_report(caught)) if form == "json" else "".join(_lines(caught)), output)
    if any(each.is_in_doubt for each in caught):
        return Exit.INTERNAL_ERROR
    return Exit.OK if all(each.is_caught for each in caught) else Exit.FAILED


def _prove(patterns: tuple[str, ...], workers: int, form: str, output: str | None) -> int:
    """Report what each of these contracts lacks as a proof that it can fail."""
    every = every_contract()
    try:
        ids = [each for each in select(patterns) if each in every]
    except UnknownContract as error:
        raise click.ClickException(f"{error}; `kubelet-conformance list` shows them all") from None
    check_writable(output)
    proofs = dict(zip(ids, _each(lacks, ids, workers, "contracts proved"), strict=True))
    if form == "json":
        report = {"schema": SCHEMA, "contracts": {each: list(missing) for each, missing in proofs.items()}}
        deliver(as_json(report), output)
    else:
        lines = [
            f"{each}  {'; '.join(missing) or 'can be kept and broken'}\n" for each, missing in proofs.items()
        ]
        deliver("".join(lines), output)
    return Exit.FAILED if any(proofs.values()) else Exit.OK


def _each(work: Callable[[str], T], names: list[str], workers: int, done: str) -> Iterator[T]:
    """What comes of the work on each of these, in their order."""
    progress = Steps(len(names), done)
    try:
        if min(workers, len(names)) <= 1:
            for name in names:
                progress.begin(name)
                yield work(name)
            return
        with ProcessPoolExecutor(min(workers, len(names))) as pool:
            for name, result in zip(names, pool.map(work, names), strict=True):
                progress.begin(name)
                yield result
    finally:
        progress.clear()


def _report(caught: list[Caught]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "bugs": [
            {
                "id": each.bug.id,
                "aliases": list(each.bug.aliases),
                "title": each.bug.title,
                "kubernetes": each.bug.kubernetes,
                "declared": list(each.bug.breaks),
                "caught_by": list(each.caught_by),
                "scenarios": {name: list(ids) for name, ids in each.scenarios.items()},
                "failed": each.failed,
            }
            for each in caught
        ],
    }


def _lines(caught: list[Caught]) -> Iterator[str]:
    for each in caught:
        verdict = "caught" if each.is_caught else "MISSED"
        yield f"{each.bug.id:<14} {verdict}  by {' '.join(each.caught_by) or 'nothing'}\n"
        if each.missed:
            yield f"{'':<14} declared but not broken: {' '.join(each.missed)}\n"
        for scenario, reason in each.failed.items():
            lines = reason.strip().splitlines()
            yield f"{'':<14} the suite failed in {scenario}: {safe(lines[-1] if lines else '')}\n"
    survivors = [each.bug.id for each in caught if not each.is_caught]
    yield f"{len(caught) - len(survivors)} of {len(caught)} bugs caught"
    yield f"; survivors: {' '.join(survivors)}\n" if survivors else "\n"
