"""Decode the calls in a process of its own, so that the relay never waits for decoding and writing.

The relaying process enters a `Pipeline` with the command of the other one, and gives its `sink` to the relay.
The other process reads its standard input:

    for observation in observations(sys.stdin.fileno()):
        ...
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from kubelet_conformance.tap.chunks import Chunk
from kubelet_conformance.tap.decoder import Decoder
from kubelet_conformance.tap.events import Observation
from kubelet_conformance.tap.spool import Spool, read_chunks

_NICE = 10
"""By how much the decoding process lowers its priority below the node that it observes."""


class Pipeline:
    """A process that is given every chunk, for as long as the context is open.

    On leaving, the process is given the rest, sees the end of its input, and is waited for; if the wait is
    cancelled, it is killed. When this process dies, the other sees the end of its input too, so it is never
    left over. It is in a session of its own: Ctrl-C reaches only this process, which ends it in order.

    Args:
        command: What to run; its standard input is the chunks, its output is this process's.
        folder: Where the spool puts what neither the pipe nor the memory takes; see `spool.Spool`.
    """

    def __init__(self, command: Sequence[str], folder: Path | None = None) -> None:
        self._command = command
        self._folder = folder
        self._spool: Spool
        self._process: asyncio.subprocess.Process
        self._ended: asyncio.Task[int]

    async def __aenter__(self) -> Self:
        """Start the process; `OSError` if it cannot be."""
        reading, writing = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=reading, start_new_session=True
            )
        except BaseException:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        self._spool = Spool(writing, self._folder)
        self._ended = asyncio.create_task(self._process.wait())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give the rest, and wait for the end of the process."""
        try:
            await self._spool.finish()
            await asyncio.shield(self._ended)
        finally:
            self._spool.close()
            if self._process.returncode is None:
                self._process.kill()
            await self._ended

    def sink(self, chunk: Chunk) -> None:
        """Take a chunk; returns at once, always."""
        self._spool(chunk)

    async def wait(self) -> int:
        """Wait for the process to end by itself, which it should not; its exit status."""
        return await asyncio.shield(self._ended)

    @property
    def exit_status(self) -> int:
        """How the process ended, once the context is left: its status, or the negative of a signal."""
        return self._ended.result()


def observations(pipe: int) -> Iterator[Observation]:
    """What is observed in the chunks that come through a pipe, until it is closed; waits for each."""
    decoder = Decoder()
    for chunk in read_chunks(pipe):
        yield from decoder.feed(chunk)


def give_way() -> None:
    """Let the node, which is being listened to, have the processor first."""
    os.nice(_NICE)
