"""Rotation of containers' logs, in memory and on a real disk."""

import gzip
from pathlib import Path

import pytest
from lightkube.models.core_v1 import Container, Pod, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from observation import clock, failure
from on_loop import in_virtual_time

from kubelet_fakes.clock import run
from kubelet_fakes.disk import MemoryDisk
from kubelet_reference.api.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.kuberuntime.log_rotation import LogRotation
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.server.host.disk import OsDisk
from kubelet_reference.util.ports import Disk
from kubelet_reference.util.settings import Settings

POD = Pod(
    metadata=ObjectMeta(name="web", namespace="default", uid="u1"),
    spec=PodSpec(containers=[Container(name="c1")]),
)


class Bench:
    """One running container with a log, and a runtime that writes into whatever has the log's name."""

    def __init__(self, disk: Disk, logs: str, files: int = 5) -> None:
        self.disk = disk
        self.folder = f"{logs}/default_web_u1/c1"
        self.log = f"{self.folder}/2.log"
        self.fails = False
        self.reopened: list[str] = []
        settings = Settings(pod_logs_dir=logs, container_log_max_size=10, container_log_max_files=files)
        cache = PodCache()
        running = ContainerRecord("id1", "c1", ContainerState.RUNNING, 2, 2, "", 1)
        dead = ContainerRecord("id0", "c1", ContainerState.EXITED, 1, 1, "", 1)
        cache.set("u1", PodRecords("u1", containers=(running, dead)), 0)
        self.rotation = LogRotation(self.reopen_log, disk, clock(), settings, cache, lambda: [POD])
        disk.make_folder(self.folder)

    async def reopen_log(self, container_id: str) -> None:
        """Make the log anew, unless it is to fail."""
        self.reopened.append(container_id)
        if self.fails:
            raise failure()
        self.disk.write(self.log, b"")

    def names(self) -> list[str]:
        """What lies beside the log."""
        return [name for name in self.disk.names(self.folder) if name != "2.log"]


def test_small_logs_are_left_alone() -> None:
    """Below the size nothing is renamed and nobody is asked."""
    bench = Bench(MemoryDisk(), "/logs")
    bench.disk.write(bench.log, b"123456789")
    run(bench.rotation.rotate_all())

    assert bench.names() == []
    assert bench.reopened == []


def test_a_missing_log_is_asked_for() -> None:
    """The runtime is asked to open the log of a running container anew when it is gone."""
    bench = Bench(MemoryDisk(), "/logs")
    run(bench.rotation.rotate_all())

    assert bench.reopened == ["id1"]


def test_only_running_containers_are_looked_after() -> None:
    """The log of an instance that has ended stays as it is."""
    bench = Bench(MemoryDisk(), "/logs")
    bench.disk.write(bench.log, b"")
    bench.disk.write(f"{bench.folder}/1.log", b"x" * 100)
    run(bench.rotation.rotate_all())

    assert bench.names() == ["1.log"]


@pytest.mark.parametrize("kind", ["memory", "real"])
@in_virtual_time
async def test_a_long_log_is_put_aside_and_packed_later(kind: str, tmp_path: Path) -> None:
    """At the size it is renamed and opened anew; at the next rotation the older file is packed."""
    root = "/logs" if kind == "memory" else str(tmp_path)
    bench = Bench(MemoryDisk() if kind == "memory" else OsDisk(clock(), guarded=(root,)), root)
    bench.disk.write(bench.log, b"first line\n")
    await bench.rotation.rotate_all()
    await clock().sleep(20)
    bench.disk.write(bench.log, b"second line\n")
    await bench.rotation.rotate_all()

    assert bench.names() == ["2.log.20260101-000000.gz", "2.log.20260101-000020"]
    assert gzip.decompress(bench.disk.read(f"{bench.folder}/{bench.names()[0]}")) == b"first line\n"
    assert bench.disk.read(f"{bench.folder}/{bench.names()[1]}") == b"second line\n"
    assert bench.disk.read(bench.log) == b""


@in_virtual_time
async def test_the_oldest_files_go() -> None:
    """One log has at most its number of files, the one being written included."""
    bench = Bench(MemoryDisk(), "/logs", files=3)
    for number in range(5):
        bench.disk.write(bench.log, b"number %d....\n" % number)
        await bench.rotation.rotate_all()
        await clock().sleep(10)

    assert bench.names() == ["2.log.20260101-000030.gz", "2.log.20260101-000040"]


def test_what_was_left_half_packed_is_removed() -> None:
    """A file that a kubelet was packing when it died is thrown away, the plain one is packed anew."""
    bench = Bench(MemoryDisk(), "/logs")
    bench.disk.write(bench.log, b"x" * 10)
    bench.disk.write(f"{bench.log}.20251231-000000", b"old")
    bench.disk.write(f"{bench.log}.20251231-000000.tmp", b"ol")
    run(bench.rotation.rotate_all())

    assert bench.names() == ["2.log.20251231-000000.gz", "2.log.20260101-000000"]


def test_a_log_that_cannot_be_opened_anew_keeps_its_name() -> None:
    """The runtime goes on writing into the file: it gets its name back (CRI-29)."""
    bench = Bench(MemoryDisk(), "/logs")
    bench.disk.write(bench.log, b"x" * 10)
    bench.fails = True
    run(bench.rotation.rotate_all())

    assert bench.reopened == ["id1"]
    assert bench.names() == []
    assert bench.disk.read(bench.log) == b"x" * 10
