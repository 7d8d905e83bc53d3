"""`list`: every contract of the catalogue with its fate."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import click
from rich.console import Console

from kubelet_conformance.cli.options import OneOf, ending, reported
from kubelet_conformance.contract.catalogue import Level, areas
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.plugin.live.forecast import duration
from kubelet_conformance.reports.catalogue import Fate, entries, list_report, mentions, print_list
from kubelet_conformance.reports.output import check_writable, deliver_as
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.reports.safe import counted, nearest


@click.command("list", epilog=ending("list --area SANDBOX", code_0="the contracts were listed"))
@click.option("--area", metavar="A", help="List only this area, such as SANDBOX.")
@click.option(
    "--level", type=OneOf(list(Level), case_sensitive=False), help="List only contracts of this level."
)
@click.option(
    "--fate", type=OneOf(list(Fate), case_sensitive=False), help="List only contracts with this fate."
)
@click.option("--search", metavar="TEXT", help="List only what contains this text, in upper or lower case.")
@click.option(
    "--scenarios",
    "scenarios",
    metavar="[GLOB]",
    is_flag=False,
    flag_value="*",
    help="List the scenarios (of these names) instead, with what each costs and the contracts that it "
    "exercises.",
)
@click.option(
    "--coverage",
    "with_coverage",
    is_flag=True,
    help="Run every scenario; list the scenarios and bugs of each contract, how often it is exercised, and "
    "which rows of decision tables none takes.",
)
@reported
def list_contracts(  # noqa: PLR0913 - one parameter an option
    *,
    area: str | None,
    level: Level | None,
    fate: Fate | None,
    search: str | None,
    scenarios: str | None,
    with_coverage: bool,
    form: str,
    output: str | None,
) -> None:
    """List the contracts of the catalogue.

    The fate of a contract is implemented (it is judged), planned, or excluded for the reason that is shown.
    """
    check_writable(output)
    every = entries(every_contract())
    if area is not None and area.upper() not in areas():
        near = nearest(area.upper(), areas())
        raise click.ClickException(f"area {area} is not one of {', '.join(areas())}{near}")
    listed = [
        each
        for each in every
        if (area is None or area.upper() == each.row.area)
        and level in {None, each.row.level}
        and fate in {None, each.fate}
        and (search is None or mentions(each, search))
    ]
    if scenarios is not None:
        narrowed = any(each is not None for each in (area, level, fate, search))
        _list_scenarios(scenarios, {each.row.id for each in listed} if narrowed else None, form, output)
    elif with_coverage:
        _cover({each.row.id for each in listed}, form, output)
    else:
        deliver_as(form, output, lambda: list_report(listed), lambda console: print_list(listed, console))


def _list_scenarios(pattern: str, ids: set[str] | None, form: str, output: str | None) -> None:
    """List the scenarios of these names; if there are `ids`, only those that exercise one of these."""
    # Late: nothing else here needs scenarios.
    from kubelet_conformance.campaigns.snapshots.costs import cost_of  # noqa: PLC0415
    from kubelet_conformance.node import scenario_of  # noqa: PLC0415
    from kubelet_conformance.scenarios import every_scenario  # noqa: PLC0415

    found = {
        name: (scenario_of(each).witnesses, inspect.getdoc(each) or "")
        for name, each in every_scenario().items()
        if fnmatchcase(name, pattern)
    }
    if not found:
        hint = f"{nearest(pattern, every_scenario())}; leave out the name to see them all"
        raise click.ClickException(f"there is no scenario {pattern}{hint}")
    costs = {name: cost_of(name) for name in found}
    shown = [
        {
            "name": name,
            "about": about.partition("\n\n")[0].replace("\n", " "),
            "seconds": costs[name].seconds,
            "steps": costs[name].steps,
            "exercises": list(exercised),
        }
        for name, (exercised, about) in found.items()
        if ids is None or not ids.isdisjoint(exercised)
    ]
    deliver_as(
        form, output, lambda: {"schema": 1, "scenarios": shown}, lambda it: _print_scenarios(shown, it)
    )


def _print_scenarios(shown: Sequence[Mapping[str, Any]], console: Console) -> None:
    wide = max((len(each["name"]) for each in shown), default=0)
    for each in shown:
        cost = f"{each['seconds']:6} s {each['steps']:4} steps"
        console.print(f"{each['name']:{wide}} {cost}  {' '.join(each['exercises'])}".rstrip(), soft_wrap=True)
    seconds = sum(each["seconds"] for each in shown)
    total = f"\n{counted(len(shown), 'scenario')}, about {duration(seconds)} of the kubelet's time"
    console.print(total, style="bold", soft_wrap=True)


def _cover(ids: set[str], form: str, output: str | None) -> None:
    # Late: nothing else here plays scenarios.
    from kubelet_conformance.campaigns.coverage import gather  # noqa: PLC0415
    from kubelet_conformance.campaigns.coverage.report import coverage_report, print_coverage  # noqa: PLC0415
    from kubelet_conformance.scenarios import every_scenario  # noqa: PLC0415

    progress = Steps(len(every_scenario()), "scenarios played")
    try:
        found = gather(progress.begin)
        covered = replace(found, contracts=[each for each in found.contracts if each.entry.row.id in ids])
    finally:
        progress.clear()
    deliver_as(
        form, output, lambda: coverage_report(covered), lambda console: print_coverage(covered, console)
    )
