"""A node's disk that is only memory: the same calls always have the same outcome."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from posixpath import normpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator

__all__ = ("MemoryDisk",)


class MemoryDisk:
    """Files and folders by absolute path, with the names of what changes as inotify would tell them.

    Errors are those of a real disk: `FileNotFoundError`, `NotADirectoryError`, `IsADirectoryError`.
    `on_change(op, path)` hears of everything that was written (`write`), made (`make`) or removed
    (`remove`), after it happened; a removed folder is told once.
    """

    def __init__(self, on_change: Callable[[str, str], None] | None = None) -> None:
        self.on_change = on_change
        self._folders: dict[str, dict[str, bytes | None]] = {"/": {}}
        """The entries of each folder: the content of a file, None for a folder."""
        self._watches: dict[str, list[_Changes]] = {}
        self._broken: dict[str, OSError] = {}

    def make_folder(self, path: str) -> None:
        """Make the folder and those above it; one that is there is fine."""
        if path in self._folders and not self._broken:
            return
        path = self._checked(path)
        if path in self._folders:
            return
        folder, name = self._parted(path)
        self.make_folder(folder)
        if name in self._folders[folder]:
            raise _error(errno.ENOTDIR, path)
        self._folders[folder][name] = None
        self._folders[path] = {}
        self._tell("make", path)

    def names(self, folder: str) -> list[str]:
        """The names of files and folders in `folder`, sorted."""
        return sorted(self._entries(self._checked(folder)))

    def is_folder(self, path: str) -> bool:
        """Whether `path` is a folder."""
        return self._checked(path) in self._folders

    def read(self, path: str) -> bytes:
        """The content of a file."""
        path = self._checked(path)
        if path in self._folders:
            raise _error(errno.EISDIR, path)
        folder, name = self._parted(path)
        content = self._entries(folder).get(name)
        if content is None:
            raise _error(errno.ENOENT, path)
        return content

    def write(self, path: str, content: bytes) -> None:
        """Replace the content of a file, whole at once; its folder must be there."""
        path = self._checked(path)
        if path in self._folders:
            raise _error(errno.EISDIR, path)
        folder, name = self._parted(path)
        self._entries(folder)[name] = bytes(content)
        self._tell("write", path)

    def append(self, path: str, content: bytes) -> None:
        """Add to a file, which is made if it is not there, as is its folder: a runtime writes logs so."""
        path = self._checked(path)
        folder, name = self._parted(path)
        self.make_folder(folder)
        self.write(path, (self._entries(folder).get(name) or b"") + content)

    def remove(self, path: str) -> None:
        """Remove a file or a folder with everything in it; what is not there is fine."""
        path = self._checked(path)
        folder, name = self._parted(path)
        entries = self._folders.get(folder, {})
        if path == "/" or name not in entries:
            return
        del entries[name]
        self._forget(path)
        self._tell("remove", path)

    def changes(self, folder: str) -> AsyncIterator[str]:
        """The name of each entry of `folder` that is written, made or removed from this call on.

        It ends when the folder itself is removed; `FileNotFoundError` at once where there is none.
        """
        folder = self._checked(folder)
        self._entries(folder)
        watch = _Changes()
        self._watches.setdefault(folder, []).append(watch)
        return watch

    @contextlib.contextmanager
    def broken(self, path: str, code: int = errno.EIO) -> Generator[None]:
        """While the context is open, every call that names `path` or something below it fails.

        Args:
            path: A file or folder.
            code: The number of the error, such as `errno.EACCES`.
        """
        path = normpath(path)
        self._broken[path] = _error(code, path)
        try:
            yield
        finally:
            del self._broken[path]

    def _checked(self, path: str) -> str:
        """The path in its plain form, where nothing injected forbids it."""
        if not path.startswith("/"):
            raise ValueError(f"{path!r}: paths of this disk are absolute")
        path = normpath(path)
        for broken, error in self._broken.items():
            if path == broken or path.startswith(f"{broken.rstrip('/')}/"):
                raise _error(error.errno or errno.EIO, path)
        return path

    @staticmethod
    def _parted(path: str) -> tuple[str, str]:
        folder, _, name = path.rpartition("/")
        return folder or "/", name

    def _entries(self, folder: str) -> dict[str, bytes | None]:
        entries = self._folders.get(folder)
        if entries is not None:
            return entries
        above, name = self._parted(folder)
        is_file = self._folders.get(above, {}).get(name) is not None
        raise _error(errno.ENOTDIR if is_file else errno.ENOENT, folder)

    def _forget(self, path: str) -> None:
        """Drop a removed folder and those below it; what watched them ends."""
        for name, content in self._folders.pop(path, {}).items():
            if content is None:
                self._forget(f"{path}/{name}")
        for watch in self._watches.pop(path, ()):
            watch.end()

    def _tell(self, op: str, path: str) -> None:
        folder, name = self._parted(path)
        watches = self._watches.get(folder)
        if watches:
            self._watches[folder] = watches = [watch for watch in watches if not watch.ended]
            for watch in watches:
                watch.add(name)
        if self.on_change is not None:
            self.on_change(op, path)


class _Changes:
    """The changes of one folder that one reader has not taken yet."""

    def __init__(self) -> None:
        self.ended = False
        self._names: asyncio.Queue[str | None] = asyncio.Queue()

    def add(self, name: str) -> None:
        self._names.put_nowait(name)

    def end(self) -> None:
        self.ended = True
        self._names.put_nowait(None)

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        name = None if self.ended and self._names.empty() else await self._names.get()
        if name is None:
            raise StopAsyncIteration
        return name

    async def aclose(self) -> None:
        """Take no more changes, as an asynchronous generator does."""
        self.end()


def _error(code: int, path: str) -> OSError:
    """The `OSError` of that number: Python makes it the subclass that belongs to it."""
    return OSError(code, os.strerror(code), path)
