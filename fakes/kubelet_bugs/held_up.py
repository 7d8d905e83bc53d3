"""Bugs of starts that are held up or fail: their numbers, their delays, and what is told of them."""

from __future__ import annotations

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.backoff import Backoff
from kubelet_reference.crash_backoff import CrashBackoff
from kubelet_reference.pods import AnyContainer
from kubelet_reference.records import PodRecords
from kubelet_reference.runtime_tools import RuntimeTools
from kubelet_reference.start_container import ContainerStarter, PodToStart, StartParts
from kubelet_reference.sync_result import Failure, StartError


@bug("MUT-RESTART-24", breaks=("RESTART-24", "RESTARTKUBELET-03"))
class CountsTries(ContainerStarter):
    """Instances are numbered by the tries of this kubelet, failed ones and none of former kubelets."""

    def __init__(self, tools: RuntimeTools, parts: StartParts) -> None:
        super().__init__(tools, parts)
        self._tries: dict[tuple[str, str], int] = {}

    def restarts(self, into: PodToStart, container: AnyContainer) -> int:
        key = pods.uid(into.pod), container.name
        self._tries[key] = self._tries.get(key, -1) + 1
        return self._tries[key]


@bug("MUT-BACKOFF-13", breaks="BACKOFF-13")
class EveryTryCounts(CrashBackoff):
    """A container that could not be created is held up as if it had crashed."""

    def __init__(self, tools: RuntimeTools) -> None:
        super().__init__(tools)
        self._clock = tools.clock
        self._tried = Backoff(tools.clock, base=40)

    def admit(self, pod: Pod, container: AnyContainer, records: PodRecords) -> None:
        super().admit(pod, container, records)
        key = self.key(pod, container)
        if self._tried.is_in_backoff_since_update(key):
            raise StartError(Failure.CREATE_CONTAINER, "tried a moment ago")
        self._tried.next(key, self._clock.wall_ns())


@bug("MUT-BACKOFF-06", breaks="BACKOFF-06")
class SaysLittle(CrashBackoff):
    """The status of a container that is held up names neither the delay nor the container."""

    def admit(self, pod: Pod, container: AnyContainer, records: PodRecords) -> None:
        try:
            super().admit(pod, container, records)
        except StartError as error:
            raise StartError(error.reason, "back-off restarting failed container", error.wait) from error
