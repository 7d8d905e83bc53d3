"""Feature gates: which this kubelet has, since when, and what they are where nobody sets them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gate:
    """The minor versions of Kubernetes that first had a gate, and that first had it on by default."""

    since: int
    on_since: int | None = None

    def default(self, minor: int) -> bool:
        """What it is in that version, unless set."""
        return self.on_since is not None and minor >= self.on_since


GATES: Mapping[str, Gate] = {
    "ContainerRestartRules": Gate(34, on_since=35),
    "ContainerStopSignals": Gate(33),
    "DynamicResourceAllocation": Gate(26, on_since=34),
    "EventedPLEG": Gate(25),
    "ImageVolume": Gate(31, on_since=35),
    "InPlacePodVerticalScaling": Gate(27, on_since=33),
    "KubeletCrashLoopBackOffMax": Gate(32, on_since=35),
    "KubeletEnsureSecretPulledImages": Gate(33, on_since=35),
    "PodLifecycleSleepAction": Gate(29, on_since=30),
    "PodObservedGenerationTracking": Gate(33, on_since=34),
    "PodReadyToStartContainersCondition": Gate(28, on_since=29),
    "ReduceDefaultCrashLoopBackOffDecay": Gate(33),
    "RestartAllContainersOnContainerExits": Gate(35, on_since=36),
    "SidecarContainers": Gate(28, on_since=29),
}
"""By name; KEP and release numbers are those of section 28 of the catalogue."""


def is_on(name: str, minor: int, given: Mapping[str, bool]) -> bool:
    """Whether the gate is on in a kubelet of that minor version, with these gates set."""
    gate = GATES[name]
    return minor >= gate.since and given.get(name, gate.default(minor))
