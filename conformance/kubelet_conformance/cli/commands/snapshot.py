"""`snapshot`: write down what a kubelet does in each scenario, as texts to review and to compare."""

import logging
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import click

from kubelet_conformance.campaigns.snapshots.taking import Snapshot, scenarios_for, take, take_live
from kubelet_conformance.cli.completion import scenario_names
from kubelet_conformance.cli.options import DEBUG, KUBELET, PLAYED_AS, SEED, ending
from kubelet_conformance.contract.applicability import version_text
from kubelet_conformance.reports.output import complain
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.reports.safe import counted, nearest
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.targets.choice import Choice


@click.command(
    epilog=ending(
        "snapshot 'sandbox.*' -o snapshots",
        code_0="all files were written",
        code_3="a scenario did not come to its end; its file says why",
    )
)
@click.argument("names", metavar="[SCENARIO|GLOB]...", nargs=-1, shell_complete=scenario_names)
@KUBELET
@click.option(
    "--runtime",
    default="fake",
    show_default=True,
    metavar="NAME",
    help="The container runtime: fake or bug:ID.",
)
@PLAYED_AS
@SEED
@click.option("-o", "--output", metavar="DIR", required=True, help="The folder to write into.")
@DEBUG
def snapshot(  # noqa: PLR0913 - one parameter an option
    *,
    names: tuple[str, ...],
    kubelet: str,
    runtime: str,
    kubernetes: tuple[int, int] | None,
    seed: int,
    output: str,
) -> int:
    """Run scenarios, and write what the kubelet does in each as a text, DIR/AREA/SCENARIO.txt.

    Without a name all scenarios are run. Other files in DIR are left as they are. `compare` shows where two
    kubelets part in what they must do alike.
    """
    # What a kubelet logs about the faults of a scenario is of no interest here.
    logging.getLogger("kubelet_reference").addHandler(logging.NullHandler())
    version = "" if kubernetes is None else version_text(kubernetes)
    choice = Choice(kubelet, runtime, version, seed)
    scenarios = _chosen(scenarios_for(choice.kubernetes), names)
    incomplete: list[str] = []
    count = 0
    for taken in take_live(scenarios, choice) if choice.is_live else _taken(scenarios, choice):
        _write(Path(output, taken.file), taken.text)
        incomplete += [taken.scenario] * taken.incomplete
        count += 1
    click.echo(f"{counted(count, 'scenario')} written to {output}")
    for each in incomplete:
        complain(f"{each} did not come to its end; its file says why")
    return Exit.INCONCLUSIVE if incomplete else Exit.OK


def _taken(scenarios: list[str], choice: Choice) -> Iterator[Snapshot]:
    progress = Steps(len(scenarios), "scenarios played")
    try:
        for each in scenarios:
            progress.begin(each)
            yield take(each, choice)
    finally:
        progress.clear()


def _chosen(scenarios: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    for name in names:
        if not any(fnmatchcase(each, name) for each in scenarios):
            raise click.UsageError(
                f"there is no scenario {name}{nearest(name, scenarios)}; "
                "`kubelet-conformance list --scenarios` shows them all"
            )
    return [each for each in scenarios if not names or any(fnmatchcase(each, name) for name in names)]


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path}: cannot be written: {error.strerror}; name a folder") from None
