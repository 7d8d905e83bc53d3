"""The whole kubelet: each way in which a pod comes to its end, and what stays of it."""

import pytest
from kubelet_world import World, in_world, manifest
from on_loop import run_by

VERSIONS = pytest.mark.parametrize("version", ["1.26", "1.32"])


def timeouts(world: World) -> list[int]:
    """The grace of each StopContainer so far."""
    return [request.timeout for request in world.calls("StopContainer")]


@pytest.mark.parametrize(("version", "grace"), [("1.26", 1), ("1.32", 2)])
@run_by(in_world, takes=("version",))
async def test_orphan(world: World, grace: int) -> None:
    """What runs and no source wants is killed two seconds after the start, no sooner (CLEANUP-08)."""
    await world.start()
    world.api.create(manifest())
    await world.let(5)
    await world.crash()
    world.api.delete("default", "web", 0)
    await world.start()
    await world.let(1.5)
    early = world.changes(since=4)
    await world.let(3)

    assert early == []
    assert world.changes(since=4)[:2] == ["StopContainer", "StopPodSandbox"]
    assert timeouts(world) == [grace]


@pytest.mark.parametrize(("version", "grace"), [("1.26", 5), ("1.32", 2)])
@run_by(in_world, takes=("version",))
async def test_forced_deletion(world: World, grace: int) -> None:
    """Grace 0 asked for is as short as can be; 1.26 takes the spec's (WORK-08, WORK-33)."""
    await world.start()
    world.api.create(manifest())
    await world.let(3)
    world.api.delete("default", "web", 0)
    await world.let(3)

    assert timeouts(world) == [grace]


@run_by(in_world)
async def test_silent_api_server_keeps_its_pods(world: World) -> None:
    """While a source has not spoken since the start, nothing is killed for not being wanted (LOOP-08)."""
    await world.start()
    world.api.create(manifest())
    await world.let(5)
    await world.crash()
    outage = world.api.outage()
    world.api.delete("default", "web", 0)
    await world.start()
    await world.let(60)
    during = world.changes(since=4)
    outage.heal()
    await world.let(60)

    assert during == []
    assert world.changes(since=4)[:2] == ["StopContainer", "StopPodSandbox"]


@VERSIONS
@run_by(in_world, takes=("version",))
async def test_edited_manifest(world: World) -> None:
    """The new version of a static pod starts after the old one is all gone, in at most 16 s (STATIC-18)."""
    world.write("web", command="run stopdelay=3")
    await world.start()
    await world.let(3)
    world.write("web", command="run")
    await world.let(20)
    changes = world.changes(since=2)
    began = [at for at, rpc, _ in world.tap.calls if rpc == "RunPodSandbox"]

    assert changes[:2] == ["StopContainer", "StopPodSandbox"]
    assert timeouts(world) == [5]
    assert changes[-1] == "StartContainer"
    assert 6 <= began[1] <= 22


@VERSIONS
@run_by(in_world, takes=("version",))
async def test_manifest_that_comes_back(world: World) -> None:
    """A static pod with a UID of its own that is removed and put back starts afresh (WORK-22)."""
    world.write("web", uid="11111111-1111-1111-1111-111111111111", command="run stopdelay=3")
    await world.start()
    await world.let(3)
    world.unlink("web")
    await world.let(1)
    world.write("web", uid="11111111-1111-1111-1111-111111111111", command="run stopdelay=3")
    await world.let(12)
    sandboxes = world.calls("RunPodSandbox")
    order = [rpc for rpc in world.changes() if rpc in {"RunPodSandbox", "StopPodSandbox"}]

    assert list(dict.fromkeys(order)) == ["RunPodSandbox", "StopPodSandbox"]
    assert order[-1] == "RunPodSandbox"
    assert sandboxes[0].config.metadata.uid == sandboxes[1].config.metadata.uid


@VERSIONS
@run_by(in_world, takes=("version",))
async def test_deadline(world: World) -> None:
    """A pod past its deadline is stopped within two seconds, and is Failed for that reason (DEADLINE-01)."""
    await world.start()
    world.api.create(manifest(activeDeadlineSeconds=5))
    await world.let(5)
    early = world.changes()
    await world.let(5)
    found = world.api.get("default", "web") or {}

    assert "StopContainer" not in early
    assert world.changes()[-2:] == ["StopContainer", "StopPodSandbox"]
    assert world.calls("StopContainer")[0].timeout == 5
    assert (found["status"]["phase"], found["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert world.reasons().count("DeadlineExceeded") >= 3


@run_by(in_world)
async def test_deadline_outlives_the_kubelet(world: World) -> None:
    """A restarted kubelet counts from the same start (DEADLINE-02)."""
    await world.start()
    world.api.create(manifest(activeDeadlineSeconds=20))
    await world.let(10)
    await world.crash()
    await world.start()
    await world.let(8)
    early = world.changes(since=9)
    await world.let(5)

    assert early == []
    assert world.changes(since=9) == ["StopContainer", "StopPodSandbox"]


@VERSIONS
@run_by(in_world, takes=("version",))
async def test_rejected_pod(world: World) -> None:
    """A pod that cannot run here is Failed without a call, and can be deleted (ADMIT-02, WORK-34)."""
    await world.start()
    world.api.create(manifest(nodeSelector={"zone": "elsewhere"}))
    await world.let(15)
    found = world.api.get("default", "web") or {}
    world.api.delete("default", "web")
    await world.let(15)

    assert world.changes() == []
    assert (found["status"]["phase"], found["status"]["reason"]) == ("Failed", "NodeAffinity")
    assert world.reasons() == ["NodeAffinity"]
    assert world.api.get("default", "web") is None


@run_by(in_world, max_pods=1)
async def test_rejected_pod_takes_no_room(world: World) -> None:
    """Pods that ended or were refused do not count; of two new ones the older gets the room (K8S-104577)."""
    await world.start()
    world.api.create(manifest("done", command="exit 0 1", restartPolicy="Never"))
    await world.let(5)
    world.api.create(manifest("first"))
    world.api.create(manifest("second"))
    await world.let(15)

    assert world.phase("first") == "Running"
    assert world.phase("second") == "Failed"


@run_by(in_world)
async def test_deletion_of_a_pod_that_never_started(world: World) -> None:
    """A pod that waits for a volume is deleted without any call to the runtime (TERM-24, SYNC-10)."""
    await world.start()
    volume = {"name": "v", "secret": {"secretName": "missing"}}
    wanted = manifest(volumes=[volume])
    wanted["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/v"}]
    world.api.create(wanted)
    await world.let(30)
    waiting = world.phase("web")
    world.api.delete("default", "web")
    await world.let(5)

    assert waiting == "Pending"
    assert world.changes() == []
    assert "FailedMount" in world.reasons()
    assert world.api.get("default", "web") is None


@run_by(in_world)
async def test_failed_stop_is_repeated(world: World) -> None:
    """A pod whose sandbox cannot be stopped stays until that succeeds, though nobody wants it (WORK-10)."""
    await world.start()
    world.api.create(manifest())
    await world.let(3)
    world.runtime.faults.add("StopPodSandbox", times=2)
    world.api.delete("default", "web", 0)
    await world.let(40)

    assert world.changes().count("StopPodSandbox") == 3
    assert "FailedKillPod" in world.reasons()


@run_by(in_world)
async def test_runtime_that_is_not_ready(world: World) -> None:
    """While the runtime is not ready nothing is done to any pod; afterwards all goes on (LOOP-03)."""
    world.runtime.set_conditions(runtime_ready=False)
    await world.start()
    world.api.create(manifest())
    await world.let(20)
    during, phase = world.changes(), world.phase("web")
    world.runtime.set_conditions()
    await world.let(6)

    assert during == []
    assert phase == "Pending"
    assert world.changes()[-1] == "StartContainer"


@run_by(in_world)
async def test_network_that_is_not_ready(world: World) -> None:
    """Without a network only pods on the host's network start; the others follow later (SYNC-09)."""
    world.runtime.set_conditions(network_ready=False)
    await world.start()
    world.api.create(manifest("own"))
    world.api.create(manifest("host", hostNetwork=True))
    await world.let(10)
    during = [request.config.metadata.name for request in world.calls("RunPodSandbox")]
    world.runtime.set_conditions()
    await world.let(7)

    assert during == ["host"]
    assert "NetworkNotReady" in world.reasons()
    assert world.phase("own") == "Running"
