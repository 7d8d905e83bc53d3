"""What the right kubelet and the right runtime do in a scenario, and which of their functions it enters.

A bug that replaces none of these does the same: all is reproducible, so it need not be played.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from kubelet_conformance.plugin.play import perform
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.stage import Choice, open_stage

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from kubelet_conformance.plugin.play import Performed

__all__ = ("Reached", "reached")


@dataclass(frozen=True, slots=True)
class Reached:
    """What came of a scenario on the right kubelet and runtime, and what was entered meanwhile."""

    done: Performed
    entered: frozenset[CodeType]


@cache
def reached(scenario: str, version: str) -> Reached:
    """Play a scenario on the reference and the fake as this version."""
    entered: set[CodeType] = set()

    def note(frame: FrameType, what: str, _: Any) -> None:  # noqa: ANN401 - Python's own signature
        if what == "call":
            entered.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        done = perform(every_scenario()[scenario], scenario, open_stage(Choice(kubernetes=version)), version)
    finally:
        sys.setprofile(before)
    return Reached(done, frozenset(entered))
