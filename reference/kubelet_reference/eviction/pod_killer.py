"""Kills a pod for another part of the kubelet, and waits until that is done: evictions, preemptions."""

import asyncio
from collections.abc import Callable

from lightkube.models.core_v1 import Pod, PodStatus

from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason, Recorder
from kubelet_reference.pod_workers.pod_workers import PodWorkers
from kubelet_reference.pod_workers.worker import KillOptions, Update, UpdateKind

SHORTEST_WAIT_SECONDS = 10.0
PATIENCE = 1.5
"""So many times the grace period is waited at most."""
EXCEEDED = "Container runtime did not kill the pod within specified grace period."


class PodKiller:
    """Asks the worker for a kill, and waits for it (WORK-20)."""

    def __init__(self, workers: PodWorkers, recorder: Recorder) -> None:
        self._workers = workers
        self._recorder = recorder

    async def kill(
        self, pod: Pod, change_status: Callable[[PodStatus], PodStatus], grace: int | None, *, evict: bool
    ) -> None:
        """Return when nothing of the pod runs any more, or the wait is over; then the kill goes on.

        `grace` is in seconds, None leaves the pod its own; `change_status` gives the status that the kill
        publishes, such as Failed and Evicted.
        """
        done = asyncio.Event()
        options = KillOptions(grace, evict, change_status, done)
        self._workers.update_pod(Update(UpdateKind.KILL, pod, kill=options))
        try:
            async with asyncio.timeout(self.patience(pod, grace)):
                await done.wait()
        except TimeoutError:
            self._recorder.warning(pod, Reason.EXCEEDED_GRACE_PERIOD, EXCEEDED)

    def patience(self, pod: Pod, grace: int | None) -> float:
        """How many seconds to wait."""
        return max(SHORTEST_WAIT_SECONDS, PATIENCE * (pods.grace_seconds(pod) if grace is None else grace))
