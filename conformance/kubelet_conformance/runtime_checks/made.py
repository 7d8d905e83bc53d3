"""Sandboxes and containers that a story has made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.runtime_checks.recorded import CALL_SECONDS

if TYPE_CHECKING:
    from kubelet_conformance.runtime_checks.runtime import Runtime


_END_SECONDS = 10.0


class MadeSandbox:
    """A sandbox, with the calls that are made about it."""

    def __init__(self, runtime: Runtime, sandbox_id: str, config: cri.PodSandboxConfig) -> None:
        self.id = sandbox_id
        self.config = config
        self.removed = False
        self._runtime = runtime

    async def status(self, *, verbose: bool = False) -> cri.PodSandboxStatus:
        """What the runtime says of it."""
        request = cri.PodSandboxStatusRequest(pod_sandbox_id=self.id, verbose=verbose)
        reply: cri.PodSandboxStatusResponse = await self._runtime.call("PodSandboxStatus", request)
        return reply.status

    async def stop(self) -> None:
        """Stop it."""
        await self._runtime.call("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=self.id))

    async def remove(self) -> None:
        """Remove it."""
        await self._runtime.call("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=self.id))
        self.removed = True

    def request(
        self, command: Sequence[str] | None = None, name: str = "c1", attempt: int = 0
    ) -> cri.CreateContainerRequest:
        """What a kubelet would ask for a container of this name; without a command it runs until stopped."""
        target = self._runtime.target
        labels = dict(self.config.labels) | {"io.kubernetes.container.name": name}
        config = cri.ContainerConfig(
            metadata=cri.ContainerMetadata(name=name, attempt=attempt),
            image=cri.ImageSpec(image=target.image),
            command=target.commands.run() if command is None else command,
            labels=labels,
            annotations={"io.kubernetes.container.restartCount": str(attempt)},
            log_path=f"{name}-{attempt}.log",
        )
        config.linux.security_context.namespace_options.pid = cri.CONTAINER
        return cri.CreateContainerRequest(pod_sandbox_id=self.id, config=config, sandbox_config=self.config)

    async def create(
        self,
        command: Sequence[str] | None = None,
        name: str = "c1",
        attempt: int = 0,
        request: cri.CreateContainerRequest | None = None,
    ) -> MadeContainer:
        """Create a container."""
        asked = request or self.request(command, name, attempt)
        reply = await self._runtime.call("CreateContainer", asked)
        return MadeContainer(self._runtime, self, reply.container_id, asked.config)

    async def running(
        self, command: Sequence[str] | None = None, name: str = "c1", attempt: int = 0
    ) -> MadeContainer:
        """Create a container and start it."""
        container = await self.create(command, name, attempt)
        await container.start()
        return container


class MadeContainer:
    """A container, with the calls that are made about it."""

    def __init__(
        self, runtime: Runtime, sandbox: MadeSandbox, container_id: str, config: cri.ContainerConfig
    ) -> None:
        self.id = container_id
        self.sandbox = sandbox
        self.config = config
        self._runtime = runtime

    @property
    def log(self) -> str:
        """Where its log belongs."""
        return f"{self.sandbox.config.log_directory}/{self.config.log_path}"

    async def start(self) -> None:
        """Start it."""
        await self._runtime.call("StartContainer", cri.StartContainerRequest(container_id=self.id))

    async def status(self) -> cri.ContainerStatus:
        """What the runtime says of it."""
        request = cri.ContainerStatusRequest(container_id=self.id)
        reply: cri.ContainerStatusResponse = await self._runtime.call("ContainerStatus", request)
        return reply.status

    async def stop(self, grace: int = 0, *, timeout: float | None = None) -> float:  # noqa: ASYNC109 - as gRPC has it
        """Stop it; how many seconds that took. `timeout` is when the caller leaves."""
        began = self._runtime.now
        request = cri.StopContainerRequest(container_id=self.id, timeout=grace)
        limit = CALL_SECONDS + grace if timeout is None else timeout
        await self._runtime.call("StopContainer", request, timeout=limit)
        return self._runtime.now - began

    async def remove(self) -> None:
        """Remove it."""
        await self._runtime.call("RemoveContainer", cri.RemoveContainerRequest(container_id=self.id))

    async def execute(self, command: Sequence[str], limit: int = 0) -> cri.ExecSyncResponse:
        """Execute a command in it, for `limit` seconds at most; 0 is any time."""
        request = cri.ExecSyncRequest(container_id=self.id, cmd=command, timeout=limit)
        reply: cri.ExecSyncResponse = await self._runtime.call(
            "ExecSync", request, timeout=CALL_SECONDS + limit
        )
        return reply

    async def has_ended(self) -> bool:
        """Whether the runtime says that it has exited."""
        return (await self.status()).state == cri.CONTAINER_EXITED

    async def end(self, within: float = _END_SECONDS) -> cri.ContainerStatus:
        """Its status once it has ended by itself, or after so many seconds."""
        await self._runtime.until(self.has_ended, within)
        return await self.status()
