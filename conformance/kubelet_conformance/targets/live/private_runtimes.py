"""Runtimes of our own: a containerd for a run, and a fake at a socket for each life of a node."""

import os
import socket
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.containerd import (
    IMAGES,
    CannotRunError,
    PrivateContainerd,
    RemovalError,
    StartError,
)
from kubelet_conformance.targets.containerd.host_commands import ToolError
from kubelet_conformance.targets.controls import RUNTIME_CONTROLS, RuntimeContainer, RuntimeSandbox
from kubelet_conformance.targets.cri_endpoint import Services
from kubelet_conformance.targets.in_process.pod_servers import PodServers
from kubelet_conformance.targets.in_process.runtime_control import FakeRuntimeControl
from kubelet_conformance.targets.live.namespaces import Scope
from kubelet_conformance.targets.live.pod_listeners import ListeningPodServers
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes.faults import Faults
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_fakes.runtime.logs import NodeFiles
from kubelet_fakes.runtime.serving.server import RuntimeServer
from kubelet_fakes.runtime.serving.streams import StreamServer
from kubelet_fakes.runtime.settings import RuntimeSettings
from kubelet_reference.server.host.system_clock import WallClock

CONTAINERD_CONTROLS = frozenset({"set_file", "add_image", "publish_image"})
"""What a containerd can be made to do beyond the CRI."""
_CALL_SECONDS = 30.0
_NETWORKS, _CLAIMED_PORT = 254, 1
"""Half of a loopback address is a pod network; who has bound this port of its last address has it."""
FAKE_CONTROLS = RUNTIME_CONTROLS - {"remove_cgroup"}
"""What a fake can be made to do; its pods have no cgroups."""


class OwnContainerd(PrivateContainerd):
    """A private containerd that remembers what scenarios did to its images and registry."""

    def __init__(self, images: tuple[str, ...] = IMAGES) -> None:
        super().__init__(images)
        self._images: frozenset[str] | None = None
        self._unpublished: set[str] = set()

    def publish_image(self, name: str, *, there: bool = True) -> None:
        """Whether the registry has it."""
        super().publish_image(name, there=there)
        (self._unpublished.discard if there else self._unpublished.add)(name)

    async def restore(self, services: Services) -> None:
        """Take away the images that came since the first time, and publish what is no longer."""
        for name in sorted(self._unpublished):
            self.publish_image(name)
        found = await services.ListImages(cri.ListImagesRequest(), timeout=_CALL_SECONDS)
        there = frozenset(each.id for each in found.images)
        if self._images is None:
            self._images = there
        for image in sorted(there - self._images):
            request = cri.RemoveImageRequest(image=cri.ImageSpec(image=image))
            await services.RemoveImage(request, timeout=_CALL_SECONDS)


@asynccontextmanager
async def own_containerd(images: tuple[str, ...] = IMAGES) -> AsyncGenerator[OwnContainerd]:
    """One that runs for as long as the context is open; raises `TargetError` where none can."""
    containerd = OwnContainerd(images)
    try:
        await containerd.start()
    except (CannotRunError, StartError, ToolError) as error:
        raise TargetError(f"no containerd can be started here: {error}") from None
    try:
        yield containerd
    finally:
        try:
            containerd.stop()
        except RemovalError as error:
            raise TargetError(f"the private containerd cannot be removed: {error}") from None


class OwnFake:
    """A fake runtime that listens at `socket`."""

    def __init__(self, runtime: FakeRuntime, socket: Path, clock: WallClock) -> None:
        self._runtime = runtime
        self._clock = clock
        self.socket = socket

    @property
    def faults(self) -> Faults:
        """Those of its calls."""
        return self._runtime.faults

    def write_below(self, root: Path) -> None:
        """Let containers write files: a kubelet counts restarts by their logs, and reads last words."""
        self._runtime.core.store.logs.files = NodeFiles(root)

    def servers(self, recorder: Recorder, node: str) -> ListeningPodServers:
        """The servers in its pods; who asks them goes onto this record."""
        return ListeningPodServers(recorder, self._runtime, self._clock.sleep, node)

    def control(self, recorder: Recorder, servers: PodServers) -> FakeRuntimeControl:
        """The control of it; what it does by itself goes onto this record."""
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


@asynccontextmanager
async def own_fake(path: Path) -> AsyncGenerator[OwnFake]:
    """One that listens for as long as the context is open."""
    clock = WallClock()
    epoch_ns = clock.wall_ns() - round(clock.monotonic() * 1e9)
    with _pod_network() as network:
        runtime = FakeRuntime(RuntimeCore(RuntimeSettings(pod_network=network), epoch_ns=epoch_ns), clock)
        async with StreamServer(runtime), RuntimeServer(runtime, path):
            yield OwnFake(runtime, path, clock)


@contextmanager
def _pod_network() -> Generator[str]:
    """The first half of loopback addresses that no other fake of this machine gives to pods."""
    first = os.urandom(1)[0]
    for number in range(first, first + _NETWORKS):
        network = f"127.{number % _NETWORKS + 1}"
        with socket.socket() as claim:
            try:
                claim.bind((f"{network}.255.254", _CLAIMED_PORT))
            except OSError:
                continue
            yield network
            return
    raise TargetError("no loopback network is left for pods: 127.1.0.0 to 127.254.0.0 are in use")
