"""Runtime managers that end a sync with a container that could not be started."""

from abc import ABC, abstractmethod

from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.kuberuntime.container.start_container import StartContext
from kubelet_reference.kuberuntime.runtime_manager import PodSync, RuntimeManager


class NeedsContainers(RuntimeManager, ABC):
    """After a needed container that could not be started no other one is tried."""

    @abstractmethod
    def is_needed(self, container: AnyContainer, kind: str) -> bool:
        """Whether the sync ends if this one cannot be started."""

    async def _start(self, now: PodSync, context: StartContext, container: AnyContainer, kind: str) -> None:
        await super()._start(now, context, container, kind)
        started = now.results[-1]
        if started.reason is not None and self.is_needed(container, kind):
            now.end_with(started.message)
