"""Whether a probe may be executed now (table 27.12), as far as a trace shows what decides.

Rows are tried from the top, and the first that fits decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kubelet_conformance.contracts.probe_runs import Name
from kubelet_conformance.contracts.timing import ROUNDING


class Sight(NamedTuple):
    """A container and its pod at an execution of one of its probes.

    `age` is how long it has run, `delay` initialDelaySeconds; `started` says that its startup probe has
    succeeded or that it has none, `given_up` that this probe has failed as often as its threshold says.
    """

    name: Name
    ended: bool = False
    running: bool = True
    given_up: bool = False
    going: bool = False
    age: float = 0.0
    delay: float = 0.0
    started: bool = True


@dataclass(frozen=True, slots=True)
class TickRow:
    """Where `when` holds, the probe is executed or not."""

    row: str
    when: Callable[[Sight], bool]
    probes: bool
    why: str


TICKS: tuple[TickRow, ...] = (
    TickRow("T1", lambda s: s.ended, probes=False, why="its pod has ended"),
    TickRow(
        "T2",
        lambda s: s.given_up and s.name != "readiness",
        probes=False,
        why="it has failed, and waits for another instance",
    ),
    TickRow("T3", lambda s: not s.running, probes=False, why="its container does not run"),
    TickRow(
        "T4",
        lambda s: s.going and s.name != "readiness",
        probes=False,
        why="its pod is to go, and nothing is to be killed for it any more",
    ),
    TickRow("T5", lambda s: s.age < s.delay - ROUNDING, probes=False, why="its initial delay is not over"),
    TickRow(
        "T6",
        lambda s: s.started and s.name == "startup",
        probes=False,
        why="its container has started",
    ),
    TickRow(
        "T7",
        lambda s: not s.started and s.name != "startup",
        probes=False,
        why="its container has not started yet",
    ),
    TickRow("T8", lambda _: True, probes=True, why="nothing speaks against it"),
)


def tick_row(sight: Sight) -> TickRow:
    """The row that decides."""
    return next(row for row in TICKS if row.when(sight))


def may_be_probed(sight: Sight) -> bool:
    """The probe may be executed."""
    return tick_row(sight).probes
