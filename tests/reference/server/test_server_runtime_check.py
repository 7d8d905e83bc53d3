"""The first contact with a runtime: each way in which there is none that will do is distinguished."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from cri_api.v1 import api_pb2 as cri
from grpc_stub import grpc_server
from on_loop import on_loop

from kubelet_reference.cri.errors import BadReply
from kubelet_reference.server.errors import BadInputError
from kubelet_reference.server.host.channel import Channel, Service
from kubelet_reference.server.runtime_check import check_images, check_runtime

GOOD = cri.VersionResponse(
    version="0.1.0", runtime_name="other", runtime_version="1", runtime_api_version="v1"
)
Methods = dict[str, Callable[..., Any]]


def answering(reply: Any) -> Callable[..., Awaitable[bytes]]:
    """A method that always answers this."""

    async def method(request: bytes, context: Any) -> bytes:
        del request, context
        content: bytes = reply if isinstance(reply, bytes) else reply.SerializeToString()
        return content

    return method


async def contact(path: Path, seconds: float = 20) -> str:
    """What is said of the socket; "" if a runtime is there."""
    async with Channel(str(path)) as channel:
        try:
            await check_runtime(channel, cast("Any", Service(channel, "RuntimeService")), seconds)
            await check_images(channel, cast("Any", Service(channel, "ImageService")), seconds)
        except BadInputError as error:
            return str(error).removeprefix(f"container runtime at unix://{path}: ")
    return ""


@on_loop
async def test_no_socket(tmp_path: Path) -> None:
    """A socket that is absent, a path that is none, and one where nobody listens any more."""
    file, left = tmp_path / "file", tmp_path / "left"
    file.touch()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(left))
    assert await contact(tmp_path / "absent") == (
        "there is no such socket: start the runtime, or name its socket with --container-runtime-endpoint"
    )
    assert await contact(file) == (
        "this is no socket: name the runtime's socket with --container-runtime-endpoint"
    )
    assert await contact(left) == ("the socket is there, but no process listens: start the runtime again")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""], ids=["http", "nothing"])
@on_loop
async def test_no_grpc(tmp_path: Path, answer: bytes) -> None:
    """A server of something else, and one that closes the connection at once."""
    path = tmp_path / "s"

    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        writer.close()

    async with await asyncio.start_unix_server(speak, path):
        said = await contact(path)

    assert said.startswith("something listens there, but it does not speak gRPC (")
    assert said.endswith("): name the runtime's socket with --container-runtime-endpoint")


def test_silence(tmp_path: Path) -> None:
    """Who takes the connection and says nothing is given up after the time that is stated."""
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        said = asyncio.run(contact(path, seconds=0.2))

    assert said == (
        "something listens there, but Version was not answered in 0.2 s: see to the runtime, "
        "or name its socket with --container-runtime-endpoint"
    )


@pytest.mark.parametrize(
    ("service", "methods", "said"),
    [
        ("other.v1.Service", {}, "another gRPC service answers there, it has no runtime.v1.RuntimeService"),
        (
            "runtime.v1alpha2.RuntimeService",
            {"Version": answering(b"")},
            "the runtime speaks CRI v1alpha2 only",
        ),
        ("runtime.v1.RuntimeService", {"Version": answering(GOOD)}, "there is no runtime.v1.ImageService"),
        (
            "runtime.v1.RuntimeService",
            {"Version": answering(cri.VersionResponse(version="0.1.0"))},
            "Version was answered, but VersionResponse.runtime_name is not set",
        ),
        (
            "runtime.v1.RuntimeService",
            {"Version": answering(b"\x0a\xff")},
            "Version was answered, but the reply",
        ),
    ],
    ids=["other", "v1alpha2", "no-images", "empty", "garbage"],
)
@on_loop
async def test_not_the_right_service(tmp_path: Path, service: str, methods: Methods, said: str) -> None:
    """gRPC, but not the CRI v1 that a kubelet needs."""
    async with grpc_server(tmp_path / "s", service, methods):
        assert (await contact(tmp_path / "s")).startswith(said)


@on_loop
async def test_wrong_version(tmp_path: Path) -> None:
    """A runtime of another version of the kubelet's API is named with both."""
    reply = cri.VersionResponse()
    reply.CopyFrom(GOOD)
    reply.version = "0.2.0"
    async with grpc_server(tmp_path / "s", "runtime.v1.RuntimeService", {"Version": answering(reply)}):
        assert "expected runtime version 0.1.0, got '0.2.0'" in await contact(tmp_path / "s")


@on_loop
async def test_refusal_of_the_runtime(tmp_path: Path) -> None:
    """A runtime that answers with an error is quoted."""

    async def broken(request: bytes, context: Any) -> bytes:
        del request
        await context.abort(grpc.StatusCode.INTERNAL, "no disk")
        return b""

    async with grpc_server(tmp_path / "s", "runtime.v1.RuntimeService", {"Version": broken}):
        assert await contact(tmp_path / "s") == "Version failed with INTERNAL: no disk: see to the runtime"


@on_loop
async def test_reply_that_cannot_be_read_is_an_error_of_the_call(tmp_path: Path) -> None:
    """A reply that is no message of its kind is a bad reply, which the core knows how to bear."""
    methods = {"ListPodSandbox": answering(b"\x0a\xff")}
    async with (
        grpc_server(tmp_path / "s", "runtime.v1.RuntimeService", methods),
        Channel(str(tmp_path / "s")) as channel,
    ):
        runtime: Any = Service(channel, "RuntimeService")
        with pytest.raises(BadReply, match="cannot be read"):
            await runtime.ListPodSandbox(cri.ListPodSandboxRequest(), timeout=20)


@on_loop
async def test_service_has_no_other_methods(tmp_path: Path) -> None:
    """A name that the CRI does not have is a mistake of ours, and says so."""
    async with Channel(str(tmp_path / "s")) as channel:
        runtime: Any = Service(channel, "RuntimeService")
        with pytest.raises(AttributeError, match="the CRI has no method Dance"):
            runtime.Dance()
