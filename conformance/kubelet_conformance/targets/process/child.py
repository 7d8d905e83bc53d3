"""One child process: its output line by line, its end awaited, its whole group gone in the end."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence

from kubelet_conformance.targets.process.machine.priority import come_as_usual

_CHUNK = 1 << 16
_LINE_BYTES_MAX = 1 << 20
_DIES_WITH_US = ("--pdeathsig", "KILL", "--")


class Child:
    """A process in a group of its own, so that Ctrl-C in the terminal is ours to pass on.

    Where `setpriv` is there, the kernel kills it when this process dies, however that happens. To be made
    within the running loop; `on_line` receives each line of its output.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], on_line: Callable[[bytes], None]
    ) -> None:
        guard = shutil.which("setpriv")
        self._process = subprocess.Popen(  # noqa: S603 - the command that the user chose
            [guard, *_DIES_WITH_US, *command] if guard else list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            process_group=0,
        )
        come_as_usual(self._process.pid)
        self._ended = asyncio.Event()
        self._on_line = on_line
        self._rest = b""
        self._loop = asyncio.get_running_loop()
        self._handle = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._handle, self._note_end)
        output = self._process.stdout
        self._output = -1 if output is None else output.fileno()
        os.set_blocking(self._output, False)
        self._loop.add_reader(self._output, self._read)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """How it ended, None while it runs; the negative number of the signal that ended it."""
        return self._process.returncode

    async def ended(self) -> int:
        """Wait for its end; the exit code."""
        await self._ended.wait()
        return self._process.returncode

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; one that has ended is fine."""
        if self.code is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it and all that it started, at once; again is fine."""
        if self.code is None:
            # Not yet waited for, so the number of its group is still its own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._close()

    def _note_end(self) -> None:
        """It has ended: what it left in its group goes too."""
        self._read()
        self.kill()

    def _close(self) -> None:
        if self._handle < 0:
            return
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        self._handle = -1
        self._read()
        self._loop.remove_reader(self._output)
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._rest:
            self._on_line(self._rest)
        self._ended.set()

    def _read(self) -> None:
        """Take what there is of the output."""
        while self._output >= 0:
            try:
                chunk = os.read(self._output, _CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                self._loop.remove_reader(self._output)
                return
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                self._on_line(line)
            if len(self._rest) > _LINE_BYTES_MAX:
                self._rest = b""
