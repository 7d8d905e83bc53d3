"""The fake runtime of our own at a socket, for kubelets in a process of their own: a new one for each life."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kubelet_conformance.targets.pod_servers import PodServers
from kubelet_conformance.targets.runtime_control import FakeRuntimeControl
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_fakes.runtime.server import RuntimeServer
from kubelet_reference.process.wall import WallClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from kubelet_conformance.targets.protocols import RuntimeControl
    from kubelet_conformance.trace.recorder import Recorder

__all__ = ("CONTROLS", "OwnFake", "own_fake")

CONTROLS = frozenset(
    {"inject", "oom", "lose_track", "restart", "reboot", "set_conditions", "set_address", "set_file"}
    | {"add_image", "remove_image", "publish_image"}
)
"""What it can be made to do beyond the CRI; its pods have no addresses that anything could be sent to."""


class OwnFake:
    """A fake runtime that listens at `socket`."""

    def __init__(self, runtime: FakeRuntime, socket: Path) -> None:
        self._runtime = runtime
        self.socket = socket

    def control(self, recorder: Recorder) -> RuntimeControl:
        """The whole control of it; what it does by itself goes onto this record."""
        return FakeRuntimeControl(self._runtime, PodServers(recorder), recorder)


@asynccontextmanager
async def own_fake(socket: Path) -> AsyncGenerator[OwnFake]:
    """One that listens for as long as the context is open."""
    clock = WallClock()
    core = RuntimeCore(epoch_ns=clock.wall_ns() - round(clock.monotonic() * 1e9))
    runtime = FakeRuntime(core, clock)
    async with RuntimeServer(runtime, socket):
        yield OwnFake(runtime, socket)
