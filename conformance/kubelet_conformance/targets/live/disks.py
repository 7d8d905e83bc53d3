"""A part of the real disk that looks like a whole one."""

from __future__ import annotations

from pathlib import Path

from kubelet_reference.disk_os import OsDisk


class RootedDisk:
    """The disk below `root`, so that whoever writes `/etc/kubernetes` writes into a private folder."""

    def __init__(self, disk: OsDisk, root: Path) -> None:
        self._disk = disk
        self._root = str(root)

    def make_folder(self, path: str) -> None:
        """Make the folder and those above it."""
        self._disk.make_folder(self._root + path)

    def is_folder(self, path: str) -> bool:
        """Whether it is a folder."""
        return self._disk.is_folder(self._root + path)

    def write(self, path: str, content: bytes) -> None:
        """Replace the content of a file."""
        self._disk.write(self._root + path, content)

    def remove(self, path: str) -> None:
        """Remove a file or folder."""
        self._disk.remove(self._root + path)
