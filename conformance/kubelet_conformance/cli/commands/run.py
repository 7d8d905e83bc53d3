"""`run`: play scenarios on a target and judge them. It is pytest with our plugin."""

import os
import signal
import sys
from collections.abc import Mapping
from typing import cast

import click

from kubelet_conformance.cli.completion import contract_ids, scenario_names
from kubelet_conformance.cli.options import (
    BASELINE,
    KUBELET,
    OUTPUT,
    PART,
    PLAYED_AS,
    RECORD,
    SEED,
    OneOf,
    judging,
    scored,
)
from kubelet_conformance.cli.repeats import play_repeatedly
from kubelet_conformance.cli.report_options import FORM, REPORTS
from kubelet_conformance.contract.applicability import version_text
from kubelet_conformance.reports.delivery import Delivery
from kubelet_conformance.reports.output import check_writable

_GROUPS: Mapping[str, tuple[str, ...]] = {
    "What is run": (
        "kubelet",
        "then_kubelet",
        "gates",
        "config",
        "runtime",
        "kubernetes",
        "scenario",
        "seed",
        "shard",
        "repeat",
    ),
    "What is judged": ("level", "strict", "require_exercised", "fail_fast", "baseline"),
    "What is written": ("form", "output", "reports", "record", "write_baseline", "verbose", "debug"),
    "On a real runtime": ("budget", "quick", "concurrency", "kill_foreign_pods"),
    "Generated histories": ("histories", "guided", "history", "histories_folder"),
    "One fault at each call": ("sweep", "fault", "sample", "count", "resume"),
}
"""The options by what they are about, in the order of the help."""


class _InGroups(click.Command):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One section for each group, and one for what is in none."""
        options = [each for each in self.get_params(ctx) if isinstance(each, click.Option)]
        records = {each.name: each.get_help_record(ctx) for each in options}
        grouped = [name for names in _GROUPS.values() for name in names]
        rest = [name for name in records if name not in grouped]
        for title, names in (*_GROUPS.items(), ("Help", rest)):
            with formatter.section(title):
                formatter.write_dl([record for name in names if (record := records[name])])


_PLAYING = (sys.executable, "-P", "-m", "kubelet_conformance.cli.pytest_process")
"""With -P: a module in the user's folder must not stand in for one of ours."""
_OF_CAMPAIGNS = frozenset(
    {
        *("histories", "guided", "history", "histories_folder"),
        *("sweep", "fault", "sample", "count", "resume"),
    }
)
_PART_OF = {
    "guided": "histories",
    **dict.fromkeys(("fault", "sample", "count", "resume"), "sweep"),
}


@click.command(cls=_InGroups, epilog=judging("run 'SANDBOX-*' --kubernetes 1.30"))
@click.argument("contract", metavar="[ID|GLOB]...", nargs=-1, shell_complete=contract_ids)
@KUBELET
@click.option(
    "--then-kubelet",
    metavar="NAME",
    help="The kubelet that every second start of a node brings: reference@1.36 in this process, else as "
    "--kubelet.",
)
@click.option(
    "--gates",
    metavar="GATE=BOOL,...",
    multiple=True,
    help="Feature gates of a kubelet in its own process, such as AllBeta=true; a scenario's own are set too.",
)
@click.option(
    "--config",
    metavar="FILE",
    help="Fields for the KubeletConfiguration of a kubelet in its own process, in YAML.",
)
@click.option(
    "--runtime",
    default="fake",
    show_default=True,
    metavar="NAME",
    help="The container runtime: fake, bug:ID, containerd (started privately), or unix:///PATH.",
)
@PLAYED_AS
@click.option(
    "--scenario",
    metavar="NAME|GLOB",
    multiple=True,
    shell_complete=scenario_names,
    help="Run these scenarios, whatever they exercise; may be repeated.",
)
@click.option("--level", type=OneOf(["must", "should", "may"]), help="Judge only by contracts of this level.")
@scored
@click.option(
    "--fail-fast",
    is_flag=True,
    help="End at the first break that fails the run; on wall time the cheapest scenarios come first.",
)
@SEED
@click.option(
    "--repeat",
    type=click.IntRange(min=2),
    metavar="N",
    help="Run all N times, and report what does not come out alike.",
)
@RECORD
@BASELINE
@FORM
@OUTPUT
@REPORTS
@click.option(
    "--budget",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="Leave out scenarios that need more wall time.  [default: 120]",
)
@click.option("--quick", is_flag=True, help="Run only what fits into 60 s of wall time.")
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run at most N scenarios in parallel on one node.  [default: 8]",
)
@click.option(
    "--kill-foreign-pods",
    is_flag=True,
    help="Run on a runtime that has foreign pods. The kubelet KILLS them.",
)
@click.option(
    "--histories",
    type=click.IntRange(min=0),
    metavar="N",
    help="Run N histories of random pods, actions and faults, made from --seed, instead of the scenarios.",
)
@click.option(
    "--guided",
    is_flag=True,
    help="Draw four times as many histories, and run those that hold what few before them held.",
)
@click.option("--shard", type=PART, metavar="I/N", help="Run only the I-th of N parts.")
@click.option("--history", metavar="FILE", multiple=True, help="Run this kept history; may be repeated.")
@click.option(
    "--histories-folder",
    metavar="DIR",
    default=".kubelet-conformance/histories",
    show_default=True,
    help="Keep histories that broke something in this folder, and run those first.",
)
@click.option(
    "--sweep",
    is_flag=True,
    help="Run each scenario again with one fault at one call, at each of its calls in turn.",
)
@click.option(
    "--fault",
    metavar="[CALL[#N]] KIND",
    multiple=True,
    help="Of the sweep, only this fault, such as 'StopContainer#2 lost'; may be repeated.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Of the sweep, only N runs, drawn by --seed evenly from all scenarios.",
)
@click.option("--count", is_flag=True, help="Say how many runs the sweep has, and run none of them.")
@click.option(
    "--resume",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Leave out the first N runs of the sweep: go on where it was interrupted.",
)
@click.option(
    "--write-baseline", metavar="FILE", help="Write what is broken to FILE, as a baseline without reasons."
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Name in the terminal what is else only counted, and show more breaks.",
)
@click.option("--debug", is_flag=True, help="Show where an internal error happened.")
def run(
    kubernetes: tuple[int, int] | None,
    form: str,
    output: str | None,
    reports: tuple[str, ...],
    **options: object,
) -> int:
    """Run the scenarios that exercise these contracts, and judge the kubelet and the runtime by them.

    Without an ID all scenarios are run and all contracts judged. Quote globs: 'SANDBOX-*'.
    """
    for name, campaign in _PART_OF.items():
        if options[name] and not options[campaign]:
            raise click.UsageError(f"--{name} is part of --{campaign}: give that too")
    Delivery(form, output, reports).check()
    written = options["write_baseline"]
    check_writable(None if written is None else str(written))
    version = None if kubernetes is None else version_text(kubernetes)
    given = {**options, "kubernetes": version, "format": form, "output": output, "report": reports}
    if options["histories"] is not None or options["history"]:
        # Late: nothing else of this command needs kubelets, fakes and what draws histories.
        from kubelet_conformance.cli.histories import play_histories  # noqa: PLC0415

        return play_histories(given)
    if options["sweep"]:
        # Late, as above.
        from kubelet_conformance.cli.sweep import play_sweep  # noqa: PLC0415

        return play_sweep(given)
    if options["shard"] is not None:
        given["shard"] = "/".join(map(str, cast("tuple[int, int]", options["shard"])))
    if options["repeat"] is not None:
        if form not in {"terminal", "json"} or reports:
            raise click.UsageError(
                "--repeat reports in the terminal or as json; leave out --format and --report"
            )
        return play_repeatedly(_command, given)
    sys.stdout.flush()
    # Ctrl-C waits until that process can end with our exit code.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return os.execv(sys.executable, _command(given))  # noqa: S606 - our own interpreter
    finally:
        # It is still this process: the other could not be started.
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _command(options: Mapping[str, object]) -> list[str]:
    """The process that plays, with the options as the plugin names them; what was not given is left out."""
    arguments = [*_PLAYING]
    for name, value in options.items():
        if name in _OF_CAMPAIGNS or name == "repeat":
            continue
        flag = f"--kc-{name.replace('_', '-')}"
        if value is True:
            arguments.append(flag)
        elif isinstance(value, tuple):
            arguments += [f"{flag}={each}" for each in cast("tuple[object, ...]", value)]
        elif value is not None and value is not False:
            arguments.append(f"{flag}={value}")
    return arguments
