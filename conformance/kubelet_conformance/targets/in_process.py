"""The reference kubelet and the fake runtime in this process, on virtual time."""

from __future__ import annotations

import io
import math
import traceback
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from kubelet_bugs import find_bug
from kubelet_conformance.contract.collecting import seldom_collected
from kubelet_conformance.targets.api_adapter import KubeletApi, RecordedEvents, WorldApi, record_pods
from kubelet_conformance.targets.kubelet_process import InProcessKubelet
from kubelet_conformance.targets.manifest_source import FOLDER, WrittenManifests
from kubelet_conformance.targets.pod_servers import PodServers
from kubelet_conformance.targets.protocols import StoryError
from kubelet_conformance.targets.runtime_control import FakeRuntimeControl
from kubelet_conformance.targets.stage import UnknownTargetError
from kubelet_conformance.targets.tap import Tap
from kubelet_conformance.trace.header import FORMAT_VERSION, Channels, Header
from kubelet_conformance.trace.recorder import Recorder
from kubelet_fakes.api import ApiCore
from kubelet_fakes.clock import run
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.runtime.parts import RuntimeParts
from kubelet_fakes.web import MemoryUrl
from kubelet_reference.clocks import LoopClock, SeededChance
from kubelet_reference.kubelet import Kubelet, Ports
from kubelet_reference.parts import Parts
from kubelet_reference.ports import FetchError
from kubelet_reference.settings import Settings
from kubelet_reference.versions import Behaviour

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from kubelet_bugs import Bug
    from kubelet_conformance.targets.protocols import Target
    from kubelet_conformance.targets.stage import Choice
    from kubelet_fakes.runtime import FakeRuntime
    from kubelet_reference.ports import ImageService, RuntimeService

__all__ = ("InProcessStage", "parts_of", "runtime_parts_of")

EPOCH_NS = 1_767_225_600_000_000_000
"""The time of day at which each life begins: 2026-01-01T00:00:00Z."""
_STARTED = "2026-01-01T00:00:00Z"
_NODE = "node-1"
_LIFE_SECONDS_MAX = 7 * 24 * 3600


class InProcessStage:
    """Plays each scenario on a node of its own; the same choice gives the same traces, byte for byte."""

    def __init__(self, choice: Choice) -> None:
        try:
            self._behaviour = Behaviour.of(choice.kubernetes)
        except ValueError as error:
            raise UnknownTargetError(str(error)) from None
        self._parts = parts_of(choice.kubelet)
        self._runtime = runtime_parts_of(choice.runtime)
        self._choice = choice

    @seldom_collected()
    def play(
        self, story: Callable[[Target], Awaitable[None]], name: str, settings: Mapping[str, object]
    ) -> bytes:
        """Play one life of a node; see `Stage`."""
        life = _Life(self._choice, self._behaviour, self._parts, self._runtime, settings)
        file = io.BytesIO()
        error: BaseException | None = None
        try:
            run(life.play(story), limit_seconds=_LIFE_SECONDS_MAX)
        except Exception as caught:  # noqa: BLE001 - whatever ends a story, its trace is kept
            error = caught
        life.recorder.write(file, life.header(name))
        if error is not None:
            told = "".join(traceback.format_exception(error))
            raise StoryError(file.getvalue(), told) from error
        return file.getvalue()


class _Life:
    """One node from its kubelet's start to its end: what scenarios call a target."""

    def __init__(
        self,
        choice: Choice,
        behaviour: Behaviour,
        parts: Parts,
        runtime: RuntimeParts,
        settings: Mapping[str, object],
    ) -> None:
        self.node_name = _NODE
        self._runtime = runtime
        self.patience = math.inf
        self.recheck_seconds = None
        self._parts = parts
        self._choice = choice
        self._behaviour = behaviour
        changes: dict[str, Any] = dict(settings)
        self._settings = replace(Settings(node_name=_NODE, static_pod_path=FOLDER), **changes)
        self._clock = LoopClock(EPOCH_NS)
        self._ended_at: float | None = None
        self.recorder = Recorder(self.now)
        self._disk = MemoryDisk()
        self._url = MemoryUrl(FetchError)
        self.manifests = WrittenManifests(
            self._disk, self._url, self.recorder, self._settings.static_pod_path
        )
        self._lives = 0

    def now(self) -> float:
        """Seconds since the start."""
        return round(self._clock.monotonic(), 6) if self._ended_at is None else self._ended_at

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await self._clock.sleep(seconds)

    def namespace(self, name: str) -> str:
        """The same: the scenario has the node for itself."""
        return name

    async def play(self, story: Callable[[Target], Awaitable[None]]) -> None:
        """The whole life."""
        runtime = self._runtime.build(self._clock, epoch_ns=EPOCH_NS)
        runtime.core.store.logs.files = self._disk
        self._servers = PodServers(self.recorder, partial(_listens, runtime), self.sleep)
        self.runtime = FakeRuntimeControl(runtime, self._servers, self.recorder)
        api_core = ApiCore(self._clock.wall_ns)
        record_pods(api_core, self.recorder, _NODE)
        api = KubeletApi(api_core, self.recorder)
        self.api = WorldApi(api_core, api.connection, _NODE)
        self.api.put("Node", _node())
        tap = Tap(runtime, self.recorder)
        self.kubelet = InProcessKubelet(partial(self._new_kubelet, tap, api), self.recorder)
        self.manifests.look()
        await self.kubelet.start()
        try:
            await story(cast("Target", self))
            self.kubelet.raise_if_failed()
        finally:
            self._ended_at = self.now()
            await self.kubelet.kill()

    def _new_kubelet(self, tap: Tap, api: KubeletApi) -> Kubelet:
        self._lives += 1
        ports = Ports(
            clock=self._clock,
            chance=SeededChance(self._choice.seed + self._lives),
            runtime=cast("RuntimeService", tap),
            images=cast("ImageService", tap),
            api=api,
            events=RecordedEvents(self.recorder),
            disk=self._disk,
            url=self._url,
            http=self._servers,
            network=self._servers,
        )
        return Kubelet(ports, self._settings, self._behaviour, self._parts)

    def header(self, scenario: str) -> Header:
        """What its trace begins with."""
        return Header(
            trace=FORMAT_VERSION,
            clock="virtual",
            channels=Channels(cri="full", pods="sent", api="full", events="full"),
            kubelet="kubelet_reference",
            kubernetes=self._choice.kubernetes,
            runtime="kubelet_fakes",
            started=_STARTED,
            node=_NODE,
            from_start=True,
            scenario=scenario,
            seed=self._choice.seed,
        )


def parts_of(kubelet: str) -> Parts:
    """The parts of the kubelet of that name; raises `UnknownTargetError`."""
    if kubelet == "reference":
        return Parts()
    bug = _bug(kubelet, "kubelet", "reference")
    if bug.is_of_runtimes:
        raise UnknownTargetError(f"{bug.id} is a bug of runtimes: choose --runtime bug:{bug.id}")
    return bug.parts()


def runtime_parts_of(runtime: str) -> RuntimeParts:
    """The parts of the runtime of that name; raises `UnknownTargetError`."""
    if runtime == "fake":
        return RuntimeParts()
    bug = _bug(runtime, "runtime", "fake")
    if not bug.is_of_runtimes:
        raise UnknownTargetError(f"{bug.id} is a bug of kubelets: choose --kubelet bug:{bug.id}")
    return bug.runtime()


def _bug(choice: str, what: str, right: str) -> Bug:
    kind, _, name = choice.partition(":")
    if kind != "bug":
        raise UnknownTargetError(f"no {what} is named {choice!r}: choose {right}, or bug:ID")
    try:
        return find_bug(name)
    except LookupError as error:
        raise UnknownTargetError(str(error)) from None


def _listens(runtime: FakeRuntime, address: str) -> bool:
    """Whether a container runs at a pod's address."""
    running = (one for one in runtime.core.store.containers.values() if one.is_running)
    return any(address in one.sandbox.ips for one in running)


def _node() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": _NODE, "labels": {"kubernetes.io/hostname": _NODE, "kubernetes.io/os": "linux"}},
    }
