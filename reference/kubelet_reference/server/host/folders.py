"""Folders of the machine, opened so that no symbolic link can lead the kubelet elsewhere."""

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress

from kubelet_reference.server.host.mounts import mount_id

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANYTHING = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LINKS_MAX = 40
"""How many symbolic links a path may lead through, as on Linux."""
_PART = ".part"


@contextmanager
def opened(root: str, parts: Sequence[str], *, make: bool = False) -> Generator[int]:
    """The folder at these parts below `root`, open; only `root` itself may hold links.

    With `make` folders that are missing are made. `NotADirectoryError` where a part is a link or a file.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            if make:
                make_folder(folder, part, None)
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def make_folder(parent: int, name: str, mode: int | None) -> None:
    """Make a folder in an open one, with these permissions from the first moment; one there is fine."""
    if mode is None:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
        return
    if _is_there(parent, name):
        return
    with suppress(FileNotFoundError):
        os.rmdir(_PART, dir_fd=parent)
    os.mkdir(_PART, dir_fd=parent)
    _set_mode(parent, _PART, mode)
    os.rename(_PART, name, src_dir_fd=parent, dst_dir_fd=parent)


def open_below(root: int, path: str, mode: int) -> int:
    """What is at `path` below the open folder `root`, open as no more than a place (O_PATH).

    Links are followed by hand, one part at a time, and never upwards past `root`: `OSError` with EXDEV. An
    absolute link leads out too. What is missing is made as folders with these permissions.
    """
    trail, parts, links = [os.dup(root)], path.split("/")[::-1], 0
    try:
        while parts:
            part = parts.pop()
            if part == "..":
                _require(len(trail) > 1, errno.EXDEV, path)
                os.close(trail.pop())
            elif part not in {"", "."}:
                found = _open_or_make(trail[-1], part, mode)
                trail.append(found)
                if stat.S_ISLNK(os.fstat(found).st_mode):
                    target = os.readlink("", dir_fd=found)
                    os.close(trail.pop())
                    links += 1
                    _require(links <= _LINKS_MAX, errno.ELOOP, path)
                    _require(not target.startswith("/"), errno.EXDEV, path)
                    parts += target.split("/")[::-1]
        return os.dup(trail[-1])
    finally:
        for descriptor in trail:
            os.close(descriptor)


def remove_tree(parent: int, name: str) -> None:
    """Remove what an open folder holds under this name, without following links or entering a mount.

    A pod may have made its folders as deep as it liked: no more than two are open at a time. `OSError` with
    EBUSY where something is mounted, with ESTALE where somebody moves folders about meanwhile.
    """
    try:
        os.unlink(name, dir_fd=parent)
    except IsADirectoryError:
        pass
    else:
        return
    here = os.open(name, _FOLDER, dir_fd=parent)
    home, trail, pending = mount_id(parent), [_identity(parent)], [[name]]
    try:
        _require(mount_id(here) == home, errno.EBUSY, name)
        pending.append(_remove_files(here))
        while len(pending) > 1:
            if pending[-1]:
                trail.append(_identity(here))
                here = _moved(here, pending[-1][-1])
                _require(mount_id(here) == home, errno.EBUSY, pending[-1][-1])
                pending.append(_remove_files(here))
            else:
                pending.pop()
                here = _moved(here, "..")
                _require(_identity(here) == trail.pop(), errno.ESTALE, pending[-1][-1])
                os.rmdir(pending[-1].pop(), dir_fd=here)
    finally:
        os.close(here)


def _remove_files(folder: int) -> list[str]:
    """Remove whatever is no folder from an open one, and return the names of the folders in it."""
    folders: list[str] = []
    for name in os.listdir(folder):
        try:
            os.unlink(name, dir_fd=folder)
        except IsADirectoryError:
            folders.append(name)
    return folders


def _moved(here: int, name: str) -> int:
    """The folder of that name instead of the open one, which is closed if that works."""
    there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there


def _open_or_make(folder: int, name: str, mode: int) -> int:
    try:
        return os.open(name, _ANYTHING, dir_fd=folder)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        _set_mode(folder, name, mode)
        return os.open(name, _ANYTHING, dir_fd=folder)


def _set_mode(parent: int, name: str, mode: int) -> None:
    """Give a folder its permissions, whatever the process's mask is."""
    folder = os.open(name, _FOLDER, dir_fd=parent)
    try:
        os.fchmod(folder, mode)
    finally:
        os.close(folder)


def _is_there(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _require(holds: bool, code: int, path: str) -> None:  # noqa: FBT001 - it reads as an assertion
    if not holds:
        raise OSError(code, os.strerror(code), path)
