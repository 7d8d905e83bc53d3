"""`compare`: show what records of runs differ in, and where two kubelets first part in each scenario."""

import logging
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import click

from kubelet_conformance.campaigns.comparison.formats import markdown_of, report_of, text_of
from kubelet_conformance.campaigns.comparison.known import Known, read_known
from kubelet_conformance.campaigns.comparison.report import Compared, Report, compare
from kubelet_conformance.campaigns.comparison.sides import Side, open_side, play
from kubelet_conformance.campaigns.comparison.verdicts import Changes, changes_of
from kubelet_conformance.campaigns.snapshots.taking import scenarios_for
from kubelet_conformance.cli.completion import scenario_names
from kubelet_conformance.cli.options import DEBUG, OUTPUT, PLAYED_AS, SEED, OneOf, ending
from kubelet_conformance.contract.applicability import version_text
from kubelet_conformance.reports.output import check_writable, deliver
from kubelet_conformance.reports.safe import nearest
from kubelet_conformance.run_record.files import as_json

_SIDES_MIN = 2
_CHANGED_MAX = 10
"""The steps of so many scenarios that changed are compared without being asked for."""


@click.command(
    "compare",
    epilog=ending(
        "compare before.tar.gz after --format markdown",
        code_0="nothing is worse, and no scenario that was asked for differs, but for what is known",
        code_1="a verdict is worse, a scenario that was asked for differs, or an entry of --known is stale",
        code_3="they have no scenario in common",
    ),
)
@click.argument("names", metavar="A B...", nargs=-1, required=True)
@click.option(
    "--scenario",
    "patterns",
    metavar="NAME|GLOB",
    multiple=True,
    shell_complete=scenario_names,
    help="Compare what both do in these scenarios, step by step; may be repeated.  [default: in records of "
    "runs those that break something else or end otherwise, else all]",
)
@click.option("--known", metavar="FILE", help="Accept the differences that this TOML file explains.")
@PLAYED_AS
@SEED
@click.option(
    "--format",
    "form",
    type=OneOf(["terminal", "markdown", "html", "json"]),
    default="terminal",
    show_default=True,
    help="How the report is written: markdown for a pull request, html as a page with a column for each "
    "record, json for programs.",
)
@OUTPUT
@DEBUG
def compare_command(  # noqa: PLR0913 - one parameter an option
    *,
    names: tuple[str, ...],
    patterns: tuple[str, ...],
    known: str | None,
    kubernetes: tuple[int, int] | None,
    seed: int,
    form: str,
    output: str | None,
) -> int:
    """Compare B, and what else is named, with A: what is worse, and the first step at which they part.

    Each is a record (a folder or a pack of `run --record`), a trace, or a kubelet as `run --kubelet` takes
    it, which is played. Of records of runs the verdicts are compared, and the steps of the scenarios whose
    verdicts changed. The reference is played as the Kubernetes version of the other.
    """
    if len(names) < _SIDES_MIN:
        raise click.UsageError("name two sides or more: records, traces or kubelets")
    # What a kubelet logs about the faults of a scenario is of no interest here.
    logging.getLogger("kubelet_reference").addHandler(logging.NullHandler())
    check_writable(output, *names)
    version = "" if kubernetes is None else version_text(kubernetes)
    entries: list[Known] = [] if known is None else read_known(known)
    sides = [open_side(each, version, seed) for each in names]
    asks_steps = bool(patterns or known) or any(each.run is None for each in sides)
    changes = _changes(sides)
    changed = {name for each in changes if each for name in each.scenarios[:_CHANGED_MAX]}

    def is_wanted(name: str) -> bool:
        return _is_chosen(name, patterns) if asks_steps else name in changed

    if asks_steps or changed:
        _fill(sides, version, patterns, is_wanted)
    entries = [each for each in entries if is_wanted(each.scenario)]
    others = [
        _compared(sides[0], side, change, entries, asks_steps=asks_steps)
        for side, change in zip(sides[1:], changes, strict=True)
    ]
    report = Report(sides[0], others, asks_steps)
    deliver(_rendered(report, form), output)
    return report.conclusion


def _rendered(report: Report, form: str) -> str:
    match form:
        case "json":
            return as_json(report_of(report))
        case "markdown":
            return markdown_of(report)
        case "html":
            # Late: only this form needs the templates.
            from kubelet_conformance.campaigns.comparison.page import page  # noqa: PLC0415

            return page(report)
        case _:
            return "".join(text_of(report))


def _changes(sides: Sequence[Side]) -> list[Changes | None]:
    """What differs in the verdicts of each side but the first."""
    before = sides[0].run
    return [
        None if before is None or each.run is None else changes_of(before, each.run) for each in sides[1:]
    ]


def _compared(
    first: Side, side: Side, changes: Changes | None, entries: Sequence[Known], *, asks_steps: bool
) -> Compared:
    """A side compared with the first; `entries` are the known differences of what is compared."""
    shown = None if asks_steps or changes is None else changes.scenarios[:_CHANGED_MAX]
    if shown == ():
        return Compared(side, changes)
    versions = {first.version, side.version}
    lives = [
        {name: each for name, each in one.lives.items() if shown is None or name in shown}
        for one in (first, side)
    ]
    known = {each.scenario: each for each in entries if each.is_of(versions)}
    steps = compare((first.title, side.title), lives[0], lives[1], known)
    more = 0 if shown is None or changes is None else len(changes.scenarios) - len(shown)
    return Compared(side, changes, steps, more)


def _fill(
    sides: Sequence[Side], version: str, patterns: Sequence[str], is_wanted: Callable[[str], bool]
) -> None:
    """Read records, then play kubelets: those in their own process first, which say what they are."""
    for side in sides:
        if side.choice is None:
            side.read(is_wanted)
    to_play = [(each, each.choice) for each in sides if each.choice is not None]
    for side, choice in sorted(to_play, key=lambda pair: not pair[1].is_live):
        done = [each for each in sides if each.lives]
        names = _names(done, version or next((each.version for each in done), ""), patterns)
        played_as = {name: each.kubernetes for one in done for name, each in one.lives.items()}
        play(side, choice, names, version, played_as)


def _names(done: Sequence[Side], version: str, patterns: Sequence[str]) -> list[str]:
    """The scenarios to be played: those of the other side, where that is known."""
    every = [name for name in scenarios_for(version) if _is_chosen(name, patterns)]
    for pattern in patterns:
        if not any(fnmatchcase(each, pattern) for each in every):
            raise click.UsageError(
                f"there is no scenario {pattern}{nearest(pattern, every)}; "
                "`kubelet-conformance list --scenarios` shows them all"
            )
    return [name for name in every if not done or name in done[0].lives]


def _is_chosen(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, each) for each in patterns)
