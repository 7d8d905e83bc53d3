"""What a runtime scenario is written with: a runtime, sandboxes and containers on it, and expectations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message

from kubelet_conformance.runtime_checks.recorded_calls import CALL_SECONDS, Recorded
from kubelet_conformance.targets.runtime import DirectRuntime
from kubelet_conformance.trace.format.recorder import Recorder

RUN_LABEL = "kubelet-conformance/run"
"""A label of every sandbox and container that is made: its value is the run's."""
_POLL_SECONDS = 0.05
_NAMESPACE = "kubelet-conformance"
_END_SECONDS = 10.0


class Runtime:
    """A runtime as one runtime scenario uses it, with sandboxes and containers of its own.

    Attributes:
        target: the runtime itself, with all that is not a call.
        made: the sandboxes of the scenario.
    """

    def __init__(self, target: DirectRuntime, recorder: Recorder, scenario: str, run_id: str) -> None:
        self.target = target
        self.made: list[MadeSandbox] = []
        self._recorder = recorder
        self._run_id = run_id
        self._uids = f"{run_id}-{scenario.replace('_', '-')}-"
        self._recorded = Recorded(target, recorder, lambda uid: uid.startswith(self._uids))

    # Calls.

    async def call(self, rpc: str, request: Message, *, timeout: float = CALL_SECONDS) -> Any:  # noqa: ANN401, ASYNC109 - as gRPC has it
        """Make a call that has to succeed: raises `grpc.RpcError` otherwise."""
        return await self._recorded.call(rpc, request, timeout=timeout)

    async def attempt(self, rpc: str, request: Message, *, timeout: float = CALL_SECONDS) -> str:  # noqa: ASYNC109 - as gRPC has it
        """Make a call that may fail; gRPC's name for how it ended, `OK` if well."""
        return await self.ended(self.call(rpc, request, timeout=timeout))

    async def ended(self, call: Awaitable[object]) -> str:
        """How a call ended: gRPC's name, `OK` if well."""
        try:
            await call
        except grpc.RpcError as error:
            code: Any = getattr(error, "code", lambda: grpc.StatusCode.UNKNOWN)()
            return str(code.name)
        return "OK"

    @asynccontextmanager
    async def meanwhile(self, call: Awaitable[object]) -> AsyncGenerator[asyncio.Future[str]]:
        """Make a call while something else is done; it is over at the end, however it ended."""
        under_way = asyncio.ensure_future(self.ended(call))
        try:
            yield under_way
        except BaseException:
            under_way.cancel()
            raise
        finally:
            await asyncio.wait({under_way})

    # What a pod is made of.

    def config(self, name: str = "web", attempt: int = 0) -> cri.PodSandboxConfig:
        """What a kubelet would ask for a pod of this name."""
        uid = f"{self._uids}{name}"
        labels = {
            "io.kubernetes.pod.name": name,
            "io.kubernetes.pod.namespace": _NAMESPACE,
            "io.kubernetes.pod.uid": uid,
            RUN_LABEL: self._run_id,
        }
        config = cri.PodSandboxConfig(
            metadata=cri.PodSandboxMetadata(name=name, namespace=_NAMESPACE, uid=uid, attempt=attempt),
            hostname=name,
            log_directory=f"{self.target.files.folder}/{uid}",
            labels=labels,
            annotations={"kubelet-conformance/note": "made by a test scenario, and removed by it"},
        )
        config.linux.security_context.namespace_options.pid = cri.CONTAINER
        return config

    async def sandbox(
        self, name: str = "web", attempt: int = 0, config: cri.PodSandboxConfig | None = None
    ) -> MadeSandbox:
        """Run a sandbox."""
        asked = config or self.config(name, attempt)
        reply = await self.call("RunPodSandbox", cri.RunPodSandboxRequest(config=asked))
        return self.adopted(reply.pod_sandbox_id, asked)

    async def running(self, command: Sequence[str] | None = None, name: str = "web") -> MadeContainer:
        """Run a container in a sandbox of its own."""
        return await (await self.sandbox(name)).running(command)

    def adopted(self, sandbox_id: str, config: cri.PodSandboxConfig) -> MadeSandbox:
        """A sandbox that was run, to be cleaned up too."""
        made = MadeSandbox(self, sandbox_id, config)
        self.made.append(made)
        return made

    # Readings.

    async def list_sandboxes(self, **asked: Any) -> list[cri.PodSandbox]:  # noqa: ANN401 - fields of the filter
        """The scenario's sandboxes that meet the filter."""
        request = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(**asked))
        return list((await self.call("ListPodSandbox", request)).items)

    async def list_containers(self, **asked: Any) -> list[cri.Container]:  # noqa: ANN401 - fields of the filter
        """The scenario's containers that meet the filter."""
        request = cri.ListContainersRequest(filter=cri.ContainerFilter(**asked))
        return list((await self.call("ListContainers", request)).containers)

    async def look(self) -> None:
        """List everything, as a kubelet does each second."""
        await self.call("ListPodSandbox", cri.ListPodSandboxRequest())
        await self.call("ListContainers", cri.ListContainersRequest())

    @asynccontextmanager
    async def events(self) -> AsyncGenerator[list[cri.ContainerEventResponse]]:
        """The container events that come while the context is open."""
        came: list[cri.ContainerEventResponse] = []
        is_open = asyncio.Event()

        async def listen() -> None:
            async for event in self._recorded.events(is_open.set):
                came.append(event)  # noqa: PERF401 - each is there as soon as it has come

        listening = asyncio.ensure_future(listen())
        opening = asyncio.ensure_future(is_open.wait())
        try:
            await asyncio.wait({listening, opening}, return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                listening.result()
            yield came
        finally:
            opening.cancel()
            listening.cancel()
            await asyncio.wait({listening})

    # Files.

    def look_at_log(self, path: str) -> str | None:
        """Look for a log file, and put what it holds onto the record."""
        text = self.target.files.read(path)
        self._recorder.record("disk", op="no log" if text is None else "log", path=path, text=text)
        return text

    def move_log(self, path: str) -> None:
        """Move a log file away, as a kubelet does before it has the log reopened."""
        self.target.files.move(path, f"{path}.rotated")
        self._recorder.record("disk", op="moved", path=path)

    def set_registry_away(self, *, away: bool) -> None:
        """Let the registry serve nothing; or serve again."""
        self.target.registry.set_away(away=away)
        self._recorder.record(
            "fault", what="the registry is away" if away else "healed: the registry is back"
        )

    def record_event(self, op: str, *about: str | int | None) -> None:
        """Record a runtime event: container id, sandbox id, name and exit code as they apply."""
        container_id, sandbox_id, name, code = about
        if not (sandbox_id or container_id) or self._recorded.knows(container_id, sandbox_id):
            ids = {"container_id": container_id or None, "sandbox_id": sandbox_id or None}
            self._recorder.record("runtime", op=op, name=name or None, exit_code=code, **ids)

    # Time, and what is expected.

    @property
    def now(self) -> float:
        """The time in seconds."""
        return self.target.now()

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        await self.target.sleep(seconds)

    async def until(self, holds: Callable[[], Awaitable[bool]], within: float) -> bool:
        """Ask again and again, for so many seconds at most; whether it came true."""
        deadline = self.now + within
        while not await holds():
            if self.now >= deadline:
                return False
            await self.wait(_POLL_SECONDS)
        return True

    def expect(self, contract: str, awaited: str, *, met: bool) -> None:
        """Write what the runtime had to do by this contract, for its judge: calls alone do not show it."""
        self._recorder.record("expect", contract=contract, awaited=awaited, met=met)

    # The end.

    async def clean_up(self) -> None:
        """Stop and remove what the scenario made; failures are on the record."""
        for made in reversed(self.made):
            if not made.removed:
                await self.attempt("StopPodSandbox", cri.StopPodSandboxRequest(pod_sandbox_id=made.id))
                await self.attempt("RemovePodSandbox", cri.RemovePodSandboxRequest(pod_sandbox_id=made.id))


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
