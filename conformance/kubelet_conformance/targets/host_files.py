"""The node's disk as the fake runtime's containers write to it."""

from __future__ import annotations

from posixpath import dirname
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubelet_fakes.disk import MemoryDisk

__all__ = ("HostFiles",)


class HostFiles:
    """Appends to files of the node; see `kubelet_fakes.runtime.logs.HostFiles`."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk

    def append(self, path: str, content: bytes) -> None:
        """Add to a file, which is made if it is not there, as is its folder."""
        try:
            before = self._disk.read(path)
        except FileNotFoundError:
            before = b""
            self._disk.make_folder(dirname(path))
        self._disk.write(path, before + content)
