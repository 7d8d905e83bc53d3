"""A fake runtime to call in tests: short ways to make sandboxes and containers, on virtual time."""

from collections.abc import Awaitable
from dataclasses import dataclass, field

import grpc
import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.clock import LoopClock
from kubelet_fakes.runtime import CallError, FakeRuntime, RuntimeCore, RuntimeSettings

UID_LABEL = "io.kubernetes.pod.uid"

RuntimeEvent = tuple[str, str, str, str, int | None]


@dataclass
class Node:
    """A runtime on its clock, and what it did by itself."""

    settings: RuntimeSettings = field(default_factory=RuntimeSettings)
    happened: list[RuntimeEvent] = field(default_factory=list[RuntimeEvent])

    def __post_init__(self) -> None:
        self.clock = LoopClock()
        self.runtime = FakeRuntime(RuntimeCore(self.settings), self.clock)
        self.runtime.core.store.on_runtime = self._happens

    def _happens(self, op: str, container_id: str, sandbox_id: str, name: str, exit_code: int | None) -> None:
        self.happened.append((op, container_id, sandbox_id, name, exit_code))

    async def sandbox(self, pod: str = "web", attempt: int = 0, **config: object) -> str:
        """Run a sandbox; its id."""
        metadata = cri.PodSandboxMetadata(name=pod, namespace="default", uid=f"uid-{pod}", attempt=attempt)
        made = cri.PodSandboxConfig(metadata=metadata, labels={UID_LABEL: f"uid-{pod}"})
        made.MergeFrom(cri.PodSandboxConfig(**config))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        reply = await self.runtime.RunPodSandbox(cri.RunPodSandboxRequest(config=made))
        return reply.pod_sandbox_id

    async def create(
        self, sandbox_id: str, script: str = "run", name: str = "c1", attempt: int = 0, **config: object
    ) -> str:
        """Create a container; its id."""
        made = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name=name, attempt=attempt),
            image=cri.ImageSpec(image="img:1"),
            command=script.split(),
        )
        made.MergeFrom(cri.ContainerConfig(**config))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        request = cri.CreateContainerRequest(pod_sandbox_id=sandbox_id, config=made)
        return (await self.runtime.CreateContainer(request)).container_id

    async def start(self, container_id: str) -> None:
        """Start a container."""
        await self.runtime.StartContainer(cri.StartContainerRequest(container_id=container_id))

    async def running(self, script: str = "run", name: str = "c1", pod: str = "web") -> str:
        """Run a sandbox with one container in it; the container's id."""
        container_id = await self.create(await self.sandbox(pod), script, name)
        await self.start(container_id)
        return container_id

    async def stop(self, container_id: str, grace: int = 30, deadline: float | None = None) -> None:
        """Stop a container."""
        request = cri.StopContainerRequest(container_id=container_id, timeout=grace)
        await self.runtime.StopContainer(request, timeout=deadline)

    async def stop_sandbox(self, sandbox_id: str) -> None:
        """Stop a sandbox."""
        await self.runtime.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=sandbox_id))

    async def remove(self, container_id: str) -> None:
        """Remove a container."""
        await self.runtime.RemoveContainer(cri.RemoveContainerRequest(container_id=container_id))

    async def remove_sandbox(self, sandbox_id: str) -> None:
        """Remove a sandbox."""
        await self.runtime.RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=sandbox_id))

    async def status(self, container_id: str) -> cri.ContainerStatus:
        """A container's status."""
        request = cri.ContainerStatusRequest(container_id=container_id)
        return (await self.runtime.ContainerStatus(request)).status

    async def sandbox_status(self, sandbox_id: str) -> cri.PodSandboxStatus:
        """A sandbox's status."""
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=sandbox_id)
        return (await self.runtime.PodSandboxStatus(request)).status

    async def containers(self, **asked: object) -> list[str]:
        """The ids of the containers that meet the filter."""
        asking = cri.ContainerFilter(**asked)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        request = cri.ListContainersRequest(filter=asking)
        return [one.id for one in (await self.runtime.ListContainers(request)).containers]

    async def sandboxes(self, **asked: object) -> list[str]:
        """The ids of the sandboxes that meet the filter."""
        asking = cri.PodSandboxFilter(**asked)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        request = cri.ListPodSandboxRequest(filter=asking)
        return [one.id for one in (await self.runtime.ListPodSandbox(request)).items]

    async def execute(
        self, container_id: str, command: str, limit: int = 0, deadline: float | None = None
    ) -> cri.ExecSyncResponse:
        """Execute a command in a container."""
        request = cri.ExecSyncRequest(container_id=container_id, cmd=command.split(), timeout=limit)
        return await self.runtime.ExecSync(request, timeout=deadline)

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self.clock.monotonic()


async def refused(call: Awaitable[object], code: str) -> CallError:
    """The error of a call that must fail with this code."""
    with pytest.raises(CallError) as caught:
        await call
    assert caught.value.code() is grpc.StatusCode[code]
    return caught.value
