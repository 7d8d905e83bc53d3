"""The patch between two statuses, as real kubelets send it."""

from typing import Any

import pytest
from lightkube.models.core_v1 import PodStatus
from msgspec import convert, to_builtins

from kubelet_fakes.api.merging import merged
from kubelet_fakes.api.objects import frozen
from kubelet_reference.status.status_rules import status_patch

EARLY, LATE = "2026-11-20T23:28:45Z", "2026-11-20T23:28:47Z"
UNREADY = {"message": "containers with unready status: [app]", "reason": "ContainersNotReady"}
APP: dict[str, Any] = {
    "name": "app",
    "image": "img:1",
    "imageID": "",
    "ready": False,
    "restartCount": 0,
    "lastState": {},
}


def dated(kind: str, status: str, time: str = EARLY, **more: str) -> dict[str, Any]:
    """A condition."""
    return {"type": kind, "status": status, "lastTransitionTime": time, **more}


def a_status(**fields: Any) -> PodStatus:
    """A status by its fields, as JSON has them."""
    return convert(fields, PodStatus)


CREATED = a_status(phase="Pending", qosClass="BestEffort")
WAITS = a_status(
    phase="Pending",
    qosClass="BestEffort",
    conditions=[dated("Ready", "False", **UNREADY), dated("PodScheduled", "True")],
    containerStatuses=[{**APP, "state": {"waiting": {"reason": "ContainerCreating"}}}],
    startTime=EARLY,
)
RUNS = a_status(
    phase="Running",
    qosClass="BestEffort",
    conditions=[dated("Ready", "True", LATE), dated("PodScheduled", "True")],
    containerStatuses=[{**APP, "ready": True, "state": {"running": {"startedAt": LATE}}}],
    startTime=EARLY,
    podIP="10.88.0.2",
    podIPs=[{"ip": "10.88.0.2"}],
)
MOVED = a_status(phase="Running", podIP="10.88.0.3", podIPs=[{"ip": "10.88.0.3"}, {"ip": "fd00::3"}])


def test_first_patch() -> None:
    """The first patch adds what the API server does not have, conditions whole and without an order."""
    assert status_patch("u1", CREATED, WAITS) == {
        "metadata": {"uid": "u1"},
        "status": {
            "conditions": [
                {"lastProbeTime": None, **dated("Ready", "False", **UNREADY)},
                {"lastProbeTime": None, **dated("PodScheduled", "True")},
            ],
            "containerStatuses": [{**APP, "state": {"waiting": {"reason": "ContainerCreating"}}}],
            "startTime": EARLY,
        },
    }


def test_later_patch() -> None:
    """A later patch has only what differs: of a condition its changed fields, null for one that goes."""
    patch = status_patch("u1", WAITS, RUNS)

    assert patch is not None
    assert patch["status"] == {
        "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": LATE, "message": None, "reason": None}
        ],
        "containerStatuses": [{**APP, "ready": True, "state": {"running": {"startedAt": LATE}}}],
        "phase": "Running",
        "podIP": "10.88.0.2",
        "podIPs": [{"ip": "10.88.0.2"}],
    }


def test_fields_come_in_a_fixed_order() -> None:
    """Fields are sorted by name, as in a real patch, so that the same change is the same text."""
    patch = status_patch("u1", WAITS, RUNS)

    assert patch is not None
    assert list(patch) == ["metadata", "status"]
    assert list(to_builtins(patch["status"])) == sorted(to_builtins(patch["status"]))


@pytest.mark.parametrize("status", [CREATED, WAITS, RUNS])
def test_no_difference_is_no_patch(status: PodStatus) -> None:
    """Nothing is sent where nothing differs, nor for the order of conditions alone (STATUS-01)."""
    conditions = [*reversed(status.conditions or [])] or None
    other = a_status(
        **{**to_builtins(status), **({"conditions": to_builtins(conditions)} if conditions else {})}
    )

    assert status_patch("u1", status, a_status(**to_builtins(status))) is None
    assert status_patch("u1", status, other) is None


@pytest.mark.parametrize("old", [CREATED, WAITS, RUNS, MOVED], ids=["created", "waits", "runs", "moved"])
@pytest.mark.parametrize("new", [WAITS, RUNS, MOVED], ids=["waits", "runs", "moved"])
def test_leads_to_the_new_status(old: PodStatus, new: PodStatus) -> None:
    """What a strategic merge makes of the old status with the patch is the new status."""
    patch = status_patch("u1", old, new) or {"status": {}}
    result = merged(frozen(to_builtins(old)), to_builtins(patch["status"]))

    assert convert(to_builtins(result), PodStatus) == new
