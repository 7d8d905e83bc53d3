"""One life of a node on wall time: a kubelet, a tap, a runtime at a socket, and scenarios side by side."""

import asyncio
import contextlib
import io
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.controls import (
    ApiControl,
    KubeletEndedError,
    NotPossibleError,
    RuntimeControl,
    Target,
    failure_report,
)
from kubelet_conformance.targets.cri_endpoint import Endpoint
from kubelet_conformance.targets.in_process.resource_plugin import RecordedPlugin
from kubelet_conformance.targets.kubelet_target.target import KubeletTarget
from kubelet_conformance.targets.live.cri_control import CriRuntimeControl, RuntimeState
from kubelet_conformance.targets.live.namespaces import Scope, is_of_another
from kubelet_conformance.targets.live.private_runtimes import OwnContainerd, OwnFake, ScopedFakeControl
from kubelet_conformance.targets.live.real_machine import RealMachine
from kubelet_conformance.targets.live.recorded_tap import tapped
from kubelet_conformance.targets.live.reference_node import ReferenceNode
from kubelet_conformance.targets.live.room import Room
from kubelet_conformance.targets.live.scoped_controls import ScopedApi, ScopedManifests
from kubelet_conformance.targets.live.scoped_recorder import Router, View
from kubelet_conformance.targets.process.machine.file_watches import watches_for_a_kubelet
from kubelet_conformance.targets.process.node import ProcessNode
from kubelet_conformance.targets.stage import Act, Ended, PlayedLife, Watch
from kubelet_conformance.trace.format.header import FORMAT_VERSION, Header, rfc3339
from kubelet_conformance.trace.format.recorder import Item, RecordedReply, Recorder, Seen
from kubelet_fakes.dra.driver import DraDriver
from kubelet_reference.kubelet.parts import Parts
from kubelet_reference.server.host.system_clock import WallClock
from kubelet_reference.util.versions import Behaviour

_Node: TypeAlias = ReferenceNode | ProcessNode
NODE = "node-1"
"""The name of every node."""
_RECHECK_SECONDS = 0.1
_RARE_RECHECK_SECONDS = 1.0
"""On a fake, of which all is on the record; what a kubelet shows no longer is not."""
_DELETE_SECONDS = 30.0
_DELETE_GRACE_SECONDS = 1
_CHANGING = frozenset(
    {"RunPodSandbox", "StopPodSandbox", "RemovePodSandbox"}
    | {"CreateContainer", "StartContainer", "StopContainer", "RemoveContainer"}
)
"""The calls after which the runtime has something else than before."""
_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class LiveEnvironment:
    """What lives of nodes have in common: the choice and what follows of it, and a runtime.

    `process` is the kubelet where it is a process of its own, None for the one in this process; `then` takes
    turns with it, if one does. `private` is
    the runtime's other side, where it is one of our own; `fake` is there where the runtime is the fake.
    Kubelets that are `isolated` have mount namespaces; `starts` limits how many start in parallel, `room`
    how many there are.
    """

    choice: Choice
    behaviour: Behaviour
    parts: Parts
    endpoint: Endpoint
    process: KubeletTarget | None = None
    then: KubeletTarget | None = None
    private: OwnContainerd | None = None
    fake: OwnFake | None = None
    isolated: bool = False
    starts: asyncio.Semaphore = field(default_factory=asyncio.Semaphore)
    room: Room = field(default_factory=lambda: Room(1))


class Life:
    """A node from its kubelet's start to its end; `folder` is empty, and private to it.

    The log of a kubelet that is a process is kept as `log`, if that is a path. It ends early with `stop`.
    """

    _node: _Node

    def __init__(  # noqa: PLR0913 - what is played, where, and who follows it
        self,
        around: LiveEnvironment,
        acts: Sequence[Act],
        folder: Path,
        stop: asyncio.Event,
        *,
        shared: bool,
        log: Path | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._around = around
        self._acts = acts
        self._folder = folder
        self._shared = shared
        self._log = log
        self._watch = watch
        self._stop = stop
        self._clock = WallClock()
        self._started_ns = self._clock.wall_ns()
        self._ended_at: float | None = None
        self._died = ""
        self._alive: set[int] = set()
        self._recorder = Recorder(self.now)
        self._router = Router(self._recorder)
        self._state = RuntimeState(around.endpoint.services)
        self._recorder.listeners.append(self._heard)
        self._recorded = asyncio.Event()
        self._by_scope = {Scope(act.number, act.name).id: act for act in acts}
        self._fake = self._servers = None
        if around.fake is not None:
            self._servers = around.fake.servers(self._recorder, NODE)
            self._fake = around.fake.control(self._recorder, self._servers)
        self._targets: list[Target] = []
        self._recheck_seconds = _RECHECK_SECONDS if around.fake is None else _RARE_RECHECK_SECONDS

    def now(self) -> float:
        """Seconds since the start."""
        return round(self._clock.monotonic(), 6) if self._ended_at is None else self._ended_at

    def _heard(self, seen: Seen) -> None:
        self._recorded.set()
        if isinstance(seen, RecordedReply) and seen.call.rpc in _CHANGING:
            self._state.look_soon()

    async def play(self, concurrency: int, ended: Callable[[Act], None]) -> PlayedLife:
        """The whole life."""
        socket = self._folder / "tap" / "cri.sock"
        async with AsyncExitStack() as stack:
            if self._fake is None:
                await self._state.look()
                await stack.enter_async_context(_going_on(self._state.keep_looking()))
            if self._servers is not None:
                await stack.enter_async_context(self._servers)
            await stack.enter_async_context(tapped(socket, self._around.endpoint.path, self._recorder))
            self._node = self._make_node(socket)
            async with self._around.starts:
                await stack.enter_async_context(self._around.room.kubelet())
                if self._around.process is not None:
                    await watches_for_a_kubelet()
                await stack.enter_async_context(self._node)
                if self._around.fake is not None:
                    self._around.fake.write_below(self._root)
                if self._watch is not None:
                    header = self._header()
                    self._recorder.follow(header, self._watch(header, self._owner))
                driver = self._driver()
                if driver is not None:
                    await stack.enter_async_context(driver)
                self._node.manifests.look()
                await self._node.kubelet.start()
            try:
                outcomes = await self._all(concurrency, ended)
            finally:
                self._ended_at = self.now()
                header = self._header()
                if self._log is not None and isinstance(self._node, ProcessNode):
                    self._node.keep_log(self._log)
        # What takes long is done beside the loop, on which other lives wait.
        return await asyncio.to_thread(self._played, outcomes, header)

    def _make_node(self, socket: Path) -> _Node:
        around = self._around
        settings = dict[str, object]() if self._shared else dict(self._acts[0].settings)
        if around.process is not None:
            return ProcessNode(
                around.process,
                self._folder,
                socket,
                self._recorder,
                NODE,
                settings,
                then=around.then,
                isolated=around.isolated,
            )
        return ReferenceNode(
            parts=around.parts,
            behaviour=around.behaviour,
            seed=around.choice.seed,
            folder=self._folder,
            runtime=socket,
            recorder=self._recorder,
            clock=self._clock,
            node_name=NODE,
            settings=settings,
            know=self._router.know,
        )

    def _driver(self) -> DraDriver | None:
        """The driver of devices beside a kubelet that is a process and uses one."""
        fake, node = self._around.fake, self._node
        if fake is None or not isinstance(node, ProcessNode) or not node.has_devices:
            return None
        plugin = RecordedPlugin(fake.faults, self._recorder, self._clock.sleep)
        return DraDriver(node.kubelet_root, plugin)

    @property
    def _root(self) -> Path:
        """Where this process finds the files that the kubelet sees."""
        return self._node.root if isinstance(self._node, ProcessNode) else Path("/")

    # The acts.

    async def _all(self, concurrency: int, ended: Callable[[Act], None]) -> dict[int, Ended]:
        """Play all acts; a kubelet that ends by itself ends those that have begun, and no other begins."""
        slots = asyncio.Semaphore(concurrency)
        outcomes: dict[int, Ended] = {}

        async def one(act: Act) -> None:
            async with slots:
                self._alive.add(act.number)
                outcomes[act.number] = await self._play(act)
                self._alive.remove(act.number)
            ended(act)

        playing = asyncio.ensure_future(asyncio.gather(*map(one, self._acts)))
        async with _going_on(self._node.kubelet.died.wait()) as died, _going_on(self._stop.wait()) as stop:
            try:
                either: set[asyncio.Future[Any]] = {playing, died, stop}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if playing.done():
                    await playing
                alive = frozenset(self._alive)
            finally:
                playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)
        try:
            self._node.kubelet.raise_if_failed()
        except KubeletEndedError as error:
            self._died, self._alive = str(error), set(alive)
            outcomes.update((number, Ended(error)) for number in alive)
        else:
            outcomes.update((number, Ended()) for number in alive)
        return outcomes

    async def _play(self, act: Act) -> Ended:
        scope = Scope(act.number, act.name)
        view = self._router.open(scope.id)
        outcome = Ended()
        try:
            async with asyncio.TaskGroup() as actions:
                await act.scenario(self._target(act, scope, view, actions.create_task))
        except Exception as error:  # noqa: BLE001 - whatever ends a scenario, the others go on
            first = _first(error)
            outcome = Ended(first, failure_report(first), self._latest_of_log(act))
        if self._shared:
            await self._delete_pods(scope)
        self._router.close(view)
        return outcome

    def _latest_of_log(self, act: Act) -> tuple[str, ...]:
        """What the kubelet wrote last that is not about another scenario, if it is a process."""
        if not isinstance(self._node, ProcessNode):
            return ()
        return self._node.kubelet.log.latest(lambda line: is_of_another(line, act.number))

    def _target(self, act: Act, scope: Scope, view: View, spawn: Any) -> Target:  # noqa: ANN401 - a task group's
        around = self._around
        if self._fake is not None:
            runtime = cast("RuntimeControl", ScopedFakeControl(self._fake, scope))
        else:
            runtime = CriRuntimeControl(self._state, view, scope, spawn, around.private)
        manifests = ScopedManifests(self._node.manifests, scope, self._router, view, renamed=self._shared)
        target = Target(
            node_name=NODE,
            wait_seconds_max=act.wait_seconds_max,
            recheck_seconds=self._recheck_seconds,
            recorder=view,
            runtime=runtime,
            api=cast("ApiControl", ScopedApi(self._node.api, scope, self._router, view)),
            manifests=manifests,
            kubelet=self._node.kubelet,
            machine=RealMachine(self._root),
            now=self.now,
            sleep=self._clock.sleep,
            namespace=scope.namespace,
        )
        self._targets.append(target)
        return target

    async def _delete_pods(self, scope: Scope) -> None:
        """Delete the scenario's desired pods, and wait until nothing of them runs."""
        for metadata in self._node.api.pods():
            is_mirror = _MIRROR in (metadata.get("annotations") or {})
            if scope.holds(metadata["namespace"]) and not is_mirror:
                self._delete(metadata["namespace"], metadata["name"])
        self._node.manifests.remove_all(lambda file: file.removeprefix(".").startswith(f"{scope.id}-"))
        deadline = self.now() + _DELETE_SECONDS
        while self._runs(scope) and self.now() < deadline:
            self._recorded.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._recheck_seconds):
                    await self._recorded.wait()

    def _delete(self, namespace: str, name: str) -> None:
        """Delete a pod that is not needed any more; a file is removed with the pod's own grace period."""
        grace = None if self._node.standalone else _DELETE_GRACE_SECONDS
        self._node.api.delete(namespace, name, grace)

    def _runs(self, scope: Scope) -> bool:
        every = self._state.sandboxes if self._fake is None else self._fake.sandboxes()
        here = (each for each in every if scope.holds(each.namespace))
        pods = (each for each in self._node.api.pods() if scope.holds(each["namespace"]))
        return any(each.ready for each in here) or any(pods)

    # The record.

    def _owner(self, seq: int) -> str | None:
        """The scenario whose a record is so far."""
        owners = self._router.owners
        act = self._by_scope.get(owners[seq - 1]) if seq <= len(owners) else None
        return None if act is None else act.name

    def _played(self, outcomes: dict[int, Ended], header: Header) -> PlayedLife:
        file = io.BytesIO()
        self._recorder.write(file, header)
        numbers = {scope: act.number for scope, act in self._by_scope.items()}
        owners = [numbers.get(each) for each in self._router.owners]
        alive = frozenset(self._alive)
        started = self._started_ns / 1e9
        return PlayedLife(file.getvalue(), owners, outcomes, self._died, self._died_seq(), alive, started)

    def _died_seq(self) -> int:
        """The record of the kubelet's end, 0 if it did not end by itself."""
        for seq, seen in enumerate(self._recorder.records, 1):
            if isinstance(seen, Item) and seen.kind == "kubelet" and seen.fields["op"] == "ended":
                return seq
        return 0

    def _header(self) -> Header:
        around = self._around
        process = around.process
        return Header(
            trace=FORMAT_VERSION,
            clock="wall",
            channels=self._node.channels,
            kubelet="kubelet_reference" if process is None else process.name,
            kubernetes=around.choice.kubernetes,
            then_kubernetes=None if around.then is None else around.then.kubernetes,
            feature_gates=self._node.feature_gates,
            runtime=f"{around.endpoint.name} {around.endpoint.version}",
            started=rfc3339(self._started_ns),
            node=NODE,
            from_start=True,
            standalone=self._node.standalone,
            scenario=None if self._shared else self._acts[0].name,
            scenarios={Scope(act.number, act.name).own: act.name for act in self._acts if self._shared},
            exempt=() if self._shared else self._acts[0].exempt,
            seed=around.choice.seed,
            configuration=self._node.configuration,
            allocatable=self._node.allocatable,
            patient=any(each.patient for each in self._targets),
        )


@contextlib.asynccontextmanager
async def _going_on(work: Any) -> AsyncGenerator[asyncio.Task[None]]:  # noqa: ANN401 - a coroutine
    """Let a coroutine run beside what is done while the context is open."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _first(error: BaseException) -> BaseException:
    """The first error of a group: the others follow from it. What a target cannot do comes before all."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    inner = [_first(each) for each in group.exceptions]
    return next((each for each in inner if isinstance(each, NotPossibleError)), inner[0])
