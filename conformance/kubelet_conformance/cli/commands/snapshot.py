"""`snapshot`: write down what a kubelet does in each scenario, as texts to review and to compare."""

import logging
from fnmatch import fnmatchcase
from pathlib import Path

import click

from kubelet_conformance.campaigns.snapshots.taking import scenarios_for, take
from kubelet_conformance.cli.options import DEBUG, KUBELET, PLAYED_AS, SEED, ending
from kubelet_conformance.contract.applicability import version_text
from kubelet_conformance.reports.output import complain
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.reports.run import Exit
from kubelet_conformance.reports.safe import counted
from kubelet_conformance.targets.choice import Choice


@click.command(
    epilog=ending(
        "snapshot 'sandbox.*' -o snapshots",
        code_0="all files were written",
        code_3="a scenario did not come to its end; its file says why",
    )
)
@click.argument("names", metavar="[SCENARIO|GLOB]...", nargs=-1)
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

    Without a name all scenarios are run. To compare two kubelets or versions, use `diff -r` on their folders.
    Other files in DIR are left as they are.
    """
    # What a kubelet logs about the faults of a scenario is of no interest here.
    logging.getLogger("kubelet_reference").addHandler(logging.NullHandler())
    version = "" if kubernetes is None else version_text(kubernetes)
    choice = Choice(kubelet, runtime, version, seed)
    if choice.is_live:
        raise click.UsageError(
            "snapshots are taken on virtual time: choose --kubelet reference or bug:ID, and --runtime fake; "
            "`run` plays on kubelets in their own process"
        )
    scenarios = _chosen(scenarios_for(choice.kubernetes), names)
    progress = Steps(len(scenarios), "scenarios played")
    incomplete: list[str] = []
    try:
        for each in scenarios:
            progress.begin(each)
            taken = take(each, choice)
            _write(Path(output, taken.file), taken.text)
            incomplete += [each] * taken.incomplete
    finally:
        progress.clear()
    click.echo(f"{counted(len(scenarios), 'scenario')} written to {output}")
    for each in incomplete:
        complain(f"{each} did not come to its end; its file says why")
    return Exit.INCONCLUSIVE if incomplete else Exit.OK


def _chosen(scenarios: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    for name in names:
        if not any(fnmatchcase(each, name) for each in scenarios):
            raise click.UsageError(
                f"there is no scenario {name}; `kubelet-conformance list --scenarios` shows them all"
            )
    return [each for each in scenarios if not names or any(fnmatchcase(each, name) for name in names)]


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path}: cannot be written: {error.strerror}; name a folder") from None
