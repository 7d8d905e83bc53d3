"""Ports of a pod that are forwarded: each answers any request of HTTP, over WebSocket or SPDY/3.1."""

import asyncio

from kubelet_fakes.runtime.serving.spdy import SpdyConnection, SpdyStream
from kubelet_fakes.runtime.serving.stream_clients import WebSocketClient

_PAGE = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n"
"""What a server in a pod answers to any request."""
_END_OF_HEAD = b"\r\n\r\n"


async def forward_websocket(client: WebSocketClient, ports: list[int]) -> None:
    """Connect with ports: two channels for each, whose first message is the port's number."""
    for number, port in enumerate(ports):
        for channel in (2 * number, 2 * number + 1):
            await client.send(channel, port.to_bytes(2, "little"))
    heads = dict.fromkeys(range(0, 2 * len(ports), 2), b"")
    async for channel, data in client.received():
        if channel not in heads:
            continue
        heads[channel] += data
        if _END_OF_HEAD in heads[channel]:
            await client.send(channel, _PAGE)
            heads[channel] = b""


async def forward_spdy(connection: SpdyConnection) -> None:
    """Answer connections until the client leaves: each has a stream of errors and one of data."""
    waiting: dict[str, SpdyStream] = {}
    async with asyncio.TaskGroup() as answers:
        async for stream in connection.opened():
            other = waiting.pop(_connection_id(stream), None)
            if other is None:
                waiting[_connection_id(stream)] = stream
                continue
            pair = (stream, other) if stream.headers.get("streamtype") == "data" else (other, stream)
            answers.create_task(_answer(*pair), name="a forwarded connection")


def _connection_id(stream: SpdyStream) -> str:
    """What the two streams of one connection have in common; the oldest clients open them in turn."""
    return stream.headers.get("requestid", "")


async def _answer(data: SpdyStream, errors: SpdyStream) -> None:
    """Answer the first request, if one comes, and end the connection."""
    head = b""
    async for chunk in data:
        head += chunk
        if _END_OF_HEAD in head:
            await data.send(_PAGE)
            break
    await data.end()
    await errors.end()
