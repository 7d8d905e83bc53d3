"""Copies bytes between clients and the runtime, and shows each piece to a sink once it is on its way.

The bytes are never looked at, so methods, fields and versions unknown to this project pass as they are.
What one side is slow to take, the other is slow to be read: nothing piles up here. A side that will send
nothing more may still receive, as the peers would have it without a tap in between.

When the runtime cannot be reached the client's connection is closed at once: its gRPC reports UNAVAILABLE and
connects again after its own back-off, and each new connection is a new try.
"""

from __future__ import annotations

import asyncio
import os
import struct
from pathlib import Path
from socket import SO_PEERCRED, SOL_SOCKET
from typing import Self, cast

from kubelet_conformance.tap.address import ListeningSocket
from kubelet_conformance.tap.chunks import Chunk, Sink, What

_NS = 1_000_000_000
_CREDENTIALS = struct.Struct("3i")
_READ_BYTES = 1 << 16
"""How much is read at a time."""
_GOODBYE_SECONDS = 1.0
"""How long peers that are still connected when the relay ends may take to receive the last bytes."""


class Relay:
    """Relays for as long as its context is open.

    Args:
        listen: The socket to make, mode 0600; see `address.ListeningSocket`.
        upstream: The runtime's socket. It need not be there yet, and may go and come back.
        sink: Is given every chunk, in order. It is to return at once; when it fails, the error goes to the
            loop's exception handler and the bytes go on.

    Raises:
        AddressError: On entry: it cannot listen there.
    """

    def __init__(self, listen: Path, upstream: Path, sink: Sink) -> None:
        self.listen = listen
        self.upstream = upstream
        self._sink = sink
        self._loop: asyncio.AbstractEventLoop
        self._socket: ListeningSocket
        self._server: asyncio.Server
        self._connections = 0
        self._links: dict[_Link, None] = {}
        self._nobody = asyncio.Event()
        self._nobody.set()
        self._away = False
        self._closing = False
        self.buffer = memoryview(bytearray(_READ_BYTES))

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        self._loop = asyncio.get_running_loop()
        self._socket = ListeningSocket(self.listen, self.upstream)
        try:
            self._server = await self._loop.create_unix_server(
                lambda: _Link(self).client, sock=self._socket.socket
            )
        except BaseException:
            self._socket.remove()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """End every connection and take the socket away."""
        self._closing = True
        self._server.close()
        # From here on no client can connect; those connected see the end of the connection.
        self._socket.remove()
        for link in list(self._links):
            link.close()
        try:
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self._nobody.wait()
        except TimeoutError:
            for link in list(self._links):
                link.abort()
            await self._nobody.wait()

    def now_ns(self) -> int:
        """The monotonic clock, in nanoseconds."""
        return int(self._loop.time() * _NS)

    def peers(self) -> set[tuple[str, int]]:
        """The processes that are connected, without this one: `kubelet` or `runtime`, and its id."""
        ends = [end for link in self._links for end in (link.client, link.runtime) if end.is_open]
        every = {("kubelet" if end is end.link.client else "runtime", end.peer) for end in ends}
        return {(what, pid) for what, pid in every if pid not in {0, os.getpid()}}

    def show(self, at_ns: int, connection: int, what: What, data: bytes = b"") -> None:
        """Show a chunk to the sink."""
        try:
            self._sink(Chunk(at_ns, connection, what, data))
        except Exception as error:  # noqa: BLE001 - whatever became of the copy, the bytes must go on
            self._loop.call_exception_handler({"message": "the tap's sink failed", "exception": error})

    def begin(self, link: _Link) -> int:
        """A client connected: its number."""
        self._connections += 1
        self._links[link] = None
        self._nobody.clear()
        self.show(self.now_ns(), self._connections, What.CONNECTED)
        return self._connections

    def end(self, link: _Link) -> None:
        """Both ends of a link are closed."""
        del self._links[link]
        if not self._links:
            self._nobody.set()

    def reached(self) -> None:
        """The runtime took a connection."""
        if self._away:
            self._away = False
            self.show(self.now_ns(), 0, What.BACK)

    def missed(self, why: str) -> None:
        """The runtime did not take a connection, or broke one: it is away if it keeps none."""
        if not (self._away or self._closing) and not any(link.is_whole for link in self._links):
            self._away = True
            self.show(self.now_ns(), 0, What.AWAY, why.encode())


class _End(asyncio.BufferedProtocol):
    """One end of a link: what it receives, the other end sends.

    All ends of a relay read into one buffer, one after another: making a large one for each read would cost
    more than the rest.
    """

    transport: asyncio.Transport
    other: _End

    def __init__(self, link: _Link, received: What, gone: What) -> None:
        self.link = link
        self.received = received
        self.gone = gone
        self.is_open = False
        """Whether it is connected."""
        self.ended_writing = False
        """Whether it will send nothing more."""

    @property
    def peer(self) -> int:
        """The id of the process that is connected, 0 where it has none in this pid namespace."""
        made = self.transport.get_extra_info("socket")
        pid, *_ = _CREDENTIALS.unpack(made.getsockopt(SOL_SOCKET, SO_PEERCRED, _CREDENTIALS.size))
        return int(pid)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.is_open = True
        self.link.made(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - as the loop calls it
        return self.link.relay.buffer

    def buffer_updated(self, nbytes: int) -> None:
        link = self.link
        at_ns = link.relay.now_ns()
        data = bytes(link.relay.buffer[:nbytes])
        self.other.transport.write(data)
        link.relay.show(at_ns, link.connection, self.received, data)

    def eof_received(self) -> bool:
        """Pass on that nothing more comes; the way back stays open until its own end."""
        self.link.ended_writing(self)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self.link.lost(self, exc)

    def pause_writing(self) -> None:
        if self.other.is_open:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other.is_open:
            self.other.transport.resume_reading()


class _Link:
    """A client's connection and the one to the runtime that was made for it."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.connection = 0
        self.client = _End(self, What.REQUESTS, What.CLIENT_GONE)
        self.runtime = _End(self, What.REPLIES, What.RUNTIME_GONE)
        self.client.other = self.runtime
        self.runtime.other = self.client
        self._connecting: asyncio.Task[None] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the runtime still holds its end."""
        return self.runtime.is_open and not self.runtime.ended_writing

    def close(self) -> None:
        """End both connections, as soon as what was received is sent."""
        for end in (self.client, self.runtime):
            if end.is_open:
                end.transport.close()

    def abort(self) -> None:
        """End both connections now."""
        for end in (self.client, self.runtime):
            if end.is_open:
                end.transport.abort()

    def made(self, end: _End) -> None:
        """An end is connected: the client first, which is not read until the runtime is."""
        if end is self.runtime:
            return
        self.connection = self.relay.begin(self)
        self.client.transport.pause_reading()
        self._connecting = asyncio.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            await asyncio.get_running_loop().create_unix_connection(
                lambda: self.runtime, str(self.relay.upstream)
            )
        except OSError as error:
            self.relay.missed(error.strerror or str(error))
            self.client.transport.close()
        else:
            self.relay.reached()
            if self.client.is_open and not self.client.transport.is_closing():
                self.client.transport.resume_reading()
            else:
                self.runtime.transport.close()
        finally:
            self._connecting = None
            self._end_if_over()

    def ended_writing(self, end: _End) -> None:
        """One side will send nothing more: the other one gets an EOF, and when both did the link is over."""
        if end.ended_writing:
            return
        end.ended_writing = True
        self.relay.show(self.relay.now_ns(), self.connection, end.gone)
        if end.other.ended_writing:
            self.close()
            return
        if end.other.is_open and not end.other.transport.is_closing():
            end.other.transport.write_eof()
        if end is self.runtime:
            self.relay.missed("")

    def lost(self, end: _End, error: Exception | None) -> None:
        """An end is closed: so will be the other, once it has what is left for it."""
        if not end.ended_writing:
            end.ended_writing = True
            self.relay.show(self.relay.now_ns(), self.connection, end.gone)
            if end is self.runtime and not self.client.ended_writing:
                self.relay.missed(str(error or ""))
        if end.other.is_open:
            end.other.transport.close()
        self._end_if_over()

    def _end_if_over(self) -> None:
        if self._connecting is None and not self.client.is_open and not self.runtime.is_open:
            self.relay.end(self)
