"""Delays the restart of containers that exit again and again (BACKOFF-01..10)."""

from dataclasses import dataclass

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason
from kubelet_reference.api.go_text import duration_text, pod_text
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord, PodRecords
from kubelet_reference.api.sync_result import Failure, StartError
from kubelet_reference.kuberuntime.actions.container_hash import container_hash
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.util.backoff import BASE_SECONDS, CAP_SECONDS, Backoff
from kubelet_reference.util.versions import Behaviour


def restart_curve(configured: float | None, behaviour: Behaviour) -> tuple[float, float]:
    """The first and the longest delay, in seconds (BACKOFF-01, BACKOFF-11).

    Where the node may be configured with the longest delay, that of the shorter series does not count.
    """
    base, cap = (1.0, 60.0) if behaviour.restarts_sooner else (BASE_SECONDS, CAP_SECONDS)
    if behaviour.takes_restart_period:
        cap = configured or CAP_SECONDS
    return min(base, cap), cap


@dataclass(eq=False)
class CrashBackoff:
    """Refuses a start while the container is in CrashLoopBackOff; an allowed start doubles the delay."""

    tools: RuntimeTools

    def __post_init__(self) -> None:
        base, cap = restart_curve(self.tools.settings.max_container_restart_period, self.tools.behaviour)
        self._backoff = Backoff(self.tools.clock, base, cap)

    def admit(self, pod: Pod, container: AnyContainer, records: PodRecords) -> None:
        """Let the start through, or raise `StartError` with CrashLoopBackOff and report it (BACKOFF-06).

        The records are those from before the sync: an instance that was killed in this sync still runs in
        them, so that the restart after a failed probe is not held back by it (RESTART-12).
        """
        ended = self.newest_exited(container, records)
        if ended is None:
            return
        key = self.key(pod, container)
        if not self._backoff.is_in_backoff_since(key, ended.finished_at):
            self._backoff.next(key, ended.finished_at)
            return
        where = f"container {container.name} in pod {pod_text(pod)}"
        self.tools.recorder.warning(
            pod, Reason.BACK_OFF, f"Back-off restarting failed {where}", container.name
        )
        delay = duration_text(self._backoff.delay(key))
        text = f"back-off {delay} restarting failed container={container.name} pod={pod_text(pod)}"
        left = self._backoff.left(key, ended.finished_at)
        wait = left if self.tools.behaviour.retries_when_backoff_ends else None
        raise StartError(Failure.CRASH_LOOP_BACK_OFF, text, wait)

    def newest_exited(self, container: AnyContainer, records: PodRecords) -> ContainerRecord | None:
        """The last instance that ended; its end is what the delay counts from (BACKOFF-02)."""
        every = (record for record in records.containers if record.name == container.name)
        return next((record for record in every if record.has_exited), None)

    def key(self, pod: Pod, container: AnyContainer) -> str:
        """Pod, container and definition: with another image the series begins anew (BACKOFF-05)."""
        named = (pods.name(pod), pods.namespace(pod), pods.uid(pod), container.name)
        return "_".join((*named, container_hash(container, self.tools.behaviour)))
