"""The port `NodeStats` of a real node: the machine says what is left, the runtime what containers use.

The machine is read where a kubelet reads it; its documentation says where under node-pressure evictions.
What cannot be read raises `OSError`, what makes no sense `ValueError` or `LookupError`. What cannot be
measured is left out, and the kubelet takes it that there is enough. The log says so once, and again only if
it could be measured in between.
"""

import logging
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.api import names
from kubelet_reference.cri.client import CriClient
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.util.ports import Amount, PodUsage

_KIB = 1024
_LIMITS_OF_PROCESSES = ("sys/kernel/pid_max", "sys/kernel/threads-max")


@dataclass(frozen=True, slots=True)
class OsMachine:
    """Reads the kernel's account of the machine.

    `proc` and `cgroups` are where these file systems are mounted; `file_system` is about the one that holds a
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
        """What is used and cannot be dropped at once: not the files that were not touched for long."""
        first_version = self.cgroups / "memory"
        if first_version.is_dir():
            used = int((first_version / "memory.usage_in_bytes").read_bytes())
            return max(0, used - _numbers(first_version / "memory.stat")["total_inactive_file"])
        stats = _numbers(self.cgroups / "memory.stat")
        current = self.cgroups / "memory.current"
        # The root of all has no such file; that of a container, which looks like it from inside, has one.
        used = int(current.read_bytes()) if current.exists() else stats["anon"] + stats["file"]
        return max(0, used - stats["inactive_file"])


def _numbers(path: Path) -> dict[str, int]:
    """The file's first number of each line, by the word before it."""
    lines = (line.replace(":", " ").split() for line in path.read_text(encoding="ascii").splitlines())
    return {line[0]: int(line[1]) for line in lines if line}


_log = logging.getLogger("kubelet_reference.node_stats")


class StatsClient(CriClient):
    """Asks the runtime for what is used as well."""

    async def list_container_stats(self) -> Sequence[cri.ContainerStats]:
        """What each container uses that runs."""
        call = self.runtime.ListContainerStats(cri.ListContainerStatsRequest(), timeout=self._timeout)
        return (await self._do("list_container_stats", call)).stats

    async def image_fs_info(self) -> cri.ImageFsInfoResponse:
        """The file systems that hold images."""
        call = self.images.ImageFsInfo(cri.ImageFsInfoRequest(), timeout=self._timeout)
        return await self._do("image_fs_info", call)


class MeasuredNode:
    """Measures anew each time it is asked; nodefs is the file system that holds `root_dir`."""

    def __init__(self, client: StatsClient, machine: OsMachine, root_dir: str) -> None:
        self._client = client
        self._machine = machine
        self._root_dir = root_dir
        self._reported: set[str] = set()

    async def read(self) -> Mapping[str, Amount]:
        """The signals that can be read, by name."""
        found: dict[str, Amount] = {}
        with self._noting("memory"):
            found["memory.available"] = self._machine.memory()
        with self._noting("the number of processes"):
            found["pid.available"] = self._machine.processes()
        with self._noting("the disk of the root folder"):
            found |= self._disk("nodefs", self._root_dir)
        with self._noting("the disk of images"):
            found |= self._disk("imagefs", await self._image_folder())
        return found

    async def usage(self) -> Mapping[str, PodUsage]:
        """What each pod uses, by UID."""
        with self._noting("what each pod uses"):
            return usage_by_pod(await self._client.list_container_stats())
        return {}

    def _disk(self, name: str, path: str) -> dict[str, Amount]:
        room, inodes = self._machine.disk(path)
        found = {f"{name}.available": room}
        return found if inodes is None else found | {f"{name}.inodesFree": inodes}

    async def _image_folder(self) -> str:
        """Where the runtime keeps its images; a kubelet asks for the first of its file systems."""
        found = (await self._client.image_fs_info()).image_filesystems
        if not found:
            raise LookupError("the runtime names no file system")
        return found[0].fs_id.mountpoint

    @contextmanager
    def _noting(self, what: str) -> Generator[None]:
        """Go on without what cannot be measured."""
        try:
            yield
        except (OSError, ValueError, LookupError, grpc.RpcError) as error:
            if what not in self._reported:
                _log.warning("cannot measure %s, all goes on without: %s", what, wrapped_text(error))
            self._reported.add(what)
        else:
            self._reported.discard(what)


def usage_by_pod(stats: Iterable[cri.ContainerStats]) -> dict[str, PodUsage]:
    """What pods use, by UID: of each of their containers what the newest instance does.

    That is memory, and of the disk what containers have written beside their volumes. Containers that no
    kubelet has made belong to no pod.
    """
    newest: dict[str, dict[str, cri.ContainerStats]] = {}
    for one in sorted(stats, key=lambda one: one.attributes.metadata.attempt):
        labels = one.attributes.labels
        if names.POD_UID in labels and names.CONTAINER_NAME in labels:
            newest.setdefault(labels[names.POD_UID], {})[labels[names.CONTAINER_NAME]] = one
    return {uid: _usage(containers) for uid, containers in newest.items()}


def _usage(containers: Mapping[str, cri.ContainerStats]) -> PodUsage:
    layers = {name: one.writable_layer.used_bytes.value for name, one in containers.items()}
    every = containers.values()
    return PodUsage(
        amounts={
            "memory": sum(one.memory.working_set_bytes.value for one in every),
            "ephemeral-storage": sum(layers.values()),
            "inodes": sum(one.writable_layer.inodes_used.value for one in every),
        },
        containers=layers,
    )
