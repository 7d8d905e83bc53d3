"""A heartbeat that comes late is a stall, and so is a thread of a peer that waited for a processor."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from on_loop import on_loop

from kubelet_conformance.tap import stalls
from kubelet_conformance.tap.stalls import BEAT_SECONDS, STALL_SECONDS, StallWatch


@on_loop
async def test_late_heartbeat() -> None:
    """A loop that is kept from its work for long is reported as a stall of the recorder."""
    loop, reported = asyncio.get_running_loop(), asyncio.Queue[dict[str, Any]]()
    with StallWatch(list, reported.put_nowait):
        begun = loop.time()
        while loop.time() < begun + BEAT_SECONDS + 1.5 * STALL_SECONDS:
            pass
        stall = await reported.get()

    assert stall["of"] == "recorder"
    assert stall["seconds"] > STALL_SECONDS


@on_loop
async def test_threads_that_waited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest wait of a peer's threads counts; a peer that is gone has none."""
    reported = asyncio.Queue[dict[str, Any]]()
    threads = [tmp_path / "7" / "task" / name for name in "78"]
    for thread in threads:
        thread.mkdir(parents=True)
        (thread / "schedstat").write_text("5 1000000000 1\n")
    monkeypatch.setattr(stalls, "_PROC", tmp_path)
    monkeypatch.setattr(stalls, "BEAT_SECONDS", 0.001)
    looks = asyncio.Event()

    def peers() -> list[tuple[str, int]]:
        looks.set()
        return [("kubelet", 7), ("runtime", 9)]

    with StallWatch(peers, reported.put_nowait):
        await looks.wait()
        (threads[0] / "schedstat").write_text("5 1400000000 2\n")
        found = await reported.get()
        while found["of"] == "recorder":  # Where this test itself is kept from its work.
            found = await reported.get()

    assert found == {"of": "kubelet", "seconds": 0.4, "pressure": 0.0}
