"""Removing a private containerd without a trace, in any state and whichever process left it.

There is one way for a stop, a start that failed, and what a dead owner left: nothing is asked of containerd.
Its processes are killed until there are none, and then what they made is taken away.
"""

import contextlib
import os
import select
import shutil
import signal
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from kubelet_conformance.targets.containerd import host
from kubelet_conformance.targets.containerd.home import Home, homes, locked
from kubelet_conformance.targets.containerd.host_commands import ToolError, said_by
from kubelet_conformance.targets.containerd.leftovers import (
    NAMESPACE,
    cgroups,
    ids,
    leftovers,
    network_results,
    shim_sockets,
)

_ROUNDS_MAX = 50
_ROUND_MS = 5000
_SHIM = "containerd-shim"
_MADE = "made"
_SHARED = tuple(
    map(
        Path,
        (
            "/run/containerd/s",
            "/run/containerd/runc",
            "/run/containerd",
            "/var/lib/cni/results",
            "/var/lib/cni",
        ),
    )
)
"""Folders that containerd and CNI make for all their instances on a machine, inner ones first."""


class RemovalError(Exception):
    """Something resists; the text says what is left."""


def remove(home: Home) -> frozenset[str]:
    """Remove everything of it; the ids that its sandboxes and containers had.

    Ctrl-C waits until that is done. Raises `RemovalError` if something is left.
    """
    with _held_back(), locked(home.folder.parent):
        known = _removed(home)
        _leave(home.folder.parent)
    return known


def remove_orphans(base: Path) -> tuple[Home, ...]:
    """Remove what belongs to processes that are no more; which these were. The caller holds the lock."""
    dead: list[Home] = []
    for home in homes(base):
        owner = home.owner()
        if owner is None or not owner.lives():
            _removed(home)
            dead.append(home)
    return tuple(dead)


def record_absent_folders(base: Path) -> None:
    """Write down which folders are not there yet, to be removed with the last private containerd."""
    file = base / _MADE
    if not file.exists():
        groups = (root / NAMESPACE for root in host.cgroup_roots())
        absent = (str(folder) for folder in (*_SHARED, *groups) if not folder.exists())
        file.write_text("\n".join(absent), encoding="utf-8")


def _leave(base: Path) -> None:
    """Take away what all instances had in common, if this was the last one."""
    if homes(base):
        return
    with contextlib.suppress(FileNotFoundError):
        for line in (base / _MADE).read_text(encoding="utf-8").splitlines():
            _rmdir(Path(line))
    shutil.rmtree(base)


def _removed(home: Home) -> frozenset[str]:
    known = set(ids(home))
    _kill(home)
    # What was under way has ended now, and may have left an id more.
    known |= ids(home)
    _unmount(home)
    _unplug(home)
    for path in (*shim_sockets(home, known), *network_results(home, known)):
        path.unlink(missing_ok=True)
    for path in cgroups(known):
        _rmdir(path)
    shutil.rmtree(home.folder, ignore_errors=True)
    left = leftovers(home, known)
    if left:
        raise RemovalError("\n".join([f"of the private containerd {home.name} there is left:", *left]))
    return frozenset(known)


def _kill(home: Home) -> None:
    """Kill its processes; while some are found others may be born, so look again until there are none.

    First the daemon and what is under way, which make new ones; shims last, because they are the parents of
    containers: the first process of a PID namespace does not end before the others are reaped.
    """
    for _ in range(_ROUNDS_MAX):
        started = host.marked_processes(home.mark)
        contained = host.container_processes(home.folder)
        if not started and not contained:
            return
        shims = [pid for pid in started if _SHIM in host.words_of(pid)]
        _kill_all(set(started).difference(shims))
        _kill_all(contained)
        if not contained:
            _kill_all(shims)


def _kill_all(pids: Iterable[int]) -> None:
    """Kill, and wait until they are dead; a descriptor names a process even when its id is used again."""
    poll = select.poll()
    descriptors: list[int] = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            descriptors.append(descriptor)
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            poll.register(descriptor, select.POLLIN)
    waiting = set(descriptors)
    try:
        while waiting and (ended := poll.poll(_ROUND_MS)):
            for descriptor, _ in ended:
                poll.unregister(descriptor)
                waiting.discard(descriptor)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _unmount(home: Home) -> None:
    for _ in range(_ROUNDS_MAX):
        points = host.mounts_below(home.folder)
        if not points:
            return
        # One that went by itself meanwhile is no failure: what counts is that none is left.
        with contextlib.suppress(ToolError):
            said_by("umount", "--lazy", "--", *points)


def _unplug(home: Home) -> None:
    """Remove the bridge and the links to pods, which go by themselves too, a while after their namespaces."""
    for _ in range(_ROUNDS_MAX):
        links = [*host.bridge_ports(home.name), *({home.name} & host.links())]
        if not links:
            return
        with contextlib.suppress(ToolError):
            said_by(
                "ip", "-force", "-batch", "-", stdin="".join(f"link delete dev {link}\n" for link in links)
            )


def _rmdir(folder: Path) -> None:
    """Remove an empty folder; one that others use stays."""
    with contextlib.suppress(OSError):
        folder.rmdir()


@contextmanager
def _held_back() -> Generator[None]:
    """Let SIGINT and SIGTERM wait until the context is left. Only the main thread is ever interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)

    before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        for number in dict.fromkeys(came):
            signal.raise_signal(number)
