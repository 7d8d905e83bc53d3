"""The stage on wall time: opened once, played on by one node after another, closed without a trace."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc.aio

from kubelet_conformance.contract.applicability import parse_version
from kubelet_conformance.run_record.temporary_folder import locked_folder, place_for_sockets
from kubelet_conformance.run_record.worker_pool import processors
from kubelet_conformance.targets.choice import Choice, TargetError
from kubelet_conformance.targets.controls import PLUGIN_USE, THEN_USE
from kubelet_conformance.targets.cri_endpoint import Endpoint, connected, path_of, shipped_baseline
from kubelet_conformance.targets.in_process.stage import behaviour_of, parts_of
from kubelet_conformance.targets.kubelet_target.choosing import kubelet_process, resolved
from kubelet_conformance.targets.kubelet_target.overrides import enabled_gates, sets_many
from kubelet_conformance.targets.kubelet_target.target import KubeletTarget
from kubelet_conformance.targets.live import baselines
from kubelet_conformance.targets.live.foreign_pods import check_foreign_pods, check_images, remove_ours
from kubelet_conformance.targets.live.node_run import NODE, Life, LiveEnvironment
from kubelet_conformance.targets.live.private_runtimes import (
    CONTAINERD_CONTROLS,
    FAKE_CONTROLS,
    own_containerd,
    own_fake,
)
from kubelet_conformance.targets.live.room import Room
from kubelet_conformance.targets.process.cleanup import clear
from kubelet_conformance.targets.process.machine.file_watches import WATCHES, kubelets_max
from kubelet_conformance.targets.process.mount_namespace import can_isolate, slow_look_ups
from kubelet_conformance.targets.process.node import DRIVERS_SINCE, ProcessNode
from kubelet_conformance.targets.stage import Act, PlayedLife, Watch
from kubelet_conformance.trace.format.recorder import Recorder
from kubelet_reference.kubelet.parts import Parts
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.server.host.system_clock import WallClock

_FAKE, _CONTAINERD = "fake", "containerd"
_CONTROLS = {_FAKE: FAKE_CONTROLS, _CONTAINERD: CONTAINERD_CONTROLS}

_NODES_OF_A_PROCESSOR = 13
_NODES = {_FAKE: 28, _CONTAINERD: 3}
"""On how many runtimes lives are played at a time: each takes one kubelet, and these can be many."""
_NODES_MAX = 64
"""So many may be played on fakes while a processor is idle."""
_NODES_READY = 8
"""So many more nodes are made ready on fakes, of which each waits for a kubelet that may start."""
_PLUGIN = frozenset({PLUGIN_USE}), "a plugin of dynamic resources"
_MISSING = ((frozenset({"api.remove Node", "kubelet.start"}), "a kubelet that does not register its node"),)
"""What uses of controls need, and kubelets in processes of their own do not have."""
_MISSING_OF_FOREIGN = ((frozenset({"api.resize"}), "pods with cgroups of their own, to resize them"),)
"""Such kubelets share a machine, and run without a cgroup for each pod; a resize ends some of them so."""
_IN_TURN = (
    "nodes are run in turn, as kubelets side by side take each other's /var/lib/kubelet/device-plugins:"
    " each can have its own beside the fake runtime, and where Linux lets this user make mount namespaces"
)


class WallStage:
    """Plays on the runtime at a socket, on a private containerd, or on fakes of its own.

    All of it is awaited on one loop.
    """

    def __init__(self, choice: Choice) -> None:
        choice = resolved(choice)
        self._behaviour = behaviour_of(choice.kubernetes)
        self._process = kubelet_process(choice)
        self._then = None if choice.then is None else kubelet_process(choice.then)
        self._parts = parts_of(choice.kubelet) if self._process is None else Parts()
        if choice.runtime not in _CONTROLS:
            path_of(choice.runtime)
        self._choice = choice
        self._opened = AsyncExitStack()
        self.runtime = choice.runtime
        """The runtime's own name and version, once it is open."""
        self._idle: list[LiveEnvironment] = []
        """Runtimes on which no life is played at the moment."""
        self.clock = LoopClock(0)
        self._isolated = False
        """Kubelets are started in mount namespaces."""
        self._starts = asyncio.Semaphore(2 * processors())
        """A kubelet that starts takes a processor for a second or two, and waits for a while."""
        nodes = min(_NODES.get(choice.runtime, 1), _NODES_OF_A_PROCESSOR * processors())
        self.nodes = nodes if self._process is None else min(nodes, kubelets_max())
        """How many lives are played at a time, at first."""
        self.limit = f"{self.nodes} instead of {nodes}, by {WATCHES}" if self.nodes < nodes else ""
        """Why more are not, in words, where a setting of the machine says so."""
        are_many = self._process is not None and choice.runtime == _FAKE
        self._room = (
            Room(self.nodes, min(_NODES_MAX, kubelets_max()), _NODES_READY) if are_many else Room(self.nodes)
        )

    @property
    def baselines(self) -> list[str]:
        """The target file's baseline, and the one that comes along for this version of the runtime."""
        kubelets = [each.baseline for each in (self._process, self._then) if each is not None]
        name, _, version = self.runtime.partition(" ")
        runtime = shipped_baseline(baselines, name, version) or ""
        return [str(each) for each in dict.fromkeys((*kubelets, runtime)) if each]

    @property
    def by_files(self) -> bool:
        """Pods are delivered as manifests, for want of an API server."""
        return self._process is not None and self._process.pods != "api"

    def missing(self, uses: Collection[str]) -> str:
        """What a kubelet in its own process lacks for these uses, to follow "needs"; "" if nothing."""
        if self._process is None:
            return ""
        if self._then is None and THEN_USE in uses:
            return "another kubelet to take turns with: give --then-kubelet"
        if self._then is not None and "kubelet.start" not in uses:
            return "the kubelet no second time, and --then-kubelet is about restarts"
        missing = (*_MISSING, *_MISSING_OF_FOREIGN) if self._choice.is_foreign else _MISSING
        if not self._has_drivers:
            missing = (_PLUGIN, *missing)
        return next((what for needed, what in missing if needed <= set(uses)), "")

    @property
    def _has_drivers(self) -> bool:
        """A driver of devices is there for kubelets that are none of ours; `kubelet-reference` calls none."""
        is_fake = self._choice.runtime == _FAKE and self._choice.is_foreign and not self.by_files
        return is_fake and parse_version(self._choice.kubernetes) >= DRIVERS_SINCE

    @property
    def controls(self) -> frozenset[str]:
        """What can be done to the runtime beyond the CRI."""
        return _CONTROLS.get(self._choice.runtime, frozenset())

    async def look(self) -> None:
        """See that a CRI runtime answers at the socket, before other work; raises `TargetError`."""
        if self._choice.runtime not in _CONTROLS:
            async with connected(path_of(self._choice.runtime)):
                pass

    async def try_kubelet(self) -> None:
        """Start a kubelet that is none of ours, and stop it, before other work; raises `TargetError`."""
        if self._process is None or not self._choice.is_foreign:
            return
        gates = await _tried(self._process)
        if sets_many(dict(self._process.overrides)):
            self._process = replace(self._process, feature_gates=gates)
        if self._then is not None:
            await _tried(self._then)

    async def isolate(self) -> list[str]:
        """See whether real kubelets can have mount namespaces; what follows where they cannot, in words."""
        if not self._choice.is_foreign:
            return []
        self._isolated = self._choice.runtime == _FAKE and await can_isolate(NODE)
        if self._isolated:
            return []
        notes = [_IN_TURN] if self.nodes > 1 else []
        self.nodes, self._room, self.limit = 1, Room(1), ""
        return [*notes, *filter(None, [await slow_look_ups(NODE)])]

    async def open(self, images: Iterable[str]) -> None:
        """Connect, and see that scenarios with these images can be played; raises `TargetError`."""
        if self._choice.runtime == _FAKE:
            return
        if self._choice.runtime == _CONTAINERD:
            self._idle.append(await self._new_containerd())
            return
        path = path_of(self._choice.runtime)
        endpoint = await self._opened.enter_async_context(connected(path))
        try:
            if not self._choice.kill_foreign_pods:
                await check_foreign_pods(endpoint)
            await check_images(endpoint, images)
        except grpc.aio.AioRpcError as error:
            raise TargetError(f"{path}: {error.code().name}: {error.details()}") from None
        self._idle.append(await self._prepared(self._surroundings(endpoint)))

    async def _new_containerd(self) -> LiveEnvironment:
        """One more containerd of our own."""
        private = await self._opened.enter_async_context(own_containerd())
        endpoint = await self._opened.enter_async_context(connected(private.socket))
        return await self._prepared(replace(self._surroundings(endpoint), private=private))

    async def _prepared(self, around: LiveEnvironment) -> LiveEnvironment:
        """A runtime without what an earlier run may have left there."""
        self.runtime = f"{around.endpoint.name} {around.endpoint.version}"
        await _sweep(around)
        return around

    def _surroundings(self, endpoint: Endpoint) -> LiveEnvironment:
        return LiveEnvironment(
            self._choice,
            self._behaviour,
            self._parts,
            endpoint,
            self._process,
            self._then,
            isolated=self._isolated,
            starts=self._starts,
            room=self._room,
        )

    async def play(  # noqa: PLR0913 - what is played, and who follows it
        self,
        acts: Sequence[Act],
        *,
        shared: bool,
        concurrency: int = 1,
        ended: Callable[[Act], None] | None = None,
        log: Path | None = None,
        watch: Watch | None = None,
        stop: asyncio.Event | None = None,
        urgent: bool = False,
    ) -> PlayedLife:
        """Play one life of a node: acts that share it, at most `concurrency` in parallel, or one alone.

        What acts that share a node leave behind on it is deleted after each; one alone has its own settings.

        Calls `ended` with each act that is over. The log of a kubelet that is a process is kept as `log`.
        `watch` is asked for a listener to the records. With `stop` acts that are being played are ended, and
        none begins; a life that has not begun has an empty trace. What is `urgent` goes before what waits.
        Raises `TargetError` if the runtime can no longer be used.
        """
        stop = stop or asyncio.Event()
        async with self._room.lane(urgent=urgent):
            if stop.is_set():
                return PlayedLife(b"", (), {})
            async with _private_folder() as folder, self._free_runtime(folder) as around:
                life = Life(around, acts, folder, stop, shared=shared, log=log, watch=watch)
                return await life.play(concurrency, ended or _nobody)

    @asynccontextmanager
    async def _free_runtime(self, folder: Path) -> AsyncGenerator[LiveEnvironment]:
        """A runtime for one life: a new one where that is the fake, else one that is not in use."""
        if self._choice.runtime != _FAKE:
            around = self._idle.pop() if self._idle else await self._new_containerd()
            try:
                yield around
            finally:
                try:
                    await _sweep(around)
                finally:
                    self._idle.append(around)
            return
        async with (
            own_fake(folder / "fake" / "cri.sock") as fake,
            connected(fake.socket) as endpoint,
        ):
            yield replace(self._surroundings(endpoint), fake=fake)

    async def close(self) -> None:
        """Leave nothing behind; again is fine."""
        await self._opened.aclose()


async def _tried(process: KubeletTarget) -> dict[str, bool]:
    """Start a kubelet on a node of its own, and stop it; its gates. Raises `TargetError`."""
    async with _private_folder() as folder, own_fake(folder / "fake" / "cri.sock") as fake:
        recorder = Recorder(WallClock().monotonic)
        async with ProcessNode(process, folder, fake.socket, recorder, NODE, isolated=True) as node:
            await node.kubelet.start()
            has_metrics = "metrics" in process.capabilities
            gates = enabled_gates(await node.kubelet.metrics()) if has_metrics else {}
            await node.kubelet.stop()
    return gates


async def _sweep(around: LiveEnvironment) -> None:
    """Remove what scenarios left at the runtime, also when the run is cancelled."""
    work = asyncio.ensure_future(_removed(around))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        await work
        raise


async def _removed(around: LiveEnvironment) -> None:
    try:
        left = await remove_ours(around.endpoint.services)
        if around.private is not None:
            await around.private.restore(around.endpoint.services)
    except grpc.aio.AioRpcError as error:
        left = [f"{error.code().name}: {error.details()}"]
    if left:
        raise TargetError(f"{around.endpoint.path}: what scenarios made cannot be removed: {'; '.join(left)}")


@asynccontextmanager
async def _private_folder() -> AsyncGenerator[Path]:
    """A folder for one life, which has gone in the end with all that is mounted in it."""
    with locked_folder(place_for_sockets()) as folder:
        try:
            yield folder
        finally:
            left = _cleared(folder)
    if left:
        raise TargetError("; ".join(left))


def _cleared(folder: Path) -> list[str]:
    """Remove the folder and everything in it; what resists, in words."""
    left = clear(folder, [each.name for each in folder.iterdir()])
    if not left:
        shutil.rmtree(folder, ignore_errors=True)
    return left


def _nobody(_: Act) -> None:
    """Ignore the end of an act."""
