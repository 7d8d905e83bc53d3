"""`kubelet-conformance record` in a process of its own, ended by a signal."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

#: Nothing here takes long; this only keeps a test that waits for nothing from hanging.
IN_VAIN_SECONDS = 40
_LIMITED = """
import os, resource, sys
size = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
os.execv(sys.argv[2], sys.argv[2:])
"""


class RecorderCommand:
    """The process, once clients can connect."""

    def __init__(self, process: asyncio.subprocess.Process, *, is_json: bool = False) -> None:
        self.process = process
        self._json = is_json
        self.out = ""
        self.err = ""

    async def listens(self) -> None:
        """Wait until clients can connect; what it says before is kept."""
        stream = self.process.stderr if self._json else self.process.stdout
        assert stream is not None
        async with asyncio.timeout(IN_VAIN_SECONDS):
            while "listening at unix://" not in (line := (await stream.readline()).decode()):
                assert line, f"it ended: {(await self.process.communicate())[1].decode()}"
                self.err += line

    async def says(self, text: str) -> str:
        """Wait for a line on standard error that holds the text; the line."""
        assert self.process.stderr is not None
        async with asyncio.timeout(IN_VAIN_SECONDS):
            while text not in (line := (await self.process.stderr.readline()).decode()):
                assert line, f"it ended without saying {text!r}: {self.err}"
                self.err += line
        return line

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Tell it to end; the exit code."""
        self.process.send_signal(number)
        return await self.ended()

    async def ended(self) -> int:
        """Wait for its end; the exit code."""
        async with asyncio.timeout(IN_VAIN_SECONDS):
            out, err = await self.process.communicate()
            self.out += out.decode()
            self.err += err.decode()
            return await self.process.wait()


@asynccontextmanager
async def recording(
    listen: Path, upstream: Path, *arguments: str | Path, file_bytes_max: int | None = None
) -> AsyncGenerator[RecorderCommand]:
    """Record with these arguments, killed in the end if it still runs. No file exceeds the limit."""
    command_line = [sys.executable, "-P", "-m", "kubelet_conformance", "record"]
    if file_bytes_max is not None:
        # Set by a process in between: code between fork and exec would meet the threads of gRPC.
        command_line = [sys.executable, "-c", _LIMITED, str(file_bytes_max), *command_line]
    process = await asyncio.create_subprocess_exec(
        *command_line,
        *("--listen", f"unix://{listen}", "--to", f"unix://{upstream}", *map(str, arguments)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    command = RecorderCommand(process, is_json="json" in arguments)
    try:
        await command.listens()
        yield command
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
