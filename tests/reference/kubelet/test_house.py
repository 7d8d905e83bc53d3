"""Housekeeping: what is wanted, what has a worker and what runs are brought together."""

from datetime import UTC, datetime, timedelta

import pytest
from kubelet_world import EPOCH_NS, World, in_world, manifest
from lightkube.models.core_v1 import Pod, PodSpec, PodStatus
from lightkube.models.meta_v1 import ObjectMeta
from on_loop import run_by

from kubelet_reference.api.events import Recorder
from kubelet_reference.kubelet.housekeeping import Housekeeping
from kubelet_reference.kubelet.parts import Parts
from kubelet_reference.pod_workers.active_deadline import Deadlines, is_past_deadline
from kubelet_reference.util.ports import PodEvent

ORDER = [
    "drop_orphan_statuses",
    "remove_orphan_folders",
    "delete_orphan_mirrors",
    "restart_forgotten",
    "finish_deleted",
    "kill_unknown",
]
OLD_ORDER = ["kill_unknown", *ORDER[:4]]


@pytest.mark.parametrize(("version", "order"), [("1.32", ORDER), ("1.26", OLD_ORDER)])
def test_order(version: str, order: list[str]) -> None:
    """The parts of the work come in their order; 1.26 kills early and restarts last (CLEANUP-01)."""
    done: list[str] = []

    class Noted(Housekeeping):
        def __getattribute__(self, name: str) -> object:
            if name in ORDER:
                done.append(name)
            return super().__getattribute__(name)

    async def work(world: World) -> None:
        await world.start()
        await world.let(2.5)

        assert done == order

    in_world(work, parts=Parts(housekeeping=Noted), version=version)


@run_by(in_world)
async def test_folders_of_pods_that_are_gone(world: World) -> None:
    """A pod's folder stays as long as the pod is wanted, and goes after it (CLEANUP-03, CLEANUP-04)."""
    world.disk.make_folder("/var/lib/kubelet/pods/unknown/volumes")
    await world.start()
    made = world.api.create(manifest(command="exit 0 1", restartPolicy="Never"))
    folder = f"/var/lib/kubelet/pods/{made['metadata']['uid']}"
    await world.let(10)
    kept = world.disk.is_folder(folder)
    world.api.delete("default", "web")
    await world.let(10)

    assert kept
    assert not world.disk.is_folder(folder)
    assert not world.disk.is_folder("/var/lib/kubelet/pods/unknown")


@run_by(in_world)
async def test_mirror_stays_until_its_pod_has_stopped(world: World) -> None:
    """The mirror of a removed static pod goes after the containers have stopped (STATIC-15)."""
    world.write("web", command="run stopdelay=4")
    await world.start()
    await world.let(3)
    world.unlink("web")
    await world.let(3)
    during = world.api.get("default", "web-node")
    await world.let(5)

    assert during is not None
    assert world.api.get("default", "web-node") is None


@run_by(in_world)
async def test_empty_sources_are_sources(world: World) -> None:
    """Orphans are killed although no pod is wanted at all (LOOP-07, K8S-3355)."""
    world.write("web")
    await world.start()
    await world.let(3)
    await world.crash()
    world.unlink("web")
    await world.start()
    await world.let(5)

    assert world.changes(since=2)[:2] == ["StopContainer", "StopPodSandbox"]


@run_by(in_world)
async def test_slow_stop_holds_up_nobody(world: World) -> None:
    """While one pod takes its time to stop, another one starts at once (LOOP-13)."""
    await world.start()
    world.api.create(manifest("slow", command="run stopdelay=60", terminationGracePeriodSeconds=60))
    await world.let(3)
    world.api.delete("default", "slow")
    await world.let(5)
    world.api.create(manifest("quick"))
    await world.let(2)

    assert world.phase("quick") == "Running"


def limited(seconds: int | None) -> Pod:
    """A pod with a deadline."""
    spec = PodSpec(containers=[], activeDeadlineSeconds=seconds)
    return Pod(metadata=ObjectMeta(uid="u1", name="web"), spec=spec)


def since(seconds: float) -> PodStatus:
    """The status of a pod that started so long after the epoch of the tests."""
    return PodStatus(startTime=datetime.fromtimestamp(EPOCH_NS // 10**9, UTC) + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("seconds", "status", "expected"),
    [
        (10, since(0), False),
        (10, since(-9), False),
        (10, since(-10), True),
        (None, since(-1000), False),
        (10, PodStatus(), False),
        (10, None, False),
    ],
    ids=["new", "nearly", "past", "none-set", "not-started", "no-status"],
)
def test_deadline_counts_from_the_start(
    seconds: int | None,
    status: PodStatus | None,
    expected: bool,  # noqa: FBT001 - pytest gives it
) -> None:
    """A deadline is over so many seconds after startTime; without either there is none (DEADLINE-01)."""
    assert is_past_deadline(limited(seconds), status, EPOCH_NS) is expected


class Now:
    """A clock that stands still, and a sink that keeps events."""

    def __init__(self) -> None:
        self.events: list[PodEvent] = []

    def monotonic(self) -> float:
        """Zero."""
        return 0

    def wall_ns(self) -> int:
        """The epoch of the tests."""
        return EPOCH_NS

    async def sleep(self, seconds: float) -> None:
        """Never used here."""
        raise NotImplementedError(seconds)

    def emit(self, event: PodEvent) -> None:
        """Keep the event."""
        self.events.append(event)


def test_only_pods_with_a_deadline_are_due() -> None:
    """A pod is due when its time is over; the answer is the same each time."""
    now = Now()
    deadlines = Deadlines(lambda _: since(-20), now, Recorder(now))
    due = [deadlines.due([limited(seconds)]) for seconds in (None, 10, 600)]
    endings = [deadlines.ending(limited(10)) for _ in range(2)]

    assert due == [[], ["u1"], []]
    assert [ending.reason for ending in endings if ending] == ["DeadlineExceeded"] * 2
    assert [event.reason for event in now.events] == ["DeadlineExceeded"] * 2


def _working(world: World) -> set[str]:
    """What the metric says of the pods that have a worker."""
    lines = world.kubelet.metrics_text().splitlines()
    return {line for line in lines if line.startswith("kubelet_working_pods{")}


@run_by(in_world)
async def test_workers_are_counted(world: World) -> None:
    """The metric tells workers by lifecycle, by who wants the pod, and static pods from others."""
    await world.start()
    world.api.create(manifest())
    world.write("own")
    await world.let(6)
    before = _working(world)
    world.api.delete("default", "web")
    world.unlink("own")
    await world.let(70)

    assert before == {
        'kubelet_working_pods{config="desired",lifecycle="sync",static="false"} 1.0',
        'kubelet_working_pods{config="desired",lifecycle="sync",static="true"} 1.0',
    }
    assert _working(world) == set()
