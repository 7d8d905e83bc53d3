"""What a mutant is played in: scenarios as `run` plays them, as other versions, and a part of the sweep."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kubelet_conformance.campaigns.sweep.kinds import Blow
from kubelet_conformance.campaigns.sweep.plan import Plan
from kubelet_conformance.campaigns.sweep.play import Undisturbed, play_name, undisturbed
from kubelet_conformance.campaigns.sweep.play import play as play_disturbed
from kubelet_conformance.contract.checking import Judged
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.play import judge, perform
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.stage import Stage

_VERSIONS = ("1.26", "1.36")
"""What a scenario is played as beside the version that it is meant for."""
_FAULTS_EACH = 3
"""So many plays with a fault there are of a scenario, drawn among all of the sweep."""


class NoKubeletError(Exception):
    """There is no kubelet to play on: it could not be made of its parts."""


class Play(msgspec.Struct, frozen=True):
    """A scenario, as that version where it is not the one that it is meant for, with a fault or without."""

    scenario: str
    version: str = ""
    blow: Blow | None = None

    def __str__(self) -> str:
        name = self.scenario if self.blow is None else play_name(self.scenario, self.blow)
        return f"{name} as {self.version}" if self.version else name


@dataclass(frozen=True, slots=True)
class Judgement:
    """The contracts that a play broke, and what went wrong beside that."""

    broken: tuple[str, ...]
    unmet: str = ""


def plays_of(scenarios: Sequence[str], stage: Stage) -> Iterator[Play]:
    """All plays of these scenarios, first as they are, then as other versions, then with faults."""
    yield from map(Play, scenarios)
    meant = {name: scenario_of(every_scenario()[name]) for name in scenarios}
    for version in _VERSIONS:
        for name, scenario in meant.items():
            if scenario.is_meant_for(version) and scenario.nearest() != version:
                yield Play(name, version)
    bases = [undisturbed(every_scenario()[name], name, stage) for name in scenarios]
    plan = Plan(sample=_FAULTS_EACH * len(bases))
    for base, blow in plan.plays(plan.all_plays(bases)):
        yield Play(base.scenario, blow=blow)


def perform_play(play: Play, stage: Stage) -> Judgement:
    """Play it and judge its trace by every contract; raises `NoKubeletError`."""
    return _as_it_is(play, stage) if play.blow is None else _with_fault(play, play.blow, stage)


def _as_it_is(play: Play, stage: Stage) -> Judgement:
    name = play.scenario
    try:
        done = perform(every_scenario()[name], name, stage, play.version)
    except Exception as error:
        # What goes wrong in a scenario is returned: this went wrong before it began.
        raise NoKubeletError(repr(error)) from error
    if done.failed and b'"op":"started"' not in done.trace:
        raise NoKubeletError(done.failed)
    judged, wrong = judge(Path(name), every_contract().values(), name, done.trace)
    return _judgement(judged, done.unmet or wrong or done.failed)


def _with_fault(play: Play, blow: Blow, stage: Stage) -> Judgement:
    """What the sweep expects beside the contracts, that the node settles, does not count."""
    function, contracts = every_scenario()[play.scenario], list(every_contract().values())
    swept = play_disturbed(function, Undisturbed(play.scenario, ()), blow, stage, contracts, play.version)
    return _judgement(swept.judged, next((each.happened for each in swept.unmet), ""))


def _judgement(judged: Judged | None, unmet: str) -> Judgement:
    outcomes = {} if judged is None else judged.outcomes
    broken = (each for each, outcome in outcomes.items() if outcome.verdict is Verdict.BROKEN)
    return Judgement(tuple(broken), unmet)
