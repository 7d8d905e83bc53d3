"""Runs scenarios on a bug, those of its declared contracts or all, and reports which contracts it breaks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.play import Performed, judge, perform
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.runtime_checks.judging import run_in_process, scenarios_for
from kubelet_conformance.runtime_checks.scenario import RuntimeScenario
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bugs import BugCard, bug_card
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage

Outcome: TypeAlias = tuple[tuple[str, ...], str]
"""The contracts that were broken, and what went wrong in the suite itself."""

_OTHER_WAIT_SECONDS = 600.0
"""How long one wait may take (s, virtual) in a scenario about something else, where it may time out."""
_KNOWN: dict[bytes, Outcome] = {}
"""The outcome of each trace: many bugs leave a trace unchanged, so the same ones recur."""


@dataclass(frozen=True, slots=True)
class Caught:
    """The result for one bug.

    Attributes:
        bug: its card in the zoo.
        caught_by: the contracts that were broken, in the order of their ids.
        scenarios: the scenarios that were run, runtime scenarios included, and the contracts that each broke.
        failed: where the suite itself failed, with the reason.
    """

    bug: BugCard
    caught_by: tuple[str, ...]
    scenarios: dict[str, tuple[str, ...]]
    failed: dict[str, str]

    @property
    def is_caught(self) -> bool:
        """Whether a contract that it declares was broken."""
        return bool(set(self.caught_by) & set(self.bug.breaks))

    @property
    def missed(self) -> tuple[str, ...]:
        """The contracts that it declares and that were not broken."""
        return tuple(each for each in self.bug.breaks if each not in self.caught_by)

    @property
    def is_in_doubt(self) -> bool:
        """Whether the suite failed where it had to catch it; others may be beyond a wrong kubelet."""
        return any(is_witness(name, self.bug) for name in self.failed)

    @classmethod
    def of(cls, bug: BugCard, outcomes: Mapping[str, Outcome]) -> Caught:
        """The result, by the outcome of each scenario and each runtime scenario."""
        order = list(every_contract())
        caught = {each for broken, _ in outcomes.values() for each in broken}
        return cls(
            bug,
            tuple(sorted(caught, key=order.index)),
            {name: broken for name, (broken, _) in outcomes.items()},
            {name: failed for name, (_, failed) in outcomes.items() if failed},
        )


@deferred_gc()
def hunt(name: str, *, full: bool = False) -> Caught:
    """Play the witnesses of a bug's declared contracts on it, or all scenarios if `full`.

    They are judged by everything. On a runtime the runtime scenarios about these contracts are run too.
    Raises LookupError for an unknown bug.
    """
    bug = bug_card(name)
    stage = open_stage(_choice_of(bug))
    outcomes: dict[str, Outcome] = {}
    for scenario, function in every_scenario().items():
        declared = is_witness(scenario, bug)
        if declared or full:
            wait = math.inf if declared else _OTHER_WAIT_SECONDS
            version = scenario_of(function).nearest(bug.kubernetes)
            done = perform(function, scenario, stage, version, wait_seconds_max=wait)
            outcomes[scenario] = outcome_of(done, scenario)
    if bug.is_of_runtimes:
        every = every_runtime_scenario()
        outcomes |= call_directly(bug, every if full else scenarios_for(every, bug.breaks))
    return Caught.of(bug, outcomes)


@deferred_gc()
def reference_verdict(scenario: str, contract: str) -> Verdict:
    """The verdict on a contract where the reference plays this scenario."""
    function = every_scenario()[scenario]
    done = perform(function, scenario, open_stage(Choice()))
    judged, _ = judge(Path(scenario), [every_contract()[contract]], scenario, done.trace)
    outcome = judged.outcomes.get(contract)
    return Verdict.ERROR if outcome is None else outcome.verdict


def _choice_of(bug: BugCard) -> Choice:
    """The wrong kubelet with the right runtime, or the right kubelet with the wrong runtime."""
    if bug.is_of_runtimes:
        return Choice(runtime=f"bug:{bug.id}", kubernetes=bug.kubernetes)
    return Choice(kubelet=f"bug:{bug.id}", kubernetes=bug.kubernetes)


def is_witness(name: str, bug: BugCard) -> bool:
    """Whether a scenario witnesses what the bug breaks; a runtime scenario always counts."""
    function = every_scenario().get(name)
    return function is None or bool(set(scenario_of(function).witnesses) & set(bug.breaks))


def call_directly(bug: BugCard, scenarios: Iterable[RuntimeScenario]) -> dict[str, Outcome]:
    """Run runtime scenarios on a wrong runtime; returns their outcomes by title."""
    outcomes = run_in_process(f"bug:{bug.id}", scenarios, bug.kubernetes)
    return {title: (tuple(played.broken), played.failed) for title, (_, played) in outcomes.items()}


def outcome_of(done: Performed, scenario: str) -> Outcome:
    """The outcome of a scenario, judged by every contract."""
    digest = sha256(done.trace).digest()
    if digest not in _KNOWN:
        judged, wrong = judge(Path(scenario), every_contract().values(), scenario, done.trace)
        _KNOWN[digest] = tuple(Played(scenario, judged).broken), wrong
    broken, wrong = _KNOWN[digest]
    return broken, wrong or done.failed
