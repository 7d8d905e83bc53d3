"""A kubelet on a machine that is short of memory or goes down: who acts when."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, cast

import pytest
from config_doubles import Events, a_pod
from lightkube.models.core_v1 import Pod, PodStatus
from on_loop import run_by

from kubelet_fakes.clock import run
from kubelet_reference.api import pods
from kubelet_reference.eviction.eviction_manager import EvictionManager
from kubelet_reference.eviction.nodeshutdown import NodeShutdown
from kubelet_reference.server.host.clock import LoopClock
from kubelet_reference.util.ports import Amount, PodUsage
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

GRACE = {"terminationGracePeriodSeconds": 30}
SHORT, ENOUGH = 50 << 20, 500 << 20
FULL, FREE = Amount(1, 100), Amount(50, 100)


class Machine:
    """A machine with three pods, which are killed in so many seconds each."""

    def __init__(self) -> None:
        self.clock = LoopClock(0)
        self.events = Events()
        self.left: dict[str, Amount] = {}
        self.used: dict[str, PodUsage] = {}
        self.pods = [a_pod(name, uid=name, spec=GRACE) for name in ("a", "b", "c")]
        self.seconds = 2.0
        self.killed: list[tuple[float, str, int | None]] = []
        self.reclaimed = 0
        self.helps = True
        self.leaves_volumes = False
        self.announcement = asyncio.Event()
        self.reported_at = 0.0
        self.free_at: float | None = None

    async def read(self) -> Mapping[str, Amount]:
        """What is left."""
        return self.left

    async def usage(self) -> Mapping[str, PodUsage]:
        """What pods use."""
        return self.used

    async def kill(
        self, pod: Pod, change_status: Callable[[PodStatus], PodStatus], grace: int | None, *, evict: bool
    ) -> bool:
        """Kill a pod."""
        assert change_status is not None
        self.killed.append((self.clock.monotonic(), pods.name(pod), grace))
        await self.clock.sleep(self.seconds)
        if pod in self.pods and not self.leaves_volumes:
            self.pods.remove(pod)
        return evict

    async def reclaim(self) -> None:
        """Remove what nobody needs."""
        self.reclaimed += 1
        if self.helps:
            self.left = {"nodefs.available": FREE}

    async def announced(self) -> None:
        """Wait for the shutdown."""
        await self.announcement.wait()

    def release(self) -> None:
        """Note that the shutdown may go on."""
        self.free_at = self.clock.monotonic()

    def evictions(self, **settings: Any) -> EvictionManager:
        """A manager of evictions on this machine."""
        return EvictionManager(
            stats=self,
            settings=Settings(**settings),
            behaviour=Behaviour.of(),
            clock=self.clock,
            recorder=self.events.recorder,
            killer=cast("Any", self),
            active=lambda: list(self.pods),
            reclaim=self.reclaim,
            is_gone=lambda pod: pod not in self.pods,
        )

    def shutdown(self, kubernetes: str = "1.32", **settings: Any) -> NodeShutdown:
        """A manager of the shutdown of this machine."""
        return NodeShutdown(
            signal=self,
            settings=Settings(**settings),
            behaviour=Behaviour.of(kubernetes),
            clock=self.clock,
            killer=cast("Any", self),
            active=lambda: list(self.pods),
            is_gone=lambda pod: pod not in self.pods,
            is_reported=lambda _: self.clock.monotonic() >= self.reported_at,
            spawn=asyncio.ensure_future,
        )


def on_machine(work: Callable[[Machine], Coroutine[Any, Any, None]]) -> None:
    """Do this work in virtual time."""

    async def main() -> None:
        await work(Machine())

    run(main(), limit_seconds=10_000)


@run_by(on_machine)
async def test_one_pod_at_a_time(machine: Machine) -> None:
    """Pods go one after another, each when the one before is gone, until there is enough (EVICT-01)."""
    manager = machine.evictions()
    machine.left = {"memory.available": Amount(SHORT, 1 << 30)}
    looking = asyncio.ensure_future(manager.run())
    await machine.clock.sleep(4)
    machine.left = {"memory.available": Amount(ENOUGH, 1 << 30)}
    await machine.clock.sleep(100)
    looking.cancel()

    assert machine.killed == [(0, "a", 1), (3, "b", 1)]
    assert manager.pressures() == {"MemoryPressure"}
    assert [reported[1] for reported in machine.events.reported] == ["Evicted", "Evicted"]


@run_by(on_machine)
async def test_pressure_is_believed_for_a_while(machine: Machine) -> None:
    """A look five minutes after a pressure was seen last ends it, and no time without a look (ADMIT-09)."""
    manager = machine.evictions()
    pressures: list[frozenset[str]] = []
    for amount, wait in ((SHORT, 299), (ENOUGH, 1), (ENOUGH, 0)):
        pressures.append(manager.pressures())
        manager.observe({"memory.available": Amount(amount, 1 << 30)})
        await machine.clock.sleep(wait)

    assert pressures == [frozenset(), {"MemoryPressure"}, {"MemoryPressure"}]
    assert manager.pressures() == frozenset()


@run_by(on_machine)
async def test_soft_threshold_has_its_time(machine: Machine) -> None:
    """A soft threshold counts when it has been met for its grace period without a break."""
    soft: Any = {"eviction_soft": {"memory.available": "300Mi"}, "eviction_max_pod_grace_period": 7}
    manager = machine.evictions(**soft, eviction_soft_grace_period={"memory.available": 30})
    low, high = Amount(200 << 20, 1 << 30), Amount(ENOUGH, 1 << 30)
    for amount in (low, low, high, low, low, low):
        machine.left = {"memory.available": amount}
        await manager.check()
        await machine.clock.sleep(10)
    early = list(machine.killed)
    await manager.check()

    assert early == []
    assert machine.killed == [(60, "a", 7)]


@run_by(on_machine)
async def test_node_helps_itself_first(machine: Machine) -> None:
    """A full disk that can be cleared costs no pod its life; another one does (EVICT-01)."""
    manager = machine.evictions()
    machine.left = {"nodefs.available": FULL}
    cleared = await manager.check()
    machine.left, machine.helps = {"nodefs.available": FULL}, False
    evicted = await manager.check()

    assert (list(cleared), machine.reclaimed) == ([], 2)
    assert [pods.name(pod) for pod in evicted] == ["a"]


@run_by(on_machine)
async def test_next_in_line_goes_for_a_critical_pod(machine: Machine) -> None:
    """A pod that the node cannot do without is passed over, even if there is no other (EVICT-04)."""
    manager = machine.evictions()
    machine.left = {"memory.available": Amount(SHORT, 1 << 30)}
    system = {"spec": {"priority": 2_000_000_000}}
    machine.pods = [a_pod("system", uid="system", **system), a_pod("web", uid="web")]
    machine.used = {"system": PodUsage({"memory": 9 << 30})}
    first, second = await manager.check(), await manager.check()

    assert [pods.name(pod) for pod in first] == ["web"]
    assert list(second) == []


@run_by(on_machine)
async def test_shutdown_in_groups(machine: Machine) -> None:
    """Groups are ended one after another, each as soon as the one before is gone (SHUT-01, SHUT-03)."""
    machine.pods.append(a_pod("high", uid="high", spec={"priority": 100, **GRACE}))
    shutdown = machine.shutdown(shutdown_grace_period_by_pod_priority=((0, 40), (100, 10)))
    ending = asyncio.ensure_future(shutdown.run())
    await machine.clock.sleep(5)
    before = shutdown.has_begun
    machine.announcement.set()
    await ending

    assert not before
    assert shutdown.has_begun
    assert machine.killed == [*((5, name, 30) for name in "abc"), (7, "high", 10)]
    assert machine.free_at == 9


@run_by(on_machine)
async def test_group_has_only_its_time(machine: Machine) -> None:
    """A group that is not gone when its time is over does not hold the next one up (SHUT-03)."""
    machine.seconds = 60
    machine.pods.append(a_pod("high", uid="high", spec={"priority": 100, **GRACE}))
    shutdown = machine.shutdown(shutdown_grace_period_by_pod_priority=((0, 8), (100, 4)))
    machine.announcement.set()
    await shutdown.run()

    assert machine.killed == [*((0, name, 8) for name in "abc"), (8, "high", 4)]
    assert machine.free_at == 12


@pytest.mark.parametrize(("kubernetes", "begins"), [("1.31", 2), ("1.32", 8)])
@run_by(on_machine)
async def test_group_is_gone_with_its_volumes(machine: Machine, kubernetes: str, begins: float) -> None:
    """From 1.32 on the next group waits for the volumes of the one before, in its time (SHUT-03)."""
    machine.leaves_volumes = True
    machine.pods.append(a_pod("high", uid="high", spec={"priority": 100, **GRACE}))
    shutdown = machine.shutdown(kubernetes, shutdown_grace_period_by_pod_priority=((0, 8), (100, 4)))
    machine.announcement.set()
    await shutdown.run()
    t, name, _ = machine.killed[-1]

    assert (round(t, 1), name) == (begins, "high")


@pytest.mark.parametrize(("reported_at", "free_at"), [(2, 2), (5, 5), (1000, 30)])
@run_by(on_machine)
async def test_shutdown_waits_for_the_statuses(machine: Machine, reported_at: float, free_at: float) -> None:
    """The machine goes down when it is known how its pods ended, or the time is over (K8S-109531)."""
    machine.reported_at = reported_at
    shutdown = machine.shutdown(shutdown_grace_period=30)
    machine.announcement.set()
    await shutdown.run()

    assert round(machine.free_at or 0, 1) == free_at


@run_by(on_machine)
async def test_shutdown_without_time_is_nobodys_business(machine: Machine) -> None:
    """Where no time is given, nothing waits for a shutdown (SHUT-04)."""
    shutdown = machine.shutdown()
    machine.announcement.set()
    await shutdown.run()

    assert machine.killed == []
    assert not shutdown.has_begun
