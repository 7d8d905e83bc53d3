"""A connection of the HTTP server that goes on in another protocol."""

import asyncio

from aiohttp import web


def taken_over(request: web.Request) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The client's connection, from which the server of HTTP hears no more."""
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the client has gone")
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
