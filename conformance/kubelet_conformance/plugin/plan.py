"""Where a scenario is played on a real runtime: beside others, on a node of its own, or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kubelet_conformance.node import Scenario
from kubelet_conformance.plugin.rehearsal import Rehearsal

_SCRIPTED = (
    *("inject", "oom", "lose_track", "restart", "reboot"),
    *("set_conditions", "set_address", "set_file", "add_image", "remove_image", "remove_cgroup"),
    *("protect_image", "lose_events", "delay_events", "reverse_events", "cut_events"),
)
"""What only a runtime that follows a script can be made to do."""
_SCOPED = "set_file"
"""Of these, what each scenario has for itself."""
_SERVERS = ("answer_http", "open_port", "report_health")
_REGISTRY = "publish_image"
_OF_THE_WHOLE_NODE = frozenset(
    {
        "api.outage",
        "api.late_watch",
        "api.forget_history",
        "api.tolerate",
        "api.refuse",
        "api.put Node",
        "api.remove Node",
        "manifests.serve",
        "manifests.make_folder",
    }
    | {"api.put RuntimeClass", "api.remove RuntimeClass"}
)
_OF_THE_IMAGES = frozenset({"runtime.add_image", "runtime.remove_image", "runtime.publish_image"})
_PATIENCE_SECONDS = 45.0
"""How much longer than in the rehearsal one wait may take."""


class Place(StrEnum):
    """Where a scenario is played."""

    SHARED = "shared"
    ALONE = "alone"
    NOWHERE = "not applicable"


@dataclass(frozen=True, slots=True)
class Plan:
    """Where, why (for one that is not applicable: what is missing), and how long one wait may take (s)."""

    place: Place
    reason: str = ""
    patience: float = _PATIENCE_SECONDS


def plan(declared: Scenario, found: Rehearsal, budget: float, controls: frozenset[str] = frozenset()) -> Plan:
    """Where a scenario is played that was rehearsed so.

    `budget` is in seconds of wall time; `controls` are what the runtime can be made to do beyond the CRI.
    """
    missing = _missing(declared, found, budget, controls)
    if missing:
        return Plan(Place.NOWHERE, f"needs {missing}")
    reason = _why_alone(declared, found)
    return Plan(Place.ALONE if reason else Place.SHARED, reason, found.seconds + _PATIENCE_SECONDS)


def _missing(declared: Scenario, found: Rehearsal, budget: float, controls: frozenset[str]) -> str:
    """What a real runtime does not have, or the wall time; "" if nothing is missing."""
    return next(_all_missing(declared, found, budget, controls), "")


def _all_missing(
    declared: Scenario, found: Rehearsal, budget: float, controls: frozenset[str]
) -> Iterator[str]:
    is_real = "inject" not in controls
    if is_real and declared.needs:
        yield declared.needs
    scripted = [name for name in _SCRIPTED if f"runtime.{name}" in found.uses and name not in controls]
    if scripted or (is_real and declared.lies):
        yield f"a scripted runtime: {', '.join(scripted) or 'one that lies'}"
    if found.servers or any(f"runtime.{name}" in found.uses for name in _SERVERS):
        yield "servers in its pods"
    if any(use.startswith("machine.") for use in found.uses):
        yield "a machine that can be short of memory or disk, or shut down"
    by_digest = sorted(each for each in found.pulled if "@" in each)
    if is_real and by_digest:
        yield f"a registry with {', '.join(by_digest)}"
    if _REGISTRY not in controls and (found.pulled or f"runtime.{_REGISTRY}" in found.uses):
        yield f"a registry{' with ' * bool(found.pulled)}{', '.join(sorted(found.pulled))}"
    if found.handlers:
        yield f"runtime handlers: {', '.join(sorted(found.handlers))}"
    if found.seconds > budget:
        yield f"{wall_time(found.seconds)} of wall time"


def wall_time(seconds: float) -> str:
    """A duration in words, rounded up."""
    return f"{math.ceil(seconds)} s" if seconds < 2 * 60 else f"{math.ceil(seconds / 60)} min"


def _why_alone(declared: Scenario, found: Rehearsal) -> str:
    """Why a scenario cannot share a node; "" if it can."""
    if declared.settings:
        return "sets " + ", ".join(name for name, _ in declared.settings)
    if any(use.startswith("kubelet.") for use in found.uses):
        return "starts and ends the kubelet"
    if found.pulled or found.uses & _OF_THE_IMAGES:
        return "changes the images of the node"
    if any(f"runtime.{name}" in found.uses for name in _SCRIPTED if name != _SCOPED):
        return "makes the runtime misbehave"
    of_node = sorted(found.uses & _OF_THE_WHOLE_NODE)
    if of_node:
        return f"touches the whole node: {', '.join(of_node)}"
    return "takes ports of the node" if found.host_ports else ""
