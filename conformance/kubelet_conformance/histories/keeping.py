"""Histories that broke something are kept in a folder, one file each, and played first the next time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2s
from pathlib import Path

from kubelet_conformance.histories.history import History, HistoryError, as_json, from_json


@dataclass(frozen=True, slots=True)
class Kept:
    """A history and the file that it is in."""

    path: Path
    history: History

    @property
    def name(self) -> str:
        """What its trace is called."""
        return self.path.stem


def name_of(history: History, what: str) -> str:
    """What a history that broke `what` is called: equal histories alike."""
    digest = blake2s(as_json(history), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', what)}-{digest}"


def keep(folder: Path, history: History, what: str) -> Path:
    """Write a history that broke `what` into the folder, which is made if need be; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name_of(history, what)}.json"
    path.write_bytes(as_json(history))
    return path


def read(paths: Iterable[Path]) -> list[Kept]:
    """The histories in these files; raises OSError, and HistoryError that names the file."""
    found: list[Kept] = []
    for path in paths:
        try:
            found.append(Kept(path, from_json(path.read_bytes())))
        except HistoryError as error:
            raise HistoryError(f"{path}: {error}") from None
    return found


def kept_in(folder: Path) -> list[Kept]:
    """The histories that a folder holds, by name; none, if there is no folder. Raises as `read` does."""
    return read(sorted(folder.glob("*.json")))
