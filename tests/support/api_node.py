"""A kubelet in this process whose API server is a fake one on loopback, beside a fake runtime."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fixed_random import FixedRandom
from kubelet_world import EPOCH_NS, MANIFESTS, NODE, READS, manifest

from kubelet_fakes.api import ApiCore, Connection
from kubelet_fakes.api.connection import Answer
from kubelet_fakes.api_server import ApiServer
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_fakes.web import MemoryUrl
from kubelet_reference.kubelet.kubelet import Kubelet
from kubelet_reference.server.api_client.api_link import linked
from kubelet_reference.server.api_client.kubeconfig import read_kubeconfig
from kubelet_reference.server.api_client.node_object import NodeFacts
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.server.host.pod_network import RealPodNetwork
from kubelet_reference.util.ports import FetchError, PodEvent, Ports
from kubelet_reference.util.settings import Settings

Json = dict[str, Any]
WAITED_IN_VAIN_SECONDS = 1000.0
_FACTS = NodeFacts(NODE, "10.0.0.1", 32, "fake://1", 10250, 8000, 1 << 30, 110, "/", {})


class ApiNode:
    """The node, what the world sees at the API server, and what the kubelet asked of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = LoopClock(EPOCH_NS)
        self.core = ApiCore(self.clock.wall_ns)
        self.connection = Connection(self.core)
        self.server = ApiServer(self.connection)
        self.disk = MemoryDisk()
        self.disk.make_folder(MANIFESTS)
        self.runtime = FakeRuntime(RuntimeCore(epoch_ns=EPOCH_NS), self.clock)
        self.calls: list[str] = []
        """The runtime's calls that changed something."""
        self.requests: list[str] = []
        """Verb, resource and name of each request, and its status where that is an error."""
        self._changed = asyncio.Event()
        self.core.on_change.append(lambda _: self._changed.set())
        self.connection.on_answer.append(self._answered)

    def _answered(self, answer: Answer) -> None:
        asked = answer.request
        what = f"{asked.resource}/{asked.subresource}".rstrip("/")
        code = str(answer.code) if answer.error is not None else ""
        self.requests.append(" ".join(word for word in (asked.verb, what, asked.name, code) if word))
        self._changed.set()

    def __getattr__(self, rpc: str) -> Any:
        """The runtime, as the kubelet calls it."""
        if not rpc.startswith(READS):
            self.calls.append(rpc)
        return getattr(self.runtime, rpc)

    def create(self, name: str = "web", **spec: Any) -> None:
        """Create a pod bound to the node."""
        self.core.create("pods", manifest(name, **{"nodeName": NODE, **spec}))

    def write(self, name: str) -> None:
        """Put a manifest into the folder."""
        self.disk.write(f"{MANIFESTS}/{name}.yaml", json.dumps(manifest(name)).encode())

    def found(self, resource: str, name: str) -> Json:
        """An object of the API server; empty where there is none."""
        objects, _ = self.core.list_objects(resource, fields={"metadata.name": name})
        return dict(objects[0]) if objects else {}

    def uid(self, name: str) -> str:
        """The UID of a pod, "" where there is none."""
        return str(self.found("pods", name).get("metadata", {}).get("uid", ""))

    def phase(self, name: str) -> str:
        """The phase of a pod; "gone" where there is none."""
        pod = self.found("pods", name)
        return pod.get("status", {}).get("phase", "") if pod else "gone"

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until it holds, which is looked at after each request and change."""
        async with asyncio.timeout(WAITED_IN_VAIN_SECONDS):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def until_phase(self, phase: str, name: str = "web") -> None:
        """Wait until a pod has this phase."""
        await self.until(lambda: self.phase(name) == phase)

    @asynccontextmanager
    async def kubelet(self, **settings: Any) -> AsyncGenerator[None]:
        """A life of the kubelet, as long as the context is open."""
        config = self.folder / "kubeconfig"
        config.write_text(self.server.kubeconfig(), encoding="utf-8")
        access, random = read_kubeconfig(str(config)), FixedRandom()
        async with linked(access, self.clock, random, NODE, _NoLog()) as link:
            runtime: Any = self
            ports = Ports(
                self.clock,
                random,
                runtime,
                runtime,
                link.events,
                self.disk,
                MemoryUrl(FetchError),
                RealPodNetwork(),
                RealPodNetwork(),
                api=link.server,
                tokens=link.tokens,
            )
            given: Json = {"node_name": NODE, "static_pod_path": MANIFESTS, **settings}
            kubelet = Kubelet(ports, Settings(**given))
            running = asyncio.create_task(kubelet.run())
            beside = asyncio.create_task(link.run(kubelet, _FACTS))
            try:
                yield
            finally:
                await kubelet.stop()
                beside.cancel()
                await asyncio.wait({running, beside})
            assert running.result() is None
            assert beside.cancelled()


class _NoLog:
    def emit(self, event: PodEvent) -> None:
        """Events go to the API server alone."""


@asynccontextmanager
async def api_node(folder: Path) -> AsyncGenerator[ApiNode]:
    """A node whose API server listens, with a kubelet that runs."""
    node = ApiNode(folder)
    async with node.server, node.kubelet():
        yield node
