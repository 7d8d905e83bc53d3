"""The whole kubelet: pods come, run and go, and a kubelet's end leaves them alone."""

import pytest
from kubelet_world import World, in_world, manifest
from on_loop import run_by

STARTED = ["RunPodSandbox", "PullImage", "CreateContainer", "StartContainer"]
VERSIONS = pytest.mark.parametrize("version", ["1.26", "1.32"])


@VERSIONS
@run_by(in_world, takes=("version",))
async def test_pod_from_a_file(world: World) -> None:
    """A static pod starts, is shown by its mirror, and is gone some seconds after its manifest."""
    world.write("web")
    await world.start()
    await world.let(3)
    started, phase = world.changes(), world.phase("web-node")
    world.unlink("web")
    await world.let(5)

    assert started == STARTED
    assert phase == "Running"
    assert world.changes()[4:6] == ["StopContainer", "StopPodSandbox"]
    assert world.calls("StopContainer")[0].timeout == 5
    assert world.api.get("default", "web-node") is None


@VERSIONS
@run_by(in_world, takes=("version",))
async def test_pod_from_the_api_server(world: World) -> None:
    """A pod starts, reports Running, and after its deletion is stopped, reported, and deleted for good."""
    await world.start()
    world.api.create(manifest())
    await world.let(3)
    started, phase = world.changes(), world.phase("web")
    world.api.delete("default", "web")
    await world.let(3)

    assert started == STARTED
    assert phase == "Running"
    assert world.changes()[4:6] == ["StopContainer", "StopPodSandbox"]
    assert world.api.get("default", "web") is None
    await world.let(120)
    assert world.changes()[-2:] == ["StopPodSandbox", "RemovePodSandbox"]


@run_by(in_world, with_api_server=False)
async def test_pod_without_an_api_server(world: World) -> None:
    """A static pod needs no API server: it starts, and ends with its manifest (STATIC-10)."""
    world.write("web")
    await world.start()
    await world.let(3)
    world.unlink("web")
    await world.let(5)

    assert world.changes()[:6] == [*STARTED, "StopContainer", "StopPodSandbox"]


@run_by(in_world)
async def test_stop_changes_nothing(world: World) -> None:
    """A kubelet that is asked to end does so at once, and leaves its containers running."""
    await world.start()
    world.api.create(manifest())
    await world.let(5)
    await world.stop()
    await world.let(5)

    assert world.changes() == STARTED
    assert not world.is_running


@run_by(in_world)
async def test_hook_that_outlives_the_kubelet(world: World) -> None:
    """Even a preStop hook that nobody waits for any more ends with the kubelet."""
    await world.start()
    pod = manifest(command="run stopdelay=60", terminationGracePeriodSeconds=2)
    hook = {"preStop": {"exec": {"command": ["x", "0", "600"]}}}
    pod["spec"]["containers"][0]["lifecycle"] = hook
    world.api.create(pod)
    await world.let(3)
    world.api.delete("default", "web")
    await world.let(3)

    assert len(world.calls("StopContainer")) == 1


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


def test_same_scenario_twice_is_the_same() -> None:
    """Two runs of the same work make the same calls at the same times."""
    runs: list[list[tuple[float, str]]] = []

    async def work(world: World) -> None:
        world.write("static")
        await world.start()
        for name in ("a", "b", "c"):
            world.api.create(manifest(name, command="exit 1 2"))
        await world.let(90)
        runs.append([(at, rpc) for at, rpc, _ in world.tap.calls])

    in_world(work)
    in_world(work)

    assert runs[0] == runs[1]
