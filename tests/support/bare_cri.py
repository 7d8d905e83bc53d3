"""A runtime called directly, be it containerd at a socket or the fake in process: in few words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.cri_endpoint import channel_to, services_at
from kubelet_reference.server.host.clock import LoopClock

POLL_SECONDS = 0.02
PATIENCE_SECONDS = 60
_NUMBERS = count()
"""Of all pods: a runtime takes no two of one name and UID."""


@dataclass
class BareRuntime:
    """Both services of a runtime, and where the logs of its pods go; None for nowhere."""

    runtime: Any
    images: Any
    logs: Path | None = None

    async def pod(self, name: str = "web", *, shared_pids: bool = False) -> BarePod:
        """Run a sandbox."""
        uid = f"uid-{next(_NUMBERS)}"
        metadata = cri.PodSandboxMetadata(name=name, uid=uid, namespace="default")
        pids = cri.NamespaceMode.POD if shared_pids else cri.NamespaceMode.CONTAINER
        options = cri.NamespaceOption(pid=pids)
        linux = cri.LinuxPodSandboxConfig(
            security_context=cri.LinuxSandboxSecurityContext(namespace_options=options)
        )
        folder = "" if self.logs is None else str(self.logs / uid)
        config = cri.PodSandboxConfig(metadata=metadata, log_directory=folder, linux=linux)
        reply = await self.runtime.RunPodSandbox(cri.RunPodSandboxRequest(config=config))
        return BarePod(self, reply.pod_sandbox_id, config)

    async def status(self, container: str) -> cri.ContainerStatus:
        """How a container is."""
        reply = await self.runtime.ContainerStatus(cri.ContainerStatusRequest(container_id=container))
        status: cri.ContainerStatus = reply.status
        return status

    async def ended(self, container: str) -> cri.ContainerStatus:
        """How a container is once it has ended; waits for that, for a minute at most."""
        clock = LoopClock(0)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                status = await self.status(container)
                if status.state == cri.ContainerState.CONTAINER_EXITED:
                    return status
                await clock.sleep(POLL_SECONDS)

    async def execute(self, container: str, command: str | list[str]) -> cri.ExecSyncResponse:
        """Execute words in a container, for at most 10 s."""
        words = command.split() if isinstance(command, str) else command
        request = cri.ExecSyncRequest(container_id=container, cmd=words, timeout=10)
        reply: cri.ExecSyncResponse = await self.runtime.ExecSync(request)
        return reply

    async def stop(self, container: str, grace: int = 10) -> cri.ContainerStatus:
        """Stop a container; how it is then."""
        await self.runtime.StopContainer(cri.StopContainerRequest(container_id=container, timeout=grace))
        return await self.status(container)


@dataclass
class BarePod:
    """A sandbox with containers to be made in it."""

    on: BareRuntime
    id: str
    config: cri.PodSandboxConfig

    async def container(
        self, command: str, *, name: str = "c1", attempt: int = 0, image: str = "img:1", memory: int = 0
    ) -> str:
        """Make and start a container; its id."""
        settings = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name=name, attempt=attempt),
            image=cri.ImageSpec(image=image),
            command=command.split(),
            log_path=f"{name}-{attempt}.log",
            linux=cri.LinuxContainerConfig(
                resources=cri.LinuxContainerResources(memory_limit_in_bytes=memory),
                security_context=cri.LinuxContainerSecurityContext(
                    namespace_options=self.config.linux.security_context.namespace_options
                ),
            ),
        )
        request = cri.CreateContainerRequest(
            pod_sandbox_id=self.id, config=settings, sandbox_config=self.config
        )
        made: str = (await self.on.runtime.CreateContainer(request)).container_id
        await self.on.runtime.StartContainer(cri.StartContainerRequest(container_id=made))
        return made

    async def says(self, log: str, text: str) -> None:
        """Wait until a container has written this line; a runtime without logs has no delay to wait out.

        The first process of a container that is stopped before it has set its handlers never hears of it.
        """
        if self.on.logs is None:
            return
        file, clock = Path(self.config.log_directory) / log, LoopClock(0)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (file.exists() and file.read_text(encoding="utf-8").endswith(f" {text}\n")):
                await clock.sleep(POLL_SECONDS)

    async def address(self) -> str:
        """Its IP address."""
        reply = await self.on.runtime.PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=self.id))
        ip: str = reply.status.network.ip
        return ip

    async def remove(self) -> None:
        """Stop and remove it with all its containers."""
        await self.on.runtime.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=self.id))
        await self.on.runtime.RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=self.id))


@asynccontextmanager
async def at_socket(socket: Path, logs: Path | None = None) -> AsyncGenerator[BareRuntime]:
    """The runtime at a socket."""
    async with channel_to(socket) as channel:
        services = services_at(channel)
        yield BareRuntime(services, services, logs)
