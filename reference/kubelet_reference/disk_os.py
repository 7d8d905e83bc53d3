"""The disk of the machine the kubelet runs on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from kubelet_reference.ports import Clock

__all__ = ("OsDisk",)

_POLL_SECONDS = 1.0


class OsDisk:
    """Real files and folders; it notices changes by looking once a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def make_folder(self, path: str) -> None:
        """Make the folder and those above it; one that is there is fine."""
        Path(path).mkdir(parents=True, exist_ok=True)

    def names(self, folder: str) -> Sequence[str]:
        """The names of files and folders in `folder`, sorted; `FileNotFoundError` if it is not there."""
        return sorted(entry.name for entry in Path(folder).iterdir())

    def is_folder(self, path: str) -> bool:
        """Whether `path` is a folder."""
        return Path(path).is_dir()

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return Path(path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        """Replace the content of a file at once; its folder must be there."""
        target = Path(path)
        # A reader sees the old content or the new, and the dot keeps it from being taken for a manifest.
        part = target.with_name(f".{target.name}.part")
        part.write_bytes(content)
        part.replace(target)

    def remove(self, path: str) -> None:
        """Remove a file or a folder with everything in it; what is not there is fine."""
        target = Path(path)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)

    async def changes(self, folder: str) -> AsyncIterator[str]:
        """The name of each file of `folder` that was written, moved in or removed, within a second."""
        known = _stamps(Path(folder))
        while True:
            await self._clock.sleep(_POLL_SECONDS)
            found = _stamps(Path(folder))
            for name in sorted(known.keys() | found.keys()):
                if known.get(name) != found.get(name):
                    yield name
            known = found


def _stamps(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What tells two versions of each file apart: its inode, size and time of change."""
    found: dict[str, tuple[int, int, int]] = {}
    for entry in folder.iterdir():
        try:
            stat = entry.stat()
        except OSError:
            # A dangling link, or a file that went this moment.
            continue
        found[entry.name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found
