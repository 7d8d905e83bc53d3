"""Play the witnesses of what a bug declares on the bug, and see which contracts it breaks."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from kubelet_conformance.contract.collecting import seldom_collected
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.play import judge, perform
from kubelet_conformance.reports.played import Played
from kubelet_conformance.runtime_checks.in_process import told_directly
from kubelet_conformance.runtime_checks.judging import stories_for
from kubelet_conformance.runtime_checks.stories import every_story
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.replaced import functions_replaced
from kubelet_conformance.targets.stage import Choice, open_stage
from kubelet_conformance.targets.zoo import bug_card
from kubelet_conformance.zoo.reach import Reached, reached

if TYPE_CHECKING:
    from types import CodeType

    from kubelet_conformance.targets.zoo import BugCard

__all__ = ("Caught", "hunt")

_KNOWN: dict[bytes, tuple[tuple[str, ...], str]] = {}
"""What came of each trace: a bug leaves most scenarios as they are, so that the same come again and again."""


@dataclass(frozen=True, slots=True)
class Caught:
    """What became of one bug.

    Attributes:
        bug: what the zoo says of it.
        caught_by: the contracts that were broken, in the order of their ids.
        scenarios: what was played, and told to a runtime, with the contracts that each broke.
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


@seldom_collected()
def hunt(name: str, *, full: bool = False) -> Caught:
    """Play the witnesses of a bug's declared contracts on it (all scenarios if `full`), judged by everything.

    Of all scenarios those are not played again in which a right kubelet never enters what the bug replaces. A
    runtime is told the stories about these contracts too. Raises LookupError for an unknown bug.
    """
    bug = bug_card(name)
    choice = _choice(bug)
    stage, others = open_stage(choice), functions_replaced(choice) if full else None
    broken: dict[str, tuple[str, ...]] = {}
    failed: dict[str, str] = {}
    for scenario, story in every_scenario().items():
        declared = scenario_of(story)
        if full or set(declared.witnesses) & set(bug.breaks):
            version = declared.nearest(bug.kubernetes)
            known = _as_the_right_one(scenario, version, others)
            done = known.done if known else perform(story, scenario, stage, version)
            broken[scenario], wrong = _broken_by(done.trace, scenario, declared.lies)
            if wrong or done.failed:
                failed[scenario] = wrong or done.failed
    if bug.is_of_runtimes:
        stories = every_story() if full else stories_for(every_story(), bug.breaks)
        for title, (_, played) in told_directly(f"bug:{bug.id}", stories, bug.kubernetes).items():
            broken[title] = tuple(played.broken)
            if played.failed:
                failed[title] = played.failed
    order = list(every_contract())
    caught = sorted({each for ids in broken.values() for each in ids}, key=order.index)
    return Caught(bug, tuple(caught), broken, failed)


def _as_the_right_one(scenario: str, version: str, others: frozenset[CodeType] | None) -> Reached | None:
    """What the right ones do, if they enter none of the functions that are `others` here."""
    if others is None:
        return None
    right = reached(scenario, version)
    return None if others & right.entered else right


def _broken_by(trace: bytes, scenario: str, lies: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The contracts that a trace breaks, and what went wrong in judging it."""
    digest = sha256(trace).digest()
    if digest not in _KNOWN:
        contracts = [each for each in every_contract().values() if each.id not in lies]
        judged, wrong = judge(Path(scenario), contracts, scenario, trace)
        _KNOWN[digest] = tuple(Played(scenario, judged).broken), wrong
    return _KNOWN[digest]


def _choice(bug: BugCard) -> Choice:
    """The wrong kubelet with the right runtime, or the right kubelet with the wrong runtime."""
    name = f"bug:{bug.id}"
    if bug.is_of_runtimes:
        return Choice(runtime=name, kubernetes=bug.kubernetes)
    return Choice(kubelet=name, kubernetes=bug.kubernetes)
