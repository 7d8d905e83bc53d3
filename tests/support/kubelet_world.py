"""A whole node in memory and on virtual time: the kubelet, a fake runtime, a fake API server, a disk."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

from fixed_random import FixedRandom

from kubelet_conformance.targets.in_process.api_server import KubeletApi, RecordedApi
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes.api import ApiCore
from kubelet_fakes.clock import run
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_fakes.web import MemoryUrl
from kubelet_reference.kubelet.kubelet import Kubelet
from kubelet_reference.kubelet.parts import Parts
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.server.host.pod_network import RealPodNetwork
from kubelet_reference.util.ports import FetchError, PodEvent, Ports
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

Json = dict[str, Any]

EPOCH_NS = 1_767_225_600 * 10**9
NODE = "node"
MANIFESTS = "/manifests"
READS = ("List", "Status", "Version", "RuntimeConfig", "ImageStatus", "PodSandboxStatus", "ContainerStatus")


class Tap:
    """The runtime, with each call written down: its name, what it is about, and when."""

    def __init__(self, runtime: FakeRuntime, clock: LoopClock) -> None:
        self._runtime = runtime
        self._clock = clock
        self.calls: list[tuple[float, str, Any]] = []

    def __getattr__(self, rpc: str) -> Any:
        call = getattr(self._runtime, rpc)

        async def tapped(request: Any, *, timeout: float | None = None) -> Any:  # noqa: ASYNC109
            self.calls.append((self._clock.monotonic(), rpc, request))
            return await call(request, timeout=timeout)

        return tapped

    def changes(self, since: float = 0) -> list[str]:
        """The names of the calls that are no mere reading, in order."""
        return [rpc for at, rpc, _ in self.calls if at >= since and not rpc.startswith(READS)]


class World:
    """The node; `start` begins a life of its kubelet."""

    def __init__(self, parts: Parts | None, version: str, settings: Json) -> None:
        self.clock = LoopClock(EPOCH_NS)
        self.core = RuntimeCore(epoch_ns=EPOCH_NS)
        self.runtime = FakeRuntime(self.core, self.clock)
        self.tap = Tap(self.runtime, self.clock)
        self.disk = MemoryDisk()
        self.core.store.logs.files = self.disk
        self.disk.make_folder(MANIFESTS)
        api = ApiCore(self.clock.wall_ns)
        self.record = Recorder(self.clock.monotonic)
        recorded = RecordedApi(api, self.record, NODE)
        self._kubelet_api = KubeletApi(recorded.connection)
        self.api = recorded.world
        self.api.put("Node", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        self.stats: Any = None
        self.events: list[PodEvent] = []
        self._parts = parts or Parts()
        self._behaviour = Behaviour.of(version)
        changes: Json = {"node_name": NODE, "static_pod_path": MANIFESTS, **settings}
        self._settings = Settings(**changes)
        self._lives = 0
        self._task: asyncio.Task[None] | None = None

    def emit(self, event: PodEvent) -> None:
        """Keep an event."""
        self.events.append(event)

    async def start(self) -> Kubelet:
        """Begin a life of the kubelet."""
        self._lives += 1
        runtime: Any = self.tap
        ports = Ports(
            clock=self.clock,
            random=FixedRandom(f"life{self._lives}-"),
            runtime=runtime,
            images=runtime,
            events=self,
            disk=self.disk,
            url=MemoryUrl(FetchError),
            http=RealPodNetwork(),
            network=RealPodNetwork(),
            api=self._kubelet_api,
            stats=self.stats,
        )
        self.kubelet = Kubelet(ports, self._settings, self._behaviour, self._parts)
        self._task = asyncio.create_task(self.kubelet.run(), name="kubelet")
        await self.clock.sleep(0)
        return self.kubelet

    async def crash(self) -> None:
        """End the kubelet in the middle of whatever it does."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])
        self.raise_if_failed()

    async def end(self) -> None:
        """End what is still going on."""
        if self.is_running:
            await self.crash()

    async def stop(self) -> None:
        """Ask the kubelet to end."""
        await self.kubelet.stop()
        assert self._task is not None
        await self._task

    def raise_if_failed(self) -> None:
        """Raise what made the kubelet end by itself."""
        if self._task is not None and self._task.done() and not self._task.cancelled():
            error = self._task.exception()
            if error is not None:
                raise error

    async def let(self, seconds: float) -> None:
        """Let time go by."""
        await self.clock.sleep(seconds)
        self.raise_if_failed()

    @property
    def is_running(self) -> bool:
        """Whether the kubelet runs."""
        return self._task is not None and not self._task.done()

    def changes(self, since: float = 0) -> list[str]:
        """The calls that changed something at the runtime."""
        return self.tap.changes(since)

    def calls(self, rpc: str) -> list[Any]:
        """The requests of one kind of call."""
        return [request for _, name, request in self.tap.calls if name == rpc]

    def write(self, name: str, **changes: Any) -> None:
        """Put a manifest into the folder."""
        self.disk.write(f"{MANIFESTS}/{name}.yaml", json.dumps(manifest(name, **changes)).encode())

    def unlink(self, name: str) -> None:
        """Take a manifest out of the folder."""
        self.disk.remove(f"{MANIFESTS}/{name}.yaml")

    def reasons(self) -> list[str]:
        """The reasons of the events so far."""
        return [event.reason for event in self.events]

    def phase(self, name: str) -> str:
        """The phase that the API server shows."""
        found = self.api.get("default", name)
        return "" if found is None else found.get("status", {}).get("phase", "")


def manifest(name: str = "web", *, command: str = "run", uid: str | None = None, **spec: Any) -> Json:
    """A pod with one container that the fake runtime plays by its command."""
    container = {"name": "app", "image": "registry.example/app:1", "command": command.split()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **({"uid": uid} if uid else {})},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 5, **spec},
    }


def in_world(
    work: Callable[[World], Coroutine[Any, Any, None]],
    *,
    parts: Parts | None = None,
    version: str = "1.32",
    **settings: Any,
) -> None:
    """Do this work in a world of its own, and see that it leaves no task behind."""

    async def main() -> None:
        world = World(parts, version, settings)
        await work(world)
        await world.end()
        left = [repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        # The runtime lives on: what it has begun to execute goes on there.
        assert [task for task in left if "FakeRuntime" not in task] == []

    run(main(), limit_seconds=100_000)
