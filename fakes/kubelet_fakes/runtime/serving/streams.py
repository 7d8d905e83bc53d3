"""Streams of the fake runtime: exec, attach and port-forward, at URLs with a token.

A kubelet passes a client's connection on to the URL that Exec, Attach or PortForward answers, as it is or
as SPDY/3.1: which of the two depends on its release and its feature gates.
"""

import asyncio
import os
import shlex
from collections.abc import AsyncIterator
from typing import Self

from aiohttp import web
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.core import StreamRequest
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.serving.forwarded_ports import forward_spdy, forward_websocket
from kubelet_fakes.runtime.serving.stream_clients import (
    WEBSOCKET,
    StreamClient,
    WebSocketClient,
    common_protocol,
    spdy,
    spdy_client,
    spdy_protocols,
    wants_spdy,
)

_TOKEN_SECONDS = 60.0
"""How long a URL is good that nobody connects to."""
_GOODBYE_SECONDS = 1.0
_SHELLS = frozenset({"sh", "bash", "/bin/sh", "/bin/bash"})
_NOT_FOUND, _BAD_REQUEST = 404, 400


class StreamServer:
    """Serves a runtime's streams on loopback for as long as its context is open.

    Without it Exec, Attach and PortForward are refused. Each URL is good for one connection,
    over WebSocket or SPDY/3.1.
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
        if wants_spdy(request):
            return await self._serve_spdy(request, asked)
        socket = web.WebSocketResponse(protocols=WEBSOCKET)
        if not socket.can_prepare(request):
            return _not_spoken(f"WebSocket with {' or '.join(WEBSOCKET)}, or SPDY/3.1", request)
        await socket.prepare(request)
        client = WebSocketClient(socket)
        if isinstance(asked, cri.PortForwardRequest):
            await forward_websocket(client, list(asked.port))
        else:
            await self._run_for(client, asked)
        await socket.close()
        return socket

    async def _serve_spdy(self, request: web.Request, asked: StreamRequest) -> web.StreamResponse:
        protocols = spdy_protocols(asked)
        protocol = common_protocol(request, protocols)
        if protocol is None:
            return _not_spoken(f"SPDY/3.1 with {' or '.join(protocols)}", request)
        try:
            async with spdy(request, protocol) as connection:
                if isinstance(asked, cri.PortForwardRequest):
                    await forward_spdy(connection)
                else:
                    await self._run_for(await spdy_client(connection, asked, protocol), asked)
        except OSError:
            # The client has gone, or never opened its streams.
            pass
        return web.Response()

    async def _run_for(self, client: StreamClient, asked: cri.ExecRequest | cri.AttachRequest) -> None:
        """Execute or attach, and say how it ended."""
        try:
            if isinstance(asked, cri.AttachRequest):
                status = _status_of(await self._attach(client, asked))
            else:
                status = _status_of(await self._exec(client, asked))
        except CallError as error:
            status = _failure("InternalError", error.details())
        except ValueError as error:
            status = _failure("BadRequest", f"the shell cannot read this: {error}")
        await client.finish(status)

    async def _exec(self, client: StreamClient, asked: cri.ExecRequest) -> int:
        """Execute the command; a shell reads commands line by line. Returns the exit code."""
        words, container = list(asked.cmd), asked.container_id
        if words[:1] and words[0] in _SHELLS and words[1:2] == ["-c"]:
            words = shlex.split(" ".join(words[2:3]))
        elif words[:1] and words[0] in _SHELLS:
            return await self._shell(client, asked)
        return await self._run(client, container, words, tty=asked.tty)

    async def _run(self, client: StreamClient, container: str, words: list[str], *, tty: bool) -> int:
        reply = await self._runtime.run_in(container, words)
        output = reply.stdout.replace(b"\n", b"\r\n") if tty else reply.stdout
        if output:
            await client.write(output)
        return reply.exit_code

    async def _shell(self, client: StreamClient, asked: cri.ExecRequest) -> int:
        """A shell of the script language, and `exit [CODE]`; it ends with its last command's code."""
        code = 0
        if not asked.stdin:
            return code
        async for line in _lines(client, echo=asked.tty):
            match shlex.split(line):
                case ["exit", *given]:
                    return int(given[0]) if given else code
                case words if words:
                    code = await self._run(client, asked.container_id, words, tty=asked.tty)
                case _:
                    pass
        return code

    async def _attach(self, client: StreamClient, asked: cri.AttachRequest) -> int:
        """Pass on what the process writes from now on; it writes what is typed. Returns its exit code."""
        container = self._runtime.core.container(asked.container_id)
        written: asyncio.Queue[str | None] = asyncio.Queue()
        logs = self._runtime.core.store.logs
        logs.listeners[written.put_nowait] = container.id
        self._runtime.exit_of(container.id).add_done_callback(lambda _: written.put_nowait(None))
        typing = asyncio.create_task(self._type(client, asked, written))
        try:
            while (line := await written.get()) is not None:
                end = "\r\n" if asked.tty else "\n"
                await client.write(f"{line}{end}".encode())
        finally:
            del logs.listeners[written.put_nowait]
            typing.cancel()
        return container.exit_code

    async def _type(
        self, client: StreamClient, asked: cri.AttachRequest, written: asyncio.Queue[str | None]
    ) -> None:
        """Let the process write each line that comes; a client that leaves ends the stream."""
        async for line in _lines(client, echo=False):
            if asked.stdin:
                self._runtime.say(asked.container_id, line)
        await client.until_gone()
        written.put_nowait(None)


async def _lines(client: StreamClient, *, echo: bool) -> AsyncIterator[str]:
    """What is typed, line by line, until standard input is closed."""
    rest = b""
    async for data in client.typed():
        if echo:
            await client.write(data.replace(b"\r", b"\r\n"))
        *whole, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
        for line in whole:
            yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


def _status_of(code: int) -> dict[str, object]:
    if not code:
        return {"metadata": {}, "status": "Success"}
    causes = [{"reason": "ExitCode", "message": str(code)}]
    text = f"command terminated with non-zero exit code: exit status {code}"
    return {**_failure("NonZeroExitCode", text), "details": {"causes": causes}}


def _failure(reason: str, message: str | None) -> dict[str, object]:
    return {"metadata": {}, "status": "Failure", "reason": reason, "message": message}


def _not_spoken(spoken: str, request: web.Request) -> web.Response:
    names = ("Upgrade", "X-Stream-Protocol-Version", "Sec-WebSocket-Protocol")
    got = " ".join(request.headers[name] for name in names if name in request.headers) or "HTTP"
    return web.Response(status=_BAD_REQUEST, text=f"streams speak {spoken}, not {got}\n")
