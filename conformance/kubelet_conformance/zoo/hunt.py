"""Play the witnesses of what a bug declares on the bug, and see which contracts it breaks."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kubelet_conformance.contracts import every_contract
from kubelet_conformance.node import scenario_of
from kubelet_conformance.plugin.play import play
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.stage import Choice, open_stage
from kubelet_conformance.targets.zoo import bug_card

if TYPE_CHECKING:
    from kubelet_conformance.targets.zoo import BugCard

__all__ = ("Caught", "hunt")


@dataclass(frozen=True, slots=True)
class Caught:
    """What became of one bug.

    Attributes:
        bug: what the zoo says of it.
        caught_by: the contracts that were broken, in the order of their ids.
        scenarios: what was played, with the contracts that each broke.
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


def hunt(name: str, *, full: bool = False) -> Caught:
    """Play the witnesses of a bug's declared contracts on it (all scenarios if `full`), judged by everything.

    Raises LookupError for an unknown bug.
    """
    bug = bug_card(name)
    stage = open_stage(_choice(bug))
    contracts = list(every_contract().values())
    broken: dict[str, tuple[str, ...]] = {}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="kubelet-conformance-") as folder:
        for scenario, story in every_scenario().items():
            declared = scenario_of(story)
            is_asked_for = full or set(declared.witnesses) & set(bug.breaks)
            if not is_asked_for or not declared.is_meant_for(bug.kubernetes):
                continue
            played = play(story, scenario, stage, contracts, Path(folder, "trace.jsonl"))
            broken[scenario] = tuple(played.broken)
            if played.failed:
                failed[scenario] = played.failed
    order = list(every_contract())
    caught = sorted({each for ids in broken.values() for each in ids}, key=order.index)
    return Caught(bug, tuple(caught), broken, failed)


def _choice(bug: BugCard) -> Choice:
    """The wrong kubelet with the right runtime, or the right kubelet with the wrong runtime."""
    name = f"bug:{bug.id}"
    if bug.is_of_runtimes:
        return Choice(runtime=name, kubernetes=bug.kubernetes)
    return Choice(kubelet=name, kubernetes=bug.kubernetes)
