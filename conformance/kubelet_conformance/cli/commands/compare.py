"""`compare`: show where two kubelets, or two records of them, first part in each scenario."""

import logging
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import click

from kubelet_conformance.campaigns.comparison.known import Known, read_known
from kubelet_conformance.campaigns.comparison.lives import Life
from kubelet_conformance.campaigns.comparison.report import as_report, compare, lines
from kubelet_conformance.campaigns.comparison.sides import is_record, play_in_process, play_live, read_record
from kubelet_conformance.campaigns.comparison.verdicts import changes_of, markdown_of, report_of, text_of
from kubelet_conformance.campaigns.snapshots.taking import scenarios_for
from kubelet_conformance.cli.options import DEBUG, OUTPUT, PLAYED_AS, SEED, ending
from kubelet_conformance.contract.applicability import parse_version, version_text
from kubelet_conformance.reports.output import check_writable, deliver
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.reports.safe import nearest
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.files import as_json
from kubelet_conformance.run_record.reader import opened
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_live_stage, open_stage


@dataclass(slots=True)
class _Side:
    """One side: a record, or what is to be played."""

    name: str
    choice: Choice | None
    lives: dict[str, Life] = field(default_factory=dict[str, Life])

    @property
    def version(self) -> str:
        """The Kubernetes version that it was played as, "" where that is not known."""
        known = {each.kubernetes for each in self.lives.values()}
        version = known.pop() if len(known) == 1 else ""
        with suppress(ValueError):
            return version_text(parse_version(version))
        return ""

    @property
    def title(self) -> str:
        """What it is called in a report: its argument, and the kubelet that it shows."""
        kubelets = {each.kubelet for each in self.lives.values()}
        return self.name if self.choice is not None else f"{self.name} ({', '.join(sorted(kubelets))})"


@click.command(
    "compare",
    epilog=ending(
        "compare reference runs/kubernetes-1.36",
        code_0="both are equal, but for what is known",
        code_1="they part in a scenario, an entry of --known is stale, or B has worse --verdicts",
        code_3="they have no scenario in common",
    ),
)
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@click.option(
    "--scenario", "patterns", metavar="NAME|GLOB", multiple=True, help="Compare these; may be repeated."
)
@click.option("--known", metavar="FILE", help="Accept the differences that this TOML file explains.")
@click.option(
    "--verdicts",
    is_flag=True,
    help="Compare the verdicts of two records of whole runs, and not their steps: what is worse in B.",
)
@PLAYED_AS
@SEED
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "json", "markdown"]),
    default="terminal",
    show_default=True,
    help="How the report is written: terminal to read, json for programs, markdown for --verdicts.",
)
@OUTPUT
@DEBUG
def compare_command(  # noqa: PLR0913 - one parameter an option
    *,
    one: str,
    other: str,
    patterns: tuple[str, ...],
    known: str | None,
    verdicts: bool,
    kubernetes: tuple[int, int] | None,
    seed: int,
    form: str,
    output: str | None,
) -> int:
    """Compare what A and B do in each scenario, and show the first step at which they part.

    A and B are records (a folder of `run --record`, or a trace) or kubelets as `run --kubelet` takes them,
    which are played. The reference is played as the Kubernetes version of the other.
    """
    if verdicts:
        if patterns or known:
            raise click.UsageError("--verdicts compares whole records: leave out --scenario and --known")
        return _compare_verdicts(one, other, form, output)
    if form == "markdown":
        raise click.UsageError("--format markdown is for --verdicts")
    # What a kubelet logs about the faults of a scenario is of no interest here.
    logging.getLogger("kubelet_reference").addHandler(logging.NullHandler())
    check_writable(output)
    version = "" if kubernetes is None else version_text(kubernetes)
    entries: list[Known] = [] if known is None else read_known(known)
    sides = [_side(each, version, seed) for each in (one, other)]
    _fill(sides, version, patterns)
    versions = {each.version for each in sides}
    comparison = compare(
        (sides[0].title, sides[1].title),
        sides[0].lives,
        sides[1].lives,
        {
            each.scenario: each
            for each in entries
            if _is_chosen(each.scenario, patterns) and each.is_of(versions)
        },
    )
    deliver(as_json(as_report(comparison)) if form == "json" else "".join(lines(comparison)), output)
    if not comparison.equal and not comparison.differences:
        return Exit.INCONCLUSIVE
    return Exit.OK if comparison.is_equal else Exit.FAILED


def _compare_verdicts(one: str, other: str, form: str, output: str | None) -> int:
    """Report what is worse, better and otherwise in the second record."""
    check_writable(output)
    with opened(one) as before, opened(other) as after:
        changes = changes_of(before, after)
    if form == "json":
        text = as_json(report_of(changes))
    else:
        text = "".join(markdown_of(changes) if form == "markdown" else text_of(changes))
    deliver(text, output)
    return Exit.FAILED if changes.worse else Exit.OK


def _side(name: str, version: str, seed: int) -> _Side:
    """What an argument names; raises BadInputError for what can be neither read nor played."""
    if is_record(name):
        return _Side(name, None)
    choice = Choice(name, "fake", version, seed)
    (open_live_stage if choice.is_live else open_stage)(choice)
    return _Side(name, choice)


def _fill(sides: Sequence[_Side], version: str, patterns: Sequence[str]) -> None:
    """Read records, then play kubelets: those in their own process first, which say what they are."""
    for side in sides:
        if side.choice is None:
            side.lives = {
                name: each
                for name, each in read_record(Path(side.name)).items()
                if _is_chosen(name, patterns)
            }
    to_play = [each for each in sides if each.choice is not None]
    for side in sorted(to_play, key=lambda each: each.choice is not None and not each.choice.is_live):
        done = [each for each in sides if each.lives]
        names = _names(done, version or next((each.version for each in done), ""), patterns)
        if side.choice is not None and side.choice.is_live:
            with tempfile.TemporaryDirectory(prefix="kubelet-conformance-") as folder:
                side.lives = play_live(side.choice, names, Path(folder))
        elif side.choice is not None:
            progress = Steps(len(names), "scenarios played")
            played_as = {name: each.kubernetes for one in done for name, each in one.lives.items()}
            try:
                side.lives = play_in_process(side.choice, names, version, played_as, progress.begin)
            finally:
                progress.clear()


def _names(done: Sequence[_Side], version: str, patterns: Sequence[str]) -> list[str]:
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
