"""The node that a scenario acts on: it creates pods, injects faults, waits, and reads what was observed."""

import json
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from kubelet_conformance.node.manifests import Json, pod
from kubelet_conformance.node.observations import SeenEvent
from kubelet_conformance.node.observer import LONG, Observer
from kubelet_conformance.node.pod_handle import PodHandle
from kubelet_conformance.targets.controls import SHUTDOWN_GOES_ON, ActiveFault, Effect, Fault, Target
from kubelet_conformance.trace.format.recorder import Item

HEALTH = "healthz/syncloop"
"""What a record of the kubelet's health is called: 1 where it answers 200, else 0."""


@dataclass(frozen=True, slots=True)
class _Setting:
    """A fault that set something to another value; healing it restores the old one."""

    heal: Callable[[], None]


class Node(Observer):
    """One node: a kubelet and a runtime under test. Whatever a scenario does here is part of the trace.

    Attributes:
        name: the node's name.
        runtime: the container runtime; a scenario may change what is there.
        api: the API server, as users and controllers use it.
        manifests: the manifest folder and URL.
        kubelet: the kubelet's process.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.name = target.node_name
        self.runtime = target.runtime
        self.api = target.api
        self.manifests = target.manifests
        self.kubelet = target.kubelet

    # Pods.

    def want(self, manifest: Json) -> PodHandle:
        """Create a pod at the API server, bound to this node."""
        stored = self.api.create(self._placed(manifest))["metadata"]
        # Where files stand in for an API server, the pod is one of the kubelet's own sources.
        annotations: Json = stored.get("annotations") or {}
        source = annotations.get("kubernetes.io/config.source", "api")
        return PodHandle(self, stored["namespace"], stored["name"], source, stored["uid"])

    def want_static(self, manifest: Json, *, file: str = "") -> PodHandle:
        """Write a manifest into the folder that the kubelet reads."""
        manifest = self._placed(manifest)
        metadata = manifest["metadata"]
        self.manifests.write(file or f"{metadata['name']}.yaml", json.dumps(manifest))
        return self.static(metadata["name"], metadata.get("namespace", "default"), "file")

    def serve(self, *manifests: Json) -> list[PodHandle]:
        """Let the manifest URL answer with these pods."""
        items = [self._placed(each) for each in manifests]
        self.manifests.serve(200, json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items}))
        return [
            self.static(each["metadata"]["name"], each["metadata"].get("namespace", "default"), "http")
            for each in items
        ]

    def static(self, name: str, namespace: str = "default", source: str = "file") -> PodHandle:
        """A static pod by the name in its manifest."""
        here = self.target.namespace(namespace)
        return PodHandle(self, here, f"{name}-{self.name.lower()}", source)

    def _placed(self, manifest: Json) -> Json:
        """The manifest in the namespace that stands for its own here."""
        metadata = manifest["metadata"]
        given = metadata.get("namespace", "default")
        here = self.target.namespace(given)
        return manifest if here == given else {**manifest, "metadata": {**metadata, "namespace": here}}

    async def run(self, *containers: Json, within: float = LONG, **fields: Any) -> PodHandle:  # noqa: ANN401 - see `pod`
        """Create the pod that `pod(...)` builds and wait until all its containers run, or have run."""
        made = self.want(pod(*containers, **fields))
        names = [each["name"] for each in containers] or ["c1"]
        await made.until_running(*names, or_ended=True, within=within)
        return made

    def events(self, reason: str) -> list[SeenEvent]:
        """The events with that reason, whatever they are about, in order."""
        return [each for each in self.observations.events if each.reason == reason]

    # Time.

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return self.target.now()

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        await self.target.sleep(seconds)

    # Faults.

    @contextmanager
    def _in_force(
        self, begin: Callable[[], ActiveFault], what: str, healed: str = "", **fields: object
    ) -> Generator[ActiveFault]:
        """Begin a fault, heal it when the context is left, and record both."""
        fault = begin()
        self.target.recorder.record("fault", what=what, **fields)
        try:
            yield fault
        finally:
            fault.heal()
            self.target.recorder.record("fault", what=f"healed: {healed or what}")

    def fault(  # noqa: PLR0913 - one keyword for each property of a fault
        self,
        call: str,
        *,
        effect: Effect | str = Effect.BEFORE,
        code: str = "",
        message: str = "injected",
        first: int = 1,
        times: int | None = None,
        pod: PodHandle | None = None,
        container: str | None = None,
        delay: float = 0,
    ) -> AbstractContextManager[ActiveFault]:
        """Let calls fail or be late while the context is open, or `times` times if that is less.

        A call is an rpc such as `StopContainer`, a probe or hook such as `httpGet /healthz`, or a request to
        the API server such as `patch pods/status`, whose `code` is HTTP's. That of an rpc is INTERNAL if not
        given.
        """
        effect = Effect(effect)
        if effect not in {Effect.BEFORE, Effect.AFTER}:
            code = ""
        elif call.isalpha():
            code = code or "INTERNAL"
        whom = {"uid": None if pod is None else pod.uid, "container": container}
        where = {name: value for name, value in whom.items() if value is not None}
        return self.inject(Fault(call, effect, code, message, first, times, delay, where=where))

    def inject(self, fault: Fault | str) -> AbstractContextManager[ActiveFault]:
        """Put a fault in force while the context is open: a value, or its text."""
        wanted = Fault.parse(fault) if isinstance(fault, str) else fault
        if wanted.is_of_api:
            return self._in_force(lambda: self.api.inject(wanted), f"the API server: {wanted}")
        return self._in_force(lambda: self.runtime.inject(wanted), str(wanted))

    def slow(self, rpc: str, seconds: float, **where: Any) -> AbstractContextManager[ActiveFault]:  # noqa: ANN401 - see `fault`
        """Let the replies of an rpc come late."""
        return self.fault(rpc, effect=Effect.NONE, delay=seconds, **where)

    def outage(self) -> AbstractContextManager[ActiveFault]:
        """Cut the kubelet off from the API server."""
        away = Fault("*", code="0")
        return self._in_force(
            lambda: self.api.inject(away), "the API server is away", "the API server is back"
        )

    def late_watch(self, seconds: float) -> AbstractContextManager[ActiveFault]:
        """Let the kubelet's watches report each change so much later."""
        late = Fault("watch *", Effect.NONE, delay=seconds)
        values = {"seconds": f"{seconds:g}"}
        return self._in_force(lambda: self.api.inject(late), "the watch is late", values=values)

    def forget_history(self) -> None:
        """Let the kubelet's watches break with 410 Gone: changes that they had not reported yet are lost."""
        self.target.recorder.record("fault", what="the watch is gone")
        self.api.forget_history()

    def without_node_object(self) -> AbstractContextManager[ActiveFault]:
        """Let the node's own object be missing at the API server."""

        def begin() -> ActiveFault:
            stored = self.api.remove("Node", "", self.name)
            own = {"apiVersion": "v1", "kind": "Node", "metadata": _identity(stored)}
            return _Setting(lambda: self.api.put("Node", own))

        return self._in_force(begin, "the node's object is missing", "the node's object is there")

    def not_ready(self, *, runtime: bool = True, network: bool = True) -> AbstractContextManager[ActiveFault]:
        """Let the runtime's Status say that it, or its network, is not ready."""

        def begin() -> ActiveFault:
            self.runtime.set_conditions(runtime_ready=runtime, network_ready=network)
            return _Setting(self.runtime.set_conditions)

        return self._in_force(begin, f"Status: runtime ready {runtime}, network ready {network}", "Status")

    def addresses(self, given: str) -> AbstractContextManager[ActiveFault]:
        """Let sandboxes get this text as their address, or none if it is empty."""

        def begin() -> ActiveFault:
            self.runtime.set_address(given)
            return _Setting(lambda: self.runtime.set_address(None))

        return self._in_force(begin, f"addresses: {given!r}", "addresses")

    def damaged(self, path: str) -> AbstractContextManager[ActiveFault]:
        """Let nothing at this path of the disk, or below, be read, written or removed."""
        fails, works = f"the disk fails at {path}", f"the disk works at {path}"
        return self._in_force(lambda: self.target.machine.damage(path), fails, works)

    @contextmanager
    def tolerant_api(self) -> Generator[None]:
        """Let the API server store what it would refuse, as an older one may have done."""
        tolerance = self.api.tolerate()
        try:
            yield
        finally:
            tolerance.heal()

    @contextmanager
    def pressure(self, **signals: str) -> Generator[None]:
        """Let the machine be short of something: `memory_available="50Mi"`, `nodefs_available="5%"`."""
        named = {name.replace("_", ".", 1): value for name, value in signals.items()}
        for signal, available in named.items():
            self.target.machine.press(signal, available)
        try:
            yield
        finally:
            for signal in named:
                self.target.machine.relieve(signal)

    async def scrape(self) -> dict[str, float]:
        """Read the counters of the kubelet's metrics, by name and labels, and put them on the record."""
        values = counters(await self.kubelet.metrics())
        self.target.recorder.record("metrics", values=values)
        return values

    async def ask_health(self) -> bool:
        """Ask the kubelet for the health of its loop, and put the answer on the record, if there is one."""
        healthy = await self.kubelet.healthy()
        if not self.kubelet.running:
            return False
        self.target.recorder.record("metrics", values={HEALTH: float(healthy)})
        return healthy

    def shut_down(self) -> None:
        """Announce the shutdown of the machine, which then never comes."""
        self.target.machine.shut_down()

    def goes_down(self) -> bool:
        """Whether nothing holds up the shutdown that was announced."""
        seen = (each for each in self.target.recorder.records if isinstance(each, Item))
        return any(each.fields.get("what") == SHUTDOWN_GOES_ON for each in seen)

    async def restart_kubelet(self, *, down: float = 1.0) -> None:
        """Kill the kubelet, leave it down for `down` seconds, and start it again unless a fault has."""
        await self.kubelet.kill()
        await self.wait(down)
        if not self.kubelet.running:
            await self.kubelet.start()


def counters(text: str) -> dict[str, float]:
    """The counters in metrics as Prometheus writes them."""
    samples = (line.rpartition(" ") for line in text.splitlines() if line and line[0] != "#")
    return {name: float(value) for name, _, value in samples if name.partition("{")[0].endswith("_total")}


def _identity(stored: Json) -> Json:
    """The metadata that an object is created with."""
    return {name: value for name, value in stored["metadata"].items() if name in {"name", "labels"}}
