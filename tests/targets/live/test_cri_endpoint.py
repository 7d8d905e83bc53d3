"""A socket that cannot be played on is refused with one message, which says what to do."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path

import pytest
from cri_api.v1 import api_pb2 as cri
from grpc_stub import grpc_server
from on_loop import on_loop

from kubelet_conformance.targets.choice import TargetError, UnknownTargetError
from kubelet_conformance.targets.cri_endpoint import connected, path_of
from kubelet_conformance.targets.live.foreign_pods import check_foreign_pods, check_images, remove_ours
from kubelet_fakes.clock import LoopClock
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_fakes.runtime.serving.server import RuntimeServer


@contextlib.asynccontextmanager
async def fake(path: Path, **conditions: bool) -> AsyncGenerator[FakeRuntime]:
    """The fake runtime at a socket."""
    runtime = FakeRuntime(RuntimeCore(), LoopClock())
    runtime.set_conditions(**conditions)
    async with RuntimeServer(runtime, path):
        yield runtime


@pytest.mark.parametrize("address", ["docker", "unix://relative.sock", "tcp://127.0.0.1:1", "unix:/run/x"])
def test_address_is_no_socket(address: str) -> None:
    """What is no address of a unix socket is refused, with the choice there is."""
    with pytest.raises(UnknownTargetError, match="choose fake, containerd or unix:///PATH"):
        path_of(address)


def test_address_that_is_too_long() -> None:
    """The message names the system's limit."""
    with pytest.raises(UnknownTargetError, match="at most 107: shorten it"):
        path_of("unix:///" + "x" * 120)


@contextlib.asynccontextmanager
async def no_grpc(path: Path) -> AsyncGenerator[None]:
    """A server that answers everybody in another protocol."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_unix_server(answer, str(path)):
        yield


@contextlib.asynccontextmanager
async def left_behind(path: Path) -> AsyncGenerator[None]:
    """A socket that nobody listens on."""
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))
    yield


@contextlib.asynccontextmanager
async def file(path: Path) -> AsyncGenerator[None]:
    """No socket."""
    await asyncio.to_thread(path.touch)
    yield


def served(path: Path, service: str) -> contextlib.AbstractAsyncContextManager[None]:
    """A gRPC server with the method Version in this service."""

    async def version(_request: bytes, _context: object) -> bytes:
        return b""

    return grpc_server(path, service, {"Version": version})


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (contextlib.nullcontext, "there is no such socket: start the runtime, or name its socket"),
        (file, "this is no socket"),
        (left_behind, "nothing listens there"),
        (no_grpc, "does not speak gRPC"),
        (partial(served, service="runtime.v2.RuntimeService"), "is its CRI plugin disabled?"),
        (partial(served, service="runtime.v1alpha2.RuntimeService"), "v1alpha2 only"),
    ],
)
@on_loop
async def test_what_is_no_runtime_is_refused(
    tmp_path: Path, there: Callable[[Path], contextlib.AbstractAsyncContextManager[object]], said: str
) -> None:
    """What stands at the path of a socket instead of a runtime is reported, each in its own words."""
    path = tmp_path / "cri.sock"
    async with there(path):
        with pytest.raises(TargetError) as caught:
            async with connected(path):
                pass

    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("condition", "reported"),
    [("network_ready", "NetworkReady is false"), ("runtime_ready", "RuntimeReady is")],
)
@on_loop
async def test_not_ready(tmp_path: Path, condition: str, reported: str) -> None:
    """A runtime without a pod network, or that is not up, is reported with what to do."""
    async with fake(tmp_path / "s", **{condition: False}):
        with pytest.raises(TargetError, match=reported):
            async with connected(tmp_path / "s"):
                pass


@on_loop
async def test_pods_of_others_are_not_killed_unasked(tmp_path: Path) -> None:
    """Where others have pods the suite says what would become of them; what it left itself it removes."""
    path = tmp_path / "cri.sock"
    async with fake(path) as runtime, connected(path) as endpoint:
        for namespace in ("shop", "kcrun-7-sync"):
            metadata = cri.PodSandboxMetadata(name="web", namespace=namespace, uid=namespace)
            await runtime.RunPodSandbox(
                cri.RunPodSandboxRequest(config=cri.PodSandboxConfig(metadata=metadata))
            )
        with pytest.raises(TargetError) as caught:
            await check_foreign_pods(endpoint)
        assert await remove_ours(endpoint.services) == []
        left = await runtime.ListPodSandbox(cri.ListPodSandboxRequest())
    reported = str(caught.value)

    assert "not this suite's: shop/web" in reported
    assert "would KILL them" in reported
    assert "--kill-foreign-pods" in reported
    assert [each.metadata.namespace for each in left.items] == ["shop"]


@on_loop
async def test_missing_images_are_named(tmp_path: Path) -> None:
    """Images that are not there are reported with the commands that bring them."""
    path = tmp_path / "cri.sock"
    async with fake(path), connected(path) as endpoint:
        with pytest.raises(TargetError) as caught:
            await check_images(endpoint, {"img:1", "other:2", "other:1"})
    reported = str(caught.value)

    assert "are missing: other:1, other:2." in reported
    assert "kubelet-conformance image -o images.tar" in reported
    assert f"ctr --address {path} --namespace k8s.io images import images.tar" in reported
