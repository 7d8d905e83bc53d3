"""The deadline that a pod may set itself: activeDeadlineSeconds, counted from its start (DEADLINE-01)."""

from collections.abc import Callable, Iterable

from lightkube.models.core_v1 import Pod, PodStatus

from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason, Recorder
from kubelet_reference.api.records import NANOSECONDS
from kubelet_reference.status.pod_status import Ending
from kubelet_reference.util.ports import Clock

MESSAGE = "Pod was active on the node longer than the specified deadline"


def is_past_deadline(pod: Pod, status: PodStatus | None, wall_ns: int) -> bool:
    """Whether the time is over since the status's startTime, which outlives the kubelet (DEADLINE-02)."""
    seconds = pods.spec(pod).activeDeadlineSeconds
    if seconds is None or status is None or status.startTime is None:
        return False
    return wall_ns >= (status.startTime.timestamp() + seconds) * NANOSECONDS


class Deadlines:
    """Which pods have to end as their time is over; `stored` gives the status set last."""

    def __init__(self, stored: Callable[[str], PodStatus | None], clock: Clock, recorder: Recorder) -> None:
        self._stored = stored
        self._clock = clock
        self._recorder = recorder

    def due(self, desired: Iterable[Pod]) -> list[str]:
        """The UIDs of the pods whose time is over."""
        return [pods.uid(pod) for pod in desired if self.is_past(pod)]

    def is_past(self, pod: Pod) -> bool:
        """Whether the pod's time is over."""
        status = self._stored(pods.uid(pod)) or pod.status
        return is_past_deadline(pod, status, self._clock.wall_ns())

    def ending(self, pod: Pod) -> Ending | None:
        """Why the pod has to end, None if it may go on; an event each time it is asked (EVENTS-08)."""
        if not self.is_past(pod):
            return None
        self._recorder.normal(pod, Reason.DEADLINE_EXCEEDED, MESSAGE)
        return Ending(Reason.DEADLINE_EXCEEDED, MESSAGE)
