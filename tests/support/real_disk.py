"""The machine's own disk for tests: with or without mounts, and nothing left mounted at the end."""

import ctypes
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kubelet_reference.server.host import mounts
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.server.host.disk import OsDisk

_MNT_DETACH = 2


def plain_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> OsDisk:
    """A disk guarded at `root`, of a process that may not mount, whatever user runs the test."""

    def refused(*_: object) -> bool:
        return False

    monkeypatch.setattr(mounts, "mount_memory", refused)
    monkeypatch.setattr(mounts, "bind", refused)
    return OsDisk(LoopClock(0), (str(root),))


@contextmanager
def mounting(root: Path) -> Generator[OsDisk]:
    """A disk guarded at `root` that mounts for real; skips the test where this process may not."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    probe = root / "probe"
    probe.mkdir()
    if not mounts.mount_memory(str(probe), 4096):
        pytest.skip("this root may not mount: it lacks CAP_SYS_ADMIN")
    mounts.unmount(str(probe))
    probe.rmdir()
    try:
        yield OsDisk(LoopClock(0), (str(root),))
    finally:
        for path in mounts.mounts_below(os.path.realpath(root)):
            with suppress(OSError):
                ctypes.CDLL(None).umount2(os.fsencode(path), _MNT_DETACH)
