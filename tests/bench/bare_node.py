"""A node on virtual time with nothing written: reference kubelet, fake runtime, fake API server."""

import asyncio
from dataclasses import dataclass
from typing import Any, Self, TypeAlias, cast

import grpc

from kubelet_conformance.targets.in_process.api_server import KubeletApi, RecordedApi
from kubelet_conformance.targets.in_process.recorded_runtime import Tap
from kubelet_conformance.trace.format.recorder import Failed, RecordedCall, RecordedReply, Recorder, Seen
from kubelet_fakes.api import ApiCore, ApiStatusError, Change, FrozenDict, Request
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.web import MemoryUrl
from kubelet_reference.kubelet.kubelet import Kubelet
from kubelet_reference.kubelet.parts import Parts
from kubelet_reference.server.host.clock import LoopClock, SeededRandom
from kubelet_reference.server.host.pod_network import RealPodNetwork
from kubelet_reference.util.ports import FetchError, ImageService, PodEvent, Ports, RuntimeService
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

EPOCH_NS = 1_767_225_600_000_000_000
NODE = "node-1"
ROOM = {"max_pods": 100_000, "cpu_millicores": 1 << 30, "memory_bytes": 1 << 50}
"""Admission is to refuse nothing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to the API server, its sender and its moment."""

    t: float
    request: Request


Made: TypeAlias = RecordedCall | Asked
"""A call of the runtime, or a request to the API server."""


class _HeardApi(ApiCore):
    """Takes down every request; a list or a watch is none that changes anything."""

    def __init__(self, clock: LoopClock, made: list[Made]) -> None:
        super().__init__(clock.wall_ns)
        self._clock = clock
        self._made = made

    def handle(self, request: Request) -> FrozenDict:
        self._made.append(Asked(self._clock.monotonic(), request))
        return super().handle(request)


async def replay(made: list[Made]) -> int:
    """Make the same calls on fresh fakes, at the same moments, those of the runtime recorded.

    Returns how many failed.
    """
    clock = LoopClock(EPOCH_NS)
    runtime = Tap(FakeRuntime(RuntimeCore(epoch_ns=EPOCH_NS), clock), Recorder(clock.monotonic))
    api = ApiCore(clock.wall_ns)
    methods = {call.rpc: getattr(runtime, call.rpc) for call in made if isinstance(call, RecordedCall)}
    failed, now = 0, 0.0
    for call in made:
        if call.t > now:
            await clock.sleep(call.t - now)
            now = call.t
        try:
            if isinstance(call, RecordedCall):
                await methods[call.rpc](call.request, timeout=None)
            else:
                api.handle(call.request)
        except (grpc.RpcError, ApiStatusError):
            failed += 1
    return failed


class BareNode:
    """One life of a node. Use it as a context.

    With `record` the calls of the runtime are kept as messages, as in every scenario's life; with `watch`,
    `made` is everything that was asked of the runtime and of the API server, in order.
    """

    def __init__(self, *, record: bool = False, watch: bool = False) -> None:
        self.clock = LoopClock(EPOCH_NS)
        self.core = RuntimeCore(epoch_ns=EPOCH_NS)
        self.runtime = FakeRuntime(self.core, self.clock)
        self._disk = self.core.store.logs.files = MemoryDisk()
        self.made: list[Made] = []
        self._recorder = Recorder(self.clock.monotonic)
        if watch:
            self._recorder.listeners.append(self._take_down)
        self._called = Tap(self.runtime, self._recorder) if record or watch else self.runtime
        self._api = _HeardApi(self.clock, self.made) if watch else ApiCore(self.clock.wall_ns)
        self._api.on_change.append(self._received)
        recorded = RecordedApi(self._api, self._recorder, NODE)
        self._kubelet_api = KubeletApi(recorded.connection)
        self._world = recorded.world
        self._world.put("Node", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        self.phases: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        ports = Ports(
            clock=self.clock,
            random=SeededRandom(1),
            runtime=cast("RuntimeService", self._called),
            images=cast("ImageService", self._called),
            api=self._kubelet_api,
            events=self,
            disk=self._disk,
            url=MemoryUrl(FetchError),
            http=RealPodNetwork(),
            network=RealPodNetwork(),
        )
        settings = Settings(node_name=NODE, **cast("Any", ROOM))
        self._task = asyncio.create_task(Kubelet(ports, settings, Behaviour.of(), Parts()).run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def failures(self) -> int:
        """How many calls of the runtime were answered with an error."""
        replies = (seen for seen in self._recorder.records if isinstance(seen, RecordedReply))
        return sum(isinstance(reply.outcome, Failed) for reply in replies)

    def _take_down(self, seen: Seen) -> None:
        if isinstance(seen, RecordedCall):
            self.made.append(seen)

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

    def _received(self, change: Change) -> None:
        if change.resource != "pods":
            return
        name = change.object["metadata"]["name"]
        if change.type == "DELETED":
            self.phases.pop(name, None)
        else:
            self.phases[name] = change.object.get("status", {}).get("phase", "")
        self._changed.set()


def pod(name: str, *command: str, init: bool = False) -> dict[str, Any]:
    """A pod of one container that runs the command; `init` puts an init container of a second before it."""
    spec: dict[str, Any] = {"containers": [_container("main", *command)], "terminationGracePeriodSeconds": 5}
    if init:
        spec["initContainers"] = [_container("init", "exit", "0", "1")]
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(name: str, *command: str) -> dict[str, Any]:
    return {"name": name, "image": "img:1", "command": list(command) or ["run"]}
