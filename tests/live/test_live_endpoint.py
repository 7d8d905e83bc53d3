"""A socket that cannot be played on is refused with one message, which says what to do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.choice import TargetError, UnknownTargetError
from kubelet_conformance.targets.live.endpoint import connected, path_of
from kubelet_conformance.targets.live.residents import check_images, check_neighbours, remove_ours
from kubelet_fakes.clock import LoopClock
from kubelet_fakes.runtime import FakeRuntime, RuntimeCore
from kubelet_fakes.runtime.server import RuntimeServer


def refused(path: Path, beside: contextlib.AbstractAsyncContextManager[object] | None = None) -> str:
    """What connecting to this path is refused with, while the context beside it is open."""

    async def connect() -> str:
        async with beside or contextlib.nullcontext():
            with pytest.raises(TargetError) as caught:
                async with connected(path):
                    pass
            return str(caught.value)

    return asyncio.run(connect())


@contextlib.asynccontextmanager
async def fake(path: Path, **conditions: bool) -> AsyncGenerator[FakeRuntime]:
    """The fake runtime at a socket."""
    runtime = FakeRuntime(RuntimeCore(), LoopClock())
    runtime.set_conditions(**conditions)
    async with RuntimeServer(runtime, path):
        yield runtime


@pytest.mark.parametrize("address", ["docker", "unix://relative.sock", "tcp://127.0.0.1:1", "unix:/run/x"])
def test_address_is_no_socket(address: str) -> None:
    """What is no address of a unix socket is told to be none, with the choice there is."""
    with pytest.raises(UnknownTargetError, match="choose fake, containerd or unix:///PATH"):
        path_of(address)


def test_address_that_is_too_long() -> None:
    """The system's limit is told."""
    with pytest.raises(UnknownTargetError, match="at most 107: shorten it"):
        path_of("unix:///" + "x" * 120)


def test_nothing_there(tmp_path: Path) -> None:
    """A socket that is absent."""
    path = tmp_path / "cri.sock"

    assert refused(path) == f"{path}: there is no such socket: start the runtime, or name its socket"


def test_something_else_there(tmp_path: Path) -> None:
    """A file."""
    path = tmp_path / "file"
    path.touch()

    assert "this is no socket" in refused(path)


def test_nobody_listens(tmp_path: Path) -> None:
    """A socket that was left behind."""
    path = tmp_path / "cri.sock"
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(path))

    assert "nobody listens there" in refused(path)


@contextlib.asynccontextmanager
async def no_grpc(path: Path) -> AsyncGenerator[None]:
    """A server that answers everybody in another protocol."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_unix_server(answer, str(path)):
        yield


def test_no_grpc(tmp_path: Path) -> None:
    """A server of another protocol."""
    path = tmp_path / "cri.sock"

    assert "does not speak gRPC" in refused(path, no_grpc(path))


@contextlib.asynccontextmanager
async def served(path: Path, service: str) -> AsyncGenerator[None]:
    """A gRPC server with the method Version in this service."""

    async def version(_request: bytes, _context: object) -> bytes:
        return b""

    server = grpc.aio.server()
    anything: Any = grpc
    handlers = {"Version": anything.unary_unary_rpc_method_handler(version)}
    server.add_generic_rpc_handlers((anything.method_handlers_generic_handler(service, handlers),))
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(grace=None)


def test_another_service(tmp_path: Path) -> None:
    """A gRPC server that is no runtime."""
    path = tmp_path / "cri.sock"

    assert "is its CRI plugin disabled?" in refused(path, served(path, "runtime.v2.RuntimeService"))


def test_old_version_only(tmp_path: Path) -> None:
    """A runtime that speaks v1alpha2 and no v1."""
    path = tmp_path / "cri.sock"

    assert "v1alpha2 only" in refused(path, served(path, "runtime.v1alpha2.RuntimeService"))


@pytest.mark.parametrize(
    ("condition", "told"), [("network_ready", "NetworkReady is false"), ("runtime_ready", "RuntimeReady is")]
)
def test_not_ready(tmp_path: Path, condition: str, told: str) -> None:
    """A runtime without a pod network, or that is not up, is told with what to do."""
    path = tmp_path / "cri.sock"

    async def connect() -> None:
        async with fake(path, **{condition: False}), connected(path):
            pass

    with pytest.raises(TargetError, match=told):
        asyncio.run(connect())


def test_pods_of_others_are_not_killed_unasked(tmp_path: Path) -> None:
    """Where others have pods the suite says what would become of them; what it left itself it removes."""
    path = tmp_path / "cri.sock"

    async def story() -> tuple[str, list[str]]:
        async with fake(path) as runtime, connected(path) as endpoint:
            for namespace in ("shop", "kcrun-7-sync"):
                metadata = cri.PodSandboxMetadata(name="web", namespace=namespace, uid=namespace)
                await runtime.RunPodSandbox(
                    cri.RunPodSandboxRequest(config=cri.PodSandboxConfig(metadata=metadata))
                )
            with pytest.raises(TargetError) as caught:
                await check_neighbours(endpoint)
            assert await remove_ours(endpoint.services) == []
            left = await runtime.ListPodSandbox(cri.ListPodSandboxRequest())
        return str(caught.value), [each.metadata.namespace for each in left.items]

    told, left = asyncio.run(story())

    assert "not this suite's: shop/web" in told
    assert "would KILL them" in told
    assert "--kill-foreign-pods" in told
    assert left == ["shop"]


def test_missing_images_are_named(tmp_path: Path) -> None:
    """Images that are not there are told with the commands that bring them."""
    path = tmp_path / "cri.sock"

    async def story() -> str:
        async with fake(path), connected(path) as endpoint:
            with pytest.raises(TargetError) as caught:
                await check_images(endpoint, {"img:1", "other:2", "other:1"})
        return str(caught.value)

    told = asyncio.run(story())

    assert "are missing: other:1, other:2." in told
    assert "kubelet-conformance image -o images.tar" in told
    assert f"ctr --address {path} --namespace k8s.io images import images.tar" in told
