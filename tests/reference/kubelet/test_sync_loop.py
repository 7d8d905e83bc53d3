"""The sync loop: five inputs, one item at a time, and nothing while the runtime is unfit."""

import asyncio

from cri_api.v1 import api_pb2 as cri
from fixed_random import FixedRandom
from kubelet_world import World, in_world, manifest
from on_loop import in_virtual_time, run_by

from kubelet_fakes.clock import run
from kubelet_reference.cri.client import CriClient
from kubelet_reference.cri.errors import BadReply
from kubelet_reference.kubelet.parts import Parts
from kubelet_reference.kubelet.runtime_state import RuntimeState
from kubelet_reference.kubelet.sync_loop import Inputs, SyncLoop
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.util.ports import Random
from kubelet_reference.util.versions import Behaviour


class LastChance(FixedRandom):
    """Always takes what came last."""

    def pick(self, count: int) -> int:
        """The last."""
        return count - 1


def taken(random: Random) -> list[str]:
    """In which order three sources with two items each are read."""

    async def main() -> list[str]:
        inputs = Inputs[str](random)
        queues = [asyncio.Queue[str]() for _ in range(3)]
        for number, queue in enumerate(queues):
            for item in ("a", "b"):
                queue.put_nowait(f"{item}{number}")
        async with asyncio.TaskGroup() as group:
            feeds = [group.create_task(inputs.feed(queue.get)) for queue in queues]
            await LoopClock(0).sleep(0)
            found = [await inputs.next() for _ in range(6)]
            for feed in feeds:
                feed.cancel()
        return found

    return run(main())


def test_chance_picks_among_ready_inputs() -> None:
    """Whichever is taken, each source is read in its own order, and none is left out (LOOP-02)."""
    first, last = taken(FixedRandom()), taken(LastChance())

    assert sorted(first) == sorted(last) == ["a0", "a1", "a2", "b0", "b1", "b2"]
    assert first != last
    for order in (first, last):
        assert all(order.index(f"a{n}") < order.index(f"b{n}") for n in range(3))


def test_late_ticks_are_left_out() -> None:
    """A late reader of a ticking input gets one tick at once, and then those of the old grid."""

    async def main() -> list[float]:
        clock = LoopClock(0)
        inputs = Inputs[str](FixedRandom())
        async with asyncio.TaskGroup() as group:
            feed = group.create_task(inputs.feed_ticks(1.0, "tick"))
            await clock.sleep(3.5)
            found: list[float] = []
            for _ in range(4):
                await inputs.next()
                found.append(clock.monotonic())
            feed.cancel()
        return found

    assert run(main()) == [3.5, 3.5, 4, 5]


class Runtime(CriClient):
    """A runtime whose answers are set; None is an error."""

    def __init__(self) -> None:
        self.ready: bool | None = True
        self.network = True
        self.asked: list[str] = []

    async def version(self) -> cri.VersionResponse:
        """Its name."""
        self.asked.append("version")
        self._fail()
        return cri.VersionResponse(runtime_name="fake")

    async def runtime_config(self) -> cri.RuntimeConfigResponse:
        """Not known to it."""
        self.asked.append("runtime_config")
        raise BadReply("no such call")

    async def status(self) -> cri.RuntimeStatus:
        """Its conditions."""
        self.asked.append("status")
        self._fail()
        ready = cri.RuntimeCondition(type="RuntimeReady", status=bool(self.ready), reason="Broken")
        network = cri.RuntimeCondition(type="NetworkReady", status=self.network)
        return cri.RuntimeStatus(conditions=[ready, network])

    def _fail(self) -> None:
        if self.ready is None:
            raise BadReply("no answer")


def state_of(runtime: Runtime, version: str = "1.32") -> tuple[RuntimeState, LoopClock]:
    """The state of a runtime whose PLEG is well."""
    clock = LoopClock(0)
    return RuntimeState(runtime, clock, Behaviour.of(version), lambda: None), clock


@in_virtual_time
async def test_runtime_is_unfit_until_it_said_otherwise() -> None:
    """Before the first good Status, and while RuntimeReady is false, the runtime is unfit (LOOP-03)."""
    runtime = Runtime()
    state, _ = state_of(runtime)
    before = state.errors()
    await state.poll()
    fit = state.errors()
    runtime.ready = False
    await state.poll()

    assert before == ["container runtime status check may not have completed yet"]
    assert fit == []
    assert state.errors() == ["container runtime not ready: Broken"]


@in_virtual_time
async def test_runtime_without_answer_is_down_after_30_seconds() -> None:
    """A poll that fails is no error by itself: the runtime counts as down 30 s after the last good one."""
    runtime = Runtime()
    state, clock = state_of(runtime)
    await state.poll()
    runtime.ready = None
    await clock.sleep(30)
    await state.poll()
    failed = state.errors()
    await clock.sleep(1)

    assert failed == []
    assert state.errors() == ["container runtime is down"]


@in_virtual_time
async def test_network_is_no_matter_of_the_runtime() -> None:
    """NetworkReady false leaves the runtime fit (LOOP-04)."""
    runtime = Runtime()
    state, _ = state_of(runtime)
    unknown = state.network_error()
    runtime.network = False
    await state.poll()

    assert unknown == "network state unknown"
    assert state.errors() == []
    assert state.network_error() == "container runtime network not ready:"


def test_runtime_is_asked_often_until_it_is_ready() -> None:
    """Polls are 100 ms apart until the first good answer, then 5 s; names come first (LOOP-05, CRI-42)."""

    async def main(version: str) -> list[str]:
        runtime = Runtime()
        runtime.ready = None
        state, clock = state_of(runtime, version)
        async with asyncio.TaskGroup() as group:
            polling = group.create_task(state.run())
            await clock.sleep(0.15)
            runtime.ready = False
            await clock.sleep(0.4)
            runtime.ready = True
            await clock.sleep(10)
            polling.cancel()
        return runtime.asked

    assert run(main("1.32")) == ["version", "version", "version", "runtime_config", *["status"] * 6]
    assert "runtime_config" not in run(main("1.26"))


def test_lost_events_are_repaired_by_the_resync() -> None:
    """A kubelet that hears no PLEG event still restarts a container, within 90 s (LOOP-20)."""

    class Deaf(SyncLoop):
        def take_event(self, event: object) -> None:
            """Hear nothing."""

    async def work(world: World) -> None:
        await world.start()
        world.api.create(manifest(command="seq 1@100 0@9999"))
        await world.let(200)

        assert world.changes().count("StartContainer") == 2

    in_world(work, parts=Parts(sync_loop=Deaf))


@run_by(in_world)
async def test_health(world: World) -> None:
    """A kubelet is healthy while its loop turns and its relists succeed (LOOP-19, PLEG-08)."""
    kubelet = await world.start()
    await world.let(5)
    well = kubelet.healthy()
    with world.runtime.faults.add("ListContainers", code="UNAVAILABLE"):
        await world.let(600)
        ill = kubelet.healthy()
    await world.let(30)

    assert (well, ill, kubelet.healthy()) == (True, False, True)
    assert "kubelet_running_pods" in kubelet.metrics_text()
