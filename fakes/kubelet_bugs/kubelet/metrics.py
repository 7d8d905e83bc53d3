"""Bugs in what is counted."""

import dataclasses
from collections.abc import Callable
from typing import Any

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import bug
from kubelet_reference.api import pods
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.sync_result import Failure, StartError
from kubelet_reference.kuberuntime.container.start_container import StartContext
from kubelet_reference.kuberuntime.runtime_manager import RuntimeManager
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.kuberuntime.sandbox import RuntimeClasses, SandboxCreator


@bug("MUT-METRIC-01", breaks="METRIC-01")
class CountsPods(SandboxCreator):
    """Pods are counted where tries to start them are asked for."""

    def __init__(
        self, tools: RuntimeTools, classes: RuntimeClasses, is_ending: Callable[[str], bool]
    ) -> None:
        super().__init__(tools, classes, is_ending)
        self._again = SandboxCreator(dataclasses.replace(tools, metrics=Metrics()), classes, is_ending)
        self._seen = set[str]()

    async def make(self, pod: Pod, config: cri.PodSandboxConfig) -> str:
        if pods.uid(pod) in self._seen:
            return await self._again.make(pod, config)
        self._seen.add(pods.uid(pod))
        return await super().make(pod, config)


@bug("MUT-METRIC-02", breaks="METRIC-02")
class CountsRefusals(RuntimeManager):
    """Starts that the back-off refuses are counted."""

    async def _start(self, now: Any, context: StartContext, container: AnyContainer, kind: str) -> None:  # noqa: ANN401 - a private class
        await super()._start(now, context, container, kind)
        if now.results[-1].reason is Failure.CRASH_LOOP_BACK_OFF:
            self.tools.metrics.started_containers.labels(kind).inc()


@bug("MUT-METRIC-02-TEXT", breaks="METRIC-02")
class FreeText(RuntimeManager):
    """Failed starts are counted by their messages."""

    async def _counted_start(self, context: StartContext, container: AnyContainer, kind: str) -> None:
        try:
            await super()._counted_start(context, container, kind)
        except StartError as error:
            self.tools.metrics.started_containers_errors.labels(kind, str(error)).inc()
            raise
