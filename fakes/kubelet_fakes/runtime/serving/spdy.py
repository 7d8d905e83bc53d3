"""One connection of SPDY/3.1 from the server's side: streams that a client opens."""

import asyncio
from collections.abc import AsyncIterator
from typing import Self

from kubelet_fakes.runtime.serving.spdy_frames import (
    Data,
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    Ping,
    Reset,
    SpdyError,
    SynReply,
    SynStream,
)

_CHUNK_BYTES = 1 << 16


class SpdyStream:
    """One stream; what a client sends can be iterated, until its end or the connection's."""

    def __init__(self, connection: "SpdyConnection", opened: SynStream) -> None:
        self.id, self.headers = opened.stream_id, opened.headers
        self._connection = connection
        self._received: asyncio.Queue[bytes] = asyncio.Queue()
        self._has_ended = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Each piece of data that comes."""
        while data := await self._received.get():
            yield data
        self._received.put_nowait(b"")

    def take(self, data: bytes, *, fin: bool) -> None:
        """The client has sent that; nothing and `fin` is its end."""
        if data:
            self._received.put_nowait(data)
        if fin:
            self._received.put_nowait(b"")

    async def send(self, data: bytes) -> None:
        """Send data to the client."""
        if data and not self._has_ended:
            await self._connection.send(Data(self.id, data))

    async def end(self) -> None:
        """Send no more."""
        if not self._has_ended:
            self._has_ended = True
            await self._connection.send(Data(self.id, fin=True))


class SpdyConnection:
    """Reads frames in the background for as long as its context is open; each stream is accepted."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._frames = FrameWriter()
        self._streams: dict[int, SpdyStream] = {}
        self._opened: asyncio.Queue[SpdyStream | None] = asyncio.Queue()
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to read."""
        self._reading = asyncio.create_task(self._read(), name="frames of a client")
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the connection; a client that has not ended its streams learns that they are over."""
        if self._reading is not None:
            await self.send(GoAway(max(self._streams, default=0)))
            self._reading.cancel()
            await asyncio.wait([self._reading])
        self._writer.close()

    async def opened(self) -> AsyncIterator[SpdyStream]:
        """Each stream that the client opens, until it has gone."""
        while (stream := await self._opened.get()) is not None:
            yield stream

    async def until_gone(self) -> None:
        """Wait for the end of the client's side."""
        if self._reading is not None:
            await asyncio.wait([self._reading])

    @property
    def is_gone(self) -> bool:
        """The client sends no more."""
        return self._reading is None or self._reading.done()

    async def send(self, frame: Frame) -> None:
        """Send a frame; to a client that has gone that is nothing."""
        try:
            self._writer.write(self._frames.encode(frame))
            await self._writer.drain()
        except OSError:
            pass

    async def _read(self) -> None:
        frames = FrameReader()
        try:
            while chunk := await self._reader.read(_CHUNK_BYTES):
                for frame in frames.feed(chunk):
                    await self._take(frame)
        except (OSError, SpdyError):
            # As with any connection that breaks off, its streams are over.
            pass
        finally:
            self._opened.put_nowait(None)
            for stream in self._streams.values():
                stream.take(b"", fin=True)

    async def _take(self, frame: Frame) -> None:
        match frame:
            case SynStream(stream_id=number):
                stream = self._streams[number] = SpdyStream(self, frame)
                await self.send(SynReply(number))
                stream.take(b"", fin=frame.fin)
                self._opened.put_nowait(stream)
            case Data(stream_id=number) if number in self._streams:
                self._streams[number].take(frame.data, fin=frame.fin)
            case Reset(stream_id=number) if number in self._streams:
                self._streams.pop(number).take(b"", fin=True)
            case Ping():
                await self.send(frame)
            case _:
                pass
