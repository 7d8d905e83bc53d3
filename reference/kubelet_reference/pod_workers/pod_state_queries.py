"""What other components ask about a pod before they start, report or remove anything of it.

    sync          terminating begins   all stopped      cleaned up        forgotten
    |-------------|--------------------|----------------|-----------------|
    could have running containers .....|
                  containers should be terminating ........................
                                       known terminated ...................
                                       content should be removed (deleted) .
                                                        should be finished .

A pod without a worker is undecided before the first housekeeping, for its source may not have been seen yet;
after that it counts as gone.

`PodActivity` says which of the desired pods are active: those that take up room, or may still be started.
`StaticNames` lets static pods of one full name take turns.
"""

from collections.abc import Callable, Iterable

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.pod_workers.worker import Worker
from kubelet_reference.pod_workers.worker_table import State
from kubelet_reference.status.status_manager import StatusManager


class StaticNames:
    """Lets one static pod at a time hold a full name (name and namespace); the others queue (STATIC-18)."""

    def __init__(self) -> None:
        self._holders: dict[str, str] = {}
        self._waiting: dict[str, list[str]] = {}

    def wait(self, full_name: str, uid: str) -> None:
        """Queue up for the name; a UID that queues already keeps its place before this one."""
        self._waiting.setdefault(full_name, []).append(uid)

    def may_take(self, full_name: str, uid: str, still_waits: Callable[[str], bool]) -> bool:
        """Whether the name is free, and `uid` the first in line of those that still wait (STATIC-19)."""
        self._waiting[full_name] = line = [one for one in self._waiting[full_name] if still_waits(one)]
        return full_name not in self._holders and line[0] == uid

    def take(self, full_name: str, uid: str) -> None:
        """Hold the name."""
        self._holders[full_name] = uid

    def holder(self, full_name: str) -> str | None:
        """The UID that holds the name."""
        return self._holders.get(full_name)

    def release(self, full_name: str, uid: str) -> None:
        """Give the name up, if `uid` holds it."""
        if self._holders.get(full_name) == uid:
            del self._holders[full_name]


class PodStateQueries:
    """The questions about a pod's lifecycle; `PodWorkers` inherits them."""

    _names: StaticNames

    def __init__(self) -> None:
        self._workers: dict[str, Worker] = {}
        self._is_synced = False

    def could_have_running_containers(self, uid: str) -> bool:
        """Whether a container of the pod may run: no terminal phase may be published (TERM-15)."""
        worker = self._workers.get(uid)
        return not self._is_synced if worker is None else not worker.has_ended

    def is_pod_known_terminated(self, uid: str) -> bool:
        """Whether a worker says that nothing of the pod runs any more: it needs no room on the node."""
        worker = self._workers.get(uid)
        return worker is not None and worker.has_ended

    def is_termination_requested(self, uid: str) -> bool:
        """Whether the pod is ending: nothing new may be set up for it."""
        worker = self._workers.get(uid)
        return worker is not None and worker.is_ending

    def should_content_be_removed(self, uid: str) -> bool:
        """Whether folders, logs and dead containers may go: the pod is evicted or deleted, and has stopped.

        While an evicted pod is still being stopped they tell how its containers ended (EVICT-05).
        """
        worker = self._workers.get(uid)
        if worker is None:
            return self._is_synced
        return worker.has_ended and (worker.is_evicted or worker.is_deleted)

    def is_static_pod_ending(self, full_name: str) -> bool:
        """Whether the static pod that holds the name is being stopped; its mirror stays (STATIC-15)."""
        worker = self._workers.get(self._names.holder(full_name) or "")
        return worker is not None and worker.is_ending and not worker.has_ended

    def _still_waits(self, uid: str) -> bool:
        worker = self._workers.get(uid)
        return worker is not None and worker.state is State.WAITING


class PodActivity:
    """Says which desired pods are active, by their workers and statuses."""

    def __init__(self, workers: PodStateQueries, statuses: StatusManager) -> None:
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
