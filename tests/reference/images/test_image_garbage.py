"""Which images go when the disk fills up."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from on_loop import in_virtual_time
from runtime_world import RuntimeWorld, a_pod

from kubelet_reference.images.image_gc_manager import KnownImage, bytes_to_free, is_full, removable
from kubelet_reference.util.ports import Amount, PodUsage

OLD = KnownImage("old", 10, pinned=False, first_seen=0, last_used=100)


@pytest.mark.parametrize(("available", "needed"), [(50, None), (16, None), (15, 5), (10, 10), (0, 20)])
def test_room_that_is_needed(available: int, needed: int | None) -> None:
    """From 85 percent on the disk is freed down to 80 percent."""
    disk = Amount(available, 100)

    assert (bytes_to_free(disk, 80) if is_full(disk, 85) else None) == needed


def test_order_of_removal() -> None:
    """The image unused longest goes first; pinned, used and young ones stay (GC-12)."""
    never = KnownImage("never", 10, pinned=False, first_seen=50, last_used=-math.inf)
    used = replace(OLD, id="used", last_used=500)
    young = KnownImage("young", 10, pinned=False, first_seen=450, last_used=-math.inf)
    pinned = replace(OLD, id="pinned", pinned=True)

    found = removable([used, OLD, young, pinned, never], now=500, minimum_age=120)

    assert [one.id for one in found] == ["never", "old"]


class FullDisk:
    """A disk of images that has run full."""

    async def read(self) -> Mapping[str, Amount]:
        """A tenth is left."""
        return {"imagefs.available": Amount(100 << 20, 1000 << 20)}

    async def usage(self) -> Mapping[str, PodUsage]:
        """Nothing is known of pods."""
        return {}


@in_virtual_time
async def test_image_of_a_container_stays() -> None:
    """An image that a container was made from stays, dead or alive; another one goes after two minutes."""
    world: list[RuntimeWorld] = []
    w = RuntimeWorld(stats=FullDisk())
    world.append(w)
    await w.sync(a_pod())
    w.runtime.core.images.add("spare:1")
    await w.side.image_gc_manager.collect()
    await w.clock.sleep(130)
    await w.side.image_gc_manager.collect()
    tags = [tag for image in world[0].runtime.core.images.by_id.values() for tag in image.tags]

    assert "spare:1" not in tags
    assert "img:1" in tags
