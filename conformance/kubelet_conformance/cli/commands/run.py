"""`run`: play scenarios on a target and judge them. It is pytest with our plugin."""

from __future__ import annotations

import os
import sys
from typing import cast

import click

from kubelet_conformance.cli.options import BASELINE, KUBELET, OUTPUT, PART, PLAYED_AS, RECORD, SEED, scored
from kubelet_conformance.contract.applicability import version_text
from kubelet_conformance.reports.forms import FORMS
from kubelet_conformance.reports.output import check_writable

_OF_HISTORIES = frozenset({"histories", "shard", "history", "histories_folder"})


@click.command()
@click.argument("contract", metavar="[ID|GLOB]...", nargs=-1)
@KUBELET
@click.option(
    "--runtime", default="fake", show_default=True, help="fake, containerd (a private one), or unix:///PATH."
)
@PLAYED_AS
@click.option(
    "--scenario", metavar="NAME|GLOB", multiple=True, help="Play these, whatever they witness; repeatable."
)
@click.option("--level", type=click.Choice(["must", "should", "may"]), help="Judge only this level.")
@scored
@SEED
@RECORD
@BASELINE
@click.option("--format", type=click.Choice(FORMS), default="terminal", show_default=True)
@OUTPUT
@click.option(
    "--budget",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="On a real runtime, leave out scenarios that need more wall time.  [default: 120]",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="On a real runtime, play so many scenarios at a time on one node.  [default: 8]",
)
@click.option(
    "--kill-foreign-pods",
    is_flag=True,
    help="Play on a runtime that has pods of others too. The kubelet KILLS them.",
)
@click.option(
    "--histories",
    type=click.IntRange(min=0),
    metavar="N",
    help="Play N generated histories instead of the scenarios, drawn from --seed.",
)
@click.option("--shard", type=PART, metavar="I/N", help="Play only the I-th of N parts of the histories.")
@click.option("--history", metavar="FILE", multiple=True, help="Play these kept histories; repeatable.")
@click.option(
    "--histories-folder",
    metavar="DIR",
    default=".kubelet-conformance/histories",
    show_default=True,
    help="Where histories that broke something are kept and played first.",
)
@click.option("--debug", is_flag=True, help="Show where an internal error happened.")
def run(kubernetes: tuple[int, int] | None, output: str | None, **options: object) -> int:
    """Play the scenarios that put these contracts to the test (all, if none is named) and judge them."""
    check_writable(output)
    version = None if kubernetes is None else version_text(kubernetes)
    given = {**options, "kubernetes": version, "output": output}
    if options["histories"] is not None or options["history"]:
        # Late: nothing else of this command needs kubelets, fakes and what draws histories.
        from kubelet_conformance.cli.histories import play_histories  # noqa: PLC0415

        return play_histories(given)
    arguments = _for_pytest({name: value for name, value in given.items() if name not in _OF_HISTORIES})
    sys.stdout.flush()
    # -P: a module in the user's folder must not stand in for one of ours.
    playing = [sys.executable, "-P", "-m", "kubelet_conformance.cli.pytest_process"]
    return os.execv(sys.executable, [*playing, *arguments])  # noqa: S606 - our own interpreter


def _for_pytest(options: dict[str, object]) -> list[str]:
    """The options as the plugin names them; what was not given is left out."""
    arguments: list[str] = []
    for name, value in options.items():
        flag = f"--kc-{name.replace('_', '-')}"
        if value is True:
            arguments.append(flag)
        elif isinstance(value, tuple):
            arguments += [f"{flag}={each}" for each in cast("tuple[object, ...]", value)]
        elif value is not None and value is not False:
            arguments.append(f"{flag}={value}")
    return arguments
