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


@pytest.mark.parametrize(("waits", "seconds"), [([400], 0.4), ([90, 90, 90], 0.27)])
@on_loop
async def test_threads_that_waited(
    waits: list[int], seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One long wait of a peer's threads counts, and many short ones do; a peer that is gone has none."""
    reported = asyncio.Queue[dict[str, Any]]()
    threads = [tmp_path / "7" / "task" / name for name in "789"]
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
        for thread, wait in zip(threads, waits, strict=False):
            (thread / "schedstat").write_text(f"5 {1_000_000_000 + wait * 1_000_000} 2\n")
        found = await reported.get()
        while found["of"] == "recorder":  # Where this test itself is kept from its work.
            found = await reported.get()

    assert found["of"] == "kubelet"
    assert found["seconds"] >= seconds
