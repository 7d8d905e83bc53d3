"""The tap of a run on a real runtime: what it cannot follow ends the run, with its reason."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tapped import serving

from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.live.recorded_tap import tapped
from kubelet_conformance.trace.format.recorder import Recorder


def test_connection_that_cannot_be_followed_ends_the_run(tmp_path: Path) -> None:
    """Who does not speak HTTP/2 makes the record incomplete: nothing may be judged by it."""
    runtime, listen = tmp_path / "runtime.sock", tmp_path / "tap" / "cri.sock"

    async def main() -> None:
        async with serving(runtime), tapped(listen, runtime, Recorder(lambda: 0.0)):
            reader, writer = await asyncio.open_unix_connection(listen)
            writer.write(b"GET / HTTP/1.0\r\n\r\n" * 10)
            await reader.read()
            writer.close()
            await writer.wait_closed()

    with pytest.raises(TargetError, match=r"a connection to it cannot be decoded: .*run again") as refused:
        asyncio.run(main())
    assert str(refused.value).startswith(f"{runtime}: ")
