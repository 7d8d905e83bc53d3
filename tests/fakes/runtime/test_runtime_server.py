"""The fake runtime on a real unix socket: every method is there, errors cross, the socket is looked after."""

import asyncio
import socket
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from cri_api.v1 import api_pb2 as cri
from pod_life import container, sandbox, stubs

from kubelet_fakes.clock import LoopClock
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.serving.methods import METHODS
from kubelet_fakes.runtime.serving.server import AddressError, RuntimeServer, socket_path


def serving(path: Path) -> RuntimeServer:
    """A server of a new runtime, not started yet; it is made inside a running loop."""
    return RuntimeServer(FakeRuntime(RuntimeCore(), LoopClock()), path)


def replies(path: Path, calls: Callable[[Any, Any], Awaitable[Any]]) -> Any:
    """What these calls, made with both stubs of a server on this path, return."""

    async def main() -> Any:
        async with serving(path) as server, grpc.aio.insecure_channel(server.address) as channel:
            return await calls(*stubs(channel))

    return asyncio.run(main())


def test_whole_life_of_a_pod(tmp_path: Path) -> None:
    """A client makes a sandbox and a container, watches, executes, stops and removes, over the socket."""

    async def life(runtime: Any, images: Any) -> list[Any]:
        seen: list[Any] = []
        events = runtime.GetContainerEvents(cri.GetEventsRequest())
        await events.initial_metadata()
        version = await runtime.Version(cri.VersionRequest(version="0.1.0"))
        pulled = await images.PullImage(cri.PullImageRequest(image=cri.ImageSpec(image="img:9")))
        pod = (await runtime.RunPodSandbox(sandbox())).pod_sandbox_id
        app = (await runtime.CreateContainer(container(pod, "run", "stopcode=3"))).container_id
        await runtime.StartContainer(cri.StartContainerRequest(container_id=app))
        listed = await runtime.ListContainers(cri.ListContainersRequest())
        probe = await runtime.ExecSync(cri.ExecSyncRequest(container_id=app, cmd=["x", "7", "0"]))
        seen += [version.runtime_api_version, bool(pulled.image_ref), probe.exit_code]
        seen += [[(each.id, each.state) for each in listed.containers] == [(app, cri.CONTAINER_RUNNING)]]
        await runtime.StopContainer(cri.StopContainerRequest(container_id=app, timeout=30))
        ended = await runtime.ContainerStatus(cri.ContainerStatusRequest(container_id=app))
        await runtime.StopPodSandbox(cri.StopPodSandboxRequest(pod_sandbox_id=pod))
        status = await runtime.PodSandboxStatus(cri.PodSandboxStatusRequest(pod_sandbox_id=pod))
        await runtime.RemovePodSandbox(cri.RemovePodSandboxRequest(pod_sandbox_id=pod))
        left = await runtime.ListPodSandbox(cri.ListPodSandboxRequest())
        seen += [ended.status.exit_code, status.status.state, len(left.items)]
        reported = [(await events.read()).container_event_type for _ in range(4)]
        events.cancel()
        return [*seen, reported]

    first_events = [
        cri.CONTAINER_CREATED_EVENT,
        cri.CONTAINER_STARTED_EVENT,
        cri.CONTAINER_CREATED_EVENT,
        cri.CONTAINER_STARTED_EVENT,
    ]

    assert replies(tmp_path / "cri.sock", life) == [
        "v1",
        True,
        7,
        True,
        3,
        cri.SANDBOX_NOTREADY,
        0,
        first_events,
    ]


def test_every_method_is_served(tmp_path: Path) -> None:
    """No method of either service is unknown to the server, whatever it answers to an empty request."""

    async def ask(runtime: Any, images: Any) -> list[str]:
        unknown: list[str] = []
        for method in METHODS:
            stub = runtime if method.service.endswith("RuntimeService") else images
            call = getattr(stub, method.name)(method.request())
            try:
                await (call.initial_metadata() if method.streams else call)
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    unknown.append(method.name)
            call.cancel()
        return unknown

    assert len(METHODS) == 35
    assert replies(tmp_path / "cri.sock", ask) == []


def test_errors_keep_code_and_text(tmp_path: Path) -> None:
    """A client sees the runtime's own error, not one of the transport."""

    async def ask(runtime: Any, _: Any) -> tuple[object, str]:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await runtime.ContainerStatus(cri.ContainerStatusRequest(container_id="nobody"))
        return caught.value.code(), caught.value.details() or ""

    code, details = replies(tmp_path / "cri.sock", ask)

    assert (code, "nobody" in details) == (grpc.StatusCode.NOT_FOUND, True)


def test_deadline_ends_a_call_and_not_the_work(tmp_path: Path) -> None:
    """A stop that takes longer than the client waits goes on; another waits for the same end (CRI-32)."""

    async def stop(runtime: Any, _: Any) -> tuple[object, int]:
        pod = (await runtime.RunPodSandbox(sandbox())).pod_sandbox_id
        app = (await runtime.CreateContainer(container(pod, "run", "stopdelay=0.05"))).container_id
        await runtime.StartContainer(cri.StartContainerRequest(container_id=app))
        request = cri.StopContainerRequest(container_id=app, timeout=30)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await runtime.StopContainer(request, timeout=0.01)
        await runtime.StopContainer(request, timeout=20)
        ended = await runtime.ContainerStatus(cri.ContainerStatusRequest(container_id=app))
        return caught.value.code(), ended.status.state

    outcome = replies(tmp_path / "cri.sock", stop)

    assert outcome == (grpc.StatusCode.DEADLINE_EXCEEDED, cri.CONTAINER_EXITED)


def test_calls_under_way_end_with_the_server(tmp_path: Path) -> None:
    """When the server goes, a call that waits and a stream end with UNAVAILABLE, and nothing else is said."""

    async def main() -> list[tuple[object, str | None]]:
        async with serving(tmp_path / "cri.sock") as server:
            channel = grpc.aio.insecure_channel(server.address)
            runtime, _ = stubs(channel)
            pod = (await runtime.RunPodSandbox(sandbox())).pod_sandbox_id
            app = (await runtime.CreateContainer(container(pod, "run", "stopdelay=60"))).container_id
            await runtime.StartContainer(cri.StartContainerRequest(container_id=app))
            events = runtime.GetContainerEvents(cri.GetEventsRequest())
            await events.initial_metadata()
            stop = runtime.StopContainer(cri.StopContainerRequest(container_id=app, timeout=90))
            await runtime.Version(cri.VersionRequest())
        ends = [(await call.code(), await call.details()) for call in (events, stop)]
        await channel.close()
        return ends

    ends = asyncio.run(main())

    assert [code for code, _ in ends] == [grpc.StatusCode.UNAVAILABLE] * 2
    assert ends[0][1] == "the runtime is shutting down"


def test_socket_is_for_its_owner_and_goes_in_the_end(tmp_path: Path) -> None:
    """The socket has mode 0600, a folder made for it 0700, and both are gone afterwards."""
    path = tmp_path / "made" / "cri.sock"

    async def main() -> list[int]:
        async with serving(path):
            return [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)]

    assert asyncio.run(main()) == [0o600, 0o700]
    assert list(tmp_path.iterdir()) == []


def test_folder_that_was_there_stays(tmp_path: Path) -> None:
    """Only what the server made is taken away, and nobody else's socket."""
    path = tmp_path / "cri.sock"

    async def main() -> None:
        async with serving(path):
            path.unlink()
            path.write_text("somebody else's")

    asyncio.run(main())

    assert path.read_text() == "somebody else's"


def test_socket_left_behind_is_replaced(tmp_path: Path) -> None:
    """A socket that nobody listens on is no obstacle."""
    path = tmp_path / "cri.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    async def version(runtime: Any, _: Any) -> str:
        return str((await runtime.Version(cri.VersionRequest())).version)

    assert replies(path, version) == "0.1.0"


def test_socket_in_use_is_left_alone(tmp_path: Path) -> None:
    """A second server on the same path is refused, and the first goes on."""
    path = tmp_path / "cri.sock"

    async def second(runtime: Any, _: Any) -> str:
        with pytest.raises(AddressError, match="in use by another program"):
            await serving(path).__aenter__()
        return str((await runtime.Version(cri.VersionRequest())).version)

    assert replies(path, second) == "0.1.0"


def test_obstacles_are_named(tmp_path: Path) -> None:
    """A file in the way and a folder that cannot be made are errors that name them."""
    (tmp_path / "file").write_text("")

    async def start(path: Path) -> None:
        async with serving(path):
            pass

    for path, text in (
        (tmp_path / "file", "is there already and is no socket"),
        (tmp_path, "is there already and is no socket"),
        (tmp_path / "file" / "cri.sock", "file is no folder"),
        (tmp_path / "a" / "b" / "cri.sock", "a does not exist"),
        (Path("/proc/cri.sock"), "/proc/cri.sock: cannot listen"),
    ):
        with pytest.raises(AddressError, match=text):
            asyncio.run(start(path))


def test_addresses() -> None:
    """Both usual forms of an address are taken; anything else is refused with an example."""
    assert [str(socket_path(each)) for each in ("unix:///a/b.sock", "unix:/a/b.sock", "unix:////a")] == [
        "/a/b.sock",
        "/a/b.sock",
        "/a",
    ]
    for address in ("", "/a", "tcp://127.0.0.1:1", "unix:a", "unix://a/b", "unix:///", "unix://"):
        with pytest.raises(AddressError, match="write it like unix:///run/fake"):
            socket_path(address)
    with pytest.raises(AddressError, match="has 108 bytes, at most 107"):
        socket_path("unix:///" + "a" * 107)
