"""A node on virtual time with nothing recorded: reference kubelet, fake runtime, fake API server."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

import grpc

from kubelet_conformance.targets.api_adapter import KubeletApi, WorldApi
from kubelet_conformance.trace.recorder import Recorder
from kubelet_fakes.api import ApiCore
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.web import MemoryUrl
from kubelet_reference.clocks import LoopClock, SeededChance
from kubelet_reference.kubelet import Kubelet, Ports
from kubelet_reference.parts import Parts
from kubelet_reference.ports import FetchError
from kubelet_reference.settings import Settings
from kubelet_reference.versions import Behaviour

if TYPE_CHECKING:
    from kubelet_fakes.api import Change
    from kubelet_reference.ports import ImageService, PodEvent, RuntimeService

__all__ = ("BareNode", "Call", "Watched", "pod", "replay")

EPOCH_NS = 1_767_225_600_000_000_000
NODE = "node-1"
ROOM = {"max_pods": 100_000, "cpu_millicores": 1 << 30, "memory_bytes": 1 << 50}
"""Admission is to refuse nothing."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the kubelet made, and the moment; `failed` tells that it was answered with an error."""

    t: float
    rpc: str
    request: Any
    failed: bool = False


class Watched:
    """Stands in for the runtime and keeps each call."""

    def __init__(self, runtime: FakeRuntime, clock: LoopClock) -> None:
        self.calls: list[Call] = []
        self._runtime = runtime
        self._clock = clock

    def __getattr__(self, rpc: str) -> Any:
        method = getattr(self._runtime, rpc)

        async def through(request: Any, *, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - as the stub
            place = len(self.calls)
            call = Call(self._clock.monotonic(), rpc, request)
            self.calls.append(call)
            try:
                return await method(request, timeout=timeout)
            except grpc.RpcError:
                self.calls[place] = Call(call.t, rpc, request, failed=True)
                raise

        setattr(self, rpc, through)
        return through


async def replay(calls: list[Call]) -> int:
    """Make the same calls on a fresh runtime, at the same moments; how many failed."""
    clock = LoopClock(EPOCH_NS)
    runtime = FakeRuntime(RuntimeCore(epoch_ns=EPOCH_NS), clock)
    methods = {call.rpc: getattr(runtime, call.rpc) for call in calls}
    failed, now = 0, 0.0
    for call in calls:
        if call.t > now:
            await clock.sleep(call.t - now)
            now = call.t
        try:
            await methods[call.rpc](call.request, timeout=None)
        except grpc.RpcError:
            failed += 1
    return failed


class BareNode:
    """One life of a node; `calls` is what was called, if `watch` was asked for. Use it as a context."""

    def __init__(self, *, watch: bool = False) -> None:
        self.clock = LoopClock(EPOCH_NS)
        self.core = RuntimeCore(epoch_ns=EPOCH_NS)
        self.runtime = FakeRuntime(self.core, self.clock)
        watched = Watched(self.runtime, self.clock)
        self.calls = watched.calls
        self._called = watched if watch else self.runtime
        self._api = ApiCore(self.clock.wall_ns)
        self._api.on_change.append(self._heard)
        self._kubelet_api = KubeletApi(self._api, Recorder(self.clock.monotonic))
        self._world = WorldApi(self._api, self._kubelet_api.connection, NODE)
        self._world.put("Node", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        self.phases: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        ports = Ports(
            clock=self.clock,
            chance=SeededChance(1),
            runtime=cast("RuntimeService", self._called),
            images=cast("ImageService", self._called),
            api=self._kubelet_api,
            events=self,
            disk=MemoryDisk(),
            url=MemoryUrl(FetchError),
        )
        settings = Settings(node_name=NODE, **cast("Any", ROOM))
        self._task = asyncio.create_task(Kubelet(ports, settings, Behaviour(), Parts()).run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def emit(self, event: PodEvent) -> None:
        """Take an event of the kubelet, and forget it."""

    def create(self, manifest: dict[str, Any]) -> None:
        """Want a pod."""
        self._world.create(manifest)

    def delete(self, name: str) -> None:
        """Want a pod no longer."""
        self._world.delete("default", name)

    async def until(self, phase: str, names: list[str]) -> None:
        """Wait until all these pods have the phase, "" is gone."""
        left = dict.fromkeys(names)
        while left:
            for name in [name for name in left if self.phases.get(name, "") == phase]:
                del left[name]
            if left:
                self._changed.clear()
                await self._changed.wait()
                await self.clock.sleep(1)

    async def until_clean(self) -> None:
        """Wait until the runtime has no records left."""
        while self.core.store.sandboxes or self.core.store.containers:
            await self.clock.sleep(1)

    def _heard(self, change: Change) -> None:
        if change.resource != "pods":
            return
        name = change.object["metadata"]["name"]
        if change.type == "DELETED":
            self.phases.pop(name, None)
        else:
            self.phases[name] = change.object.get("status", {}).get("phase", "")
        self._changed.set()


def pod(name: str, *command: str) -> dict[str, Any]:
    """A pod of one container that runs the command."""
    container = {"name": "main", "image": "img:1", "command": list(command) or ["run"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 5},
    }
