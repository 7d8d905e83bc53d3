"""A trace file that is still written to."""

from collections.abc import Callable
from io import BufferedIOBase, BufferedReader
from pathlib import Path

from typing_extensions import override


class GrowingFile(BufferedIOBase):
    """Read a file past its present end: where nothing more is there, `wait` is called, and it is tried again.

    What `wait` raises ends the reading. Raises OSError for a file that cannot be opened or read.
    """

    def __init__(self, path: Path, wait: Callable[[], object]) -> None:
        self._file = BufferedReader(path.open("rb", buffering=0))
        self._wait = wait

    @override
    def read1(self, size: int = -1, /) -> bytes:
        """At least one byte."""
        while not (block := self._file.read1(size)):
            self._wait()
        return block

    @override
    def readline(self, size: int | None = -1, /) -> bytes:
        """A whole line, or its first `size` bytes."""
        limit = -1 if size is None else size
        line = self._file.readline(limit)
        while not line.endswith(b"\n") and (limit < 0 or len(line) < limit):
            self._wait()
            line += self._file.readline(limit if limit < 0 else limit - len(line))
        return line

    @override
    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()
