"""Which of the wanted pods are active: those that take up room, or may still be started."""

from __future__ import annotations

from collections.abc import Iterable

from lightkube.models.core_v1 import Pod

from kubelet_reference import pods
from kubelet_reference.status_manager import StatusManager
from kubelet_reference.worker_views import WorkerViews


class PodActivity:
    """Tells from the workers and the statuses whether a pod is over."""

    def __init__(self, workers: WorkerViews, statuses: StatusManager) -> None:
        self._workers = workers
        self._statuses = statuses

    def active(self, wanted: Iterable[Pod]) -> list[Pod]:
        """The pods that are not over; one that is being stopped still counts (ADMIT-04, K8S-104577)."""
        return [pod for pod in wanted if self.is_active(pod)]

    def is_active(self, pod: Pod) -> bool:
        """Whether the pod runs, will run, or is being stopped."""
        uid = pods.uid(pod)
        if self._workers.is_pod_known_terminated(uid):
            return False
        return self._workers.is_termination_requested(uid) or not self.has_terminal_phase(pod)

    def has_terminal_phase(self, pod: Pod) -> bool:
        """Whether the source or this kubelet says that the pod has ended for good (WORK-23, K8S-7250)."""
        if pods.is_terminal_phase(pods.phase(pod)):
            return True
        status = self._statuses.get(pods.uid(pod))
        return status is not None and pods.is_terminal_phase(status.phase)
