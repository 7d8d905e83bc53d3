"""The pod cache: what pod workers wait in."""

import asyncio

import pytest
from observation import failure, listed, records

from kubelet_fakes.clock import run
from kubelet_reference.api.records import PodRecords
from kubelet_reference.pleg.cache import PodCache
from kubelet_reference.server.host.clock import LoopClock

FOUND = records(listed("u", c1="RUNNING"))


async def _waits(cache: PodCache, moment: float) -> bool:
    """Whether somebody who asks for something newer than the moment has to wait."""
    task = asyncio.ensure_future(cache.get_newer_than("u", moment))
    await LoopClock(0).sleep(1)
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


def test_an_unknown_pod_has_no_records() -> None:
    """A pod that nobody has seen at the runtime has empty records."""
    assert PodCache().get("u") == PodRecords("u")


@pytest.mark.parametrize(
    ("entry", "relist", "moment", "waits"),
    [
        pytest.param(None, None, 0, True, id="nothing-yet"),
        pytest.param(None, 5, 5, True, id="relist-just-as-old"),
        pytest.param(None, 5, 4, False, id="no-entry-but-a-newer-relist"),
        pytest.param(5, None, 5, True, id="entry-just-as-old"),
        pytest.param(5, None, 4, False, id="newer-entry"),
        pytest.param(1, 5, 4, False, id="old-entry-newer-relist"),
        pytest.param(None, None, float("-inf"), True, id="never-synced-nothing-yet"),
        pytest.param(1, None, float("-inf"), False, id="never-synced"),
    ],
)
def test_only_something_newer_will_do(
    entry: float | None, relist: float | None, moment: float, *, waits: bool
) -> None:
    """Who asks for something newer than a moment gets an entry or a relist after it, or waits."""
    cache = PodCache()
    if entry is not None:
        cache.set("u", FOUND, entry)
    if relist is not None:
        cache.update_time(relist)

    assert run(_waits(cache, moment)) is waits


def test_a_new_entry_wakes_who_waits() -> None:
    """The entry that is new enough is handed over, an older one is not."""

    async def work() -> tuple[PodRecords, float]:
        cache, clock = PodCache(), LoopClock(0)
        task = asyncio.ensure_future(cache.get_newer_than("u", 5))
        await clock.sleep(5)
        cache.set("u", PodRecords("u", "old"), 5)
        await clock.sleep(1)
        cache.set("u", FOUND, 6)
        return await task, clock.monotonic()

    assert run(work()) == (FOUND, 6)


def test_a_relist_wakes_who_waits_for_an_unchanged_pod() -> None:
    """Once all pods were looked at, an unchanged pod's entry is as new as the relist (PLEG-06)."""

    async def work() -> PodRecords:
        cache = PodCache()
        cache.set("u", FOUND, 1)
        task = asyncio.ensure_future(cache.get_newer_than("u", 5))
        await LoopClock(0).sleep(1)
        cache.update_time(6)
        return await task

    assert run(work()) == FOUND


def test_who_waits_no_longer_is_forgotten() -> None:
    """A worker that is cancelled while it waits leaves nothing behind that later wakes."""

    async def work() -> bool:
        cache = PodCache()
        waited = await _waits(cache, 5)
        cache.set("u", FOUND, 6)
        cache.update_time(7)
        return waited

    assert run(work())


def test_a_failed_inspection_is_raised_and_keeps_the_old_records() -> None:
    """Workers get the error; who only looks gets what was known before; success clears the error."""
    cache, error = PodCache(), failure()
    cache.set("u", FOUND, 1)
    cache.set("u", None, 2, error)

    with pytest.raises(type(error)) as raised:
        run(cache.get_newer_than("u", 1))
    assert raised.value is error
    assert cache.get("u") == FOUND

    cache.set("u", FOUND, 3)

    assert run(cache.get_newer_than("u", 1)) == FOUND


def test_a_pod_without_records_is_forgotten() -> None:
    """After its entry is deleted a pod has no records, once a relist says so (PLEG-07)."""
    cache = PodCache()
    cache.set("u", FOUND, 1)
    cache.delete("u")
    cache.update_time(2)

    assert run(cache.get_newer_than("u", 1)) == PodRecords("u")
