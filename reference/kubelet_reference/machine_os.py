"""The machine the kubelet runs on, measured: what is left of its memory, its processes and its disks.

Everything is read where a kubelet reads it; its documentation tells of that under node-pressure evictions.
What cannot be read raises `OSError`, what makes no sense `ValueError` or `LookupError`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kubelet_reference.node_signals import Amount

_KIB = 1024
_LIMITS_OF_PROCESSES = ("sys/kernel/pid_max", "sys/kernel/threads-max")


@dataclass(frozen=True, slots=True)
class OsMachine:
    """Reads the kernel's account of the machine.

    `proc` and `cgroups` are where these file systems are mounted; `file_system` tells of the one that holds a
    path.
    """

    proc: Path = Path("/proc")
    cgroups: Path = Path("/sys/fs/cgroup")
    file_system: Callable[[str], os.statvfs_result] = os.statvfs

    def memory(self) -> Amount:
        """Bytes of memory: all that there is, without the working set of the root cgroup.

        MemAvailable of /proc/meminfo is something else: there the kernel guesses what it could free.
        """
        capacity = _numbers(self.proc / "meminfo")["MemTotal"] * _KIB
        return Amount(max(0, capacity - self._working_set()), capacity)

    def processes(self) -> Amount:
        """Tasks, threads included, up to the lesser of the kernel's two limits (K8S-107107)."""
        capacity = min(int((self.proc / limit).read_bytes()) for limit in _LIMITS_OF_PROCESSES)
        # Such as 1.36 3.49 4.53 2/3518 3715089: of 3518 tasks 2 can run.
        running = int((self.proc / "loadavg").read_text(encoding="ascii").split()[3].partition("/")[2])
        return Amount(max(0, capacity - running), capacity)

    def disk(self, path: str) -> tuple[Amount, Amount | None]:
        """Bytes and inodes of the file system that holds `path`; None where inodes are made as needed."""
        found = self.file_system(path)
        room = Amount(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)
        return room, Amount(found.f_ffree, found.f_files) if found.f_files else None

    def _working_set(self) -> int:
        """What is used and cannot be dropped at once: not the files that nobody has touched for long."""
        first_version = self.cgroups / "memory"
        if first_version.is_dir():
            used = int((first_version / "memory.usage_in_bytes").read_bytes())
            return max(0, used - _numbers(first_version / "memory.stat")["total_inactive_file"])
        told = _numbers(self.cgroups / "memory.stat")
        current = self.cgroups / "memory.current"
        # The root of all has no such file; that of a container, which looks like it from inside, has one.
        used = int(current.read_bytes()) if current.exists() else told["anon"] + told["file"]
        return max(0, used - told["inactive_file"])


def _numbers(path: Path) -> dict[str, int]:
    """The file's first number of each line, by the word before it."""
    lines = (line.replace(":", " ").split() for line in path.read_text(encoding="ascii").splitlines())
    return {line[0]: int(line[1]) for line in lines if line}
