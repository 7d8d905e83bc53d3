"""As many kubelets live side by side as the processors are busy with."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from on_loop import in_virtual_time

from kubelet_conformance.targets.live import room
from kubelet_conformance.targets.live.room import Processors, Room
from kubelet_reference.server.host.clock import LoopClock


class Crowd:
    """Kubelets that want to live in a room, one after the other; `alive` are those that do."""

    def __init__(self, wanted: int, busy: Callable[[], float | None]) -> None:
        self.alive: list[int] = []
        self._end = [asyncio.Event() for _ in range(wanted)]
        self._room = Room(2, most=4, ready=2, busy=busy)
        self._lives = [asyncio.ensure_future(self._live(number)) for number in range(wanted)]

    async def _live(self, number: int) -> None:
        async with self._room.lane(urgent=False), self._room.kubelet():
            self.alive.append(number)
            await self._end[number].wait()
            self.alive.remove(number)

    async def ends(self, number: int) -> None:
        """That kubelet ends, and a minute passes."""
        self._end[number].set()
        await LoopClock(0).sleep(60)

    async def end(self) -> None:
        """All end."""
        for each in self._end:
            each.set()
        await asyncio.gather(*self._lives)


@pytest.mark.parametrize(
    ("busy", "expected"), [(0.5, [0, 1, 2, 3]), (0.9, [0, 1]), (1.0, [0, 1]), (None, [0, 1])]
)
@in_virtual_time
async def test_more_live_while_a_processor_is_idle(busy: float | None, expected: list[int]) -> None:
    """One more at each look, up to the most; none where the processors are busy, or nobody knows."""
    crowd = Crowd(6, lambda: busy)

    await LoopClock(0).sleep(60)

    assert crowd.alive == expected
    await crowd.end()


@in_virtual_time
async def test_fewer_live_where_all_processors_are_taken() -> None:
    """Who ends is followed by nobody then, but so many as at first may always live."""
    busy = [0.5]
    crowd = Crowd(6, lambda: busy[0])
    await LoopClock(0).sleep(60)
    busy[0] = 1.0
    await LoopClock(0).sleep(60)

    await crowd.ends(0)
    assert crowd.alive == [1, 2, 3]
    await crowd.ends(1)
    assert crowd.alive == [2, 3]
    await crowd.ends(2)
    assert crowd.alive == [3, 4]
    await crowd.end()


@in_virtual_time
async def test_who_is_urgent_is_next() -> None:
    """Others wait in the order in which they came."""
    one = Room(1)
    order: list[str] = []

    async def live(name: str, *, urgent: bool = False) -> None:
        async with one.lane(urgent=urgent), one.kubelet():
            order.append(name)
            await LoopClock(0).sleep(10)

    lives = [asyncio.ensure_future(live(name)) for name in ("first", "second", "third")]
    await LoopClock(0).sleep(1)
    await asyncio.gather(*lives, live("urgent", urgent=True))

    assert order == ["first", "second", "urgent", "third"]


def test_share_of_the_processors_that_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that this process may use, by the kernel's counters, since the last look."""
    stat, tick = tmp_path / "stat", os.sysconf("SC_CLK_TCK")
    monkeypatch.setattr(room, "_STAT", stat)

    def allowed(_: int) -> set[int]:
        return {0, 2}

    monkeypatch.setattr(os, "sched_getaffinity", allowed)

    def seconds(user: int, idle: int, waiting: int) -> None:
        times = f"{user * tick} 0 0 {idle * tick} {waiting * tick} 0 0 0 77 77"
        stat.write_text(f"cpu 1\ncpu0 {times}\ncpu1 9 9 9 9 9 9 9 9 9 9\ncpu2 {times}\nintr 5 6\n")

    seconds(100, 50, 0)
    processors = Processors()
    seconds(100, 50, 0)
    assert processors.busy() is None
    seconds(106, 53, 1)
    assert processors.busy() == 0.6
    stat.unlink()
    assert processors.busy() is None
