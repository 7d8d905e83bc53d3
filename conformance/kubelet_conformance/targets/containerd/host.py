"""What is read of the machine: processes, mounts, cgroups, network links."""

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_ELF = b"\x7fELF"
_PT_INTERP = 3
_START_FIELD = 19
"""Which field of /proc/PID/stat is the start, counted from the one after the command's name."""
_ENDED = frozenset("ZX")


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of /proc/PID/mountinfo: where it is mounted, of what type, and the line itself."""

    point: str
    type: str
    line: str


def mounts(pid: str = "self") -> tuple[Mount, ...]:
    """The mounts that a process sees, in the order in which they were made; none if it is gone."""
    text = _text(_PROC / pid / "mountinfo")
    return tuple(_mount(line) for line in text.splitlines())


def mounts_below(folder: Path) -> tuple[str, ...]:
    """Where something is mounted in the folder, or on it; the innermost first."""
    top = os.path.realpath(folder)
    points = [each.point for each in reversed(mounts())]
    return tuple(point for point in points if point == top or point.startswith(f"{top}/"))


def _mount(line: str) -> Mount:
    before, _, after = line.partition(" - ")
    point = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), before.split(" ")[4])
    return Mount(point, after.split(" ", 1)[0], line)


def cgroup_roots() -> tuple[Path, ...]:
    """Where the hierarchies of cgroups are mounted: one in version 2, several in version 1."""
    return tuple(Path(each.point) for each in mounts() if each.type in {"cgroup", "cgroup2"})


def marked_processes(mark: str) -> tuple[int, ...]:
    """The processes that were started with `NAME=VALUE` in their environment."""
    wanted = mark.encode()
    return tuple(pid for pid in _pids() if wanted in _bytes(_PROC / str(pid) / "environ").split(b"\0"))


def container_processes(folder: Path) -> tuple[int, ...]:
    """The processes whose root file system is in this folder."""
    roots = ((pid, each) for pid in _pids() for each in mounts(str(pid)) if each.point == "/")
    return tuple(dict.fromkeys(pid for pid, root in roots if f"{folder}/" in root.line))


def words_of(pid: int) -> str:
    """The command line of a process; empty if it is gone."""
    return _bytes(_PROC / str(pid) / "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def start_of(pid: int) -> int | None:
    """When a process was started, in clock ticks since the machine was; None if it is gone or a zombie."""
    fields = _text(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return None if not fields or fields[0] in _ENDED else int(fields[_START_FIELD])


def boot_id() -> str:
    """What names this run of the machine."""
    return _text(_PROC / "sys/kernel/random/boot_id").strip()


def links() -> frozenset[str]:
    """The names of the network links."""
    return frozenset(names_in(Path("/sys/class/net")))


def bridge_ports(bridge: str) -> tuple[str, ...]:
    """The links that are plugged into a bridge."""
    return tuple(names_in(Path("/sys/class/net", bridge, "brif")))


def names_in(folder: Path) -> list[str]:
    """What is in a folder, in order; nothing if it is not there."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def is_static(program: Path) -> bool:
    """Whether this is a 64-bit ELF program that needs no other file to run."""
    data = _bytes(program)
    if not data.startswith(_ELF):
        return False
    order = "<" if data[5] == 1 else ">"
    (offset,) = struct.unpack_from(f"{order}Q", data, 32)
    size, count = struct.unpack_from(f"{order}HH", data, 54)
    kinds = (struct.unpack_from(f"{order}I", data, offset + size * index)[0] for index in range(count))
    return _PT_INTERP not in kinds


def _pids() -> Iterator[int]:
    return (int(name) for name in names_in(_PROC) if name.isdigit())


def _text(path: Path) -> str:
    return _bytes(path).decode(errors="surrogateescape")


def _bytes(path: Path) -> bytes:
    """What the file holds; nothing if it cannot be read, as with a process that is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
