"""Finds the bugs that cannot change a scenario: they replace nothing that it reaches on a correct kubelet.

All is reproducible: a bug that replaces nothing they enter, and decides as they do, need not be played.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType, FrameType
from typing import Any

import msgspec

from kubelet_conformance.plugin.play import Performed, perform
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bugs import bug_card, bug_ids
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.in_process.replaced_parts import (
    Replaced,
    open_stage_beside,
    what_is_replaced,
)
from kubelet_conformance.targets.opening import open_stage


@dataclass(frozen=True, slots=True)
class Reached:
    """The outcome of a scenario on the right kubelet and runtime.

    Attributes:
        done: its outcome.
        entered: the functions that were entered.
        differed: the bugs one of whose decisions would have been another one.
        seconds: how long it took.
    """

    done: Performed
    entered: frozenset[CodeType]
    differed: frozenset[str]
    seconds: float


def choice_of(bug: str) -> Choice:
    """The wrong kubelet with the right runtime, or the right kubelet with the wrong runtime."""
    card = bug_card(bug)
    if card.is_of_runtimes:
        return Choice(runtime=f"bug:{card.id}", kubernetes=card.kubernetes)
    return Choice(kubelet=f"bug:{card.id}", kubernetes=card.kubernetes)


def does_the_same(bug: str, other: Replaced, right: Reached) -> bool:
    """Whether the bug with these replacements does in a scenario what the right ones do."""
    return not other.functions & right.entered and not (other.decisions and bug in right.differed)


def reached(scenario: str, version: str) -> Reached:
    """Play a scenario on the reference and the fake as this version."""
    function, choice = every_scenario()[scenario], Choice(kubernetes=version)
    entered: set[CodeType] = set()

    def note(frame: FrameType, what: str, _: Any) -> None:  # noqa: ANN401 - Python's own signature
        if what == "call":
            entered.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        done = perform(function, scenario, open_stage(choice), version)
    finally:
        sys.setprofile(before)
    differed: set[str] = set()
    beside = perform(function, scenario, open_stage_beside(choice, _wrong_decisions(), differed), version)
    if beside != done:
        differed.update(bug_ids())  # A wrong decision has done something.
    seconds = msgspec.json.decode(done.trace.splitlines()[-1])["t"]
    return Reached(done, frozenset(entered), frozenset(differed), seconds)


@cache
def replaced_by(bug: str) -> Replaced | None:
    """The parts that a bug replaces. None: that cannot be found out."""
    return what_is_replaced(choice_of(bug))


@cache
def _wrong_decisions() -> Mapping[str, Mapping[str, Callable[..., Any]]]:
    """What the bugs of the zoo decide by, by the path of the decision and the bug."""
    found: dict[str, dict[str, Callable[..., Any]]] = {}
    for bug in bug_ids():
        other = replaced_by(bug)
        if other is not None:
            for path, decision in other.decisions.items():
                found.setdefault(path, {})[bug] = decision
    return found
