"""Who executes a command or attaches: one client of a stream, over WebSocket or SPDY/3.1."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import WSMsgType, web
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.runtime.core import StreamRequest
from kubelet_fakes.runtime.serving.spdy import SpdyConnection, SpdyStream
from kubelet_fakes.upgrades import taken_over

WEBSOCKET = ("v5.channel.k8s.io", "v4.channel.k8s.io")
"""What is spoken over WebSockets, the best first."""
_SPDY = (*WEBSOCKET, "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
"""What is spoken over SPDY, the best first."""
_PORT_FORWARD = "portforward.k8s.io"
_STDIN, _STDOUT, _ERROR, _CLOSE = 0, 1, 3, 255
_UPGRADE = "SPDY/3.1"
_PROTOCOL = "X-Stream-Protocol-Version"
_RESIZING = _SPDY[:3]
"""Protocols with a stream for the size of a terminal."""
_OPENING_SECONDS = 30.0
_SWITCHING = 101
_FAILED = "Failure"


class StreamClient(ABC):
    """Reads what is typed, and is given what a process writes and how it ended."""

    @abstractmethod
    def typed(self) -> AsyncIterator[bytes]:
        """What comes on standard input, until that is closed."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Send to the client's standard output."""

    @abstractmethod
    async def finish(self, status: Mapping[str, Any]) -> None:
        """Say how it ended, as an object of kind Status."""

    @abstractmethod
    async def until_gone(self) -> None:
        """Wait until the client leaves."""


class WebSocketClient(StreamClient):
    """A client over WebSocket: messages are binary, and their first byte is a channel."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def received(self) -> AsyncIterator[tuple[int, bytes]]:
        """Each message as channel and content."""
        async for message in self._socket:
            if message.type is WSMsgType.BINARY and message.data:
                yield message.data[0], message.data[1:]

    async def send(self, channel: int, data: bytes) -> None:
        """Send on one channel."""
        await self._socket.send_bytes(bytes([channel]) + data)

    async def typed(self) -> AsyncIterator[bytes]:
        """Content of the channel of standard input; one that is closed has ended, by version 5."""
        async for channel, data in self.received():
            if channel == _CLOSE and data == bytes([_STDIN]):
                break
            if channel == _STDIN:
                yield data

    async def write(self, data: bytes) -> None:
        """Send on the channel of standard output."""
        await self.send(_STDOUT, data)

    async def finish(self, status: Mapping[str, Any]) -> None:
        """Send the Status on the channel of errors."""
        await self.send(_ERROR, json.dumps(status).encode())

    async def until_gone(self) -> None:
        """Read over what still comes."""
        async for _ in self.received():
            pass


class SpdyClient(StreamClient):
    """A client over SPDY: a stream for each of standard input, output, errors, and the end."""

    def __init__(self, connection: SpdyConnection, streams: dict[str, SpdyStream], protocol: str) -> None:
        self._connection, self._streams, self._protocol = connection, streams, protocol

    async def typed(self) -> AsyncIterator[bytes]:
        """Content of the stream of standard input."""
        if "stdin" in self._streams:
            async for data in self._streams["stdin"]:
                yield data

    async def write(self, data: bytes) -> None:
        """Send on the stream of standard output, if the client has one."""
        if "stdout" in self._streams:
            await self._streams["stdout"].send(data)

    async def finish(self, status: Mapping[str, Any]) -> None:
        """Send the Status, or up to version 3 the text of a failure, and end all streams."""
        if self._protocol in WEBSOCKET:
            await self._streams["error"].send(json.dumps(status).encode())
        elif status["status"] == _FAILED:
            await self._streams["error"].send(str(status["message"]).encode())
        for stream in self._streams.values():
            await stream.end()

    async def until_gone(self) -> None:
        """Wait for the end of the connection."""
        await self._connection.until_gone()


@asynccontextmanager
async def spdy(request: web.Request, protocol: str) -> AsyncGenerator[SpdyConnection]:
    """Answer a request that asks for SPDY/3.1, and go on in that."""
    reader, writer = taken_over(request)
    headers = ("Connection: Upgrade", f"Upgrade: {_UPGRADE}", f"{_PROTOCOL}: {protocol}")
    writer.write("\r\n".join((f"HTTP/1.1 {_SWITCHING} Switching Protocols", *headers, "", "")).encode())
    async with SpdyConnection(reader, writer) as connection:
        yield connection


def wants_spdy(request: web.Request) -> bool:
    """The request would go on in SPDY/3.1."""
    return request.headers.get("Upgrade", "").lower() == _UPGRADE.lower()


def spdy_protocols(asked: StreamRequest) -> tuple[str, ...]:
    """Protocols of streams over SPDY, the best first."""
    return (_PORT_FORWARD,) if isinstance(asked, cri.PortForwardRequest) else _SPDY


def common_protocol(request: web.Request, protocols: tuple[str, ...]) -> str | None:
    """The first one that the client speaks too; one that names none speaks the last, which is the oldest."""
    lines = request.headers.getall(_PROTOCOL, [])
    spoken = [each.strip() for line in lines for each in line.split(",")]
    return next((each for each in protocols if each in spoken), None) if spoken else protocols[-1]


async def spdy_client(
    connection: SpdyConnection, asked: cri.ExecRequest | cri.AttachRequest, protocol: str
) -> SpdyClient:
    """The client once it has opened the streams that were asked for; raises `TimeoutError`."""
    wanted = {"error"} | {each for each in ("stdin", "stdout", "stderr") if getattr(asked, each)}
    if asked.tty and protocol in _RESIZING:
        wanted.add("resize")
    streams: dict[str, SpdyStream] = {}
    async with asyncio.timeout(_OPENING_SECONDS):
        async for stream in connection.opened():
            streams[stream.headers.get("streamtype", "")] = stream
            if wanted <= streams.keys():
                return SpdyClient(connection, streams, protocol)
    raise ConnectionResetError("the client has gone before it had opened its streams")
