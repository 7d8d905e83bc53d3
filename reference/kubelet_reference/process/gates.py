"""Feature gates in the configuration: which may be set, and to what."""

from __future__ import annotations

from collections.abc import Mapping

from kubelet_reference.config.problems import Place
from kubelet_reference.feature_gates import GATES
from kubelet_reference.process.foreign import FOREIGN_GATES
from kubelet_reference.versions import Behaviour

RESTART_PERIOD_GATE = "KubeletCrashLoopBackOffMax"
"""Lets crashLoopBackOff.maxContainerRestartPeriod be set (1.32)."""

_ALWAYS_ON = {"PodLifecycleSleepAction": "sleep hooks are always run"}
"""Gates that cannot be closed here, each with the reason."""


def check_gates(gates: Mapping[str, bool], behaviour: Behaviour, place: Place) -> None:
    """Note gates that are unknown, or set to what is not offered."""
    for name, value in gates.items():
        gate, here = GATES.get(name), place.field(name)
        if gate is None and name in FOREIGN_GATES:
            here.wrong("a kubelet has this feature gate, kubelet-reference does not: leave it out")
        elif gate is None:
            here.wrong(f"unknown feature gate; known are {', '.join(sorted(GATES))}")
        elif behaviour.minor < gate.since:
            here.wrong(f"Kubernetes 1.{behaviour.minor} has no such gate, 1.{gate.since} is the first")
        elif not value and name in _ALWAYS_ON:
            here.wrong(f"can only be true in kubelet-reference: {_ALWAYS_ON[name]}")


def with_gates(behaviour: Behaviour, gates: Mapping[str, bool]) -> Behaviour:
    """The behaviour as the gates change it."""
    return type(behaviour).of(f"1.{behaviour.minor}", gates)
