"""`run --sweep`: play scenarios again and again, with one fault at one call each time, and judge them."""

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

import click

from kubelet_conformance.campaigns.sweep.campaign import Sweep
from kubelet_conformance.campaigns.sweep.plan import FaultPattern, Plan
from kubelet_conformance.campaigns.sweep.play import Function, Swept
from kubelet_conformance.contract.applicability import USUAL_VERSION, is_required
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.options import Options
from kubelet_conformance.reports.output import complain, deliver
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.reports.safe import counted, safe
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.files import as_json
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice

SCHEMA = 1
_TEXT_CHARS_MAX = 1500
_CONCLUSIONS = {Exit.OK: "OK", Exit.FAILED: "FAILED", Exit.INTERRUPTED: "INCOMPLETE, interrupted"}


@dataclass(frozen=True, slots=True)
class _Report:
    """What a sweep came to."""

    sweep: Sweep
    options: Options
    interrupted: bool = False

    def counts(self, what: str) -> bool:
        """Whether it makes the run fail that this was broken."""
        contract = every_contract().get(what)
        levels = {"MUST", "SHOULD"} if self.options.strict else {"MUST"}
        version = self.options.choice.kubernetes or USUAL_VERSION
        return contract is None or (contract.level in levels and is_required(what, version))

    def conclusion(self) -> Exit:
        """How the run ends."""
        broken = any(self.counts(one.what) for swept in self.sweep.found for one in swept.breaks)
        return gravest(
            Exit.INTERRUPTED if self.interrupted else Exit.OK,
            Exit.FAILED if broken or self.sweep.failed else Exit.OK,
            Exit.OK if self.sweep.played or self.interrupted else Exit.INCONCLUSIVE,
        )

    def command(self, *more: str) -> str:
        """The command of this sweep, with these options besides."""
        choice, usual = self.options.choice, Choice()
        chosen = [
            f"--{name}={getattr(choice, name)}"
            for name in ("kubelet", "runtime", "kubernetes", "seed")
            if getattr(choice, name) != getattr(usual, name)
        ]
        return shlex.join(["kubelet-conformance", "run", "--sweep", *self.options.ids, *chosen, *more])

    def again(self, swept: Swept) -> str:
        """The command that plays exactly that again."""
        return self.command(f"--scenario={swept.scenario}", f"--fault={swept.blow}")

    def lines(self) -> Iterator[str]:
        """The report to read."""
        sweep = self.sweep
        for base in sweep.failed:
            yield f"{safe(base.scenario)} fails without a fault: {safe(base.failed.partition(chr(10))[0])}"
        for swept in sweep.found:
            for one in swept.breaks:
                word = "BROKEN" if self.counts(one.what) else "reported"
                yield f"{word}  {safe(swept.scenario)}, {safe(swept.blow)}: {one.what}"
                yield f"    expected: {safe(one.expected, _TEXT_CHARS_MAX)}"
                yield f"    happened: {safe(one.happened, _TEXT_CHARS_MAX)}"
            yield f"    again: {self.again(swept)}"
        if self.interrupted:
            yield f"interrupted; to go on: {self._rest()}"
        said = f"{counted(sweep.played, 'play')} with a fault, {counted(sweep.records, 'record')}"
        broken = f"{len(sweep.found)} broken"
        yield f"{_CONCLUSIONS.get(self.conclusion(), 'INCONCLUSIVE')}: {said}, {broken}"

    def _rest(self) -> str:
        plan = self.sweep.plan
        given = [f"--scenario={name}" for name in self.options.scenarios]
        given += [f"--sample={plan.sample}"] if plan.sample is not None else []
        given += [f"--shard={plan.shard}/{plan.shards}"] if plan.shards > 1 else []
        return self.command(*given, f"--resume={plan.skipped + self.sweep.played}")

    def report(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "schema": SCHEMA,
            "plays": len(self.sweep.every),
            "played": self.sweep.played,
            "records": self.sweep.records,
            "failed": {base.scenario: base.failed for base in self.sweep.failed},
            "broken": [
                {
                    "scenario": swept.scenario,
                    "fault": swept.blow,
                    "breaks": [
                        {"what": one.what, "expected": one.expected, "happened": one.happened}
                        for one in swept.breaks
                    ],
                    "again": self.again(swept),
                }
                for swept in self.sweep.found
            ],
            "incomplete": self.interrupted,
            "exit_code": int(self.conclusion()),
        }


def play_sweep(given: dict[str, Any]) -> int:
    """Play what these options of `run` ask for, deliver the report, and say how it ended."""
    form: str = given["format"]
    if form not in {"terminal", "json"} or given["report"]:
        raise click.UsageError("--sweep reports in the terminal or as json; leave out --format and --report")
    options, output = _options(given), given["output"]
    sweep = Sweep(options.choice, options.contracts(), _chosen(options), _plan(given))
    progress = Steps(len(sweep.plan.scenarios(sweep.scenarios)), "scenarios played as they are")
    try:
        sweep.prepare(progress.begin)
        progress.clear()
        if given["count"]:
            deliver(f"{_amount(sweep)}\n", output)
            return Exit.OK
        progress = Steps(len(sweep.plays), "plays")
        progress.announce(_amount(sweep))
        report = _Report(sweep, options, interrupted=_is_interrupted(partial(sweep.run, progress.begin)))
    finally:
        progress.clear()
    if options.record is not None:
        _keep(report, Path(options.record))
    text = as_json(report.report()) if form == "json" else "".join(f"{one}\n" for one in report.lines())
    deliver(text, output)
    return report.conclusion()


def _is_interrupted(run: Callable[[], None]) -> bool:
    """Run it; whether Ctrl-C ended it."""
    try:
        run()
    except KeyboardInterrupt:
        complain("interrupted")
        return True
    return False


def _amount(sweep: Sweep) -> str:
    """How many plays there are, and how long they take, in words."""
    plays, every = len(sweep.plays), len(sweep.every)
    points = len({(base.scenario, blow.point) for base, blow in sweep.every})
    scenarios = len({base.scenario for base, _ in sweep.every})
    there = f"{counted(every, 'play')} at {counted(points, 'call')} of {counted(scenarios, 'scenario')}"
    chosen = "" if plays == every else f"; {plays} of them are to be played"
    return f"{there}{chosen}, about {max(1, round(sweep.seconds(plays)))} s"


def _keep(report: _Report, record: Path) -> None:
    """Write the traces of what broke, and the report; raises ClickException."""
    try:
        traces = record / "traces"
        traces.mkdir(parents=True, exist_ok=True)
        for swept in report.sweep.found:
            name = f"{swept.scenario} {swept.blow}".replace("/", "-").replace(" ", "_")
            (traces / f"{name}.jsonl").write_bytes(swept.trace)
        (record / "sweep.json").write_text(as_json(report.report()))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: cannot be written: {error.strerror}") from None


def _options(given: dict[str, Any]) -> Options:
    options = Options.given(given)
    if options.choice.is_live:
        raise click.ClickException(
            "a sweep is played on virtual time: on reference or bug:ID, and fake or bug:ID"
        )
    return replace(options, choice=replace(options.choice, kubernetes=given["kubernetes"] or ""))


def _plan(given: dict[str, Any]) -> Plan:
    shard, shards = given["shard"] or (1, 1)
    faults = tuple(map(FaultPattern.parse, given["fault"]))
    return Plan(faults, given["sample"], given["seed"], shard, shards, given["resume"])


def _chosen(options: Options) -> dict[str, Function]:
    """The scenarios that these options choose; raises ClickException if there are none."""
    every = every_scenario()
    for pattern in options.scenarios:
        if not any(fnmatchcase(name, pattern) for name in every):
            raise click.ClickException(
                f"there is no scenario {pattern}; `kubelet-conformance list --scenarios` shows them all"
            )
    wanted = {contract.id for contract in options.contracts()} if options.ids else None
    version = options.choice.kubernetes
    found = {
        name: function
        for name, function in every.items()
        if _is_wanted(name, scenario_of(function).witnesses, options.scenarios, wanted)
        and (not version or scenario_of(function).is_meant_for(version))
    }
    if not found:
        asked = " ".join([*options.ids, *options.scenarios])
        raise click.ClickException(f"no scenario puts {asked} to the test as Kubernetes {version}")
    return found


def _is_wanted(name: str, witnesses: Iterable[str], patterns: Iterable[str], wanted: set[str] | None) -> bool:
    patterns = list(patterns)
    if patterns:
        return any(fnmatchcase(name, pattern) for pattern in patterns)
    return wanted is None or bool(wanted & set(witnesses))
