"""The servers in a fake's pods where kubelets are processes, at a loopback address of each pod."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Self

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from kubelet_conformance.targets.in_process.pod_servers import PodServers
from kubelet_conformance.targets.in_process.stage import sandbox_has_server, uid_with_address
from kubelet_conformance.trace.format.recorder import Failed, Item, RecordedReply, Recorder, Seen
from kubelet_fakes.runtime import FakeRuntime
from kubelet_reference.util.ports import FetchError, PlainAnswerError

Json = dict[str, Any]
_Closing = Callable[[], Awaitable[object]]
_HEAD_BYTES_MAX = 1 << 16
_TLS = b"\x16"
"""The first byte of a connection over TLS."""
_GRPC, _HTTP, _TCP = "grpc", "httpGet", "tcpSocket"
_HANDLERS = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")


class _Port:
    """A port of a pod that probes or hooks ask, and for what."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.path = "/"
        """What is asked for over TLS: it is hidden from a server that knows none."""


class ListeningPodServers(PodServers):
    """Serves the ports that probes and hooks of pods ask, from the start of a sandbox to its stop.

    They listen while its context is open. They know no TLS. A port that is closed refuses unseen. Static pods
    are those of `node`, whose name is part of theirs.
    """

    def __init__(
        self, recorder: Recorder, runtime: FakeRuntime, sleep: Callable[[float], Awaitable[None]], node: str
    ) -> None:
        has_server, whose = partial(sandbox_has_server, runtime), partial(uid_with_address, runtime)
        super().__init__(recorder, has_server, whose, sleep, runtime.faults)
        self._runtime = runtime
        self._node = node
        self._ports: dict[tuple[str, str], dict[int, _Port]] = {}
        """What is asked of each pod, by its namespace and name."""
        self._open: dict[tuple[str, int], _Closing] = {}
        self._served: dict[str, dict[int, _Port]] = {}
        """The ports of each address that has a pod."""
        self._tasks = set[asyncio.Task[None]]()
        self._opening = asyncio.Lock()
        """A port is opened once, however many sandboxes start meanwhile."""

    async def __aenter__(self) -> Self:
        """Begin to follow the record."""
        self._recorder.listeners.append(self._observe)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Listen no more."""
        self._recorder.listeners.remove(self._observe)
        self._served.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._listen()

    def open_port(self, port: int, *, is_open: bool) -> None:
        """From now on take or refuse TCP connections at this port."""
        super().open_port(port, is_open=is_open)
        self._begin(self._listen())

    def _begin(self, work: Any) -> None:  # noqa: ANN401 - a coroutine
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _observe(self, seen: Seen) -> None:
        if isinstance(seen, Item) and seen.kind == "pod" and seen.fields["op"] == "set":
            metadata: Json = seen.fields["pod"].get("metadata") or {}
            name = metadata.get("name", "")
            full = name if seen.fields["source"] == "api" else f"{name}-{self._node}"
            self._ports[metadata.get("namespace", "default"), full] = _ports(seen.fields["pod"])
        if isinstance(seen, RecordedReply) and not isinstance(seen.outcome, Failed):
            request: Any = seen.call.request
            response: Any = seen.outcome
            if seen.call.rpc == "RunPodSandbox":
                self._start(response.pod_sandbox_id)
            elif seen.call.rpc == "StopPodSandbox":
                self._stop(request.pod_sandbox_id)

    def _start(self, sandbox_id: str) -> None:
        sandbox = self._runtime.core.store.sandboxes.get(sandbox_id)
        if sandbox is None:
            return
        metadata = sandbox.config.metadata
        ports = self._ports.get((metadata.namespace, metadata.name))
        if ports:
            self._served.update((ip, ports) for ip in sandbox.ips)
            self._begin(self._listen())

    def _stop(self, sandbox_id: str) -> None:
        sandbox = self._runtime.core.store.sandboxes.get(sandbox_id)
        stopped = [ip for ip in (sandbox.ips if sandbox is not None else ()) if self._served.pop(ip, None)]
        if stopped:
            self._begin(self._listen())

    async def _listen(self) -> None:
        """Listen where a pod is to be asked and the port is not closed, and nowhere else."""
        async with self._opening:
            wanted = {
                (ip, number): port
                for ip, ports in self._served.items()
                for number, port in ports.items()
                if number not in self._closed
            }
            for place in self._open.keys() - wanted.keys():
                await self._open.pop(place)()
            for place in wanted.keys() - self._open.keys():
                if _GRPC in wanted[place].kinds:
                    self._open[place] = await self._serve_grpc(*place)
                else:
                    self._open[place] = await self._serve(*place, wanted[place])

    async def _serve_grpc(self, ip: str, port: int) -> _Closing:
        server = grpc.aio.server()
        health_pb2_grpc.add_HealthServicer_to_server(_Health(self, ip, port), server)  # pyright: ignore[reportUnknownMemberType]
        server.add_insecure_port(f"{ip}:{port}")
        await server.start()
        return partial(server.stop, None)

    async def _serve(self, ip: str, number: int, port: _Port) -> _Closing:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._answer_connection(ip, number, port, reader, writer)
            writer.close()

        server = await asyncio.start_server(answer, ip, number, limit=_HEAD_BYTES_MAX)

        async def close() -> None:
            server.close()

        return close

    async def _answer_connection(
        self, ip: str, number: int, port: _Port, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        first = await reader.read(1)
        if not first:
            self._record(_TCP, "open", ip, {"port": number})
            return
        if first == _TLS:
            # A server that knows no TLS says so in plain HTTP, and never learns what was asked for.
            self._plain.add(port.path)
            with suppress(PlainAnswerError):
                await self._answer(f"https://{ip}:{number}{port.path}", {})
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            return
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *lines = head.splitlines()
        headers = dict(each.split(": ", 1) for each in lines if ": " in each)
        path = line.split(" ")[1]
        request = asyncio.create_task(self._answer(f"http://{ip}:{number}{path}", headers))
        gone = asyncio.create_task(reader.read(1))
        await asyncio.wait((request, gone), return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        request.cancel()
        try:
            answer = await request
        except (FetchError, asyncio.CancelledError):
            writer.transport.abort()
            return
        location = f"Location: {answer.location}\r\n" if answer.location else ""
        length = f"Content-Length: {len(answer.body.encode())}\r\nConnection: close\r\n"
        writer.write(f"HTTP/1.1 {answer.status} -\r\n{location}{length}\r\n{answer.body}".encode())


class _Health(health_pb2_grpc.HealthServicer):
    """The health service of a pod."""

    def __init__(self, servers: PodServers, ip: str, port: int) -> None:
        self._servers = servers
        self._where = ip, port

    async def Check(
        self,
        request: health_pb2.HealthCheckRequest,
        context: Any,  # noqa: ANN401 - a generic class in stubs only
    ) -> health_pb2.HealthCheckResponse:
        """Answer as the scenario has it; what it lets refuse is not available."""
        try:
            status = await self._servers.grpc_check(*self._where, request.service, seconds=0)
        except FetchError as error:
            is_old = "does not implement" in str(error)
            code = grpc.StatusCode.UNIMPLEMENTED if is_old else grpc.StatusCode.UNAVAILABLE
            await context.abort(code, str(error))
            raise
        return health_pb2.HealthCheckResponse(
            status=health_pb2.HealthCheckResponse.ServingStatus.Value(status)
        )


def _ports(pod: Json) -> dict[int, _Port]:
    """The ports that the pod's probes and hooks ask at its own address."""
    found: dict[int, _Port] = {}
    spec: Json = pod.get("spec") or {}
    containers: list[Json] = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for container in containers:
        declared: list[Json] = container.get("ports") or []
        named: Json = {port.get("name", ""): port["containerPort"] for port in declared}
        for kind, action in _actions(container):
            given = str(action.get("port", ""))
            number = str(named.get(given, given))
            if not number.isdigit() or action.get("host"):
                continue
            port = found.setdefault(int(number), _Port())
            port.kinds.add(kind)
            if action.get("scheme") == "HTTPS":
                port.path = "/" + str(action.get("path") or "").removeprefix("/")
    return found


def _actions(container: Json) -> Iterator[tuple[str, Json]]:
    """What the probes and hooks of a container ask over the network, each with its kind."""
    lifecycle: Json = container.get("lifecycle") or {}
    probes: list[Json | None] = [container.get(name) for name in _HANDLERS]
    hooks: list[Json | None] = [lifecycle.get(name) for name in _HOOKS]
    for handler in filter(None, [*probes, *hooks]):
        yield from ((kind, handler[kind]) for kind in (_GRPC, _HTTP, _TCP) if handler.get(kind))
