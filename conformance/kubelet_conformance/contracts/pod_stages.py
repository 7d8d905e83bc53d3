"""How far a pod's life is, as it shows from outside, and what that allows (decision table 27.6).

Rows are tried from the top, the first that fits decides, and each says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from kubelet_conformance.contracts.situations import at_its_end
from kubelet_conformance.trace.views import Pod

Stage = Literal["wanted", "terminating", "terminated", "forgotten"]
"""`terminated` is every state in which nothing of the pod runs, `forgotten` one that nobody wants besides."""
Act = Literal["make", "remove volumes", "remove folder"]


class StageSeen(msgspec.Struct, frozen=True):
    """What decides: is it in a source, was it asked to go, has its run ended, does anything of it run."""

    wanted: bool = True
    asked: bool = False
    ended: bool = False
    runs: bool = False


@dataclass(frozen=True, slots=True)
class StageRow:
    """Where `when` holds, the pod is at `stage`."""

    row: str
    when: Callable[[StageSeen], bool]
    stage: Stage
    why: str


STAGES: tuple[StageRow, ...] = (
    StageRow("S1", lambda s: s.runs and (s.asked or not s.wanted), "terminating", "it has to stop first"),
    StageRow("S2", lambda s: s.runs and s.ended, "terminating", "its run is over, and something is left"),
    StageRow("S3", lambda s: not s.wanted, "forgotten", "no source has it, and nothing of it runs"),
    StageRow("S4", lambda s: s.asked or s.ended, "terminated", "it is over, and nothing of it runs"),
    StageRow("S5", lambda _: True, "wanted", "nobody has asked it to go"),
)
ALLOWED: dict[Stage, frozenset[Act]] = {
    "wanted": frozenset({"make"}),
    "terminating": frozenset(),
    "terminated": frozenset({"remove volumes", "remove folder"}),
    "forgotten": frozenset({"remove volumes", "remove folder"}),
}
"""What may be done to a pod at each stage; a sync that is under way as it is asked to go may end first."""


def stage_of(seen: StageSeen) -> StageRow:
    """The row that decides the stage."""
    for row in STAGES:
        if row.when(seen):
            return row
    raise AssertionError("the last row fits all")


def seen_of(pod: Pod) -> StageSeen:
    """What a trace shows of a pod."""
    runs = any(container.state == "running" for container in pod.every_container())
    ended = bool(pod.finished) or at_its_end(pod)
    return StageSeen(wanted=pod.wanted, asked=pod.termination is not None, ended=ended, runs=runs)
