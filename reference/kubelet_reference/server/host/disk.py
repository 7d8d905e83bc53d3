"""The disk of the machine the kubelet runs on."""

import errno
import os
import stat
from collections.abc import AsyncIterator, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from posixpath import dirname, normpath

from kubelet_reference.server.host import folders, mounts
from kubelet_reference.util.ports import Clock, FileKind

_POLL_SECONDS = 1.0
_PART = ".part"
"""What is written before it replaces a file; the dot keeps it from being taken for a manifest."""
_FILE_MODE = 0o644
_KINDS: dict[int, FileKind] = {
    stat.S_IFDIR: "Directory",
    stat.S_IFREG: "File",
    stat.S_IFLNK: "Link",
    stat.S_IFSOCK: "Socket",
    stat.S_IFCHR: "CharDevice",
    stat.S_IFBLK: "BlockDevice",
}


class OsDisk:
    """Real files and folders; it notices changes by looking once a second.

    Below the `guarded` folders no symbolic link is followed, and no ".." is taken: every part of a path is
    opened by itself. They are the kubelet's own, but pods write into them. A guarded folder itself, and any
    other path, may lead through links.
    """

    def __init__(self, clock: Clock, guarded: Iterable[str] = ()) -> None:
        self._clock = clock
        self._guarded = tuple(normpath(folder) for folder in guarded)

    def make_folder(self, path: str, mode: int | None = None) -> None:
        """Make the folder, with these permissions if any, and those above it; one that is there is fine."""
        root, parts = self._placed(path)
        Path(root).mkdir(parents=True, exist_ok=True)
        if not parts:
            return
        with folders.opened(root, parts[:-1], make=True) as folder:
            folders.make_folder(folder, parts[-1], mode)
        if self.kind(path) != "Directory":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    def names(self, folder: str) -> Sequence[str]:
        """The names of files and folders in `folder`, sorted; `FileNotFoundError` if it is not there."""
        with self._folder(folder) as opened, os.scandir(opened) as entries:
            return sorted(entry.name for entry in entries)

    def is_folder(self, path: str) -> bool:
        """Whether `path` is a folder."""
        return self.kind(path) == "Directory"

    def kind(self, path: str) -> FileKind | None:
        """What is at `path`, None if nothing is; a link is what it leads to, where it is followed."""
        try:
            with self._parent(path) as (folder, name, follows):
                found = os.stat(name, dir_fd=folder, follow_symlinks=follows)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _KINDS.get(stat.S_IFMT(found.st_mode), "Other")

    def read(self, path: str) -> bytes:
        """The content of a file."""
        with self._file(path) as descriptor, open(descriptor, "rb", closefd=False) as file:
            return file.read()

    def read_end(self, path: str, size: int) -> bytes:
        """The last `size` bytes of a file, all of it if it is shorter."""
        with self._file(path) as descriptor:
            return os.pread(descriptor, size, max(0, os.fstat(descriptor).st_size - size))

    def write(self, path: str, content: bytes, mode: int | None = None) -> None:
        """Replace a file, or a link, by a file with this content and these permissions, whole at once."""
        with self._parent(path) as (folder, name, _):
            with suppress(FileNotFoundError):
                os.unlink(_PART, dir_fd=folder)
            with open(_new_file(folder, _PART, mode or _FILE_MODE), "wb") as file:
                file.write(content)
            os.rename(_PART, name, src_dir_fd=folder, dst_dir_fd=folder)

    def create(self, path: str, mode: int) -> None:
        """Make an empty file with these permissions; one that is there stays as it is."""
        with self._parent(path) as (folder, name, _), suppress(FileExistsError):
            os.close(_new_file(folder, name, mode))

    def link(self, path: str, target: str) -> None:
        """Replace a file, or a link, by a symbolic link to `target`, at once."""
        with self._parent(path) as (folder, name, _):
            with suppress(FileNotFoundError):
                os.unlink(_PART, dir_fd=folder)
            os.symlink(target, _PART, dir_fd=folder)
            os.rename(_PART, name, src_dir_fd=folder, dst_dir_fd=folder)

    def link_target(self, path: str) -> str:
        """Where a symbolic link leads."""
        with self._parent(path) as (folder, name, _):
            return os.readlink(name, dir_fd=folder)

    def remove(self, path: str) -> None:
        """Remove a file, a link or a folder with everything in it; what is not there is fine.

        Where something is mounted on it or below nothing is removed, and it is an error.
        """
        if self.kind(path) == "Directory" and self.mounts(path):
            raise OSError(errno.EBUSY, "something is mounted there", path)
        with suppress(FileNotFoundError), self._parent(path) as (folder, name, _):
            folders.remove_tree(folder, name)

    def mount_memory(self, path: str, size: int) -> bool:
        """Mount `size` bytes of memory on a folder; False where this process may not mount."""
        with self._folder(path) as folder:
            return mounts.mount_memory(f"/proc/self/fd/{folder}", size)

    def bind(self, root: str, path: str, target: str) -> str:
        """Show at `target` what is at the relative `path` below the folder `root`; return where to find it.

        Links on the way are followed as long as they stay below `root`.
        """
        with self._folder(root) as folder:
            found = folders.open_below(folder, path, stat.S_IMODE(os.fstat(folder).st_mode))
        try:
            source = f"/proc/self/fd/{found}"
            if self._shows(target, found):
                return target
            self._make_like(target, is_folder=stat.S_ISDIR(os.fstat(found).st_mode))
            with self._parent(target) as (above, name, _):
                bound = mounts.bind(source, f"/proc/self/fd/{above}/{name}")
            return target if bound else str(Path(source).readlink())
        finally:
            os.close(found)

    def unmount(self, path: str) -> None:
        """Take away what was mounted on `path` last; an error if nothing is, or it is in use."""
        with self._parent(path) as (folder, name, _):
            mounts.unmount(f"/proc/self/fd/{folder}/{name}")

    def mounts(self, folder: str) -> Sequence[str]:
        """Where something is mounted, on `folder` or below, what is deepest first."""
        root, parts = self._placed(folder)
        real = "/".join((os.path.realpath(root).rstrip("/"), *parts)) or "/"
        return [folder + place.removeprefix(real) for place in mounts.mounts_below(real)]

    def _shows(self, target: str, found: int) -> bool:
        """Whether `target` is a mount of what is open; a mount of something else is taken away."""
        if target not in self.mounts(target):
            return False
        with self._parent(target) as (folder, name, _):
            shown, wanted = os.stat(name, dir_fd=folder, follow_symlinks=False), os.fstat(found)
        if (shown.st_dev, shown.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
        self.unmount(target)
        return False

    def _make_like(self, target: str, *, is_folder: bool) -> None:
        """Make something to mount on: a folder for a folder, a file for anything else."""
        if self.kind(target) not in {None, "Directory" if is_folder else "File"}:
            self.remove(target)
        if is_folder:
            self.make_folder(target, 0o750)
        else:
            self.make_folder(dirname(target))
            self.create(target, 0o640)

    def _is_guarded(self, path: str) -> bool:
        plain = normpath(path)
        return any(
            place == root or place.startswith(f"{root}/") for root in self._guarded for place in (path, plain)
        )

    def _placed(self, path: str) -> tuple[str, list[str]]:
        """A folder that may lead through links, and the parts of the path below it, which may not."""
        if not self._is_guarded(path):
            above, name = os.path.split(path.rstrip("/"))
            return above or "/", [name] if name else []
        if ".." in path.split("/"):
            raise OSError(errno.EINVAL, 'a path with ".."', path)
        plain = normpath(path)
        root = max((root for root in self._guarded if f"{plain}/".startswith(f"{root}/")), key=len)
        return root, [part for part in plain.removeprefix(root).split("/") if part]

    @contextmanager
    def _folder(self, path: str) -> Generator[int]:
        """A folder, open."""
        root, parts = self._placed(path) if self._is_guarded(path) else (path, [])
        with folders.opened(root, parts) as folder:
            yield folder

    @contextmanager
    def _parent(self, path: str) -> Generator[tuple[int, str, bool]]:
        """The folder of `path`, open, its name there, and whether a link at its end may be followed."""
        root, parts = self._placed(path)
        if not parts:
            root, name = os.path.split(root)
            parts = [name or "."]
        with folders.opened(root or "/", parts[:-1]) as folder:
            yield folder, parts[-1], not self._is_guarded(path)

    @contextmanager
    def _file(self, path: str) -> Generator[int]:
        """A regular file, open for reading; nothing else is waited for."""
        with self._parent(path) as (folder, name, follows):
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows else os.O_NOFOLLOW)
            descriptor = os.open(name, flags, dir_fd=folder)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
                raise OSError(code, os.strerror(code), path)
            yield descriptor
        finally:
            os.close(descriptor)

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


def _new_file(folder: int, name: str, mode: int) -> int:
    """A new file in an open folder, open for writing, with these permissions whatever the mask is."""
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    os.fchmod(descriptor, mode)
    return descriptor


def _stamps(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What distinguishes two versions of each file: its inode, size and time of change."""
    found: dict[str, tuple[int, int, int]] = {}
    for entry in folder.iterdir():
        try:
            stat = entry.stat()
        except OSError:
            # A dangling link, or a file that went this moment.
            continue
        found[entry.name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found
