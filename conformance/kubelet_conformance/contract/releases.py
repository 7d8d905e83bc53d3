"""What each Kubernetes release is held to: which contracts count for it, and which gates it has on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from kubelet_conformance.contract.versions import Version

ON_SINCE: Mapping[str, Version] = {
    "ContainerRestartRules": (1, 35),
    "DynamicResourceAllocation": (1, 34),
    "ImageVolume": (1, 35),
    "InPlacePodVerticalScaling": (1, 33),
    "KubeletCrashLoopBackOffMax": (1, 35),
    "KubeletEnsureSecretPulledImages": (1, 35),
    "PodLifecycleSleepAction": (1, 30),
    "PodObservedGenerationTracking": (1, 34),
    "PodReadyToStartContainersCondition": (1, 29),
    "RestartAllContainersOnContainerExits": (1, 36),
    "SidecarContainers": (1, 29),
}
"""Since when a feature gate is on where nobody sets it; one that is not named is off."""


def is_on(gate: str, given: Mapping[str, bool], version: Version | None) -> bool:
    """Whether a feature gate is on in a kubelet of that version with these gates set."""
    usual = gate in ON_SINCE and version is not None and version >= ON_SINCE[gate]
    return given.get(gate, usual)


@cache
def releases() -> tuple[str, ...]:
    """The releases whose requirements are frozen, the oldest first."""
    names = [each.name.removesuffix(".txt") for each in _folder().iterdir() if each.name.endswith(".txt")]
    return tuple(sorted(names, key=lambda name: [int(part) for part in name.split(".")]))


@cache
def requirements(release: str) -> frozenset[str] | None:
    """The ids of the contracts that a release such as "1.32" is held to; None if they are not frozen."""
    if release not in releases():
        return None
    lines = _folder().joinpath(f"{release}.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def is_required(contract: str, release: str) -> bool:
    """Whether a break of the contract counts for a release; for one without frozen requirements all do."""
    frozen = requirements(release)
    return frozen is None or contract in frozen


def _folder() -> Traversable:
    return resources.files("kubelet_conformance.contract").joinpath("requirements")
