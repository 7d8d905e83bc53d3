"""A whole kubelet on a machine that it measures: who is evicted when that runs short, and who is not."""

import os
from pathlib import Path
from typing import Any

import pytest
from kubelet_world import World, in_world, manifest
from on_loop import run_by

from kubelet_reference.server.host.node_stats import MeasuredNode, OsMachine, StatsClient
from kubelet_reference.util.settings import Settings

MIB = 1 << 20


class FakeMachine:
    """A machine of 1 GiB whose files lie in a folder; `blocks` of 100 are left on its disks."""

    def __init__(self, folder: Path, free_memory: int) -> None:
        self._proc, self._cgroup = folder / "proc", folder / "cgroup"
        self._cgroup.mkdir()
        (self._proc / "sys" / "kernel").mkdir(parents=True)
        (self._proc / "meminfo").write_text("MemTotal: 1048576 kB\n")
        (self._proc / "loadavg").write_text("0 0 0 1/10 10\n")
        for limit in ("pid_max", "threads-max"):
            (self._proc / "sys" / "kernel" / limit).write_text("1000\n")
        self.blocks = 50
        self.leave(free_memory)

    def leave(self, free_memory: int) -> None:
        """So much memory is left from now on."""
        used = 1024 * MIB - free_memory
        (self._cgroup / "memory.stat").write_text(f"anon {used}\nfile 0\ninactive_file 0\n")

    def file_system(self, _: str) -> os.statvfs_result:
        """What is left of any disk."""
        return os.statvfs_result((4096, 4096, 100, self.blocks, self.blocks, 100, 50, 50, 0, 255))

    def under(self, world: World) -> None:
        """Let the kubelet of this world measure this machine."""
        runtime: Any = world.tap
        machine = OsMachine(self._proc, self._cgroup, self.file_system)
        world.stats = MeasuredNode(StatsClient(runtime, runtime, Settings()), machine, "/var/lib/kubelet")


@pytest.mark.parametrize("free", [99 * MIB, 101 * MIB])
@run_by(in_world)
async def test_pod_goes_when_memory_runs_short(world: World, tmp_path: Path, free: int) -> None:
    """Below 100 MiB a pod of the API server is evicted and a static one stays; above, both do (EVICT-04)."""
    machine = FakeMachine(tmp_path, 500 * MIB)
    machine.under(world)
    world.write("static")
    await world.start()
    world.api.create(manifest())
    await world.let(15)
    before = world.phase("web"), world.phase("static-node")
    machine.leave(free)
    await world.let(30)
    status = (world.api.get("default", "web") or {})["status"]

    assert before == ("Running", "Running")
    assert world.phase("static-node") == "Running"
    if free < 100 * MIB:
        assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
        assert "low on resource: memory" in status["message"]
        assert world.reasons().count("Evicted") == 1
    else:
        assert status["phase"] == "Running"
        assert "Evicted" not in world.reasons()


@run_by(in_world)
async def test_heaviest_pod_goes_first(world: World, tmp_path: Path) -> None:
    """The runtime tells that a pod of two containers uses more than one with a single one."""
    machine = FakeMachine(tmp_path, 500 * MIB)
    machine.under(world)
    await world.start()
    heavy = manifest("heavy")
    heavy["spec"]["containers"].append({**heavy["spec"]["containers"][0], "name": "more"})
    for pod in (manifest("light"), heavy, manifest("also-light")):
        world.api.create(pod)
    await world.let(15)
    machine.leave(50 * MIB)
    await world.let(6)
    machine.leave(500 * MIB)
    await world.let(30)

    assert [world.phase(name) for name in ("light", "heavy", "also-light")] == [
        "Running",
        "Failed",
        "Running",
    ]


@pytest.mark.parametrize("signal", ["nodefs.available", "imagefs.inodesFree"])
def test_disk_is_freed_of_images(tmp_path: Path, signal: str) -> None:
    """A disk that runs short of bytes or of inodes loses its unused images, and no static pod (EVICT-01)."""

    async def work(world: World) -> None:
        machine = FakeMachine(tmp_path, 500 * MIB)
        machine.under(world)
        world.write("static")
        await world.start()
        world.core.images.add("spare:1")
        await world.let(200)
        tags = [tag for image in world.core.images.by_id.values() for tag in image.tags]

        assert "spare:1" not in tags
        assert world.phase("static-node") == "Running"
        assert "Evicted" not in world.reasons()

    in_world(work, eviction_hard={signal: "60%"}, image_gc_high_threshold=100)


@run_by(in_world, eviction_hard={}, image_gc_high_threshold=100)
async def test_nothing_goes_where_nothing_is_set(world: World, tmp_path: Path) -> None:
    """Without thresholds a full machine keeps its pods and its images, as on machines for tests."""
    machine = FakeMachine(tmp_path, 1 * MIB)
    machine.blocks = 0
    machine.under(world)
    await world.start()
    world.api.create(manifest())
    world.core.images.add("spare:1")
    await world.let(700)
    tags = [tag for image in world.core.images.by_id.values() for tag in image.tags]

    assert world.phase("web") == "Running"
    assert "spare:1" in tags
