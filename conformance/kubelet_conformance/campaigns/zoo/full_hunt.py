"""Runs every scenario on every bug, and skips the runs whose result is known.

A bug that does in a scenario what the right kubelet and runtime do need not be played there (see `reach`).
The others are played several at a time: one kubelet has the wrong parts of all of them. Where its trace is
that of the right one, to the byte, none of them has done anything, unless one hides what another does: so
each is tried in two different companies. Where the traces differ each half is tried, down to each bug alone:
what a bug breaks is always seen on a kubelet that is wrong in one way.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from zlib import crc32

from kubelet_conformance.campaigns.zoo.hunt import Outcome, call_directly, is_witness, outcome_of
from kubelet_conformance.campaigns.zoo.reach import choice_of, does_the_same, reached, replaced_by
from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.play import Performed, perform
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bugs import bug_card
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.in_process.replaced_parts import Replaced, open_stage_of_all
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.targets.stage import Stage

_WORTH_IT = 8
"""For so many bugs it pays to find out, in three plays, what the right ones do."""
_RISK_MAX = 0.35
"""Bugs are played together as long as it is rather unlikely, by what is known, that one of them differs."""
_TIMEOUT_SECONDS = 180.0
"""How much longer than the right ones a wrong one may take (s): longer than a call may last.

Witnesses of what a bug breaks are played to their end.
"""
_tried: Counter[str] = Counter()
_differed: Counter[str] = Counter()
"""In how many scenarios each bug was tried in this process, and did not do what the right ones do."""


@deferred_gc()
def play_on_each(bugs: Iterable[str], scenario: str) -> dict[str, Outcome]:
    """The outcome of a scenario on each of these bugs."""
    declared = scenario_of(every_scenario()[scenario])
    by_version: dict[str, list[str]] = {}
    for bug in bugs:
        by_version.setdefault(declared.nearest(bug_card(bug).kubernetes), []).append(bug)
    found: dict[str, Outcome] = {}
    for version, some in by_version.items():
        if len(some) < _WORTH_IT:
            found.update((bug, outcome_of(_alone(scenario, version, bug), scenario)) for bug in some)
        else:
            found |= _Trial(scenario, version).of(some)
    return found


@deferred_gc()
def call_runtime_directly(bug: str) -> dict[str, Outcome]:
    """Run all runtime scenarios on a wrong runtime; returns their outcomes by title."""
    return call_directly(bug_card(bug), every_runtime_scenario())


class _Trial:
    """Many bugs against one scenario, as one version."""

    def __init__(self, scenario: str, version: str) -> None:
        self._scenario = scenario
        self._version = version
        self._right = reached(scenario, version)
        self._as_right = outcome_of(self._right.done, scenario)
        self._timeout = self._right.seconds + _TIMEOUT_SECONDS
        self._found: dict[str, Outcome] = {}

    def of(self, bugs: Sequence[str]) -> dict[str, Outcome]:
        """Its outcome on each bug."""
        others: dict[str, Replaced] = {}
        for bug in bugs:
            other = replaced_by(bug)
            if other is None:
                self._try_alone(bug)
            elif does_the_same(bug, other, self._right):
                self._found[bug] = self._as_right
            else:
                others[bug] = other
        for group in _groups(others):
            self._try(group, others)
        harmless = {bug: other for bug, other in others.items() if bug not in self._found}
        for group in _groups(harmless, again=True):
            self._try(group, others)
        return {bug: self._found.get(bug) or self._as_right for bug in bugs}

    def _try(self, bugs: Sequence[str], others: dict[str, Replaced]) -> None:
        """Play bugs together, and if that differs each half of them; nothing is found if it does not."""
        if len(bugs) == 1:
            self._try_alone(*bugs)
            return
        stage = open_stage_of_all(Choice(kubernetes=self._version), [others[bug] for bug in bugs])
        if _play(self._scenario, self._version, stage, self._timeout) == self._right.done:
            _tried.update(bugs)
            return
        half = len(bugs) // 2
        self._try(bugs[:half], others)
        self._try(bugs[half:], others)

    def _try_alone(self, bug: str) -> None:
        patience = math.inf if is_witness(self._scenario, bug_card(bug)) else self._timeout
        done = _alone(self._scenario, self._version, bug, patience)
        _tried[bug] += 1
        _differed[bug] += done != self._right.done
        self._found[bug] = outcome_of(done, self._scenario)


def _alone(scenario: str, version: str, bug: str, patience: float = math.inf) -> Performed:
    return _play(scenario, version, open_stage(choice_of(bug)), patience)


def _play(scenario: str, version: str, stage: Stage, patience: float) -> Performed:
    return perform(every_scenario()[scenario], scenario, stage, version, wait_seconds_max=patience)


def _risk(bug: str) -> float:
    """How likely a bug is to differ, from 0 to 1, by what is known; one that was never tried is doubtful."""
    return (_differed[bug] + 0.1) / (_tried[bug] + 1)


def _groups(others: dict[str, Replaced], *, again: bool = False) -> list[list[str]]:
    """The bugs in groups of which no two replace the same part, those that seldom differ first.

    `again` takes them in another order, so that each comes into another company.
    """
    order = sorted(others, key=lambda bug: crc32(bug.encode())) if again else sorted(others)
    groups: list[_Group] = []
    for bug in sorted(order, key=lambda one: round(_risk(one), 2)):
        group = next((one for one in groups if one.takes(bug, others[bug])), None)
        if group is None:
            group = _Group()
            groups.append(group)
        group.add(bug, others[bug])
    return [group.bugs for group in groups]


class _Group:
    """Bugs that are played together."""

    def __init__(self) -> None:
        self.bugs: list[str] = []
        self._parts: set[str] = set()
        self._risk = 0.0

    def takes(self, bug: str, other: Replaced) -> bool:
        """Whether it may be played together with these."""
        return self._risk + _risk(bug) <= _RISK_MAX and not self._parts & other.parts.keys()

    def add(self, bug: str, other: Replaced) -> None:
        """Play it together with these."""
        self.bugs.append(bug)
        self._parts.update(other.parts)
        self._risk += _risk(bug)
