"""Streams of the fake runtime: exec, attach and port-forward over WebSockets, at URLs with a token.

A kubelet passes a client's connection on to the URL that Exec, Attach or PortForward answers. Messages are
binary, and their first byte is a channel: the protocols v4.channel.k8s.io and v5.channel.k8s.io.
"""

import asyncio
import json
import os
import shlex
from collections.abc import AsyncIterator, Awaitable
from typing import Self

from aiohttp import WSMsgType, web
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.core import StreamRequest
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.service import FakeRuntime

_STDIN, _STDOUT, _ERROR, _CLOSE = 0, 1, 3, 255
_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_TOKEN_SECONDS = 60.0
"""How long a URL is good that nobody connects to."""
_GOODBYE_SECONDS = 1.0
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash"})
_NOT_FOUND, _BAD_REQUEST = 404, 400
_PAGE = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n"
"""What a server in a pod answers to any request."""


class StreamServer:
    """Serves a runtime's streams on loopback for as long as its context is open.

    Without it Exec, Attach and PortForward are refused. Each URL is good for one connection. SPDY, which
    older clients and port-forward of kubectl need, is refused.
    """

    def __init__(self, runtime: FakeRuntime) -> None:
        self._runtime = runtime
        self._asked: dict[str, StreamRequest] = {}
        application = web.Application()
        application.router.add_route("*", "/{token}", self._serve)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=_GOODBYE_SECONDS)
        self._url = ""

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self._runtime.core.stream_url = self._url_of
        return self

    async def __aexit__(self, *_: object) -> None:
        """End all streams, and listen no more."""
        self._runtime.core.stream_url = None
        await self._runner.cleanup()

    def _url_of(self, request: StreamRequest) -> str:
        token = os.urandom(16).hex()
        self._asked[token] = request
        asyncio.get_running_loop().call_later(_TOKEN_SECONDS, self._asked.pop, token, None)
        return f"{self._url}/{token}"

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        asked = self._asked.pop(request.match_info["token"], None)
        if asked is None:
            return web.Response(status=_NOT_FOUND, text="no stream was asked for, or it was used already\n")
        socket = web.WebSocketResponse(protocols=_PROTOCOLS)
        if not socket.can_prepare(request):
            spoken = request.headers.get("Upgrade", "HTTP")
            text = f"streams speak WebSocket with {' or '.join(_PROTOCOLS)}, not {spoken}\n"
            return web.Response(status=_BAD_REQUEST, text=text)
        await socket.prepare(request)
        match asked:
            case cri.PortForwardRequest():
                await _forward(socket, list(asked.port))
            case cri.AttachRequest():
                await self._ended(socket, self._attach(socket, asked))
            case _:
                await self._ended(socket, self._exec(socket, asked))
        await socket.close()
        return socket

    async def _ended(self, socket: web.WebSocketResponse, work: Awaitable[int]) -> None:
        """Say how it ended, as an object of kind Status."""
        try:
            status = _status_of(await work)
        except CallError as error:
            status = {"status": "Failure", "reason": "InternalError", "message": error.details()}
        await socket.send_bytes(bytes([_ERROR]) + json.dumps({"metadata": {}, **status}).encode())

    async def _exec(self, socket: web.WebSocketResponse, asked: cri.ExecRequest) -> int:
        """Execute the command; a shell reads commands line by line. Returns the exit code."""
        words, container = list(asked.cmd), asked.container_id
        if words[:1] and words[0] in _SHELLS and words[1:2] == ["-c"]:
            words = shlex.split(" ".join(words[2:3]))
        elif words[:1] and words[0] in _SHELLS:
            return await self._shell(socket, asked)
        return await self._run(socket, container, words, tty=asked.tty)

    async def _run(
        self, socket: web.WebSocketResponse, container: str, words: list[str], *, tty: bool
    ) -> int:
        reply = await self._runtime.run_in(container, words)
        output = reply.stdout.replace(b"\n", b"\r\n") if tty else reply.stdout
        if output:
            await socket.send_bytes(bytes([_STDOUT]) + output)
        return reply.exit_code

    async def _shell(self, socket: web.WebSocketResponse, asked: cri.ExecRequest) -> int:
        """A shell of the script language, and `exit [CODE]`; it ends with its last command's code."""
        code = 0
        async for line in _lines(socket, echo=asked.tty):
            match shlex.split(line):
                case ["exit", *given]:
                    return int(given[0]) if given else code
                case words if words:
                    code = await self._run(socket, asked.container_id, words, tty=asked.tty)
                case _:
                    pass
        return code

    async def _attach(self, socket: web.WebSocketResponse, asked: cri.AttachRequest) -> int:
        """Pass on what the process writes from now on; it writes what is typed. Returns its exit code."""
        container = self._runtime.core.container(asked.container_id)
        written: asyncio.Queue[str | None] = asyncio.Queue()
        logs = self._runtime.core.store.logs
        logs.listeners[written.put_nowait] = container.id
        self._runtime.exit_of(container.id).add_done_callback(lambda _: written.put_nowait(None))
        typing = asyncio.create_task(self._type(socket, asked, written))
        try:
            while (line := await written.get()) is not None:
                end = "\r\n" if asked.tty else "\n"
                await socket.send_bytes(bytes([_STDOUT]) + f"{line}{end}".encode())
        finally:
            del logs.listeners[written.put_nowait]
            typing.cancel()
        return container.exit_code

    async def _type(
        self, socket: web.WebSocketResponse, asked: cri.AttachRequest, written: asyncio.Queue[str | None]
    ) -> None:
        """Let the process write each line that comes; a client that leaves ends the stream."""
        async for line in _lines(socket, echo=False):
            if asked.stdin:
                self._runtime.say(asked.container_id, line)
        if socket.closed:
            written.put_nowait(None)


async def _received(socket: web.WebSocketResponse) -> AsyncIterator[tuple[int, bytes]]:
    """Each message as channel and content."""
    async for message in socket:
        if message.type is WSMsgType.BINARY and message.data:
            yield message.data[0], message.data[1:]


async def _lines(socket: web.WebSocketResponse, *, echo: bool) -> AsyncIterator[str]:
    """What is typed, line by line, until standard input is closed."""
    rest = b""
    async for channel, data in _received(socket):
        if channel == _CLOSE and data == bytes([_STDIN]):
            break
        if channel != _STDIN:
            continue
        if echo:
            await socket.send_bytes(bytes([_STDOUT]) + data.replace(b"\r", b"\r\n"))
        *whole, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


async def _forward(socket: web.WebSocketResponse, ports: list[int]) -> None:
    """Connect with ports of the pod: two channels for each, whose first message is the port's number."""
    for number, port in enumerate(ports):
        for channel in (2 * number, 2 * number + 1):
            await socket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
    heads = dict.fromkeys(range(0, 2 * len(ports), 2), b"")
    async for channel, data in _received(socket):
        if channel not in heads:
            continue
        heads[channel] += data
        if b"\r\n\r\n" in heads[channel]:
            await socket.send_bytes(bytes([channel]) + _PAGE)
            heads[channel] = b""


def _status_of(code: int) -> dict[str, object]:
    if not code:
        return {"status": "Success"}
    return {
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
