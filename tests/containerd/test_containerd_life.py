"""A private containerd is ready when it is started, survives its own death, and is nobody else's."""

import asyncio
import json
import os
import signal
import stat
from pathlib import Path

import grpc
import pytest
from bare_cri import PATIENCE_SECONDS, POLL_SECONDS, at_socket
from cri_api.v1 import api_pb2 as cri
from on_loop import on_loop

from kubelet_conformance.targets.containerd import PrivateContainerd, full_name, leftovers
from kubelet_reference.server.host.clock import LoopClock

RUNNING, READY = cri.ContainerState.CONTAINER_RUNNING, cri.PodSandboxState.SANDBOX_READY


def mode(path: Path) -> int:
    """The permissions of a path."""
    return stat.S_IMODE(path.stat().st_mode)


@on_loop
async def test_bare_smoke(containerd: PrivateContainerd) -> None:
    """The whole life of a pod goes by bare calls: run, execute, stop, remove."""
    async with at_socket(containerd.socket) as runtime:
        version = await runtime.runtime.Version(cri.VersionRequest())
        assert (version.runtime_name, version.runtime_api_version) == ("containerd", "v1")

        status = (await runtime.runtime.Status(cri.StatusRequest())).status
        assert {each.type for each in status.conditions if each.status} == {
            "RuntimeReady",
            "NetworkReady",
        }

        pod = await runtime.pod()
        c1 = await pod.container("run")
        assert (await runtime.status(c1)).state == RUNNING
        assert (await runtime.execute(c1, "x 3 0")).exit_code == 3
        assert (await runtime.stop(c1)).exit_code == 0

        await pod.remove()
        listed = await runtime.runtime.ListPodSandbox(cri.ListPodSandboxRequest())
        assert pod.id not in [each.id for each in listed.items]


def test_images_are_there(containerd: PrivateContainerd) -> None:
    """The images of scenarios are listed by their full names, have a size, and ids of their own."""

    async def work() -> list[cri.Image]:
        async with at_socket(containerd.socket) as runtime:
            return list((await runtime.images.ListImages(cri.ListImagesRequest())).images)

    images = asyncio.run(work())

    tags = {tag for image in images for tag in image.repo_tags}
    assert {full_name(name) for name in containerd.images} <= tags
    assert len({image.id for image in images}) == len(images)
    assert all(image.size > 0 for image in images)


def test_nobody_else_gets_in(containerd: PrivateContainerd) -> None:
    """The socket is its owner's, in a folder that is its owner's."""
    assert mode(containerd.socket) == 0o600
    assert mode(containerd.home.folder) == 0o700


def test_pods_reach_nothing_beyond(containerd: PrivateContainerd) -> None:
    """A pod has a route to its own subnet and no other, so it cannot leave the machine."""

    async def work() -> str:
        async with at_socket(containerd.socket) as runtime:
            pod = await runtime.pod()
            reply = await runtime.execute(await pod.container("run"), "ip route")
            await pod.remove()
            return reply.stdout.decode()

    routes = asyncio.run(work()).splitlines()

    assert len(routes) == 1
    assert "scope link" in routes[0]


@on_loop
async def test_containers_survive_the_daemon() -> None:
    """Killed and started again on the same root, the daemon finds pod and container as they were."""
    async with PrivateContainerd() as containerd:
        async with at_socket(containerd.socket) as runtime:
            pod = await runtime.pod()
            c1 = await pod.container("run")
            before = await runtime.status(c1)
        containerd.kill()
        assert not containerd.running
        with pytest.raises(grpc.aio.AioRpcError, match="UNAVAILABLE"):
            async with at_socket(containerd.socket) as runtime:
                await runtime.status(c1)
        await containerd.start()
        assert mode(containerd.socket) == 0o600
        async with at_socket(containerd.socket) as runtime:
            assert await runtime.status(c1) == before
            listed = await runtime.runtime.ListPodSandbox(cri.ListPodSandboxRequest())
            assert [(each.id, each.state) for each in listed.items] == [(pod.id, READY)]
            await runtime.execute(c1, "end 5")
            assert (await runtime.ended(c1)).exit_code == 5


async def killed(pid: int) -> None:
    """Kill a container's process, and wait until its shim has buried it.

    A containerd that comes back just then takes it for running for ever.
    """
    os.kill(pid, signal.SIGKILL)
    clock = LoopClock(0)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while os.path.exists(f"/proc/{pid}"):  # noqa: ASYNC240, PTH110 - a look into the kernel's tables
            await clock.sleep(POLL_SECONDS)


def test_container_that_ends_while_the_daemon_is_away() -> None:
    """What a container ends with while nobody looks is known afterwards."""

    async def work() -> int:
        async with PrivateContainerd() as containerd:
            async with at_socket(containerd.socket) as runtime:
                c1 = await (await runtime.pod()).container("run")
                request = cri.ContainerStatusRequest(container_id=c1, verbose=True)
                details = (await runtime.runtime.ContainerStatus(request)).info["info"]
            containerd.kill()
            await killed(json.loads(details)["pid"])
            await containerd.start()
            async with at_socket(containerd.socket) as runtime:
                return (await runtime.ended(c1)).exit_code

    assert asyncio.run(work()) == 137


@on_loop
async def test_two_live_side_by_side() -> None:
    """Two instances have sockets, bridges and subnets of their own, and each sees its own pods only."""
    async with PrivateContainerd() as one, PrivateContainerd() as other:
        async with at_socket(one.socket) as here, at_socket(other.socket) as there:
            addresses = [await (await runtime.pod()).address() for runtime in (here, there)]
            assert addresses[0] != addresses[1]
            for runtime in (here, there):
                listed = await runtime.runtime.ListPodSandbox(cri.ListPodSandboxRequest())
                assert len(listed.items) == 1
        home = one.home
        one.stop()
        assert leftovers(home, one.seen_ids) == ()
        async with at_socket(other.socket) as there:
            listed = await there.runtime.ListPodSandbox(cri.ListPodSandboxRequest())
            assert [each.state for each in listed.items] == [READY]
