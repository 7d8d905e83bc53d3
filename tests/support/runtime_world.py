"""The runtime side of the reference kubelet on the fake runtime, and everything that it did, in order."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, cast

from fixed_random import FixedRandom
from lightkube.models.core_v1 import Pod

from kubelet_fakes.clock import LoopClock, run
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_reference.api import pods
from kubelet_reference.api.events import Recorder
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.api.records import ContainerRecord, PodRecords
from kubelet_reference.api.results import ProbeOutcome
from kubelet_reference.api.sync_result import SyncResult
from kubelet_reference.cri.client import CriClient
from kubelet_reference.kuberuntime.components import RuntimeDeps, RuntimeParts, build_runtime_side
from kubelet_reference.kuberuntime.pod_files import PodFiles
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.server.host.pod_network import RealPodNetwork
from kubelet_reference.util.ports import ApiServer, HttpGet, NodeStats, PodEvent
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

READS = frozenset(
    {
        "ListPodSandbox",
        "ListContainers",
        "PodSandboxStatus",
        "ContainerStatus",
        "ImageStatus",
        "Version",
        "Status",
    }
)


@dataclass(frozen=True)
class Call:
    """A call of the runtime, when it began, and its deadline."""

    rpc: str
    request: Any
    t: float
    timeout: float | None


class RecordingRuntime(FakeRuntime):
    """The fake runtime, with a list of its calls."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__(RuntimeCore(), clock)
        self.clock = clock
        self.calls: list[Call] = []
        self.instances: dict[str, str] = {}
        """Name and attempt of each container, by id."""

    async def make_call(
        self,
        rpc: str,
        handler: Any,
        request: Any,
        timeout: float | None,  # noqa: ASYNC109 - the deadline that the caller sets
    ) -> Any:
        """As a runtime, and put on the record."""
        self.calls.append(Call(rpc, request, self.clock.monotonic(), timeout))
        reply = await super().make_call(rpc, handler, request, timeout)
        if rpc == "CreateContainer":
            made = request.config.metadata
            self.instances[reply.container_id] = f"{made.name}#{made.attempt}"
        return reply


class EventList:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[PodEvent] = []

    def emit(self, event: PodEvent) -> None:
        """Keep the event."""
        self.events.append(event)


class RuntimeWorld:
    """A node's runtime side; make it inside the running loop."""

    def __init__(
        self,
        *,
        version: str = "1.32",
        parts: RuntimeParts | None = None,
        settings: Settings | None = None,
        api: ApiServer | None = None,
        http: HttpGet | None = None,
        stats: NodeStats | None = None,
    ) -> None:
        self.clock = LoopClock()
        self.runtime = RecordingRuntime(self.clock)
        self.disk = MemoryDisk()
        self.sink = EventList()
        self.metrics = Metrics()
        self.probes: dict[str, ProbeOutcome] = {}
        self.startup: dict[str, ProbeOutcome] = {}
        self.ending: list[str] = []
        self.gone: list[str] = []
        self.sources_ready = True
        self.result = SyncResult()
        self.settings = settings or Settings()
        self.behaviour = Behaviour.of(version, self.settings.feature_gates)
        services: Any = self.runtime
        self.client = CriClient(services, services, self.settings, self.metrics)
        self.tools = RuntimeTools(
            client=self.client,
            files=PodFiles(self.disk, FixedRandom(), self.settings, self.behaviour),
            recorder=Recorder(self.sink),
            metrics=self.metrics,
            clock=self.clock,
            settings=self.settings,
            behaviour=self.behaviour,
        )
        deps = RuntimeDeps(
            disk=self.disk,
            api=api,
            http=http or RealPodNetwork(),
            liveness=self.probes.get,
            startup=self.startup.get,
            is_ending=lambda uid: uid in self.ending,
            should_content_be_removed=lambda uid: uid in self.gone,
            sources_ready=lambda: self.sources_ready,
            stats=stats,
            watch_pod=self._watch,
        )
        self.watched: dict[tuple[str, str], Callable[[PodRecords], bool]] = {}
        self.side = build_runtime_side(self.tools, deps, parts)
        self.manager = self.side.manager

    def _watch(self, uid: str, name: str, met: Callable[[PodRecords], bool]) -> None:
        """Keep what a pod is to be watched for."""
        self.watched[uid, name] = met

    async def records(self, pod: Pod) -> PodRecords:
        """What the runtime has of the pod."""
        return await self.manager.pod_records(pods.uid(pod), pods.name(pod), pods.namespace(pod))

    async def sync(self, pod: Pod) -> SyncResult:
        """One pass, on records as they are now; its result is kept."""
        self.result = await self.manager.sync_pod(pod, await self.records(pod))
        return self.result

    async def kill(self, pod: Pod, grace: int | None = None) -> SyncResult:
        """Stop the whole pod."""
        return await self.manager.kill_pod(pod, await self.records(pod), grace)

    async def newest(self, pod: Pod, container: str) -> ContainerRecord:
        """The newest instance of a container."""
        found = (await self.records(pod)).newest(container)
        assert found is not None
        return found

    async def exits(self, pod: Pod, container: str, code: int) -> None:
        """Let the container end by itself."""
        self.runtime.exit((await self.newest(pod, container)).id, code)

    async def sandbox_dies(self, pod: Pod) -> None:
        """Let the newest sandbox die; its containers go on."""
        self.runtime.kill_sandbox((await self.records(pod)).sandboxes[0].id)

    @property
    def done(self) -> list[str]:
        """The calls that change something, in words."""
        return [text for text in map(self._text, self.runtime.calls) if text]

    def forget(self) -> None:
        """Begin the list of calls and events anew."""
        self.runtime.calls.clear()
        self.sink.events.clear()

    def calls(self, rpc: str) -> list[Call]:
        """The calls of this kind."""
        return [call for call in self.runtime.calls if call.rpc == rpc]

    def events(self, *reasons: str) -> list[str]:
        """The messages of the events of these reasons; of all, with the reason before it, without any."""
        if not reasons:
            return [f"{event.reason}: {event.message}" for event in self.sink.events]
        return [event.message for event in self.sink.events if event.reason in reasons]

    def _text(self, call: Call) -> str:
        request = call.request
        name = self.runtime.instances.get(getattr(request, "container_id", ""), "")
        match call.rpc:
            case rpc if rpc in READS:
                about = ""
            case "RunPodSandbox":
                about = f"#{request.config.metadata.attempt}"
            case "CreateContainer":
                about = f"{request.config.metadata.name}#{request.config.metadata.attempt}"
            case "StopContainer":
                about = f"{name} {request.timeout}"
            case "ExecSync":
                about = f"{name} {' '.join(request.cmd)}"
            case "PullImage":
                about = request.image.image
            case _:
                about = name
        return "" if call.rpc in READS else f"{call.rpc} {about}".strip()


def in_runtime_world(
    work: Callable[[RuntimeWorld], Coroutine[Any, Any, None]],
    *,
    version: str = "1.32",
    settings: Settings | None = None,
) -> None:
    """Do this work in a runtime world of its own, in virtual time."""

    async def main() -> None:
        await work(RuntimeWorld(version=version, settings=settings))

    run(main())


def a_container(name: str = "c1", *words: str, **fields: Any) -> dict[str, Any]:
    """A container of a manifest; it runs until it is stopped if no words say otherwise."""
    return {
        "name": name,
        "image": "img:1",
        "imagePullPolicy": "IfNotPresent",
        "command": list(words) or ["run"],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    } | fields


def a_pod(
    *containers: dict[str, Any], uid: str = "u1", metadata: dict[str, Any] | None = None, **spec: Any
) -> Pod:
    """A pod of these containers, named web."""
    about = {"name": "web", "namespace": "default", "uid": uid} | (metadata or {})
    known = {"containers": list(containers) or [a_container()], "restartPolicy": "Always"}
    known |= {"terminationGracePeriodSeconds": 30} | spec
    pod = Pod.from_dict({"metadata": about, "spec": known})  # pyright: ignore[reportUnknownMemberType]
    return cast("Pod", pod)
