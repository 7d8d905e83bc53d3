"""Runs the scenarios of a bug's declared contracts on the bug, and reports which contracts it breaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from kubelet_conformance.campaigns.zoo.reach import choice_of
from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.play import Performed, judge, perform
from kubelet_conformance.reports.played_run import Played
from kubelet_conformance.runtime_checks.judging import run_in_process, scenarios_for
from kubelet_conformance.runtime_checks.scenario import RuntimeScenario
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bugs import BugCard, bug_card
from kubelet_conformance.targets.opening import open_stage

Outcome: TypeAlias = tuple[tuple[str, ...], str]
"""The contracts that were broken, and what went wrong in the suite itself."""

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
def hunt(name: str) -> Caught:
    """Play the witnesses of a bug's declared contracts on it, judged by everything.

    On a runtime, plays the runtime scenarios about them too. Raises LookupError for an unknown bug.
    """
    bug = bug_card(name)
    stage = open_stage(choice_of(bug.id))
    outcomes: dict[str, Outcome] = {}
    for scenario, function in every_scenario().items():
        if is_witness(scenario, bug):
            done = perform(function, scenario, stage, scenario_of(function).nearest(bug.kubernetes))
            outcomes[scenario] = outcome_of(done, scenario)
    if bug.is_of_runtimes:
        outcomes |= call_directly(bug, scenarios_for(every_runtime_scenario(), bug.breaks))
    return Caught.of(bug, outcomes)


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
