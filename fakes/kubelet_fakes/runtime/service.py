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
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.clock import Clock
from kubelet_fakes.runtime.core import BegunExec, RuntimeCore
from kubelet_fakes.runtime.driver import Handler, Reply, Request, Shell
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.images import Images
from kubelet_fakes.runtime.node_calls import NodeCalls, Stats
from kubelet_fakes.runtime.settings import RuntimeSettings
from kubelet_fakes.runtime.spontaneous_events import SpontaneousEvents
from kubelet_fakes.runtime.store import Store

_NS = 1_000_000_000


def _unary(
    rpc: str, handler_of: Callable[["FakeRuntime"], Handler[Request, Reply]]
) -> Callable[..., Coroutine[Any, Any, Reply]]:
    """The coroutine of a call that has one reply: takes a request, and a `timeout` in seconds by keyword."""

    async def call(runtime: "FakeRuntime", request: Request, *, timeout: float | None = None) -> Reply:
        return await runtime.make_call(rpc, handler_of(runtime), request, timeout)

    return call


class FakeRuntime(Shell):
    """A container runtime; see `Shell` for its arguments and for what may be done to it.

    Calls raise `CallError`, which is a `grpc.aio.AioRpcError`. Replies are shared: do not change them,
    and while nothing has changed the same list is answered by the same message.
    """

    def __init__(
        self,
        core: RuntimeCore,
        clock: Clock,
        *,
        spontaneous_events: type[SpontaneousEvents] = SpontaneousEvents,
        node_calls: type[NodeCalls] = NodeCalls,
    ) -> None:
        super().__init__(core, clock, spontaneous_events=spontaneous_events)
        self.node_calls = node_calls(core.settings)
        self.stats = Stats(core)

    def set_conditions(self, *, runtime_ready: bool = True, network_ready: bool = True) -> None:
        """What Status answers from now on."""
        self.node_calls.set_conditions(runtime_ready=runtime_ready, network_ready=network_ready)

    # The runtime service.

    Version = _unary("Version", lambda it: it.node_calls.version)
    RunPodSandbox = _unary("RunPodSandbox", lambda it: it.core.run_pod_sandbox)
    StopPodSandbox = _unary("StopPodSandbox", lambda it: it.core.stop_pod_sandbox)
    RemovePodSandbox = _unary("RemovePodSandbox", lambda it: it.core.remove_pod_sandbox)
    PodSandboxStatus = _unary("PodSandboxStatus", lambda it: it.core.pod_sandbox_status)
    ListPodSandbox = _unary("ListPodSandbox", lambda it: it.core.list_pod_sandbox)
    CreateContainer = _unary("CreateContainer", lambda it: it.core.create_container)
    StartContainer = _unary("StartContainer", lambda it: it.core.start_container)
    StopContainer = _unary("StopContainer", lambda it: it.stop_until_ended)
    RemoveContainer = _unary("RemoveContainer", lambda it: it.core.remove_container)
    ListContainers = _unary("ListContainers", lambda it: it.core.list_containers)
    ContainerStatus = _unary("ContainerStatus", lambda it: it.core.container_status)
    UpdateContainerResources = _unary(
        "UpdateContainerResources", lambda it: it.core.update_container_resources
    )
    ReopenContainerLog = _unary("ReopenContainerLog", lambda it: it.core.reopen_container_log)
    ExecSync = _unary("ExecSync", lambda it: it.execute)
    Exec = _unary("Exec", lambda it: it.core.exec)
    Attach = _unary("Attach", lambda it: it.core.attach)
    PortForward = _unary("PortForward", lambda it: it.core.port_forward)
    ContainerStats = _unary("ContainerStats", lambda it: it.stats.container_stats)
    ListContainerStats = _unary("ListContainerStats", lambda it: it.stats.list_container_stats)
    PodSandboxStats = _unary("PodSandboxStats", lambda it: it.stats.pod_sandbox_stats)
    ListPodSandboxStats = _unary("ListPodSandboxStats", lambda it: it.stats.list_pod_sandbox_stats)
    UpdateRuntimeConfig = _unary("UpdateRuntimeConfig", lambda it: it.node_calls.update_runtime_config)
    Status = _unary("Status", lambda it: it.node_calls.status)
    CheckpointContainer = _unary("CheckpointContainer", lambda it: it.core.checkpoint_container)
    ListMetricDescriptors = _unary("ListMetricDescriptors", lambda it: it.stats.list_metric_descriptors)
    ListPodSandboxMetrics = _unary("ListPodSandboxMetrics", lambda it: it.stats.list_pod_sandbox_metrics)
    RuntimeConfig = _unary("RuntimeConfig", lambda it: it.node_calls.runtime_config)
    UpdatePodSandboxResources = _unary(
        "UpdatePodSandboxResources", lambda it: it.core.update_pod_sandbox_resources
    )

    # The image service.

    ListImages = _unary("ListImages", lambda it: it.core.images.list_images)
    ImageStatus = _unary("ImageStatus", lambda it: it.core.images.image_status)
    PullImage = _unary("PullImage", lambda it: it.core.images.pull_image)
    RemoveImage = _unary("RemoveImage", lambda it: it.core.images.remove_image)
    ImageFsInfo = _unary("ImageFsInfo", lambda it: it.stats.image_fs_info)

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
                await self.make_call("GetContainerEvents", _accepted, request, None)
                while event := await queue.get():
                    yield event
            raise CallError(grpc.StatusCode.UNAVAILABLE, "the stream of events broke off")
        except TimeoutError:
            raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "context deadline exceeded") from None
        finally:
            close()

    # Calls that wait.

    def stop_until_ended(
        self, request: cri.StopContainerRequest
    ) -> cri.StopContainerResponse | Coroutine[Any, Any, cri.StopContainerResponse]:
        """Ask a container to end; the reply waits until it has."""
        reply = self.core.stop_container(request)
        if not self.core.is_stopping(request.container_id):
            return reply
        return self._once_stopped(request.container_id, reply)

    async def _once_stopped(
        self, container_id: str, reply: cri.StopContainerResponse
    ) -> cri.StopContainerResponse:
        while self.core.is_stopping(container_id):
            await self.exit_of(container_id)
        return reply

    def execute(
        self, request: cri.ExecSyncRequest
    ) -> cri.ExecSyncResponse | Coroutine[Any, Any, cri.ExecSyncResponse]:
        """Run a command in a container; the reply waits for its end, or for the container's."""
        begun = self.core.begin_exec(request)
        return begun.result() if begun.ends_at_ns <= self.core.now else self._once_executed(begun)

    async def run_in(self, container_id: str, words: Sequence[str]) -> cri.ExecSyncResponse:
        """What becomes of a command in a container, without a call."""
        self._advance()
        reply = self.execute(cri.ExecSyncRequest(container_id=container_id, cmd=words))
        self._arm()
        return reply if isinstance(reply, cri.ExecSyncResponse) else await reply

    async def _once_executed(self, begun: BegunExec) -> cri.ExecSyncResponse:
        ended = self.exit_of(begun.container.id)
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
