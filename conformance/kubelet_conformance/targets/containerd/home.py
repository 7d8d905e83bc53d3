"""The folder of one private containerd, who owns it, and the lock that starts and removals take."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from kubelet_conformance.targets.containerd.host import boot_id, start_of

BASE = Path("/var/lib/kubelet-conformance")
"""Holds a folder for each private containerd, and is there only as long as one of them is."""
_PREFIX = "kc-"
_LOCK = "lock"
_OWNER = "owner.json"


class _Entry:
    """A path in the folder of a home."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, home: Home, _: type[Home]) -> Path:
        return home.folder / self._name


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything of one private containerd is; its folder's name names its bridge and network too."""

    folder: Path

    @property
    def name(self) -> str:
        """Also the name of its bridge."""
        return self.folder.name

    root = _Entry("root")
    """What containerd keeps: content, snapshots, records."""
    state = _Entry("state")
    """What containerd keeps of what runs."""
    socket = _Entry("containerd.sock")
    """Where it listens."""
    config = _Entry("config.toml")
    """Its configuration."""
    spec = _Entry("base-spec.json")
    """What each container's OCI specification begins with."""
    networks = _Entry("cni")
    """Its CNI configuration."""
    leases = _Entry("leases")
    """The addresses that are given to pods."""
    registries = _Entry("registries")
    """Which registry it asks for images."""
    runc = _Entry("runc")
    """What runc keeps."""
    log = _Entry("containerd.log")
    """What it says."""
    shared = _Entry("shared")
    """What all containers see as /shared."""

    @property
    def mark(self) -> str:
        """What its processes have in their environment, and with them all that they start."""
        return f"KUBELET_CONFORMANCE_CONTAINERD={self.folder}"

    def owner(self) -> Owner | None:
        """Whose it is; None if that was not written down, or not to its end."""
        try:
            return Owner(**json.loads((self.folder / _OWNER).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    @classmethod
    def make(cls, base: Path) -> Home:
        """A new one, owned by this process, for its user only; the caller holds the lock."""
        home = cls(Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base)))
        (home.folder / _OWNER).write_text(json.dumps(asdict(Owner.this_process())), encoding="utf-8")
        return home


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, identified beyond its pid: pids are used again, with another start or another boot."""

    pid: int
    started: int
    boot: str

    @classmethod
    def this_process(cls) -> Owner:
        """Us."""
        return cls(os.getpid(), start_of(os.getpid()) or 0, boot_id())

    def lives(self) -> bool:
        """Whether it has not ended."""
        return self.boot == boot_id() and start_of(self.pid) == self.started


def homes(base: Path) -> tuple[Home, ...]:
    """All that are there, of any owner."""
    return tuple(Home(folder) for folder in sorted(base.glob(f"{_PREFIX}*")))


@contextmanager
def locked(base: Path) -> Generator[None]:
    """Hold the lock of all private containerds of a base folder, which is there as long as the lock is held.

    With the last of them the folder goes; so the lock that was waited for may be that of a folder that is
    gone, and then another one is taken.
    """
    path = base / _LOCK
    while True:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            file = path.open("a")
        except FileNotFoundError:
            continue
        fcntl.flock(file, fcntl.LOCK_EX)
        if _is_at(file.fileno(), path):
            break
        file.close()
    try:
        yield
    finally:
        file.close()


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
