"""Volumes in the life of a pod and a kubelet: before the sandbox, after the last container, over restarts."""

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from kubelet_world import World, in_world, manifest
from on_loop import run_by

Json = dict[str, Any]
PODS = "/var/lib/kubelet/pods"


def wanted(*volumes: Json, command: str = "run", **spec: Any) -> Json:
    """A pod whose container mounts these volumes, a part of the first at /part."""
    made = manifest(command=command, volumes=list(volumes), **spec)
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    part = {"name": volumes[0]["name"], "mountPath": "/part", "subPath": "part"}
    made["spec"]["containers"][0]["volumeMounts"] = [*mounts, part]
    return made


EMPTY: Json = {"name": "e", "emptyDir": {}}
MEMORY: Json = {"name": "m", "emptyDir": {"medium": "Memory"}}


def folder_of(pod: Mapping[str, Any]) -> str:
    """A pod's folder."""
    return f"{PODS}/{pod['metadata']['uid']}"


@run_by(in_world)
async def test_volumes_come_before_the_sandbox(world: World) -> None:
    """When the sandbox is asked for, all volumes are there (SYNC-02, SYNC-10)."""
    world.runtime.faults.add("RunPodSandbox", delay=5)
    await world.start()
    pod = world.api.create(wanted(EMPTY, MEMORY))
    await world.let(2)
    asked, mounted = world.changes(), world.disk.mounts(PODS)
    made = world.disk.is_folder(f"{folder_of(pod)}/volumes/kubernetes.io~empty-dir/e")
    await world.let(6)

    assert asked == ["RunPodSandbox"]
    assert made
    assert mounted == [f"{folder_of(pod)}/volumes/kubernetes.io~empty-dir/m"]


@run_by(in_world)
async def test_volumes_go_after_the_last_container(world: World) -> None:
    """While a container still ends its volumes stay; then they go, and after them the object (WORK-12)."""
    await world.start()
    pod = world.api.create(wanted(EMPTY, MEMORY, command="run stopdelay=4"))
    await world.let(3)
    world.api.delete("default", "web")
    await world.let(3)
    during = world.disk.mounts(folder_of(pod))
    kept = world.api.get("default", "web")
    await world.let(8)

    assert len(during) == 2
    assert kept is not None
    assert world.disk.mounts("/") == []
    assert world.api.get("default", "web") is None
    assert not world.disk.is_folder(folder_of(pod))


@run_by(in_world)
async def test_volumes_that_cannot_go_keep_the_object(world: World) -> None:
    """As long as a volume is in use the pod is not called finished; it is tried again (TERM-18, WORK-12)."""
    await world.start()
    pod = world.api.create(wanted(EMPTY))
    await world.let(3)
    inner = f"{folder_of(pod)}/volumes/kubernetes.io~empty-dir/e/inner"
    world.disk.make_folder(inner)
    world.disk.mount_memory(inner, 1)
    world.api.delete("default", "web")
    await world.let(20)
    kept = world.api.get("default", "web")
    world.disk.unmount(inner)
    await world.let(30)

    assert kept is not None
    assert kept["status"]["phase"] == "Succeeded"
    assert world.api.get("default", "web") is None


@run_by(in_world)
async def test_finished_pod_keeps_its_folder(world: World) -> None:
    """A pod that has ended gives its volumes up, and its folder stays until it is deleted (CLEANUP-04)."""
    await world.start()
    pod = world.api.create(wanted(EMPTY, MEMORY, command="exit 0 1", restartPolicy="Never"))
    await world.let(10)

    assert world.phase("web") == "Succeeded"
    assert world.disk.mounts("/") == []
    assert world.disk.names(folder_of(pod)) == ["containers", "etc-hosts", "plugins"]


@pytest.mark.parametrize("version", ["1.32", "1.26"])
@run_by(in_world, takes=("version",))
async def test_new_life_takes_volumes_over(world: World) -> None:
    """A kubelet that starts leaves the volumes of a running pod as they are, and clears them at its end."""
    await world.start()
    pod = world.api.create(wanted(EMPTY, MEMORY))
    await world.let(3)
    own = f"{folder_of(pod)}/volumes/kubernetes.io~empty-dir/m/own"
    world.disk.write(own, b"1")
    await world.crash()
    await world.start()
    await world.let(5)
    kept = world.disk.read(own), len(world.disk.mounts("/"))
    await world.crash()
    world.api.delete("default", "web")
    await world.start()
    await world.let(20)

    assert kept == (b"1", 2)
    assert world.disk.mounts("/") == []
    assert world.api.get("default", "web") is None
    assert world.disk.names(PODS) == []


@run_by(in_world)
async def test_pod_that_went_while_the_kubelet_was_down(world: World) -> None:
    """Volumes of a pod that nobody wants any more stay until it was killed, and then go (CLEANUP-03)."""
    await world.start()
    pod = world.api.create(wanted(EMPTY, MEMORY, command="run stopdelay=9"))
    await world.let(3)
    await world.crash()
    world.api.delete("default", "web", 0)
    await world.start()
    await world.let(2.5)
    during = len(world.disk.mounts(folder_of(pod)))
    await world.let(10)

    assert during == 2
    assert world.changes()[-2:] == ["StopPodSandbox", "RemoveContainer"]
    assert world.disk.mounts("/") == []
    assert world.disk.names(PODS) == []


@pytest.mark.parametrize(
    ("path", "mounted"),
    [("kubernetes.io~empty-dir/v/inner", True), ("example.com~other/v", False)],
    ids=["mounted", "unknown"],
)
def test_orphan_with_something_in_it(
    path: str,
    mounted: bool,  # noqa: FBT001 - pytest gives it
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A folder of an unknown pod stays while something is mounted there, or lies there that is not ours."""

    async def work(world: World) -> None:
        inner = f"{PODS}/gone/volumes/{path}"
        world.disk.make_folder(inner)
        if mounted:
            world.disk.mount_memory(inner, 1)
        await world.start()
        await world.let(10)
        kept = world.disk.is_folder(inner)
        if mounted:
            world.disk.unmount(inner)
        world.disk.remove(inner)
        await world.let(5)

        assert kept
        assert world.disk.names(PODS) == []

    with caplog.at_level(logging.WARNING):
        in_world(work)
    reported = [
        text for text in caplog.messages if text.startswith('orphaned pod "gone" found, but its folder stays')
    ]
    assert len(set(reported)) == 1


@run_by(in_world)
async def test_unfit_uid_makes_no_folder(world: World) -> None:
    """A pod from a manifest whose UID leads out of the kubelet's folder gets nothing, and is reported."""
    made = wanted(EMPTY)
    made["metadata"]["uid"] = "../../../etc/x"
    world.disk.write("/manifests/web.yaml", str(made).encode())
    await world.start()
    await world.let(15)

    assert world.changes() == []
    assert "FailedToMakePodDataDirectories" in world.reasons()
    assert world.disk.kind("/etc") is None
