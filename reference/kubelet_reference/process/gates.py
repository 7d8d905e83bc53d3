"""Feature gates: which this kubelet knows, what they may be, and what they change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kubelet_reference.process.foreign import FOREIGN_GATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubelet_reference.config.problems import Place
    from kubelet_reference.versions import Behaviour

__all__ = ("RESTART_PERIOD_GATE", "check_gates", "with_gates")

RESTART_PERIOD_GATE = "KubeletCrashLoopBackOffMax"
"""Lets crashLoopBackOff.maxContainerRestartPeriod be set (1.32)."""
_READY_TO_START_GATE = "PodReadyToStartContainersCondition"


@dataclass(frozen=True, slots=True)
class _Gate:
    """One gate: the oldest minor version that has it, and its one value, if there is but one here."""

    since: int
    fixed: bool | None = None
    why: str = ""


_GATES: Mapping[str, _Gate] = {
    RESTART_PERIOD_GATE: _Gate(32),
    _READY_TO_START_GATE: _Gate(28),
    "PodLifecycleSleepAction": _Gate(29, fixed=True, why="sleep hooks are always run"),
    "EventedPLEG": _Gate(26, fixed=False, why="the runtime is listed"),
}


def check_gates(gates: Mapping[str, bool], behaviour: Behaviour, place: Place) -> None:
    """Note gates that are unknown, or set to what is not offered."""
    for name, value in gates.items():
        gate, here = _GATES.get(name), place.field(name)
        if gate is None and name in FOREIGN_GATES:
            here.wrong("a kubelet has this feature gate, kubelet-reference does not: leave it out")
        elif gate is None:
            here.wrong(f"unknown feature gate; known are {', '.join(sorted(_GATES))}")
        elif behaviour.minor < gate.since:
            here.wrong(f"Kubernetes 1.{behaviour.minor} has no such gate, 1.{gate.since} is the first")
        elif gate.fixed is not None and value is not gate.fixed:
            here.wrong(f"can only be {str(gate.fixed).lower()} in kubelet-reference: {gate.why}")


def with_gates(behaviour: Behaviour, gates: Mapping[str, bool]) -> Behaviour:
    """The behaviour as the gates change it."""
    ready = gates.get(_READY_TO_START_GATE)
    return behaviour if ready is None else replace(behaviour, reports_ready_to_start_containers=ready)
