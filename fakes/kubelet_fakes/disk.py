"""A node's disk that is only memory: the same calls always have the same outcome."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import dataclass
from posixpath import normpath
from typing import Literal, TypeAlias

_LINKS_MAX = 40
"""How many symbolic links a path may lead through, as on Linux."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A symbolic link."""

    target: str


_Entry: TypeAlias = bytes | _Link | None
"""What a folder holds: the content of a file, a link, or None for a folder."""


class MemoryDisk:
    """Files and folders by absolute path, with the names of what changes as inotify would report them.

    Errors are those of a real disk: `FileNotFoundError`, `NotADirectoryError`, `IsADirectoryError`.
    Permissions are kept and mean nothing. Symbolic links lead nowhere but in `look`, `below` and `bind`, as
    in a kubelet's folders.
    `on_change(op, path)` is called with everything that was written (`write`), made (`make`) or removed
    (`remove`), after it happened; a removed folder is reported once.
    """

    def __init__(self, on_change: Callable[[str, str], None] | None = None) -> None:
        self.on_change = on_change
        self._folders: dict[str, dict[str, _Entry]] = {"/": {}}
        """The entries of each folder."""
        self._mounts: dict[str, str | None] = {}
        """What is mounted where, in the order in which it came: a path that is shown, None for memory."""
        self._memory: dict[str, int] = {}
        """The bytes of the memory that is mounted, by where."""
        self._modes: dict[str, int] = {}
        """The permissions that were given with a path."""
        self._watches: dict[str, list[_Changes]] = {}
        self._broken: dict[str, OSError] = {}

    def make_folder(self, path: str, mode: int | None = None) -> None:
        """Make the folder and those above it; one that is there is fine."""
        if mode is not None:
            self._modes[normpath(path)] = mode
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
        self._report("make", path)

    def names(self, folder: str) -> list[str]:
        """The names of files and folders in `folder`, sorted."""
        return sorted(self._entries(self._checked(folder)))

    def is_folder(self, path: str) -> bool:
        """Whether `path` is a folder."""
        return self._checked(path) in self._folders

    def kind(self, path: str) -> Literal["Directory", "File", "Link"] | None:
        """What is at `path`, None if nothing is."""
        path = self._checked(path)
        if path in self._folders:
            return "Directory"
        folder, name = self._parted(path)
        entry = self._folders.get(folder, {}).get(name)
        return None if entry is None else "Link" if isinstance(entry, _Link) else "File"

    def size(self, path: str) -> int | None:
        """How many bytes the file holds; None if it is not there."""
        folder, _, name = path.rpartition("/")
        content = self._folders.get(folder, {}).get(name)
        return len(content) if isinstance(content, bytes) else None

    def read(self, path: str) -> bytes:
        """The content of a file."""
        path = self._checked(path)
        if path in self._folders:
            raise _error(errno.EISDIR, path)
        folder, name = self._parted(path)
        content = self._entries(folder).get(name)
        if content is None:
            raise _error(errno.ENOENT, path)
        if isinstance(content, _Link):
            raise _error(errno.ELOOP, path)
        return content

    def read_end(self, path: str, size: int) -> bytes:
        """The last `size` bytes of a file."""
        return self.read(path)[-size:]

    def look(self, path: str) -> bytes:
        """The content of a file as a container finds it: links lead on."""
        return self.read(self._resolved("/", path))

    def below(self, path: str) -> dict[str, tuple[bytes, int]]:
        """The files that a container finds where `path` is mounted, and "" for `path` itself.

        Each is its content, of memory its size in bytes, none for another folder, and its permissions. Links
        lead on, and names that begin with two dots are left out.
        """
        found: dict[str, tuple[bytes, int]] = {}
        with contextlib.suppress(OSError):
            real = self._mounts.get(path) or self._resolved("/", path)
            is_folder = real in self._folders
            size = str(self._memory[real]).encode() if real in self._memory else b""
            found[""] = size if is_folder else self.read(real), self._modes.get(real, 0o777)
            for name in self.names(real) if is_folder else ():
                if not name.startswith(".."):
                    # A link that leads nowhere is there all the same.
                    inner = self.below(f"{real}/{name}") or {"": (b"", 0)}
                    is_file = len(inner) == 1
                    found.update(
                        {
                            f"{name}/{rest}".rstrip("/"): each
                            for rest, each in inner.items()
                            if rest or is_file
                        }
                    )
        return found

    def write(self, path: str, content: bytes, mode: int | None = None) -> None:
        """Replace a file, or a link, by a file with this content; its folder must be there."""
        self._put(path, bytes(content))
        self._modes[normpath(path)] = 0o666 if mode is None else mode

    def rename(self, path: str, to: str) -> None:
        """Give a file another name in its folder; one that has it is replaced."""
        self.write(to, self.read(path))
        self.remove(path)

    def create(self, path: str, mode: int) -> None:
        """Make an empty file; one that is there stays as it is."""
        if self.kind(path) is None:
            self.write(path, b"", mode)

    def link(self, path: str, target: str) -> None:
        """Replace a file, or a link, by a symbolic link to `target`."""
        self._put(path, _Link(target))

    def link_target(self, path: str) -> str:
        """Where a symbolic link leads."""
        folder, name = self._parted(self._checked(path))
        entry = self._entries(folder).get(name)
        if isinstance(entry, _Link):
            return entry.target
        raise _error(errno.ENOENT if name not in self._entries(folder) else errno.EINVAL, path)

    def _put(self, path: str, entry: bytes | _Link) -> None:
        path = self._checked(path)
        if path in self._folders:
            raise _error(errno.EISDIR, path)
        folder, name = self._parted(path)
        self._entries(folder)[name] = entry
        self._report("write", path)

    def append(self, path: str, content: bytes) -> None:
        """Add to a file, which is made if it is not there, as is its folder: a runtime writes logs so."""
        path = self._checked(path)
        folder, name = self._parted(path)
        self.make_folder(folder)
        self.write(path, (self.read(path) if name in self._entries(folder) else b"") + content)

    def remove(self, path: str) -> None:
        """Remove a file or a folder with everything in it; what is not there is fine."""
        path = self._checked(path)
        folder, name = self._parted(path)
        entries = self._folders.get(folder, {})
        if path == "/" or name not in entries:
            return
        if self.mounts(path):
            raise _error(errno.EBUSY, path)
        del entries[name]
        self._forget(path)
        self._report("remove", path)

    def mount_memory(self, path: str, size: int) -> bool:
        """Mount memory on a folder that is empty; `size` is shown, and no limit here."""
        path = self._checked(path)
        if self._entries(path):
            raise _error(errno.ENOTEMPTY, path)
        self._mounts[path], self._memory[path] = None, size
        return True

    def bind(self, root: str, path: str, target: str) -> str:
        """Note that `target` shows what is at `path` below `root`; missing folders are made."""
        source, target = self._resolved(self._checked(root), path, make=True), self._checked(target)
        if self.kind(source) == "Directory":
            self.make_folder(target)
        else:
            self.make_folder(self._parted(target)[0])
            self.create(target, 0)
        self._mounts[target] = source
        return target

    def unmount(self, path: str) -> None:
        """Take away what is mounted on `path`; memory loses what it holds."""
        path = self._checked(path)
        if path not in self._mounts:
            raise _error(errno.EINVAL, path)
        self._memory.pop(path, None)
        if self._mounts.pop(path) is None:
            for name in self.names(path):
                self.remove(f"{path}/{name}")

    def mounts(self, folder: str) -> list[str]:
        """Where something is mounted, on `folder` or below, what is deepest first."""
        folder = self._checked(folder)
        below = f"{folder.rstrip('/')}/"
        found = [path for path in self._mounts if path == folder or path.startswith(below)]
        return sorted(found, key=lambda path: (-path.count("/"), path))

    def _resolved(self, root: str, path: str, *, make: bool = False) -> str:
        """The path with its links followed, below `root`; folders that are missing are made on demand."""
        parts, at, links = path.split("/")[::-1], root.rstrip("/"), 0
        while parts:
            name = parts.pop()
            if name in {"", "."}:
                continue
            if name == "..":
                if at == root.rstrip("/"):
                    raise _error(errno.EXDEV, path)
                at = at.rpartition("/")[0]
                continue
            here = f"{at}/{name}"
            entry = self._entries(at or "/").get(name)
            if isinstance(entry, _Link):
                links += 1
                if links > _LINKS_MAX or entry.target.startswith("/"):
                    raise _error(errno.ELOOP if links > _LINKS_MAX else errno.EXDEV, path)
                parts += entry.target.split("/")[::-1]
                continue
            if make and name not in self._entries(at or "/"):
                self.make_folder(here)
            at = here
        return at or "/"

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

    def _entries(self, folder: str) -> dict[str, _Entry]:
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

    def _report(self, op: str, path: str) -> None:
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
