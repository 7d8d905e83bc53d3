"""One life of a node on wall time: a kubelet in this process, a runtime at a socket, scenarios side by side."""

from __future__ import annotations

import asyncio
import io
import os
import traceback
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from kubelet_conformance.targets.api_adapter import KubeletApi, RecordedEvents, WorldApi, record_pods
from kubelet_conformance.targets.kubelet_process import InProcessKubelet
from kubelet_conformance.targets.live.control import CriRuntimeControl, RuntimeState
from kubelet_conformance.targets.live.disks import RootedDisk
from kubelet_conformance.targets.live.endpoint import channel_to, services_at
from kubelet_conformance.targets.live.namespaces import Scope
from kubelet_conformance.targets.live.scoped import ScopedApi, ScopedManifests
from kubelet_conformance.targets.live.views import Router
from kubelet_conformance.targets.manifest_source import FOLDER, WrittenManifests
from kubelet_conformance.targets.stage import Ended, PlayedLife
from kubelet_conformance.targets.tap import Tap
from kubelet_conformance.trace.header import FORMAT_VERSION, Channels, Header
from kubelet_conformance.trace.recorder import Recorder, RecordedReply
from kubelet_fakes.api import ApiCore
from kubelet_fakes.web import MemoryUrl
from kubelet_reference.clocks import SeededChance
from kubelet_reference.disk_os import OsDisk
from kubelet_reference.kubelet import Kubelet, Ports
from kubelet_reference.pod_network import RealPodNetwork
from kubelet_reference.ports import FetchError
from kubelet_reference.process.wall import WallClock
from kubelet_reference.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kubelet_conformance.targets.live.control import PrivateRuntime
    from kubelet_conformance.targets.live.endpoint import Endpoint
    from kubelet_conformance.targets.live.views import View
    from kubelet_conformance.targets.protocols import Target
    from kubelet_conformance.targets.stage import Act, Choice
    from kubelet_conformance.trace.recorder import Seen
    from kubelet_reference.parts import Parts
    from kubelet_reference.ports import ImageService, PodEvent, RuntimeService
    from kubelet_reference.versions import Behaviour

__all__ = ("Life", "Surroundings")

_NODE = "node-1"
_RECHECK_SECONDS = 0.1
_TIDY_SECONDS = 30.0
_TIDY_GRACE_SECONDS = 1
_CHANGING = frozenset(
    {"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox"}
    | {"CreateContainer", "StartContainer", "StopContainer", "RemoveContainer"}
)
_MIRROR = "kubernetes.io/config.mirror"
_CONFIGURATION = "/etc/kubernetes"
"""Paths of scenarios below this are in the private folder."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What lives of nodes have in common: the choice and what follows of it, and a runtime.

    `private` is the runtime's other side, where it is one of our own.
    """

    choice: Choice
    behaviour: Behaviour
    parts: Parts
    endpoint: Endpoint
    private: PrivateRuntime | None = None


class Life:
    """A node from its kubelet's start to its end; `folder` is empty, and private to it."""

    def __init__(self, around: Surroundings, acts: Sequence[Act], folder: Path, *, shared: bool) -> None:
        self._around = around
        self._acts = acts
        self._folder = folder
        self._shared = shared
        self._clock = WallClock()
        self._started_ns = self._clock.wall_ns()
        self._ended_at: float | None = None
        self._recorder = Recorder(self.now)
        self._router = Router(self._recorder)
        self._url = MemoryUrl(FetchError)
        self._settings = _settings(folder, {} if self._shared else dict(acts[0].settings))
        self._disk = OsDisk(self._clock, (self._settings.root_dir, self._settings.pod_logs_dir))
        self._state = RuntimeState(around.endpoint.services)
        self._lives = 0

    def now(self) -> float:
        """Seconds since the start."""
        return round(self._clock.monotonic(), 6) if self._ended_at is None else self._ended_at

    async def play(self, concurrency: int, ended: Callable[[Act], None]) -> PlayedLife:
        """The whole life."""
        self._recorder.listeners.append(self._heard)
        core = ApiCore(self._clock.wall_ns, _unique_uids())
        record_pods(core, self._recorder, _NODE)
        self._api = KubeletApi(core, self._recorder)
        self._world = WorldApi(core, self._api.connection, _NODE)
        self._world.put("Node", _node())
        path = self._settings.static_pod_path.removeprefix(str(self._folder))
        self._manifests = WrittenManifests(
            cast("Any", RootedDisk(self._disk, self._folder)), self._url, self._recorder, path
        )
        await self._state.look()
        looking = asyncio.create_task(self._state.keep_looking(), name="looking")
        try:
            async with channel_to(self._around.endpoint.path) as channel:
                tap = Tap(services_at(channel), self._recorder)
                self._kubelet = InProcessKubelet(partial(self._new_kubelet, tap), self._recorder)
                self._manifests.look()
                await self._kubelet.start()
                try:
                    outcomes = await self._all(concurrency, ended)
                finally:
                    self._ended_at = self.now()
                    await self._kubelet.kill()
        finally:
            looking.cancel()
        return self._played(outcomes)

    def _heard(self, seen: Seen) -> None:
        if isinstance(seen, RecordedReply) and seen.call.rpc in _CHANGING:
            self._state.look_soon()

    def _new_kubelet(self, tap: Tap) -> Kubelet:
        self._lives += 1
        network = RealPodNetwork()
        ports = Ports(
            clock=self._clock,
            chance=SeededChance(self._around.choice.seed + self._lives),
            runtime=cast("RuntimeService", tap),
            images=cast("ImageService", tap),
            api=self._api,
            events=_Events(self._recorder, self._router),
            disk=self._disk,
            url=self._url,
            http=network,
            network=network,
        )
        return Kubelet(ports, self._settings, self._around.behaviour, self._around.parts)

    # The acts.

    async def _all(self, concurrency: int, ended: Callable[[Act], None]) -> dict[int, Ended]:
        """Play all acts; a kubelet that ends by itself ends them all."""
        slots = asyncio.Semaphore(concurrency)

        async def one(act: Act) -> tuple[int, Ended]:
            async with slots:
                outcome = await self._play(act)
            ended(act)
            return act.number, outcome

        playing = asyncio.gather(*map(one, self._acts))
        watched = asyncio.create_task(self._watch(), name="watching the kubelet")
        try:
            await asyncio.wait([playing, watched], return_when=asyncio.FIRST_COMPLETED)
            if not playing.done():
                self._kubelet.raise_if_failed()
            return dict(await playing)
        finally:
            playing.cancel()
            watched.cancel()
            await asyncio.gather(playing, watched, return_exceptions=True)

    async def _watch(self) -> None:
        """Return when the kubelet has ended; one that a scenario restarts is that scenario's affair."""
        if self._shared:
            await self._kubelet.over()
        else:
            await asyncio.Event().wait()

    async def _play(self, act: Act) -> Ended:
        scope = Scope(act.number, act.name)
        view = self._router.open(scope.id)
        try:
            async with asyncio.TaskGroup() as deeds:
                await act.story(cast("Target", self._target(act, scope, view, deeds.create_task)))
            if not self._shared:
                self._kubelet.raise_if_failed()
            outcome = Ended()
        except Exception as error:  # noqa: BLE001 - whatever ends a story, the others go on
            first = _first(error)
            outcome = Ended(first, "".join(traceback.format_exception(first)))
        if self._shared:
            await self._tidy(scope)
        self._router.close(view)
        return outcome

    def _target(self, act: Act, scope: Scope, view: View, spawn: Any) -> _Target:  # noqa: ANN401 - a task group's
        return _Target(
            node_name=_NODE,
            patience=act.patience,
            recheck_seconds=_RECHECK_SECONDS,
            recorder=view,
            runtime=CriRuntimeControl(self._state, view, scope, spawn, self._around.private),
            api=ScopedApi(self._world, scope),
            manifests=ScopedManifests(
                self._manifests, scope, self._router, view, renamed=self._shared
            ),
            kubelet=self._kubelet,
            now=self.now,
            sleep=self._clock.sleep,
            namespace=scope.namespace,
        )

    async def _tidy(self, scope: Scope) -> None:
        """Delete what the scenario wanted, and wait until nothing of it runs."""
        self._manifests.remove_all(lambda file: file.removeprefix(".").startswith(f"{scope.id}-"))
        for metadata in self._world.pods():
            is_mirror = _MIRROR in (metadata.get("annotations") or {})
            if scope.holds(metadata["namespace"]) and not is_mirror:
                self._world.delete(metadata["namespace"], metadata["name"], _TIDY_GRACE_SECONDS)
        deadline = self.now() + _TIDY_SECONDS
        while self._runs(scope) and self.now() < deadline:
            await self._clock.sleep(_RECHECK_SECONDS)

    def _runs(self, scope: Scope) -> bool:
        here = (each for each in self._state.sandboxes if scope.holds(each.namespace))
        pods = (each for each in self._world.pods() if scope.holds(each["namespace"]))
        return any(each.ready for each in here) or any(pods)

    # The record.

    def _played(self, outcomes: dict[int, Ended]) -> PlayedLife:
        file = io.BytesIO()
        self._recorder.write(file, self._header())
        numbers = {Scope(act.number, act.name).id: act.number for act in self._acts}
        return PlayedLife(file.getvalue(), [numbers.get(each) for each in self._router.owners], outcomes)

    def _header(self) -> Header:
        choice, endpoint = self._around.choice, self._around.endpoint
        return Header(
            trace=FORMAT_VERSION,
            clock="wall",
            channels=Channels(cri="full", pods="sent", api="full", events="full"),
            kubelet="kubelet_reference",
            kubernetes=choice.kubernetes,
            runtime=f"{endpoint.name} {endpoint.version}",
            started=_rfc3339(self._started_ns),
            node=_NODE,
            from_start=True,
            scenario=None if self._shared else self._acts[0].name,
            seed=choice.seed,
        )


@dataclass(frozen=True, slots=True)
class _Target:
    """A node as one scenario has it; see `Target`."""

    node_name: str
    patience: float
    recheck_seconds: float | None
    recorder: Recorder
    runtime: CriRuntimeControl
    api: ScopedApi
    manifests: ScopedManifests
    kubelet: InProcessKubelet
    now: Callable[[], float]
    sleep: Callable[[float], Any]
    namespace: Callable[[str], str]


class _Events(RecordedEvents):
    """Events on the record; the router learns first whose pods they are about."""

    def __init__(self, recorder: Recorder, router: Router) -> None:
        super().__init__(recorder)
        self._router = router

    def emit(self, event: PodEvent) -> None:
        """Take the event."""
        metadata = event.pod.metadata
        if metadata is not None:
            self._router.know(metadata.uid or "", metadata.namespace or "")
        super().emit(event)


def _settings(folder: Path, changes: dict[str, Any]) -> Settings:
    """The kubelet's configuration, with everything that it writes in the private folder."""
    settings = replace(Settings(node_name=_NODE, static_pod_path=FOLDER), **changes)
    path = settings.static_pod_path
    inside = f"{folder}{path}" if path.startswith(f"{_CONFIGURATION}/") else path
    return replace(
        settings, static_pod_path=inside, root_dir=f"{folder}/kubelet", pod_logs_dir=f"{folder}/pods"
    )


def _first(error: BaseException) -> BaseException:
    """The first error of a group: the others follow from it."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseException", error.exceptions[0])
    return error


def _unique_uids() -> Callable[[], str]:
    """UIDs that no other life of a node had."""
    life, numbers = os.urandom(4).hex(), count(1)
    return lambda: f"{life}-0000-4000-8000-{next(numbers):012x}"


def _rfc3339(ns: int) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415 - for this line

    return datetime.fromtimestamp(ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _node() -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": _NODE, "kubernetes.io/os": "linux"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": _NODE, "labels": labels}}
