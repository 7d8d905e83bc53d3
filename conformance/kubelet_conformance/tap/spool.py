"""Chunks on their way to another process: the one that writes never waits for the one that reads.

What the pipe does not take at once is kept in memory, then in a file without a name, which goes with the
process. When that is full too, whole connections are given up rather than a byte in their middle.
"""

import asyncio
import os
import struct
import tempfile
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from kubelet_conformance.tap.chunks import Chunk, What

_HEAD: Final = struct.Struct("<QQBI")
"""Time, connection, what, and how many bytes follow."""
_BLOCK: Final = 1 << 20
_DELAY_SECONDS: Final = 0.02
"""How long chunks gather before they are written together: many cost little more than one."""
_MEMORY_MAX: Final = 16 << 20
_FILE_MAX: Final = 4 << 30
_FULL: Final = b"its bytes came faster than they were read, and the spool for them is full"
_WHATS: Final = tuple(What)
"""By their number: asking the enumeration is slow."""
_DROPPABLE: Final = frozenset({What.REQUESTS, What.REPLIES, What.NOTE})
"""The others are small and few, and the reader could make no sense of the rest without them."""


class Spool:
    """A sink that writes chunks to a pipe.

    Args:
        pipe: The writing end, which is made non-blocking and closed in the end.
        folder: Where the file is made if it is needed; None for the system's folder for temporary files.
        memory_max: How many bytes are kept in memory, about.
        file_max: How many bytes are kept in the file, about.
    """

    def __init__(
        self,
        pipe: int,
        folder: Path | None = None,
        *,
        memory_max: int = _MEMORY_MAX,
        file_max: int = _FILE_MAX,
    ) -> None:
        os.set_blocking(pipe, False)
        self._pipe = pipe
        self._loop = asyncio.get_running_loop()
        self._overflow = _Overflow(folder, file_max)
        self._memory_max = memory_max
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._ready: deque[memoryview] = deque()
        self._ready_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._waits_for_room = False
        self._cut: set[int] = set()
        """Connections that lost a chunk, and of which no more is worth keeping."""
        self._empty: asyncio.Future[None] | None = None
        self.is_broken = False
        """Whether the reader is gone: whatever comes is dropped."""

    def __call__(self, chunk: Chunk) -> None:
        """Take a chunk."""
        if self.is_broken or (chunk.connection in self._cut and not self._is_end_of_cut(chunk)):
            return
        if self._overflow.waiting >= self._overflow.room and chunk.what in _DROPPABLE:
            if chunk.what is What.NOTE:
                return
            self._cut.add(chunk.connection)
            chunk = Chunk(chunk.at_ns, chunk.connection, What.LOST, _FULL)
        self._gathered += (_HEAD.pack(chunk.at_ns, chunk.connection, chunk.what, len(chunk.data)), chunk.data)
        self._gathered_bytes += _HEAD.size + len(chunk.data)
        if self._gathered_bytes >= _BLOCK:
            self._move()
        elif self._timer is None and not self._waits_for_room:
            self._timer = self._loop.call_later(_DELAY_SECONDS, self._move)

    async def finish(self) -> None:
        """Wait until the reader has everything, or is gone, and close the pipe."""
        self._move()
        if not self._is_empty:
            self._empty = self._loop.create_future()
            await self._empty
        self.close()

    def close(self) -> None:
        """Close the pipe; what is not written yet is dropped."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pipe >= 0:
            self._loop.remove_writer(self._pipe)
            os.close(self._pipe)
            self._pipe = -1
        self.is_broken = True
        self._overflow.close()

    def _is_end_of_cut(self, chunk: Chunk) -> bool:
        """The end of a connection that was given up is still reported, and then it is over."""
        if chunk.what is What.CLIENT_GONE:
            self._cut.discard(chunk.connection)
        return chunk.what is What.CLIENT_GONE

    @property
    def _is_empty(self) -> bool:
        return self.is_broken or not (self._ready or self._overflow.waiting or self._gathered)

    def _move(self) -> None:
        """Write what was gathered, or keep it behind what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.is_broken:
            return
        if self._gathered:
            block = b"".join(self._gathered)
            self._gathered.clear()
            self._gathered_bytes = 0
            if self._overflow.waiting or self._ready_bytes >= self._memory_max:
                self._overflow.append(block)
            else:
                self._keep(block)
        if not self._waits_for_room:
            self._write()

    def _keep(self, block: bytes) -> None:
        self._ready.append(memoryview(block))
        self._ready_bytes += len(block)

    def _write(self) -> None:
        """Write until all is written or the pipe is full."""
        try:
            while self._refill():
                block = self._ready[0]
                written = os.write(self._pipe, block)
                self._ready_bytes -= written
                if written == len(block):
                    self._ready.popleft()
                else:
                    self._ready[0] = block[written:]
        except BlockingIOError:
            if not self._waits_for_room:
                self._waits_for_room = True
                self._loop.add_writer(self._pipe, self._write)
            return
        except OSError:
            self.is_broken = True
            self._ready.clear()
            self._gathered.clear()
        if self._waits_for_room:
            self._waits_for_room = False
            self._loop.remove_writer(self._pipe)
        if self._gathered and self._timer is None:
            self._timer = self._loop.call_later(_DELAY_SECONDS, self._move)
        if self._is_empty and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def _refill(self) -> bool:
        """See that what is to be written next is in memory; False if there is nothing."""
        if not self._ready and self._overflow.waiting:
            self._keep(self._overflow.take())
        return bool(self._ready)


class _Overflow:
    """Bytes in a file without a name, first in, first out.

    `room` is how many bytes may wait; it shrinks to what waits where the disk is full.
    """

    def __init__(self, folder: Path | None, room: int) -> None:
        self.room = self._usual_room = room
        self._folder = folder
        self._file: BinaryIO | None = None
        self._read = 0
        self._written = 0
        self._homeless: deque[bytes] = deque()
        """What the disk did not take, behind what it has."""
        self._homeless_bytes = 0

    @property
    def waiting(self) -> int:
        """How many bytes there are to take."""
        return self._written - self._read + self._homeless_bytes

    def append(self, block: bytes) -> None:
        """Add bytes at the end."""
        try:
            if not self._homeless:
                block = block[self._store(block) :]
        except OSError:
            self.room = self.waiting
        if block:
            self._homeless.append(block)
            self._homeless_bytes += len(block)

    def take(self) -> bytes:
        """The first bytes, a block of them or a few more."""
        if self._file is not None and self._read < self._written:
            block = os.pread(self._file.fileno(), min(_BLOCK, self._written - self._read), self._read)
            self._read += len(block)
        else:
            block = self._homeless.popleft()
            self._homeless_bytes -= len(block)
        if not self.waiting:
            self._begin_anew()
        return block

    def close(self) -> None:
        """Give the file back."""
        self._homeless.clear()
        self._homeless_bytes = 0
        self._begin_anew()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _store(self, block: bytes) -> int:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - kept open
        stored = os.pwrite(self._file.fileno(), block, self._written)
        self._written += stored
        return stored

    def _begin_anew(self) -> None:
        self.room = self._usual_room
        self._read = self._written = 0
        if self._file is not None:
            self._file.truncate(0)


def read_chunks(pipe: int) -> Iterator[Chunk]:
    """The chunks that a spool writes, until its process is gone or closes the pipe; waits for each.

    A chunk that is cut short by the end, as when the writer was killed, is left out.
    """
    rest = b""
    at_ns: int
    connection: int
    what: int
    length: int
    while block := os.read(pipe, _BLOCK):
        data = rest + block if rest else block
        at, end = 0, len(data)
        while at + _HEAD.size <= end:
            at_ns, connection, what, length = _HEAD.unpack_from(data, at)
            after = at + _HEAD.size + length
            if after > end:
                break
            yield Chunk(at_ns, connection, _WHATS[what], data[at + _HEAD.size : after])
            at = after
        rest = data[at:]
