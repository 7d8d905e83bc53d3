"""A fake runtime of our own at a socket, for kubelets in a process of their own: a new one for each life."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kubelet_conformance.targets.live.namespaces import Scope
from kubelet_conformance.targets.pod_servers import PodServers
from kubelet_conformance.targets.protocols import RuntimeContainer, RuntimeSandbox
from kubelet_conformance.targets.runtime_control import FakeRuntimeControl
from kubelet_conformance.trace.recorder import Recorder
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_fakes.runtime.serving.server import RuntimeServer
from kubelet_reference.process.wall import WallClock

CONTROLS = frozenset(
    {"inject", "oom", "lose_track", "restart", "reboot", "set_conditions", "set_address", "set_file"}
    | {"add_image", "remove_image", "publish_image"}
    | {"lose_events", "delay_events", "reverse_events", "cut_events"}
)
"""What it can be made to do beyond the CRI; its pods have no addresses that anything could be sent to."""


class OwnFake:
    """A fake runtime that listens at `socket`."""

    def __init__(self, runtime: FakeRuntime, socket: Path, clock: WallClock) -> None:
        self._runtime = runtime
        self._clock = clock
        self.socket = socket

    def control(self, recorder: Recorder) -> FakeRuntimeControl:
        """The control of it; what it does by itself goes onto this record."""
        servers = PodServers(recorder, lambda _: False, lambda _: "", self._clock.sleep)
        return FakeRuntimeControl(self._runtime, servers, recorder)


class ScopedFakeControl:
    """The control in the hands of one scenario: what is there is what is in its own namespaces."""

    def __init__(self, control: FakeRuntimeControl, scope: Scope) -> None:
        self._control = control
        self._scope = scope

    def sandboxes(self) -> Sequence[RuntimeSandbox]:
        """The scenario's, oldest first."""
        return [each for each in self._control.sandboxes() if self._scope.holds(each.namespace)]

    def containers(self) -> Sequence[RuntimeContainer]:
        """The scenario's, oldest first."""
        return [each for each in self._control.containers() if self._scope.holds(each.sandbox.namespace)]

    def set_file(self, name: str, *, there: bool) -> None:
        """What `xf NAME` finds in the scenario's containers."""
        self._control.set_file(self._scope.file(name), there=there)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the control's other methods
        return getattr(self._control, name)


class _NodeFiles:
    """Files of this machine, as containers write them."""

    def append(self, path: str, content: bytes) -> None:
        """Add to a file, which is made if it is not there, as is its folder."""
        file = Path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as opened:
            opened.write(content)


@asynccontextmanager
async def own_fake(socket: Path) -> AsyncGenerator[OwnFake]:
    """One that listens for as long as the context is open."""
    clock = WallClock()
    core = RuntimeCore(epoch_ns=clock.wall_ns() - round(clock.monotonic() * 1e9))
    runtime = FakeRuntime(core, clock)
    # A kubelet counts restarts by the logs that it finds, and reads last words from files.
    core.store.logs.files = _NodeFiles()
    async with RuntimeServer(runtime, socket):
        yield OwnFake(runtime, socket, clock)
