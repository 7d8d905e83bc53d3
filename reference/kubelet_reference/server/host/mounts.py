"""Mounts of the machine: the kernel's own calls, and its list of what is mounted."""

import ctypes
import errno
import os
import re
from pathlib import Path

_MS_BIND = 4096
_UMOUNT_NOFOLLOW = 8
_NOT_ALLOWED = frozenset({errno.EPERM, errno.EACCES})
_ESCAPE = re.compile(r"\\([0-7]{3})")
_MOUNT_POINT = 4
"""Which field of a line of mountinfo is the place (proc(5))."""
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mount.argtypes = (*[ctypes.c_char_p] * 3, ctypes.c_ulong, ctypes.c_char_p)
_LIBC.umount2.argtypes = (ctypes.c_char_p, ctypes.c_int)


def mount_memory(path: str, size: int) -> bool:
    """Mount `size` bytes of memory on a folder; False where this process may not."""
    return _mount("tmpfs", path, "tmpfs", 0, f"size={size}")


def bind(source: str, target: str) -> bool:
    """Show a file or folder at another place too; False where this process may not."""
    return _mount(source, target, "", _MS_BIND, "")


def unmount(path: str) -> None:
    """Take away what was mounted there last; a link at the end of the path is not followed."""
    if _LIBC.umount2(os.fsencode(path), _UMOUNT_NOFOLLOW):
        raise _error(path)


def mounts_below(folder: str) -> list[str]:
    """Where something is mounted, on this folder (with no link on its way) or below, deepest first."""
    below = f"{folder.rstrip('/')}/"
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    places = (_ESCAPE.sub(_character, line.split(" ")[_MOUNT_POINT]) for line in lines)
    found = [place for place in places if place == folder or place.startswith(below)]
    return sorted(found, key=lambda place: (-place.count("/"), place))


def mount_id(descriptor: int) -> str:
    """Which mount an open file belongs to: the id differs between bind mounts too, the device does not."""
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
    return next((line for line in lines if line.startswith("mnt_id:")), "")


def _mount(source: str, target: str, kind: str, flags: int, options: str) -> bool:
    words = (os.fsencode(source), os.fsencode(target), kind.encode())
    if not _LIBC.mount(*words, flags, options.encode()):
        return True
    if ctypes.get_errno() in _NOT_ALLOWED:
        return False
    raise _error(target)


def _error(path: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), path)


def _character(match: re.Match[str]) -> str:
    return chr(int(match[1], 8))
