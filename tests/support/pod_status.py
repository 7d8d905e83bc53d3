"""Pod statuses for traces, as a right kubelet writes them."""

from collections.abc import Sequence
from typing import Any

from trace_builder import ContainerHandle, PodHandle, TraceBuilder

STARTED = "2026-01-01T00:00:00Z"


def _entry(state: dict[str, Any], of: ContainerHandle | None, fields: dict[str, Any]) -> dict[str, Any]:
    name = fields.pop("name", of.name if of else "c1")
    ids: dict[str, Any] = {"image": "img:1", "imageID": ""}
    if of is not None:
        image = of.config["image"]["image"]
        ids = {"image": image, "imageID": image, "containerID": f"fake://{of.id}"}
    count = int(of.config["annotations"]["io.kubernetes.container.restartCount"]) if of else 0
    entry = {"name": name, "state": state, "lastState": {}, "ready": False, "restartCount": count}
    return entry | {"started": False} | ids | fields


def waits(
    reason: str = "ContainerCreating", of: ContainerHandle | None = None, **fields: Any
) -> dict[str, Any]:
    """The status of a container that waits."""
    return _entry({"waiting": {"reason": reason} if reason else {}}, of, fields)


def runs(of: ContainerHandle | None = None, **fields: Any) -> dict[str, Any]:
    """The status of a container that runs, ready and started."""
    return _entry({"running": {}}, of, {"ready": True, "started": True} | fields)


def end_of(of: ContainerHandle | None, code: int, **fields: Any) -> dict[str, Any]:
    """A terminated state."""
    known = {"containerID": f"fake://{of.id}"} if of else {}
    return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"} | known | fields}


def ended(code: int = 0, of: ContainerHandle | None = None, **fields: Any) -> dict[str, Any]:
    """The status of a container that ended."""
    return _entry(end_of(of, code), of, fields)


def again(code: int, of: ContainerHandle | None = None, **fields: Any) -> dict[str, Any]:
    """The status of a container that ended and waits to be started again."""
    entry = waits(fields.pop("reason", "CrashLoopBackOff"), of)
    return entry | {"lastState": end_of(of, code)} | fields


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> dict[str, Any]:
    """A condition of a pod."""
    said = {"type": kind, "status": status, "lastTransitionTime": STARTED}
    return said | {key: text for key, text in (("reason", reason), ("message", message)) if text}


def tell_status(
    s: TraceBuilder,
    pod: PodHandle,
    phase: str = "Running",
    apps: Sequence[dict[str, Any]] = (),
    *,
    inits: Sequence[dict[str, Any]] = (),
    conditions: Sequence[dict[str, Any]] = (),
    **fields: Any,
) -> None:
    """A status that a kubelet wrote; PodScheduled is always among its conditions."""
    reported: dict[str, Any] = {
        "conditions": [condition("PodScheduled"), *conditions],
        "startTime": STARTED,
        "hostIP": "192.0.2.2",
        "qosClass": "BestEffort",
    }
    if apps:
        reported["containerStatuses"] = list(apps)
    if inits:
        reported["initContainerStatuses"] = list(inits)
    reported = {key: value for key, value in (reported | fields).items() if value is not None}
    s.status(pod, phase, **reported)
