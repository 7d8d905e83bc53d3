"""What a node measures: its memory, its processes, its disks, and what its pods use."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_fakes.clock import LoopClock, run
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_reference.api import names
from kubelet_reference.server.host.node_stats import MeasuredNode, OsMachine, StatsClient, usage_by_pod
from kubelet_reference.util.ports import Amount, PodUsage
from kubelet_reference.util.settings import Settings

GIB = 1 << 30


def fake_machine(folder: Path, **files: str) -> OsMachine:
    """A machine of these files, by their paths with `__` for a slash; 1 GiB of memory, 1000 processes."""
    usual = {
        "proc__meminfo": "MemTotal:        1048576 kB\nMemFree:  1 kB\nHugePages_Total:       0\n",
        "proc__loadavg": "1.36 3.49 4.53 2/300 3715089\n",
        "proc__sys__kernel__pid_max": "4000\n",
        "proc__sys__kernel__threads-max": "1000\n",
    }
    for name, text in {**usual, **files}.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")
    return OsMachine(folder / "proc", folder / "cgroup", half_full)


def half_full(path: str) -> os.statvfs_result:
    """A file system of 1000 blocks of 512 bytes, 400 of them left; below /flat it has no inodes."""
    inodes = (0, 0, 0) if path.startswith("/flat") else (100, 30, 30)
    return os.statvfs_result((4096, 512, 1000, 500, 400, *inodes, 0, 255))


@pytest.mark.parametrize(
    "files",
    [
        {"cgroup__memory.stat": "anon 100\nfile 50\ninactive_file 30\n"},
        {"cgroup__memory.stat": "anon 1\nfile 2\ninactive_file 30\n", "cgroup__memory.current": "150\n"},
        {
            "cgroup__memory__memory.stat": "cache 1\ninactive_file 1\ntotal_inactive_file 30\n",
            "cgroup__memory__memory.usage_in_bytes": "150\n",
        },
    ],
    ids=["root", "container", "first-version"],
)
def test_memory_is_what_the_working_set_leaves(tmp_path: Path, files: dict[str, str]) -> None:
    """Files that nobody touches are no part of the working set, whichever way the cgroup tells of it."""
    assert fake_machine(tmp_path, **files).memory() == Amount(GIB - 120, GIB)


def test_working_set_is_never_less_than_nothing(tmp_path: Path) -> None:
    """Numbers of different moments need not fit together."""
    machine = fake_machine(tmp_path, **{"cgroup__memory.stat": "anon 1\nfile 5\ninactive_file 30\n"})

    assert machine.memory() == Amount(GIB, GIB)


def test_processes_are_all_tasks(tmp_path: Path) -> None:
    """The lesser limit counts, and every task, whether it can run or not."""
    assert fake_machine(tmp_path).processes() == Amount(700, 1000)


def test_disk_is_what_users_have(tmp_path: Path) -> None:
    """What is kept for root is not available; a file system without a table of inodes has none to tell of."""
    machine = fake_machine(tmp_path)

    assert machine.disk("/root") == (Amount(400 * 512, 1000 * 512), Amount(30, 100))
    assert machine.disk("/flat") == (Amount(400 * 512, 1000 * 512), None)


def test_this_machine_can_be_measured() -> None:
    """Whatever machine this is, something of it is left, and no more than there is."""
    machine = OsMachine()

    for amount in (machine.processes(), machine.disk("/")[0]):
        assert 0 <= amount.available <= amount.capacity
        assert amount.capacity > 0


def measured(machine: OsMachine, runtime: Any, root_dir: str = "/root") -> MeasuredNode:
    """A node of this machine and runtime."""
    return MeasuredNode(StatsClient(runtime, runtime, Settings()), machine, root_dir)


def read(node: MeasuredNode) -> Mapping[str, Amount]:
    """What is left of everything."""
    return run(node.read())


class Runtime:
    """A runtime whose images lie in a folder; it tells nothing where it has none."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder

    async def ImageFsInfo(self, *_: object, **__: object) -> cri.ImageFsInfoResponse:
        """The file system of images."""
        place = cri.FilesystemIdentifier(mountpoint=self.folder or "")
        found = [cri.FilesystemUsage(fs_id=place)] if self.folder else []
        return cri.ImageFsInfoResponse(image_filesystems=found)


def test_every_signal_is_measured(tmp_path: Path) -> None:
    """Memory, processes, and the disks of the root folder and of images."""
    machine = fake_machine(tmp_path, **{"cgroup__memory.stat": "anon 100\nfile 50\ninactive_file 30\n"})
    room, inodes = Amount(400 * 512, 1000 * 512), Amount(30, 100)

    assert read(measured(machine, Runtime("/flat/images"))) == {
        "memory.available": Amount(GIB - 120, GIB),
        "pid.available": Amount(700, 1000),
        "nodefs.available": room,
        "nodefs.inodesFree": inodes,
        "imagefs.available": room,
    }


def test_what_cannot_be_measured_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is left out, the rest is there; the log tells of it again after it could be measured."""
    machine, runtime = fake_machine(tmp_path, proc__loadavg="1 2\n"), Runtime(None)
    node = measured(machine, runtime)
    with caplog.at_level(logging.WARNING, "kubelet_reference"):
        first, second = read(node), read(node)
        reported = caplog.messages[:]
        runtime.folder = "/images"
        third = read(node)
        runtime.folder = None
        read(node)

    assert list(first) == list(second) == ["nodefs.available", "nodefs.inodesFree"]
    assert [line.partition(",")[0] for line in reported] == [
        "cannot measure memory",
        "cannot measure the number of processes",
        "cannot measure the disk of images",
    ]
    assert reported[2].endswith("all goes on without: the runtime names no file system")
    assert "imagefs.available" in third
    assert caplog.messages[3:] == reported[2:]


def test_usage_of_a_runtime_that_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where the runtime does not tell what containers use, nothing is known of any pod."""

    async def play() -> Mapping[str, PodUsage]:
        runtime = FakeRuntime(RuntimeCore(), LoopClock(0))
        runtime.faults.add("ListContainerStats", code="UNIMPLEMENTED")
        return await measured(fake_machine(tmp_path), runtime).usage()

    assert run(play()) == {}
    assert caplog.messages[0].startswith("cannot measure what each pod uses, all goes on without: rpc error")


def stats(pod: str, name: str, attempt: int, memory: int, layer: int) -> cri.ContainerStats:
    """What one container uses."""
    labels = {names.POD_UID: pod, names.CONTAINER_NAME: name} if pod else {}
    return cri.ContainerStats(
        attributes=cri.ContainerAttributes(
            metadata=cri.ContainerMetadata(name=name, attempt=attempt), labels=labels
        ),
        memory=cri.MemoryUsage(working_set_bytes=cri.UInt64Value(value=memory)),
        writable_layer=cri.FilesystemUsage(
            used_bytes=cri.UInt64Value(value=layer), inodes_used=cri.UInt64Value(value=1)
        ),
    )


def test_usage_is_that_of_the_newest_instances() -> None:
    """A pod uses what its containers do, each counted once; containers of no pod are left out."""
    found = usage_by_pod(
        [
            stats("a", "c1", 2, 100, 10),
            stats("a", "c1", 1, 999, 999),
            stats("a", "c2", 0, 5, 1),
            stats("b", "c1", 0, 7, 0),
            stats("", "foreign", 0, 1, 1),
        ]
    )

    assert found == {
        "a": PodUsage({"memory": 105, "ephemeral-storage": 11, "inodes": 2}, {"c1": 10, "c2": 1}),
        "b": PodUsage({"memory": 7, "ephemeral-storage": 0, "inodes": 1}, {"c1": 0}),
    }
