"""`runtime`: call a container runtime directly and judge it by the contracts that bind it."""

import shlex
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import click

from kubelet_conformance.cli.completion import contract_ids
from kubelet_conformance.cli.options import DEBUG, OUTPUT, RECORD, VERBOSE, VERSION, Settings, judging, scored
from kubelet_conformance.cli.report_options import FORM, REPORTS
from kubelet_conformance.cli.selection import chosen, known_deviations
from kubelet_conformance.contract.applicability import version_text
from kubelet_conformance.contract.checking import Check
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.reports.delivery import Delivery
from kubelet_conformance.reports.output import complain
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.model import Kind, Target
from kubelet_conformance.run_record.played_run import Played, PlayedRun
from kubelet_conformance.run_record.results import Scoring
from kubelet_conformance.run_record.system_clock import system_time_ns
from kubelet_conformance.run_record.writer import RecordWriter
from kubelet_conformance.runtime_checks import baselines
from kubelet_conformance.runtime_checks.judging import judged, scenarios_for, the_runtimes
from kubelet_conformance.runtime_checks.running import left_behind, run_scenarios
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.targets.bugs import declared_bugs
from kubelet_conformance.targets.cri_endpoint import shipped_baseline
from kubelet_conformance.targets.runtime import Wanted

_CONCURRENCY_MAX = 64


@click.command(epilog=judging("runtime unix:///run/containerd/containerd.sock --image busybox:1.36"))
@click.argument("target", metavar="TARGET")
@click.argument("contract", metavar="[ID|GLOB]...", nargs=-1, shell_complete=contract_ids)
@click.option(
    "--image",
    default="img:1",
    show_default=True,
    metavar="NAME",
    help="An image that has a shell, sh, to make containers of.",
)
@click.option(
    "--kubernetes", type=VERSION, default="1.32", show_default=True, help="Judge as this Kubernetes version."
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, _CONCURRENCY_MAX),
    default=8,
    show_default=True,
    metavar="N",
    help="Run at most N scenarios in parallel over a socket.",
)
@click.option(
    "--baseline",
    metavar="FILE",
    help="Accept the deviations that this TOML file lists, and not those of the bundled baseline.",
)
@scored
@RECORD
@FORM
@OUTPUT
@REPORTS
@VERBOSE
@DEBUG
@click.pass_context
def runtime(ctx: click.Context, /, **options: Any) -> int:  # noqa: ANN401 - what click has parsed
    """Call a container runtime at TARGET and judge it: unix:///PATH, or fake, fake-grpc, bug:ID, bug:ID-grpc.

    Short scenarios create sandboxes and containers there and remove them again. Stop the kubelet of that node
    first: it kills pods that it does not know.
    """
    settings = ctx.ensure_object(Settings)
    wanted = (options.pop("form"), options.pop("output"), options.pop("reports"))
    asked = _Asked(
        delivery=Delivery(*wanted, settings.debug, settings.verbose, bugs=declared_bugs), **options
    )
    asked.delivery.check(*filter(None, [asked.baseline]))
    return _run(asked, _chosen(asked.contract))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the user asked for."""

    target: str
    contract: tuple[str, ...]
    image: str
    kubernetes: tuple[int, int]
    concurrency: int
    baseline: str | None
    strict: bool
    require_exercised: bool
    record: str | None
    delivery: Delivery

    @property
    def version(self) -> str:
        """The Kubernetes version to judge by."""
        return version_text(self.kubernetes)

    def command(self) -> tuple[str, ...]:
        """The command of the whole run, word by word."""
        return self._command(self.contract)

    def again(self, contract: str, played: Iterable[Played]) -> str:
        """The command that runs the scenarios of this contract again."""
        del played
        return shlex.join(self._command([contract]))

    def _command(self, contracts: Iterable[str]) -> tuple[str, ...]:
        words = ["kubelet-conformance", "runtime", self.target, *contracts]
        if self.target.startswith("unix:"):
            words += ["--image", self.image]
        if self.kubernetes != (1, 32):
            words += ["--kubernetes", self.version]
        return tuple(words)


def _chosen(patterns: tuple[str, ...]) -> list[Contract]:
    """The contracts to judge; an id that no scenario can exercise is a usage error."""
    otherwise = (
        "binds no runtime, or cannot be judged by calling one; "
        "`kubelet-conformance list --area CRI` shows those that do"
    )
    return chosen(patterns, the_runtimes(), otherwise)


def _run(asked: _Asked, contracts: list[Contract]) -> int:
    known = known_deviations(asked.baseline)
    with closing(RecordWriter(asked.record)) as writer:
        now = system_time_ns()
        wanted = Wanted(asked.target, asked.image, f"run-{now:x}", now)
        scenarios = scenarios_for(every_runtime_scenario(), [each.id for each in contracts])
        writer.begin(_played(asked, Check(contracts, known)).result())
        run = run_scenarios(wanted, scenarios, asked.version, asked.concurrency)
        if run.interrupted:
            complain("interrupted")
        shipped = shipped_baseline(baselines, run.name, run.version) if asked.baseline is None else None
        baseline = known_deviations(str(shipped)) if shipped else known
        check, played = judged(run.outcomes, contracts, baseline, writer.traces)
        called = replace(
            _played(asked, check),
            scenarios=played,
            target=Target(
                runtime=f"{run.name} {run.version}",
                kubernetes=asked.version,
                address=asked.target,
                known=f"{shipped.stem}, which come along" if shipped else asked.baseline or "",
            ),
            interrupted=run.interrupted,
        )
        record = writer.finish(called.result())
        if writer.problem:
            complain(writer.problem)
        delivered = asked.delivery.deliver(record, writer)
    for each in run.left:
        complain(left_behind(each))
    return gravest(Exit(record.run.exit_code), delivered, Exit.FAILED if run.left else Exit.OK)


def _played(asked: _Asked, check: Check) -> PlayedRun:
    """A run in which nothing was played yet."""
    target = Target(kubernetes=asked.version, address=asked.target)
    scoring = Scoring(asked.strict, asked.require_exercised)
    return PlayedRun(check, (), target, asked, Kind.RUNTIME, scoring)
