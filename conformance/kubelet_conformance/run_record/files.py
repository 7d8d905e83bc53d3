"""Files of JSON, written whole or not at all."""

import contextlib
import json
import os
import tempfile
from pathlib import Path

_BLOCK = 4096
"""A disk that does not take so many bytes is full."""


def as_json(value: object, indent: int | None = 2) -> str:
    """JSON text in plain ASCII, so that whatever a trace holds neither breaks it nor reaches a terminal."""
    return json.dumps(value, indent=indent, ensure_ascii=True) + "\n"


def write_whole(path: Path, text: str) -> None:
    """Write beside the file and rename; what is no regular file, such as a pipe, is written to directly.

    Raises OSError, and then the file is as it was before.
    """
    data = text.encode("utf-8", "backslashreplace")
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with beside.open("xb") as file:
            if target.exists():
                os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


def try_to_write(folder: Path) -> None:
    """Write a file that is gone again; raises OSError for a folder on a disk that is read-only or full."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        file.write(bytes(_BLOCK))
