"""The files of a recording: one after another, the oldest removed, none overwritten."""

import contextlib
import io
import os
import re
from pathlib import Path

from typing_extensions import Buffer


class Piece(io.BufferedWriter):
    """A new file that counts its bytes; readable by its owner only, as traces contain much about a node."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        super().__init__(io.FileIO(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)))

    def write(self, buffer: Buffer, /) -> int:
        """Write all of it."""
        count = super().write(buffer)
        self.written += count
        return count


class Pieces:
    """`trace.jsonl`, `trace.1.jsonl`, `trace.2.jsonl` ...; the newest has the greatest number.

    Files of earlier recordings are left alone: the first number is one that no file has. At most `keep` files
    of this recording stay, the oldest go.
    """

    def __init__(self, first: Path, keep: int) -> None:
        self._first = first
        self._keep = keep
        self._number = _next_number(first)
        self.paths: list[Path] = []
        """Those that are there, oldest first."""
        self.removed = 0

    def open_next(self) -> Piece:
        """A new file; `OSError` where it cannot be made."""
        piece = Piece(self._path(self._number))
        self._number += 1
        self.paths.append(piece.path)
        while len(self.paths) > self._keep:
            with contextlib.suppress(FileNotFoundError):
                self.paths[0].unlink()
            del self.paths[0]
            self.removed += 1
        return piece

    def _path(self, number: int) -> Path:
        first = self._first
        return first if not number else first.with_name(f"{first.stem}.{number}{first.suffix}")


def _next_number(first: Path) -> int:
    """The least number after that of every file there; 0 for the first name itself."""
    of_it = re.compile(re.escape(first.stem) + r"\.([0-9]{1,9})" + re.escape(first.suffix))
    names = (found for each in first.parent.iterdir() if (found := of_it.fullmatch(each.name)))
    numbers = [int(found[1]) for found in names]
    if os.path.lexists(first):
        numbers.append(0)
    return max(numbers, default=-1) + 1
