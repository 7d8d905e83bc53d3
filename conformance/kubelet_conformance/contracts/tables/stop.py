"""How long a container has to stop: a row for each situation in which one is killed."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kubelet_conformance.contract.applicability import ByVersion, Version
from kubelet_conformance.contracts.tables.table import taken

MINIMUM_GRACE = 2
"""Least timeout of a StopContainer (kuberuntime_container.go)."""
OVERRIDES = ByVersion({"<=1.21": False, "1.22..1.26": True, ">=1.28": False})
"""The grace of a pod's termination replaces the computed one after the preStop hook and the minimum."""


def whole_graces(grace: int, version: Version | None) -> list[int]:
    """The timeouts that a pod's grace may become; in a version that was not read the least is unknown."""
    leasts = {None: (1, MINIMUM_GRACE), True: (1,), False: (MINIMUM_GRACE,)}[OVERRIDES.get(version)]
    return sorted({max(grace, least) for least in leasts})


Situation = Literal[
    "deleted",
    "orphan",
    "ended",
    "dead sandbox",
    "lost cgroup",
    "changed",
    "unknown state",
    "postStart failed",
    "probe failed",
    "probe failed for good",
    "lost record",
]
Base = Literal["asked", "one", "spec", "probe", "recorded"]
"""The requested grace, one second, the pod's, the probe's if it has one, or that in a record."""


class Graces(NamedTuple):
    """What is known of a pod's graces, in seconds: in its spec, as a deletion asked for, of the probe."""

    spec: int
    asked: int | None = None
    probe: int | None = None


class StopRow(NamedTuple):
    """In situation `name` a kill starts from `base`; where the whole pod goes its worker hands it down."""

    name: Situation
    base: Base
    what_goes: Literal["pod", "container"]
    why: str

    @property
    def pod_goes(self) -> bool:
        """The whole pod is terminated."""
        return self.what_goes == "pod"

    def seconds(self, graces: Graces) -> int:
        """What the kill starts from."""
        asked = graces.spec if graces.asked is None else graces.asked
        found = {"asked": asked, "recorded": asked, "one": 1, "spec": graces.spec}
        return found.get(self.base, graces.spec if graces.probe is None else graces.probe)


STOPS = (
    StopRow("deleted", "asked", "pod", "a deletion, or the removal of a manifest, ends the whole pod"),
    StopRow("orphan", "one", "pod", "no source knows the pod"),
    StopRow("ended", "spec", "container", "the pod has come to its end, and something still runs"),
    StopRow("dead sandbox", "spec", "container", "the sandbox has to be replaced"),
    StopRow("lost cgroup", "spec", "container", "the pod's cgroup is missing"),
    StopRow("changed", "spec", "container", "the container's definition has changed"),
    StopRow("unknown state", "spec", "container", "the runtime does not know whether it runs"),
    StopRow("postStart failed", "spec", "container", "its postStart hook failed"),
    StopRow("probe failed", "probe", "container", "its liveness or startup probe gave it up"),
    StopRow(
        "probe failed for good",
        "spec",
        "container",
        "its probe gave it up, and the pod ends with it",
    ),
    StopRow(
        "lost record", "recorded", "container", "only a record of unknown state is left, with its annotations"
    ),
)
_ROWS: dict[Situation, StopRow] = {row.name: row for row in STOPS}


def stop_row(situation: Situation) -> StopRow:
    """The row of the situation."""
    row = _ROWS[situation]
    taken[row] += 1
    return row


def stop_timeouts(row: StopRow, base: int, waited: tuple[int, int], version: Version | None) -> range:
    """The timeouts that StopContainer may have, after a wait of so many whole seconds at least and at most.

    What was waited for is taken off the base, and 2 s are left at least; from 1.22 to 1.26 neither was so for
    a pod that is terminated (TERM-05, TERM-11).
    """
    if row.pod_goes and OVERRIDES.get(version):
        return range(max(1, base), max(1, base) + 1)
    shortest, longest = waited
    return range(max(MINIMUM_GRACE, base - longest), max(MINIMUM_GRACE, base - shortest) + 1)
