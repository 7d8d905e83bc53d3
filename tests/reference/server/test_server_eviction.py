"""`kubelet-reference` on a machine that is never good enough for it, and on one that always is."""

import asyncio
from pathlib import Path

import pytest
from kubelet_command import Machine, on_machine
from on_loop import on_loop

from kubelet_reference.server.host.system_clock import WallClock

pytestmark = pytest.mark.slow


def images(machine: Machine) -> list[str]:
    """The names of the runtime's images."""
    return [tag for image in machine.core.images.by_id.values() for tag in image.tags]


@on_loop
async def test_static_pods_stay_and_images_go(tmp_path: Path) -> None:
    """More disk than there is anywhere is demanded: unused images go, and static pods stay (EVICT-04)."""
    async with on_machine(tmp_path) as machine:
        config = tmp_path / "config.yaml"
        text = config.read_text(encoding="utf-8").partition("evictionHard:")[0]
        config.write_text(
            f"{text}evictionHard: {{nodefs.available: 1Ei}}\nimageMinimumGCAge: 1ms\n", encoding="utf-8"
        )
        machine.core.images.add("spare:1")
        kubelet = await machine.start_with_pod()
        await kubelet.says("nodefs.available is below 1Ei, and no pod may be evicted")
        async with asyncio.timeout(40):
            while "spare:1" in images(machine):
                await WallClock().sleep(0.05)
        await kubelet.until_running("web")

        assert machine.runtime.count("StopContainer") == 0


@on_loop
async def test_machine_is_measured_and_nothing_goes(tmp_path: Path) -> None:
    """Without thresholds everything stays; disks can be measured, and what containers use."""
    async with on_machine(tmp_path) as machine:
        machine.core.images.add("spare:1")
        kubelet = await machine.start_with_pod()
        async with asyncio.timeout(40):
            while not machine.runtime.count("ListContainerStats"):
                await WallClock().sleep(0.05)

        assert "spare:1" in images(machine)
        assert not [line for line in kubelet.lines if "cannot measure the disk" in line]
        assert not [line for line in kubelet.lines if "cannot measure what" in line]
