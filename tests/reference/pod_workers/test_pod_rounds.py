"""The rounds of a pod worker: which step comes after which, and where a failure ends them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from decisions_bench import a_record
from lightkube.models.core_v1 import Container, Pod, PodIP, PodSpec, PodStatus, Volume
from lightkube.models.meta_v1 import ObjectMeta
from msgspec.structs import replace
from on_loop import in_virtual_time

from kubelet_fakes.clock import run
from kubelet_reference.api import names
from kubelet_reference.api.events import Recorder
from kubelet_reference.api.records import ListedPod, PodRecords
from kubelet_reference.api.sync_result import Action, ActionResult, Failure, SyncResult
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.pod_workers.worker import NetworkNotReady, SyncFailed, WaitCancelled, Waits
from kubelet_reference.status.reason_cache import ReasonCache
from kubelet_reference.util.ports import Disk, PodEvent
from kubelet_reference.volumemanager import VolumesNotReady

RECORDS = PodRecords("u1", "web", "default", ips=("10.0.0.9",))
RUNNING = a_record("app")


@dataclass
class Everything:
    """Stands for all of a round's tools: writes down what is asked, and answers as scripted."""

    steps: list[str] = field(default_factory=list[str])
    phase: str = "Pending"
    network: str | None = None
    volumes_error: VolumesNotReady | None = None
    volumes_seconds: asyncio.Event | None = None
    disk_error: OSError | None = None
    result: SyncResult = field(default_factory=SyncResult)
    stopped: PodRecords = RECORDS
    graces: list[int | None] = field(default_factory=list[int | None])
    given_ips: tuple[str, ...] = ()
    events: list[PodEvent] = field(default_factory=list[PodEvent])
    reasons: ReasonCache = field(default_factory=ReasonCache)

    def __call__(self, pod: Pod, records: PodRecords, *, terminal: bool = False) -> PodStatus:
        """A status."""
        del pod, records
        self.steps.append("final status" if terminal else "status")
        return PodStatus(phase=self.phase, podIPs=[PodIP(ip="10.0.0.1")])

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        """Published."""
        del pod
        self.steps.append(f"publish {status.phase}")

    def terminate_pod(self, pod: Pod) -> None:
        """The last status."""
        del pod
        self.steps.append("last status")

    def network_error(self) -> str | None:
        """Why there is no network."""
        return self.network

    async def keep(self, pod: Pod, mirror: Pod | None) -> None:
        """The mirror."""
        del pod, mirror
        self.steps.append("mirror")

    def make_folder(self, path: str, mode: int) -> None:
        """A data folder, closed to others."""
        assert mode == 0o750
        self.steps.append(f"folder {path}")
        if self.disk_error is not None:
            raise self.disk_error

    async def wait(self, pod: Pod) -> None:
        """Volumes."""
        del pod
        self.steps.append("volumes")
        if self.volumes_seconds is not None:
            await self.volumes_seconds.wait()
        if self.volumes_error is not None:
            raise self.volumes_error

    async def unmount(self, pod: Pod) -> None:
        """No volumes any more."""
        del pod
        self.steps.append("unmount")

    async def pull_secrets(self, pod: Pod) -> tuple[()]:
        """None."""
        del pod
        self.steps.append("secrets")
        return ()

    def add_pod(self, pod: Pod) -> None:
        """Probes."""
        del pod
        self.steps.append("probes")

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """No probe may kill any more."""
        del pod
        self.steps.append("fewer probes")

    def remove_pod(self, pod: Pod) -> None:
        """No probes at all."""
        del pod
        self.steps.append("no probes")

    async def sync_pod(self, pod: Pod, records: PodRecords, pull_secrets: Sequence[object]) -> SyncResult:
        """The seven steps."""
        del pod, pull_secrets
        self.given_ips = records.ips
        self.steps.append("runtime")
        return self.result

    async def kill_pod(self, pod: Pod | None, running: object, grace: int | None) -> SyncResult:
        """Everything stops."""
        del running
        self.graces.append(grace)
        self.steps.append("kill" if pod else "kill without a spec")
        return self.result

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        """A fresh look."""
        del uid, name, namespace
        self.steps.append("look")
        return self.stopped

    def emit(self, event: PodEvent) -> None:
        """Keep the event."""
        self.events.append(event)

    def syncer(self) -> PodSyncer:
        """A syncer with all this."""
        me: Any = self
        return PodSyncer(
            generate=me,
            statuses=me,
            runtime=me,
            prober=me,
            mirrors=me,
            volumes=me,
            disk=cast("Disk", me),
            recorder=Recorder(me),
            reasons=self.reasons,
            root_dir="/k",
            network_error=self.network_error,
            pull_secrets=me.pull_secrets,
            allocate=lambda pod: pod,
        )

    def reported(self) -> list[tuple[str, str]]:
        """Reason and message of each event."""
        return [(event.reason, event.message) for event in self.events]


def pod(*, static: bool = False, volumes: bool = True, host_network: bool = False) -> Pod:
    """A pod with one container."""
    return Pod(
        metadata=ObjectMeta(
            uid="u1",
            name="web",
            namespace="default",
            annotations={names.CONFIG_SOURCE: "file"} if static else {},
        ),
        spec=PodSpec(
            containers=[Container(name="app")],
            volumes=[Volume(name="v")] if volumes else None,
            hostNetwork=host_network,
        ),
    )


def sync(world: Everything, one: Pod, waits: Waits | None = None) -> bool:
    """One sync round."""
    return run(world.syncer().sync_pod(one, None, RECORDS, waits or Waits()))


FOLDERS = ["folder /k/pods/u1", "folder /k/pods/u1/volumes", "folder /k/pods/u1/plugins"]


def test_order_of_a_sync() -> None:
    """The status is published before anything is done, and the runtime comes last (SYNC-01, SYNC-02)."""
    world = Everything()

    assert not sync(world, pod(static=True))
    assert world.steps == [
        "status",
        "publish Pending",
        "mirror",
        *FOLDERS,
        "volumes",
        "secrets",
        "probes",
        "runtime",
    ]
    assert world.given_ips == ("10.0.0.1",)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pod_that_has_ended(phase: str) -> None:
    """A pod whose phase is terminal is only reported; the worker goes on to terminating (SYNC-08)."""
    world = Everything(phase=phase)

    assert sync(world, pod())
    assert world.steps == ["status", f"publish {phase}"]


def test_no_network() -> None:
    """Without a network the round ends before anything is set up, but for pods on the host's (SYNC-09)."""
    world = Everything(network="no plugin")
    with pytest.raises(NetworkNotReady, match="network is not ready: no plugin"):
        sync(world, pod())

    assert world.steps == ["status", "publish Pending"]
    assert world.reported() == [("NetworkNotReady", "network is not ready: no plugin")]
    host = Everything(network="no plugin")
    sync(host, pod(host_network=True))
    assert host.steps[-1] == "runtime"


def test_no_folders() -> None:
    """A data folder that cannot be made ends the round with an event (SYNC-11)."""
    world = Everything(disk_error=OSError("disk full"))
    with pytest.raises(OSError, match="disk full"):
        sync(world, pod())

    assert "volumes" not in world.steps
    assert world.reported() == [
        ("FailedToMakePodDataDirectories", "error making pod data directories: disk full")
    ]


def test_no_volumes() -> None:
    """A volume that is not ready ends the round before the runtime is asked (SYNC-10)."""
    world = Everything(volumes_error=VolumesNotReady("no secret"))
    with pytest.raises(SyncFailed):
        sync(world, pod())

    assert world.steps[-1] == "volumes"
    assert world.reported() == [("FailedMount", "Unable to attach or mount volumes: no secret")]


@in_virtual_time
async def test_wait_for_volumes_is_cut() -> None:
    """A termination ends the wait for volumes without an event (WORK-06)."""
    world = Everything()
    waits = Waits()
    world.volumes_seconds = asyncio.Event()
    asyncio.get_running_loop().call_later(5, waits.cancel)
    with pytest.raises(WaitCancelled):
        await world.syncer().sync_pod(pod(), None, RECORDS, waits)

    assert asyncio.get_running_loop().time() == 5

    assert world.steps[-1] == "volumes"
    assert world.events == []


@in_virtual_time
async def test_crash_passes_through_a_wait() -> None:
    """A round that is cancelled while it waits is cancelled, and its wait with it."""
    world = Everything()
    world.volumes_seconds = asyncio.Event()
    task = asyncio.ensure_future(world.syncer().sync_pod(pod(), None, RECORDS, Waits()))
    asyncio.get_running_loop().call_later(5, task.cancel)
    await asyncio.wait([task])

    assert task.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_reasons_are_remembered() -> None:
    """A failed start is kept for the next status, a good one forgotten (SYNC-15, WORK-16)."""
    start = Action.START_CONTAINER
    failed = ActionResult(start, "app", Failure.CRASH_LOOP_BACK_OFF, "back-off 10s")
    world = Everything(result=SyncResult((ActionResult(Action.KILL_CONTAINER, "web"), failed)))
    with pytest.raises(SyncFailed, match="CrashLoopBackOff"):
        sync(world, pod())
    known = world.reasons.get("u1", "app")
    world.result = SyncResult((ActionResult(start, "app"),))
    sync(world, pod())

    assert known is not None
    assert (known.reason, known.message) == ("CrashLoopBackOff", "back-off 10s")
    assert world.reasons.get("u1", "app") is None


def terminate(world: Everything, grace: int | None = 7) -> None:
    """One terminating round."""
    run(world.syncer().sync_terminating_pod(pod(), RECORDS, grace, None))


def test_order_of_terminating() -> None:
    """Status, probes that could kill, kill, all probes, a fresh look, the final status (TERM-01)."""
    world = Everything(phase="Running")
    terminate(world)

    assert world.graces == [7]
    assert world.steps == [
        "status",
        "publish Running",
        "fewer probes",
        "kill",
        "no probes",
        "look",
        "final status",
        "publish Running",
    ]


def test_kill_that_fails() -> None:
    """A failed kill is an event, and no final status is published (TERM-25, WORK-10)."""
    failed = ActionResult(Action.KILL_SANDBOX, "u1", Failure.KILL_SANDBOX, "no answer")
    world = Everything(result=SyncResult((failed,)))
    with pytest.raises(SyncFailed):
        terminate(world)

    assert world.steps[-1] == "kill"
    assert [reason for reason, _ in world.reported()] == ["FailedKillPod"]


def test_runtime_that_lies() -> None:
    """If something still runs after all was stopped, the round fails; nothing final is reported (WORK-11)."""
    world = Everything(stopped=replace(RECORDS, containers=(RUNNING,)))
    with pytest.raises(SyncFailed, match="running containers after a successful kill: app"):
        terminate(world)

    assert world.steps[-1] == "look"


def test_status_that_a_killer_changes() -> None:
    """Who asked for the kill may change the status that is published first (WORK-21)."""
    world = Everything(phase="Running")

    def evicted(status: PodStatus) -> PodStatus:
        del status
        return PodStatus(phase="Failed", reason="Evicted")

    run(world.syncer().sync_terminating_pod(pod(), RECORDS, None, evicted))

    assert world.steps[1] == "publish Failed"
    assert world.graces == [None]


def test_pod_without_a_spec() -> None:
    """A pod that only the runtime knows is killed with 1 s, and nothing is said of it (WORK-24)."""
    world = Everything()
    run(world.syncer().sync_terminating_runtime_pod(ListedPod("u1", "web", "default", (), ())))

    assert world.steps == ["kill without a spec"]
    assert world.graces == [1]


@pytest.mark.parametrize(("volumes", "steps"), [(True, ["unmount"]), (False, [])], ids=["volumes", "none"])
def test_order_of_terminated(volumes: bool, steps: list[str]) -> None:  # noqa: FBT001 - pytest gives it
    """The final status once more, then the volumes, and at the very end the last status (WORK-12)."""
    world = Everything(phase="Succeeded")
    run(world.syncer().sync_terminated_pod(pod(volumes=volumes), RECORDS, Waits()))

    assert world.steps == ["final status", "publish Succeeded", *steps, "last status"]
