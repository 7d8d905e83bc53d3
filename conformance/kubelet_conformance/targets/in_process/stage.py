"""The reference kubelet and the fake runtime in this process, on virtual time."""

import io
import math
from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from kubelet_bugs import Bug, find_bug
from kubelet_conformance.contract.applicability import USUAL_VERSION, parse_known_version, version_text
from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.reports.safe import nearest
from kubelet_conformance.targets.choice import Choice, UnknownTargetError
from kubelet_conformance.targets.controls import (
    MANIFEST_FOLDER,
    EndlessPlayError,
    ScenarioError,
    Target,
    failure_report,
)
from kubelet_conformance.targets.in_process.api_server import (
    KubeletApi,
    KubeletTokens,
    RecordedApi,
    RecordedEvents,
    node_object,
)
from kubelet_conformance.targets.in_process.disk_recorder import RecordedCgroups, RecordedFiles
from kubelet_conformance.targets.in_process.kubelet import InProcessKubelet, in_turn
from kubelet_conformance.targets.in_process.machine import Machine, allocatable, configuration
from kubelet_conformance.targets.in_process.manifests import WrittenManifests
from kubelet_conformance.targets.in_process.ordering import OrderedClock, OrderedRandom, Orders
from kubelet_conformance.targets.in_process.pod_servers import PodServers
from kubelet_conformance.targets.in_process.recorded_runtime import Tap
from kubelet_conformance.targets.in_process.repeats import until_it_repeats
from kubelet_conformance.targets.in_process.resource_plugin import RecordedPlugin
from kubelet_conformance.targets.in_process.runtime_control import FakeRuntimeControl
from kubelet_conformance.trace.format.header import FORMAT_VERSION, Channels, Header
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_fakes.api import ApiCore
from kubelet_fakes.clock import LivelockError, TimeLimitError, run
from kubelet_fakes.disk import MemoryDisk
from kubelet_fakes.runtime import FakeRuntime
from kubelet_fakes.runtime.service import RuntimeParts
from kubelet_fakes.runtime.settings import RuntimeSettings
from kubelet_fakes.web import MemoryUrl
from kubelet_reference.kubelet.kubelet import Kubelet
from kubelet_reference.kubelet.parts import Parts
from kubelet_reference.server.host.clock import LoopClock, SeededRandom
from kubelet_reference.util.ports import FetchError, ImageService, Ports, RuntimeService
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

EPOCH_NS = 1_767_225_600_000_000_000
"""The time of day at which each life begins: 2026-01-01T00:00:00Z."""
_STARTED = "2026-01-01T00:00:00Z"
_NODE = "node-1"
_GENERATIONS_SINCE = 33
"""From this minor version on API servers count the changes of a pod's spec."""
_LIFE_SECONDS_MAX = 7 * 24 * 3600


class InProcessStage:
    """Plays each scenario on a node of its own; the same choice gives the same traces, byte for byte."""

    def __init__(self, choice: Choice) -> None:
        behaviour_of(choice.kubernetes or USUAL_VERSION)
        self._parts = parts_of(choice.kubelet)
        self._then = choice.then
        self._then_parts = self._parts if self._then is None else parts_of(self._then.kubelet)
        if self._then is not None:
            behaviour_of(self._then.kubernetes)
        self._runtime = runtime_parts_of(choice.runtime)
        self._choice = choice

    @deferred_gc()
    def play(  # noqa: PLR0913 - a scenario, what it is called, and as what it is played
        self,
        scenario: Callable[[Target], Awaitable[None]],
        name: str,
        settings: Mapping[str, object],
        version: str,
        exempt: tuple[str, ...] = (),
        *,
        then: str = "",
    ) -> bytes:
        """Play one life of a node; see `Stage`."""
        choice = replace(self._choice, kubernetes=version)
        then = then if self._then is None else self._then.kubernetes
        kubelets = [(version, self._parts), *([(then, self._then_parts)] if then else [])]
        life = _Life(choice, kubelets, self._runtime, settings)
        file = io.BytesIO()
        error: BaseException | None = None
        try:
            run(until_it_repeats(life.play(scenario), life.recorder), limit_seconds=_LIFE_SECONDS_MAX)
        except (LivelockError, TimeLimitError) as caught:
            error = EndlessPlayError(f"the play does not end: {str(caught).partition(': ')[0]}")
        except Exception as caught:  # noqa: BLE001 - whatever ends a scenario, its trace is kept
            error = caught
        life.recorder.write(file, life.header(name, exempt))
        if error is not None:
            report = failure_report(error)
            raise ScenarioError(file.getvalue(), report) from error
        return file.getvalue()


class _Life:
    """One node from its kubelet's start to its end."""

    def __init__(
        self,
        choice: Choice,
        kubelets: Sequence[tuple[str, Parts]],
        runtime: RuntimeParts,
        settings: Mapping[str, object],
    ) -> None:
        self._runtime = runtime
        self._kubelets = kubelets
        """The version and the parts of each kubelet; they take turns."""
        self._choice = choice
        changes: dict[str, Any] = dict(settings)
        self._settings = replace(Settings(node_name=_NODE, static_pod_path=MANIFEST_FOLDER), **changes)
        self._behaviours = [Behaviour.of(version, self._settings.feature_gates) for version, _ in kubelets]
        self._clock = LoopClock(EPOCH_NS)
        self._moment, self._rounded = 0.0, 0.0
        self._ended_at: float | None = None
        self.recorder = Recorder(self.now)
        self._disk = MemoryDisk()
        RecordedFiles(self._disk, self.recorder, self._settings.root_dir, self._settings.pod_logs_dir)
        self._url = MemoryUrl(FetchError)
        self._manifests = WrittenManifests(
            self._disk, self._url, self.recorder, self._settings.static_pod_path
        )
        self._lives = 0
        self._target: Target | None = None

    def now(self) -> float:
        """Seconds since the start, rounded once for all that is at one moment."""
        if self._ended_at is not None:
            return self._ended_at
        moment = self._clock.monotonic()
        if moment != self._moment:
            self._moment, self._rounded = moment, round(moment, 6)
        return self._rounded

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await self._clock.sleep(seconds)

    async def play(self, scenario: Callable[[Target], Awaitable[None]]) -> None:
        """The whole life."""
        self._clock = LoopClock(EPOCH_NS, get_running_loop().time)
        settings = RuntimeSettings(evented=any(one.streams_container_events for one in self._behaviours))
        runtime = self._runtime.build(self._clock, settings, epoch_ns=EPOCH_NS)
        runtime.core.store.logs.files = self._disk
        self._servers = PodServers(
            self.recorder,
            partial(sandbox_has_server, runtime),
            partial(uid_with_address, runtime),
            self.sleep,
            runtime.faults,
        )
        self._plugin = RecordedPlugin(runtime.faults, self.recorder, self.sleep)
        self._cgroups = RecordedCgroups(self.recorder)
        counts = max(one.minor for one in self._behaviours) >= _GENERATIONS_SINCE
        api_core = ApiCore(self._clock.wall_ns, pod_generations=counts)
        recorded = RecordedApi(api_core, self.recorder, _NODE)
        self._machine = Machine(
            self.recorder, self._settings.memory_bytes, partial(_runs, runtime), self._disk
        )
        api = KubeletApi(recorded.connection)
        tap = Tap(runtime, self.recorder)
        self._orders = Orders()
        versions = [version for version, _ in self._kubelets]
        kubelet = InProcessKubelet(
            partial(self._new_kubelet, tap, api), self.recorder, self._orders, in_turn(versions)
        )
        target = self._target = Target(
            node_name=_NODE,
            wait_seconds_max=math.inf,
            recheck_seconds=None,
            recorder=self.recorder,
            runtime=FakeRuntimeControl(runtime, self._servers, self.recorder, self._cgroups),
            api=recorded.world,
            manifests=self._manifests,
            kubelet=kubelet,
            machine=self._machine,
            now=self.now,
            sleep=self.sleep,
            namespace=lambda name: name,
        )
        target.api.put("Node", node_object(_NODE))
        self._manifests.look()
        await kubelet.start()
        try:
            await scenario(target)
        finally:
            # A wait that times out without a kubelet is no finding of its own.
            kubelet.raise_if_failed()
            self._ended_at = self.now()
            await kubelet.kill()

    def _new_kubelet(self, tap: Tap, api: KubeletApi) -> Kubelet:
        self._lives += 1
        ports = Ports(
            clock=OrderedClock(self._clock, self._orders),
            random=OrderedRandom(SeededRandom(self._choice.seed + self._lives), self._orders),
            runtime=cast("RuntimeService", tap),
            images=cast("ImageService", tap),
            api=api,
            tokens=KubeletTokens(api.connection),
            events=RecordedEvents(self.recorder),
            disk=self._disk,
            url=self._url,
            http=self._servers,
            network=self._servers,
            resources=self._plugin,
            cgroups=self._cgroups,
            stats=self._machine,
            shutdown=self._machine,
        )
        turn = (self._lives - 1) % len(self._kubelets)
        return Kubelet(ports, self._settings, self._behaviours[turn], self._kubelets[turn][1])

    def header(self, scenario: str, exempt: tuple[str, ...]) -> Header:
        """What its trace begins with."""
        return Header(
            trace=FORMAT_VERSION,
            clock="virtual",
            channels=Channels(cri="full", pods="sent", api="full", events="full"),
            kubelet="kubelet_reference",
            kubernetes=self._choice.kubernetes,
            then_kubernetes=self._kubelets[1][0] if len(self._kubelets) > 1 else None,
            feature_gates=dict(self._settings.feature_gates),
            runtime="kubelet_fakes",
            started=_STARTED,
            node=_NODE,
            from_start=True,
            standalone=not self._settings.with_api_server,
            scenario=scenario,
            seed=self._choice.seed,
            exempt=exempt,
            configuration=configuration(self._settings),
            allocatable=allocatable(self._settings),
            patient=self._target is not None and self._target.patient,
        )


def parts_of(kubelet: str) -> Parts:
    """The parts of the kubelet of that name; raises `UnknownTargetError`."""
    if kubelet == "reference":
        return Parts()
    bug = _bug(kubelet, "kubelet", "reference, reference-process, the PATH of a kubelet, FILE.toml")
    if bug.is_of_runtimes:
        raise UnknownTargetError(f"{bug.id} is a bug of runtimes: choose --runtime bug:{bug.id}")
    return bug.parts()


def behaviour_of(kubernetes: str) -> Behaviour:
    """The behaviour of that version; raises `UnknownTargetError`."""
    try:
        return Behaviour.of(version_text(parse_known_version(kubernetes)))
    except ValueError as error:
        raise UnknownTargetError(str(error)) from None


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
        near = nearest(choice, right.split(", "))
        raise UnknownTargetError(f"no {what} is named {choice!r}{near}; choose {right}, or bug:ID")
    try:
        return find_bug(name)
    except LookupError as error:
        raise UnknownTargetError(str(error)) from None


def sandbox_has_server(runtime: FakeRuntime, address: str) -> bool:
    """Whether a container runs at a pod's address."""
    running = (one for one in runtime.core.store.containers.values() if one.is_running)
    return any(address in one.sandbox.ips for one in running)


def uid_with_address(runtime: FakeRuntime, address: str) -> str:
    """The UID of the pod that has this address, or had it last, "" if none did."""
    having = [one for one in runtime.core.store.sandboxes.values() if address in one.ips]
    return max(having, key=lambda one: one.ready).config.metadata.uid if having else ""


def _runs(runtime: FakeRuntime, uid: str) -> bool:
    """Whether a container of the pod runs."""
    running = (one for one in runtime.core.store.containers.values() if one.is_running)
    return any(one.sandbox.config.metadata.uid == uid for one in running)
