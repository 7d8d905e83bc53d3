"""`run --sweep`: play scenarios again and again, with one fault at one call each time, and judge them."""

import shlex
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import click

from kubelet_conformance.campaigns.live_sweep import LiveSweep
from kubelet_conformance.campaigns.sweep.campaign import Sweep
from kubelet_conformance.campaigns.sweep.plan import FaultPattern, Plan
from kubelet_conformance.campaigns.sweep.play import Function, Swept, Undisturbed
from kubelet_conformance.cli.selection import known_deviations, refuse_real_runtime
from kubelet_conformance.contract.applicability import USUAL_VERSION
from kubelet_conformance.contract.checking import Check, Judged, Trace
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.options import Options
from kubelet_conformance.plugin.session import Session
from kubelet_conformance.reports.output import complain, deliver
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.reports.safe import counted
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.model import Kind, Target
from kubelet_conformance.run_record.played_run import Played, PlayedRun
from kubelet_conformance.run_record.results import Scoring
from kubelet_conformance.run_record.writer import RecordWriter
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.kubelet_target.choosing import resolved


@dataclass(frozen=True, slots=True)
class _Commands:
    """The commands of a sweep."""

    options: Options
    plan: Plan

    def command(self, *more: str) -> tuple[str, ...]:
        """The command of the whole sweep, word by word; with these options instead of those that choose."""
        choice, usual, plan = self.options.choice, Choice(), self.plan
        chosen = [
            f"--{name}={getattr(choice, name)}"
            for name in ("kubelet", "runtime", "kubernetes", "seed")
            if getattr(choice, name) != getattr(usual, name)
        ]
        given = [f"--scenario={name}" for name in self.options.scenarios]
        given += [f"--fault={each}" for each in plan.faults]
        given += [f"--sample={plan.sample}"] if plan.sample is not None else []
        given += [f"--shard={plan.shard}/{plan.shards}"] if plan.shards > 1 else []
        given += [f"--resume={plan.skipped}"] if plan.skipped else []
        return ("kubelet-conformance", "run", "--sweep", *self.options.ids, *chosen, *(more or given))

    def again(self, contract: str, played: Iterable[Played]) -> str:
        """The command that plays exactly that again."""
        del contract
        names = [each.scenario.partition(" ") for each in played]
        return self.play(names[0][0], names[0][2]) if names else ""

    def play(self, scenario: str, blow: str) -> str:
        """The command that plays a scenario with that fault."""
        return shlex.join(self.command(f"--scenario={scenario}", f"--fault={blow}"))

    def rest(self, played: int) -> str:
        """The command that goes on after so many plays."""
        return shlex.join(
            replace(self, plan=replace(self.plan, skipped=self.plan.skipped + played)).command()
        )


def play_sweep(given: dict[str, Any]) -> int:
    """Play what these options of `run` ask for, deliver the report, and say how it ended."""
    options = _options(given)
    commands = _Commands(options, _plan(given))
    # Before a folder is made for the record.
    scenarios = _chosen(options)
    session: Session | None = None
    try:
        with closing(RecordWriter(None if given["count"] else options.record)) as writer:
            if options.choice.is_live:
                session = Session(options, str(writer.traces), reports=False)
            sweep = _sweep(options, scenarios, commands.plan, session, writer.traces)
            _prepare(sweep)
            if given["count"]:
                deliver(f"{_amount(sweep)}\n", options.delivery.output)
                return Exit.OK
            writer.begin(_played(sweep, commands).result())
            interrupted = _is_interrupted(sweep)
            if interrupted and session is None:
                # On a kubelet in a process the plays are in no such order.
                complain(f"to go on: {commands.rest(sweep.played)}", note=True)
            record = writer.finish(replace(_played(sweep, commands), interrupted=interrupted).result())
            if writer.problem:
                complain(writer.problem)
            return gravest(options.delivery.deliver(record, writer), Exit(record.run.exit_code))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: cannot be written: {error.strerror}") from None
    finally:
        if session is not None:
            session.close()


def _sweep(
    options: Options, scenarios: Mapping[str, Function], plan: Plan, session: Session | None, traces: Path
) -> Sweep:
    """The sweep on the kubelet of a session, or else in this process."""
    contracts = options.contracts()
    known = known_deviations(options.baseline) if session is None else session.check().baseline
    # What breaks a scenario as it is breaks it with a fault as well.
    check = Check(contracts, None if known is None else known.anywhere())
    check.is_partial = True
    if session is not None:
        return LiveSweep(session, scenarios, plan, check)
    return Sweep(options.choice, contracts, scenarios, plan, check, traces)


def _played(sweep: Sweep, commands: _Commands) -> PlayedRun:
    """What was played by now."""
    options, choice = commands.options, commands.options.choice
    return PlayedRun(
        sweep.check,
        (*map(_failed, sweep.failed), *(_found(each, commands) for each in sweep.found)),
        Target(
            kubelet=choice.kubelet,
            runtime=choice.runtime,
            kubernetes=choice.kubernetes or USUAL_VERSION,
            seed=choice.seed,
        ),
        commands,
        Kind.SWEEP,
        Scoring(options.strict, options.require_exercised),
        chosen=options.scenarios,
        shard=options.part,
        left_out=sweep.left_out,
        plays=sweep.played,
    )


def _failed(base: Undisturbed) -> Played:
    """A scenario that fails without a fault, so that there is none to be played."""
    nothing = Judged(Trace("", None, None, None, base.scenario, 0), {}, ())
    return Played(base.scenario, nothing, unmet=f"fails without a fault: {base.failed}")


def _found(swept: Swept, commands: _Commands) -> Played:
    """A play in which something broke: contracts, or what else must hold."""
    judged = swept.judged or Judged(Trace("", None, None, None, swept.name, 0), {}, ())
    lines = [f"{each.happened}\nexpected: {each.expected}" for each in swept.unmet]
    text = "\n".join([*lines, f"again: {commands.play(swept.scenario, swept.blow)}"] if lines else [])
    is_judged = swept.judged is not None
    return Played(swept.name, judged, text if is_judged else "", "" if is_judged else text, died=swept.died)


def _prepare(sweep: Sweep) -> None:
    """Play each scenario as it is."""
    progress = Steps(len(sweep.plan.scenarios(sweep.scenarios)), "scenarios played as they are")
    try:
        sweep.prepare(progress.begin)
    finally:
        progress.clear()


def _is_interrupted(sweep: Sweep) -> bool:
    """Play all; whether Ctrl-C ended it."""
    progress = Steps(len(sweep.plays), "plays tried" if isinstance(sweep, LiveSweep) else "plays")
    progress.announce(_amount(sweep))
    try:
        sweep.run(progress.begin)
    except KeyboardInterrupt:
        progress.clear()
        complain("interrupted")
        return True
    finally:
        progress.clear()
    return False


def _amount(sweep: Sweep) -> str:
    """How many plays there are, and how long they take, in words."""
    plays, every = len(sweep.plays), len(sweep.every)
    points = len({(base.scenario, blow.point) for base, blow in sweep.every})
    scenarios = len({base.scenario for base, _ in sweep.every})
    there = f"{counted(every, 'play')} at {counted(points, 'call')} of {counted(scenarios, 'scenario')}"
    chosen = "" if plays == every else f"; {plays} of them are to be played"
    return f"{there}{chosen}, about {max(1, round(sweep.seconds(plays)))} s"


def _options(given: dict[str, Any]) -> Options:
    options = Options.given(given)
    choice = replace(options.choice, kubernetes=given["kubernetes"] or "")
    refuse_real_runtime(choice, "a sweep makes")
    return replace(options, choice=resolved(choice) if choice.is_live else choice)


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
