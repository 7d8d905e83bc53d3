"""Temporary folders that do not stay, however the process ends that needs them.

Each is locked as long as its process lives. What a killed process has left the next one removes.
"""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from kubelet_conformance.run_record.system_clock import system_time_ns

_PREFIX = "kubelet-conformance-tmp-"
_NAME = re.compile(rf"{_PREFIX}\w{{8}}")
_YOUNG_NS = 60 * 10**9
"""A folder that is not so old may be about to be locked."""
_MOUNTS = Path("/proc/self/mountinfo")
SOCKET_BYTES_MAX = 107
"""What fits into the path of a unix socket on Linux."""
_LONGEST_SOCKET = f"/{_PREFIX}12345678/kubelet/pod-resources/kubelet.sock"
"""Which a kubelet makes below its root folder."""
_SHORT_PLACE = "/tmp"  # noqa: S108 - folders there have names that cannot be guessed, and are private


def place_for_sockets() -> str:
    """The usual place of temporary folders, or a shorter one where paths of sockets would be too long."""
    usual = tempfile.gettempdir()
    return usual if len(os.fsencode(usual + _LONGEST_SOCKET)) <= SOCKET_BYTES_MAX else _SHORT_PLACE


class TemporaryFolder(TemporaryDirectory[str]):
    """A folder in `place`, or the usual one, for its owner only; removed as a `TemporaryDirectory` is."""

    def __init__(self, place: str | None = None) -> None:
        super().__init__(prefix=_PREFIX, dir=place, ignore_cleanup_errors=True)
        self._lock = _own(Path(self.name))

    def cleanup(self) -> None:
        """Remove it."""
        super().cleanup()
        os.close(self._lock)

    def keep(self) -> Path:
        """Give it a name under which it stays, and return that; raises OSError."""
        found = Path(self.name)
        kept = found.rename(found.with_name(found.name.replace("-tmp-", "-kept-")))
        self.cleanup()
        return kept


@contextmanager
def locked_folder(place: str) -> Generator[Path]:
    """A folder in `place` for its owner only, who removes it."""
    folder = Path(mkdtemp(prefix=_PREFIX, dir=place))
    lock = _own(folder)
    try:
        yield folder
    finally:
        os.close(lock)


def _own(folder: Path) -> int:
    """Lock a new folder up to the end of this process, and remove those beside it that nobody has locked."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    for other in folder.parent.glob(f"{_PREFIX}*"):
        if other != folder and _is_abandoned(other):
            shutil.rmtree(other, ignore_errors=True)
    return lock


def _is_abandoned(folder: Path) -> bool:
    """Whether it is ours, not young, its process is gone, and nothing is mounted in it."""
    if _NAME.fullmatch(folder.name) is None:
        return False
    try:
        found = folder.lstat()
        if found.st_uid != os.getuid() or system_time_ns() - found.st_mtime_ns < _YOUNG_NS:
            return False
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return not _MOUNTS.is_file() or f" {folder}/" not in _MOUNTS.read_text("utf-8", "replace")
