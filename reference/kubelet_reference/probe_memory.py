"""What a kubelet that starts again may keep of what its forerunner found by probes (PROBE-25, KEP-4781)."""

from __future__ import annotations

from lightkube.models.core_v1 import ContainerStatus, Pod

from kubelet_reference.results import ProbeKind

MARGIN_SECONDS = 10
"""A container that started less than this before the kubelet is probed anew."""


def kept_by_probe(kind: ProbeKind, pod: Pod, shown: ContainerStatus, began: float) -> bool:
    """Whether the API server says that this probe of this instance has succeeded for an earlier kubelet."""
    kept = kept_status(pod, shown, began)
    if kept is None:
        return False
    match kind:
        case ProbeKind.READINESS:
            return kept.ready
        case ProbeKind.STARTUP:
            return bool(kept.started)
        case ProbeKind.LIVENESS:
            return False


def kept_status(pod: Pod, shown: ContainerStatus, began: float) -> ContainerStatus | None:
    """What the API server says of the instance in `shown`, if that was there well before this kubelet.

    `began` is when the kubelet started, in seconds since the epoch. Another instance of the same name says
    nothing of this one (K8S-141473).
    """
    running = shown.state.running if shown.state else None
    if running is None or running.startedAt is None or pod.status is None:
        return None
    if running.startedAt.timestamp() > began - MARGIN_SECONDS:
        return None
    told = (*(pod.status.containerStatuses or ()), *(pod.status.initContainerStatuses or ()))
    return next((one for one in told if one.containerID == shown.containerID and one.containerID), None)
