"""`runtime`: call a container runtime directly and judge it by the contracts that bind it."""

import json
import shlex
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kubelet_conformance.cli.options import (
    DEBUG,
    OUTPUT,
    RECORD,
    REPORT_FORM,
    VERSION,
    Settings,
    judging,
    scored,
)
from kubelet_conformance.cli.selection import chosen, known_deviations
from kubelet_conformance.cli.system_clock import system_time_ns
from kubelet_conformance.contract.applicability import version_text
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.reports.forms import FORMS, in_form
from kubelet_conformance.reports.output import check_writable, complain, deliver, record_folder
from kubelet_conformance.reports.played_run import CalledRun, Played
from kubelet_conformance.reports.run import Exit, gravest
from kubelet_conformance.runtime_checks import baselines
from kubelet_conformance.runtime_checks.judging import judged, scenarios_for, the_runtimes
from kubelet_conformance.runtime_checks.running import left_behind, run_scenarios
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.targets.cri_endpoint import shipped_baseline
from kubelet_conformance.targets.runtime import Wanted

_CONCURRENCY_MAX = 64


@click.command(epilog=judging("runtime unix:///run/containerd/containerd.sock --image busybox:1.36"))
@click.argument("target", metavar="TARGET")
@click.argument("contract", metavar="[ID|GLOB]...", nargs=-1)
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
@click.option(
    "--format", "form", type=click.Choice(FORMS), default="terminal", show_default=True, help=REPORT_FORM
)
@OUTPUT
@DEBUG
@click.pass_context
def runtime(ctx: click.Context, /, **options: Any) -> int:  # noqa: ANN401 - what click has parsed
    """Call a container runtime at TARGET and judge it: unix:///PATH, or fake, fake-grpc, bug:ID, bug:ID-grpc.

    Short scenarios create sandboxes and containers there and remove them again. Stop the kubelet of that node
    first: it kills pods that it does not know.
    """
    asked = _Asked(debug=ctx.ensure_object(Settings).debug, **options)
    check_writable(asked.output, *filter(None, [asked.baseline]))
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
    form: str
    output: str | None
    debug: bool

    @property
    def version(self) -> str:
        """The Kubernetes version to judge by."""
        return version_text(self.kubernetes)

    def command(self) -> str:
        """The command of the whole run."""
        return self._command(self.contract)

    def again(self, contract: str, played: Iterable[Played]) -> str:
        """The command that runs the scenarios of this contract again."""
        del played
        return self._command([contract])

    def _command(self, contracts: Iterable[str]) -> str:
        words = ["kubelet-conformance", "runtime", self.target, *contracts]
        if self.target.startswith("unix:"):
            words += ["--image", self.image]
        if self.kubernetes != (1, 32):
            words += ["--kubernetes", self.version]
        return shlex.join(words)


def _chosen(patterns: tuple[str, ...]) -> list[Contract]:
    """The contracts to judge; an id that no scenario can exercise is a usage error."""
    otherwise = (
        "binds no runtime, or cannot be judged by calling one; "
        "`kubelet-conformance list --area CRI` shows those that do"
    )
    return chosen(patterns, the_runtimes(), otherwise)


def _run(asked: _Asked, contracts: list[Contract]) -> int:
    known = known_deviations(asked.baseline)
    with _folder(asked.record) as folder:
        now = system_time_ns()
        wanted = Wanted(asked.target, asked.image, f"run-{now:x}", now)
        scenarios = scenarios_for(every_runtime_scenario(), [each.id for each in contracts])
        run = run_scenarios(wanted, scenarios, asked.version, asked.concurrency)
        if run.interrupted:
            complain("interrupted")
        shipped = shipped_baseline(baselines, run.name, run.version) if asked.baseline is None else None
        baseline = known_deviations(str(shipped)) if shipped else known
        check, played = judged(run.outcomes, contracts, baseline, folder)
        called = CalledRun(
            check,
            played,
            kubelet="",
            runtime=f"{run.name} {run.version}",
            kubernetes=asked.version,
            seed=0,
            commands=asked,
            strict=asked.strict,
            require_exercised=asked.require_exercised,
            kept=asked.record is not None,
            debug=asked.debug,
            interrupted=run.interrupted,
            address=asked.target,
            known=f"{shipped.stem}, which come along" if shipped else asked.baseline or "",
        )
        deliver(in_form(asked.form, called, to_file=bool(asked.output)), asked.output)
        if asked.record is not None:
            _write(Path(asked.record, "run.json"), json.dumps(called.report(), indent=2) + "\n")
    for each in run.left:
        complain(left_behind(each))
    return gravest(called.conclusion(), Exit.FAILED if run.left else Exit.OK)


@contextmanager
def _folder(record: str | None) -> Generator[Path]:
    """Where the traces go: into the record, or for as long as the report is made of them."""
    if record is None:
        with tempfile.TemporaryDirectory(prefix="kubelet-conformance-") as temporary:
            yield Path(temporary)
    else:
        yield record_folder(record)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{path}: cannot be written: {error.strerror}") from None
