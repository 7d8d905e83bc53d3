"""Which files a command line names: traces, and folders that stand for the traces below them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kubelet_conformance.trace.errors import TraceError


def traces_of(paths: Iterable[str]) -> tuple[list[str], list[TraceError]]:
    """Every trace file that these paths mean, each file once, and what is wrong with the others.

    A folder means all `*.jsonl` below it in the order of their names. Links to folders are followed, each
    folder once.
    """
    errors: list[TraceError] = []
    found: dict[tuple[int, int] | str, str] = {}
    for path in paths:
        for file in _below(path, errors) if Path(path).is_dir() else [path]:
            found.setdefault(_identity(file), file)
    return list(found.values()), errors


def _below(folder: str, errors: list[TraceError]) -> list[str]:
    unreadable: list[OSError] = []
    files = sorted(_walk(folder, unreadable), key=lambda path: Path(path).parts)
    for error in unreadable:
        reason = f"cannot be read: {error.strerror or error}"
        errors.append(TraceError(str(error.filename), None, reason, "give access, or name the traces"))
    if not files and not unreadable:
        errors.append(
            TraceError(folder, None, "the folder holds no trace", "name a folder with *.jsonl files")
        )
    return files


def _walk(folder: str, unreadable: list[OSError]) -> Iterator[str]:
    seen: set[tuple[int, int] | str] = set()
    for here, folders, files in os.walk(folder, followlinks=True, onerror=unreadable.append):
        identity = _identity(here)
        if identity in seen:
            folders.clear()
            continue
        seen.add(identity)
        below = (Path(here, name) for name in files if name.endswith(".jsonl"))
        # A pipe in a folder would be waited for without end; a broken link is an input like any other.
        yield from (str(path) for path in below if path.is_file() or not path.exists())


def _identity(path: str) -> tuple[int, int] | str:
    """What tells a file from others, under whatever name."""
    try:
        found = Path(path).stat()
    except OSError:
        return str(Path(path).absolute())
    return found.st_dev, found.st_ino
