"""The runtime as the kubelet calls it: typed calls with their deadlines, and replies that were checked.

Every method raises `grpc.RpcError`: the runtime's own, or `BadReply` where the reply is unusable.
"""

from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.api.metrics import Metrics
from kubelet_reference.cri import checks
from kubelet_reference.cri.checks import required
from kubelet_reference.cri.errors import NoStatus
from kubelet_reference.util.ports import ImageService, RuntimeService
from kubelet_reference.util.settings import Settings

Reply = TypeVar("Reply")

_ALL_SANDBOXES = cri.ListPodSandboxRequest()
_ALL_CONTAINERS = cri.ListContainersRequest(filter=cri.ContainerFilter())


@dataclass(eq=False)
class CriClient:
    """Calls the runtime and its image service.

    Deadlines (CRI-32): `runtime_request_timeout`; twice that for RunPodSandbox; that and the wait asked for
    in StopContainer and ExecSync; none for an exec without a time limit and for PullImage.
    """

    runtime: RuntimeService
    images: ImageService
    settings: Settings
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        self._timeout = self.settings.runtime_request_timeout

    async def version(self) -> cri.VersionResponse:
        """Name and versions of the runtime."""
        request = cri.VersionRequest(version=checks.API_VERSION)
        reply = await self._do("version", self.runtime.Version(request, timeout=self._timeout))
        checks.check_version(reply)
        return reply

    async def status(self) -> cri.RuntimeStatus:
        """The runtime's conditions; RuntimeReady and NetworkReady are among them."""
        reply = await self._do("status", self.runtime.Status(cri.StatusRequest(), timeout=self._timeout))
        checks.check_runtime_status(reply.status)
        return reply.status

    async def runtime_config(self) -> cri.RuntimeConfigResponse:
        """The runtime's own settings; a runtime need not know this call (CRI-42)."""
        request = cri.RuntimeConfigRequest()
        return await self._do("runtime_config", self.runtime.RuntimeConfig(request, timeout=self._timeout))

    async def run_sandbox(self, config: cri.PodSandboxConfig, handler: str = "") -> str:
        """Make a sandbox and start it; its id."""
        request = cri.RunPodSandboxRequest(config=config, runtime_handler=handler)
        call = self.runtime.RunPodSandbox(request, timeout=2 * self._timeout)
        reply = await self._do("run_podsandbox", call)
        return required(reply.pod_sandbox_id, f'PodSandboxId for sandbox "{config.metadata.name}"')

    async def stop_sandbox(self, sandbox_id: str) -> None:
        """Stop a sandbox and whatever still runs in it."""
        request = cri.StopPodSandboxRequest(pod_sandbox_id=sandbox_id)
        await self._do("stop_podsandbox", self.runtime.StopPodSandbox(request, timeout=self._timeout))

    async def remove_sandbox(self, sandbox_id: str) -> None:
        """Forget a stopped sandbox."""
        request = cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox_id)
        await self._do("remove_podsandbox", self.runtime.RemovePodSandbox(request, timeout=self._timeout))

    async def sandbox_status(self, sandbox_id: str) -> cri.PodSandboxStatus:
        """One sandbox; `NoStatus` if the reply holds none."""
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox_id)
        call = self.runtime.PodSandboxStatus(request, timeout=self._timeout)
        reply = await self._do("podsandbox_status", call)
        if not reply.HasField("status"):
            raise NoStatus("pod sandbox status is nil")
        checks.check_sandbox_status(reply.status)
        return reply.status

    async def list_sandboxes(self, chosen: cri.PodSandboxFilter | None = None) -> cri.ListPodSandboxResponse:
        """The sandboxes that the filter lets through, dead ones included; the reply as it came."""
        request = cri.ListPodSandboxRequest(filter=chosen) if chosen else _ALL_SANDBOXES
        return await self._do("list_podsandbox", self.runtime.ListPodSandbox(request, timeout=self._timeout))

    async def create_container(
        self, sandbox_id: str, config: cri.ContainerConfig, sandbox_config: cri.PodSandboxConfig
    ) -> str:
        """Make a container in a sandbox, which has that config; its id."""
        request = cri.CreateContainerRequest(
            pod_sandbox_id=sandbox_id, config=config, sandbox_config=sandbox_config
        )
        call = self.runtime.CreateContainer(request, timeout=self._timeout)
        reply = await self._do("create_container", call)
        return required(reply.container_id, f'ContainerId for container "{config.metadata.name}"')

    async def start_container(self, container_id: str) -> None:
        """Start a created container."""
        request = cri.StartContainerRequest(container_id=container_id)
        await self._do("start_container", self.runtime.StartContainer(request, timeout=self._timeout))

    async def stop_container(self, container_id: str, grace_seconds: int) -> None:
        """Stop a container; after `grace_seconds` the runtime kills it."""
        request = cri.StopContainerRequest(container_id=container_id, timeout=grace_seconds)
        deadline = self.waiting_deadline(grace_seconds)
        await self._do("stop_container", self.runtime.StopContainer(request, timeout=deadline))

    def waiting_deadline(self, seconds: int) -> float:
        """The deadline of a call that may take `seconds` by itself: it comes on top (CRI-32)."""
        return seconds + self._timeout

    async def update_container_resources(
        self, container_id: str, resources: cri.LinuxContainerResources
    ) -> None:
        """Give a container other resources while it runs (RESIZE-01)."""
        request = cri.UpdateContainerResourcesRequest(container_id=container_id, linux=resources)
        call = self.runtime.UpdateContainerResources(request, timeout=self._timeout)
        await self._do("update_container", call)

    async def memory_usage(self, container_id: str) -> int:
        """How many bytes of memory a container uses."""
        request = cri.ContainerStatsRequest(container_id=container_id)
        call = self.runtime.ContainerStats(request, timeout=self._timeout)
        reply = await self._do("container_stats", call)
        return int(reply.stats.memory.working_set_bytes.value)

    async def remove_container(self, container_id: str) -> None:
        """Forget a container."""
        request = cri.RemoveContainerRequest(container_id=container_id)
        await self._do("remove_container", self.runtime.RemoveContainer(request, timeout=self._timeout))

    async def list_containers(self, chosen: cri.ContainerFilter | None = None) -> cri.ListContainersResponse:
        """The containers that the filter lets through, dead ones included; the reply as it came."""
        request = cri.ListContainersRequest(filter=chosen) if chosen else _ALL_CONTAINERS
        return await self._do("list_containers", self.runtime.ListContainers(request, timeout=self._timeout))

    async def container_status(self, container_id: str) -> cri.ContainerStatus:
        """One container."""
        request = cri.ContainerStatusRequest(container_id=container_id)
        call = self.runtime.ContainerStatus(request, timeout=self._timeout)
        reply = await self._do("container_status", call)
        checks.check_container_status(reply.status)
        return reply.status

    async def exec_sync(
        self, container_id: str, command: Sequence[str], timeout_seconds: int = 0
    ) -> cri.ExecSyncResponse:
        """Run a command in a container and wait for its end; 0 sets no limit to that (CRI-26)."""
        request = cri.ExecSyncRequest(container_id=container_id, cmd=command, timeout=timeout_seconds)
        deadline = self.waiting_deadline(timeout_seconds) if timeout_seconds else None
        return await self._do("exec_sync", self.runtime.ExecSync(request, timeout=deadline))

    async def container_events(self) -> AsyncIterator[cri.ContainerEventResponse]:
        """What happens to containers and sandboxes from now on, while the stream lasts (PLEG-14)."""
        async for event in self.runtime.GetContainerEvents(cri.GetEventsRequest()):
            yield event

    async def image_status(self, image: cri.ImageSpec) -> cri.Image | None:
        """The image as the node has it; None where it is absent."""
        request = cri.ImageStatusRequest(image=image)
        reply = await self._do("image_status", self.images.ImageStatus(request, timeout=self._timeout))
        if not reply.HasField("image"):
            return None
        checks.check_image(reply.image)
        return reply.image

    async def pull_image(
        self, image: cri.ImageSpec, auth: cri.AuthConfig | None, sandbox_config: cri.PodSandboxConfig
    ) -> str:
        """Pull an image for a pod; the reference to make containers from. Takes as long as it takes."""
        request = cri.PullImageRequest(image=image, auth=auth, sandbox_config=sandbox_config)
        reply = await self._do("pull_image", self.images.PullImage(request, timeout=None))
        return required(reply.image_ref, f'imageRef of image "{image.image}"')

    async def list_images(self) -> cri.ListImagesResponse:
        """All images of the node."""
        call = self.images.ListImages(cri.ListImagesRequest(), timeout=self._timeout)
        return await self._do("list_images", call)

    async def remove_image(self, image_id: str) -> None:
        """Remove an image and all its names."""
        request = cri.RemoveImageRequest(image=cri.ImageSpec(image=image_id))
        await self._do("remove_image", self.images.RemoveImage(request, timeout=self._timeout))

    async def _do(self, operation: str, call: Awaitable[Reply]) -> Reply:
        self.metrics.operation_began(operation)
        try:
            return await call
        except grpc.RpcError:
            self.metrics.operation_failed(operation)
            raise
