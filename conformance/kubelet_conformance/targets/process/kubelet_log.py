"""What a kubelet's log says of its end and of its panics.

HandleCrash logs a panic before it goes on, as text or as a field of a structured line, with the stack in the
lines below; net/http logs one of a handler. Where nothing recovers from it the runtime of Go writes it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from kubelet_conformance.trace.format.recorder import Recorder

_TAIL_LINES = 400
_SHOWN_LINES = 12
_PANIC_LINES = 20
"""The handlers of the panic come first in its stack, and then where it was."""
_LINE_CHARS = 400
_ENDS = ("panic: ", "fatal error: ")
"""How a Go program begins to say why it ends; its goroutines follow."""
_LOGGED = ("Observed a panic", "http: panic serving")


class KubeletLog:
    """Receives each line; puts panics that are logged on the record, and has the last lines."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._panic: list[str] = []
        """The lines of a panic that is not on the record yet."""

    def read_line(self, line: bytes) -> None:
        """Take the next line."""
        text = line.decode(errors="replace").expandtabs(4)
        self._tail.append(text[:_LINE_CHARS])
        if any(mark in text for mark in _LOGGED):
            # What is written in one piece is read in one piece, before anything else is done.
            asyncio.get_running_loop().call_soon(self._record_panic)
            self._record_panic()
            self._panic = _parts(text)
        elif self._panic:
            self._panic.append(text)

    def _record_panic(self) -> None:
        lines, self._panic = self._panic, []
        if lines:
            log = [each[:_LINE_CHARS] for each in lines[:_PANIC_LINES]]
            self._recorder.record("kubelet", op="panicked", log=log)

    def latest(self, leaves_out: Callable[[str], bool]) -> tuple[str, ...]:
        """What it wrote last, less what is left out."""
        return tuple(line for line in self._tail if not leaves_out(line))[-_SHOWN_LINES:]

    def last_lines(self) -> Sequence[str]:
        """What it wrote last: how it says why it ends, if it does."""
        lines = list(self._tail)
        ends = [place for place, line in enumerate(lines) if line.startswith(_ENDS)]
        begin = ends[0] if ends else max(0, len(lines) - _SHOWN_LINES)
        return lines[begin : begin + _SHOWN_LINES]


def _parts(line: str) -> list[str]:
    """The line, in JSON with the stack in it, as lines."""
    if not line.startswith("{"):
        return [line]
    return line.replace("\\n", "\n").replace("\\t", "    ").splitlines()
