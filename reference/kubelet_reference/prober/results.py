"""The published results of probes, and how their changes reach the sync loop.

A `ResultCache` keeps the last result of one kind of probe for each container, and puts each change on the
queue of the sync loop. A restarted kubelet may take over the readiness and startup results that the API
server has from the kubelet before it (PROBE-25, KEP-4781).
"""

import asyncio
from dataclasses import dataclass

from lightkube.models.core_v1 import ContainerStatus, Pod, PodStatus

from kubelet_reference.api.results import ProbeKind, ProbeOutcome

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
    if not is_older(shown, began):
        return None
    status = pod.status or PodStatus()
    stored = (*(status.containerStatuses or ()), *(status.initContainerStatuses or ()))
    return next((one for one in stored if one.containerID == shown.containerID and one.containerID), None)


def is_older(shown: ContainerStatus, began: float) -> bool:
    """Whether the instance in `shown` runs and was started well before this kubelet."""
    running = shown.state.running if shown.state else None
    started = running.startedAt if running is not None else None
    return started is not None and started.timestamp() <= began - MARGIN_SECONDS


@dataclass(frozen=True, slots=True)
class ProbeUpdate:
    """The published result of one probe of a container of the pod `uid` has changed (LOOP-12)."""

    kind: ProbeKind
    uid: str
    container_id: str
    outcome: ProbeOutcome


class ResultCache:
    """The results of one kind of probe by container id, so that no instance inherits another's (PROBE-26)."""

    def __init__(self, kind: ProbeKind, updates: asyncio.Queue[ProbeUpdate]) -> None:
        self._kind = kind
        self._updates = updates
        self._results: dict[str, ProbeOutcome] = {}

    def get(self, container_id: str) -> ProbeOutcome | None:
        """The published result, None before the first and after the last."""
        return self._results.get(container_id)

    def set(self, container_id: str, outcome: ProbeOutcome, uid: str) -> None:
        """Publish a result; only one that differs from the last is put on the queue."""
        if self._results.get(container_id) is outcome:
            return
        self._results[container_id] = outcome
        self._updates.put_nowait(ProbeUpdate(self._kind, uid, container_id, outcome))

    def remove(self, container_id: str) -> None:
        """Forget a container."""
        self._results.pop(container_id, None)
