"""The fake runtime in process: every call of both services as a coroutine, as a `grpc.aio` stub has them.

>>> from cri_api.v1 import api_pb2 as cri
>>> from kubelet_fakes.clock import LoopClock, run
>>> from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
>>> async def main() -> str:
...     runtime = FakeRuntime(RuntimeCore(), LoopClock())
...     metadata = cri.PodSandboxMetadata(name="web", namespace="default", uid="1")
...     await runtime.RunPodSandbox(cri.RunPodSandboxRequest(config=cri.PodSandboxConfig(metadata=metadata)))
...     sandboxes = await runtime.ListPodSandbox(cri.ListPodSandboxRequest())
...     return cri.PodSandboxState.Name(sandboxes.items[0].state)
>>> run(main())
'SANDBOX_READY'
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.clock import Clock
from kubelet_fakes.runtime.core import BegunExec, RuntimeCore
from kubelet_fakes.runtime.driver import Shell
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.images import Images
from kubelet_fakes.runtime.node_calls import NodeCalls, Stats
from kubelet_fakes.runtime.settings import RuntimeSettings
from kubelet_fakes.runtime.spontaneous_events import SpontaneousEvents
from kubelet_fakes.runtime.store import OnRuntime, Store

_NS = 1_000_000_000


class FakeRuntime(Shell):
    """A container runtime; see `Shell` for its arguments and for what may be done to it.

    Calls raise `CallError`, which is a `grpc.aio.AioRpcError`. Replies are shared: do not change them,
    and while nothing has changed the same list is answered by the same message.
    """

    def __init__(  # noqa: PLR0913 - its parts, and the callbacks
        self,
        core: RuntimeCore,
        clock: Clock,
        *,
        on_runtime: OnRuntime | None = None,
        on_fault: Callable[[str], None] | None = None,
        spontaneous_events: type[SpontaneousEvents] = SpontaneousEvents,
        node_calls: type[NodeCalls] = NodeCalls,
    ) -> None:
        super().__init__(
            core, clock, on_runtime=on_runtime, on_fault=on_fault, spontaneous_events=spontaneous_events
        )
        self._node = node_calls(core.settings)
        self._stats = Stats(core)

    def set_conditions(self, *, runtime_ready: bool = True, network_ready: bool = True) -> None:
        """What Status answers from now on."""
        self._node.set_conditions(runtime_ready=runtime_ready, network_ready=network_ready)

    # The runtime service.

    async def Version(
        self, request: cri.VersionRequest, *, timeout: float | None = None
    ) -> cri.VersionResponse:
        return await self._call("Version", self._node.version, request, timeout)

    async def RunPodSandbox(
        self, request: cri.RunPodSandboxRequest, *, timeout: float | None = None
    ) -> cri.RunPodSandboxResponse:
        return await self._call("RunPodSandbox", self.core.run_pod_sandbox, request, timeout)

    async def StopPodSandbox(
        self, request: cri.StopPodSandboxRequest, *, timeout: float | None = None
    ) -> cri.StopPodSandboxResponse:
        return await self._call("StopPodSandbox", self.core.stop_pod_sandbox, request, timeout)

    async def RemovePodSandbox(
        self, request: cri.RemovePodSandboxRequest, *, timeout: float | None = None
    ) -> cri.RemovePodSandboxResponse:
        return await self._call("RemovePodSandbox", self.core.remove_pod_sandbox, request, timeout)

    async def PodSandboxStatus(
        self, request: cri.PodSandboxStatusRequest, *, timeout: float | None = None
    ) -> cri.PodSandboxStatusResponse:
        return await self._call("PodSandboxStatus", self.core.pod_sandbox_status, request, timeout)

    async def ListPodSandbox(
        self, request: cri.ListPodSandboxRequest, *, timeout: float | None = None
    ) -> cri.ListPodSandboxResponse:
        return await self._call("ListPodSandbox", self.core.list_pod_sandbox, request, timeout)

    async def CreateContainer(
        self, request: cri.CreateContainerRequest, *, timeout: float | None = None
    ) -> cri.CreateContainerResponse:
        return await self._call("CreateContainer", self.core.create_container, request, timeout)

    async def StartContainer(
        self, request: cri.StartContainerRequest, *, timeout: float | None = None
    ) -> cri.StartContainerResponse:
        return await self._call("StartContainer", self.core.start_container, request, timeout)

    async def StopContainer(
        self, request: cri.StopContainerRequest, *, timeout: float | None = None
    ) -> cri.StopContainerResponse:
        return await self._call("StopContainer", self._stop_container, request, timeout)

    async def RemoveContainer(
        self, request: cri.RemoveContainerRequest, *, timeout: float | None = None
    ) -> cri.RemoveContainerResponse:
        return await self._call("RemoveContainer", self.core.remove_container, request, timeout)

    async def ListContainers(
        self, request: cri.ListContainersRequest, *, timeout: float | None = None
    ) -> cri.ListContainersResponse:
        return await self._call("ListContainers", self.core.list_containers, request, timeout)

    async def ContainerStatus(
        self, request: cri.ContainerStatusRequest, *, timeout: float | None = None
    ) -> cri.ContainerStatusResponse:
        return await self._call("ContainerStatus", self.core.container_status, request, timeout)

    async def UpdateContainerResources(
        self, request: cri.UpdateContainerResourcesRequest, *, timeout: float | None = None
    ) -> cri.UpdateContainerResourcesResponse:
        return await self._call(
            "UpdateContainerResources", self.core.update_container_resources, request, timeout
        )

    async def ReopenContainerLog(
        self, request: cri.ReopenContainerLogRequest, *, timeout: float | None = None
    ) -> cri.ReopenContainerLogResponse:
        return await self._call("ReopenContainerLog", self.core.reopen_container_log, request, timeout)

    async def ExecSync(
        self, request: cri.ExecSyncRequest, *, timeout: float | None = None
    ) -> cri.ExecSyncResponse:
        return await self._call("ExecSync", self._exec_sync, request, timeout)

    async def Exec(self, request: cri.ExecRequest, *, timeout: float | None = None) -> cri.ExecResponse:
        return await self._call("Exec", self.core.exec, request, timeout)

    async def Attach(self, request: cri.AttachRequest, *, timeout: float | None = None) -> cri.AttachResponse:
        return await self._call("Attach", self.core.attach, request, timeout)

    async def PortForward(
        self, request: cri.PortForwardRequest, *, timeout: float | None = None
    ) -> cri.PortForwardResponse:
        return await self._call("PortForward", self.core.port_forward, request, timeout)

    async def ContainerStats(
        self, request: cri.ContainerStatsRequest, *, timeout: float | None = None
    ) -> cri.ContainerStatsResponse:
        return await self._call("ContainerStats", self._stats.container_stats, request, timeout)

    async def ListContainerStats(
        self, request: cri.ListContainerStatsRequest, *, timeout: float | None = None
    ) -> cri.ListContainerStatsResponse:
        return await self._call("ListContainerStats", self._stats.list_container_stats, request, timeout)

    async def PodSandboxStats(
        self, request: cri.PodSandboxStatsRequest, *, timeout: float | None = None
    ) -> cri.PodSandboxStatsResponse:
        return await self._call("PodSandboxStats", self._stats.pod_sandbox_stats, request, timeout)

    async def ListPodSandboxStats(
        self, request: cri.ListPodSandboxStatsRequest, *, timeout: float | None = None
    ) -> cri.ListPodSandboxStatsResponse:
        return await self._call("ListPodSandboxStats", self._stats.list_pod_sandbox_stats, request, timeout)

    async def UpdateRuntimeConfig(
        self, request: cri.UpdateRuntimeConfigRequest, *, timeout: float | None = None
    ) -> cri.UpdateRuntimeConfigResponse:
        return await self._call("UpdateRuntimeConfig", self._node.update_runtime_config, request, timeout)

    async def Status(self, request: cri.StatusRequest, *, timeout: float | None = None) -> cri.StatusResponse:
        return await self._call("Status", self._node.status, request, timeout)

    async def CheckpointContainer(
        self, request: cri.CheckpointContainerRequest, *, timeout: float | None = None
    ) -> cri.CheckpointContainerResponse:
        return await self._call("CheckpointContainer", self.core.checkpoint_container, request, timeout)

    async def ListMetricDescriptors(
        self, request: cri.ListMetricDescriptorsRequest, *, timeout: float | None = None
    ) -> cri.ListMetricDescriptorsResponse:
        return await self._call(
            "ListMetricDescriptors", self._stats.list_metric_descriptors, request, timeout
        )

    async def ListPodSandboxMetrics(
        self, request: cri.ListPodSandboxMetricsRequest, *, timeout: float | None = None
    ) -> cri.ListPodSandboxMetricsResponse:
        return await self._call(
            "ListPodSandboxMetrics", self._stats.list_pod_sandbox_metrics, request, timeout
        )

    async def RuntimeConfig(
        self, request: cri.RuntimeConfigRequest, *, timeout: float | None = None
    ) -> cri.RuntimeConfigResponse:
        return await self._call("RuntimeConfig", self._node.runtime_config, request, timeout)

    async def UpdatePodSandboxResources(
        self, request: cri.UpdatePodSandboxResourcesRequest, *, timeout: float | None = None
    ) -> cri.UpdatePodSandboxResourcesResponse:
        return await self._call(
            "UpdatePodSandboxResources", self.core.update_pod_sandbox_resources, request, timeout
        )

    # The image service.

    async def ListImages(
        self, request: cri.ListImagesRequest, *, timeout: float | None = None
    ) -> cri.ListImagesResponse:
        return await self._call("ListImages", self.core.images.list_images, request, timeout)

    async def ImageStatus(
        self, request: cri.ImageStatusRequest, *, timeout: float | None = None
    ) -> cri.ImageStatusResponse:
        return await self._call("ImageStatus", self.core.images.image_status, request, timeout)

    async def PullImage(
        self, request: cri.PullImageRequest, *, timeout: float | None = None
    ) -> cri.PullImageResponse:
        return await self._call("PullImage", self.core.images.pull_image, request, timeout)

    async def RemoveImage(
        self, request: cri.RemoveImageRequest, *, timeout: float | None = None
    ) -> cri.RemoveImageResponse:
        return await self._call("RemoveImage", self.core.images.remove_image, request, timeout)

    async def ImageFsInfo(
        self, request: cri.ImageFsInfoRequest, *, timeout: float | None = None
    ) -> cri.ImageFsInfoResponse:
        return await self._call("ImageFsInfo", self._stats.image_fs_info, request, timeout)

    def GetContainerEvents(
        self, request: cri.GetEventsRequest, *, timeout: float | None = None
    ) -> AsyncGenerator[cri.ContainerEventResponse, None]:
        """Every event from now on (CRI-30); the stream breaks when the runtime goes down."""
        queue: asyncio.Queue[cri.ContainerEventResponse | None] = asyncio.Queue()
        unsubscribe = self.core.store.events.subscribe(queue.put_nowait)
        self._streams[queue] = None

        def close() -> None:
            unsubscribe()
            self._streams.pop(queue, None)

        return self._stream(request, timeout, queue, close)

    async def _stream(
        self,
        request: cri.GetEventsRequest,
        timeout: float | None,
        queue: asyncio.Queue[cri.ContainerEventResponse | None],
        close: Callable[[], None],
    ) -> AsyncGenerator[cri.ContainerEventResponse, None]:
        try:
            async with asyncio.timeout(timeout):
                await self._call("GetContainerEvents", _accepted, request, None)
                while event := await queue.get():
                    yield event
            raise CallError(grpc.StatusCode.UNAVAILABLE, "the stream of events broke off")
        except TimeoutError:
            raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "context deadline exceeded") from None
        finally:
            close()

    # Calls that wait.

    def _stop_container(
        self, request: cri.StopContainerRequest
    ) -> cri.StopContainerResponse | Coroutine[Any, Any, cri.StopContainerResponse]:
        reply = self.core.stop_container(request)
        if not self.core.is_stopping(request.container_id):
            return reply
        return self._once_stopped(request.container_id, reply)

    async def _once_stopped(
        self, container_id: str, reply: cri.StopContainerResponse
    ) -> cri.StopContainerResponse:
        while self.core.is_stopping(container_id):
            await self._exit_of(container_id)
        return reply

    def _exec_sync(
        self, request: cri.ExecSyncRequest
    ) -> cri.ExecSyncResponse | Coroutine[Any, Any, cri.ExecSyncResponse]:
        begun = self.core.begin_exec(request)
        return begun.result() if begun.ends_at_ns <= self.core.now else self._once_executed(begun)

    async def _once_executed(self, begun: BegunExec) -> cri.ExecSyncResponse:
        ended = self._exit_of(begun.container.id)
        seconds = (begun.ends_at_ns - self.core.now) / _NS
        await asyncio.wait([ended], timeout=seconds)
        ended.cancel()
        return begun.result()


def _accepted(request: cri.GetEventsRequest) -> cri.GetEventsRequest:
    """The stream has begun."""
    return request


@dataclass(frozen=True, slots=True)
class RuntimeParts:
    """The parts of a right runtime; `dataclasses.replace` makes one that is wrong in a single way.

    Attributes:
        runtime: the calls as coroutines, and their waiting.
        core: what is accepted, refused and answered.
        store: the records and their steps.
        images: the images, and the calls about them.
        node_calls: what it says of itself.
        spontaneous_events: restarts, reboots and whatever else happens without a call.
    """

    runtime: type[FakeRuntime] = FakeRuntime
    core: type[RuntimeCore] = RuntimeCore
    store: type[Store] = Store
    images: type[Images] = Images
    node_calls: type[NodeCalls] = NodeCalls
    spontaneous_events: type[SpontaneousEvents] = SpontaneousEvents

    def build(
        self, clock: Clock, settings: RuntimeSettings | None = None, *, epoch_ns: int = 0
    ) -> FakeRuntime:
        """A runtime of these parts; `epoch_ns` is the time of day at the clock's 0."""
        core = self.core(settings, epoch_ns=epoch_ns, store=self.store, images=self.images)
        return self.runtime(
            core, clock, spontaneous_events=self.spontaneous_events, node_calls=self.node_calls
        )
