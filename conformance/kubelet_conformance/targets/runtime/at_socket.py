"""A runtime at a unix socket, called over gRPC."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.run_record.temporary_folder import TemporaryFolder, place_for_sockets
from kubelet_conformance.targets.choice import TargetError
from kubelet_conformance.targets.containerd.configuration import registry_hosts
from kubelet_conformance.targets.containerd.registry import TwoTags
from kubelet_conformance.targets.cri_endpoint import channel_to, connected, services_at
from kubelet_conformance.targets.live.private_runtimes import own_containerd
from kubelet_conformance.targets.runtime.commands import FakeCommands, ShellCommands
from kubelet_conformance.targets.runtime.fake import FakeNode
from kubelet_conformance.targets.runtime.runtime_target import DirectRuntime
from kubelet_fakes.clock import LoopClock
from kubelet_fakes.runtime.service import RuntimeParts
from kubelet_fakes.runtime.serving.server import RuntimeServer

_FAKE = "fake"
_IMAGE = "img:1"
_MESSAGE_BYTES_MAX = 64 << 20
"""Room for two outputs of 16 MiB, which a runtime may send and a kubelet would refuse."""
_ANSWER_SECONDS = 30.0
_STREAM_SECONDS = 2.0
_SHOWN = 5


@asynccontextmanager
async def runtime_at(
    path: Path,
    image: str,
    run_id: str,
    *,
    restart: Callable[[], Awaitable[None]] | None = None,
    introduce: Callable[[str], None] | None = None,
) -> AsyncGenerator[DirectRuntime]:
    """The runtime at a socket, with an image on it that has a shell.

    `run_id` marks what is made in this run, among what others made; `restart`, where there is one, stops the
    runtime and starts it again; `introduce` configures a registry there by host and port.

    Raises:
        TargetError: It cannot be called, or has no such image.
    """
    async with connected(path) as endpoint, _calls(path) as services:
        await _see_the_image(path, services, image)
        is_fake = endpoint.name == _FAKE
        lacks = await _lacks(services, is_fake=is_fake, can_restart=restart is not None)
        clock = LoopClock()
        with TemporaryFolder() as folder, TwoTags(run_id) as registry:
            if introduce is not None:
                introduce(registry.host)
            yield DirectRuntime(
                services=services,
                name=endpoint.name,
                version=endpoint.version,
                image=image,
                commands=FakeCommands() if is_fake else ShellCommands(),
                files=_Logs(folder),
                registry=registry,
                now=clock.monotonic,
                sleep=clock.sleep,
                starve=_by_itself,
                shared=True,
                lacks=lacks,
                restart=None if restart is None else partial(_restarted, restart, services),
            )


@asynccontextmanager
async def private_containerd(run_id: str) -> AsyncGenerator[DirectRuntime]:
    """A containerd of our own, which may be restarted.

    Raises:
        TargetError: It cannot run on this machine.
    """
    async with own_containerd((_IMAGE,)) as private:

        async def restart() -> None:
            private.kill()
            await private.start()

        def introduce(host: str) -> None:
            folder = private.home.registries / host
            folder.mkdir()
            Path(folder, "hosts.toml").write_text(registry_hosts(f"http://{host}"), encoding="utf-8")

        async with runtime_at(
            private.socket, _IMAGE, run_id, restart=restart, introduce=introduce
        ) as runtime:
            yield runtime


@asynccontextmanager
async def fake_over_grpc(parts: RuntimeParts, now_ns: int) -> AsyncGenerator[DirectRuntime]:
    """The fake on a socket of its own, in a private folder."""
    start_ns = now_ns - round(asyncio.get_running_loop().time() * 1e9)
    node = FakeNode(parts, start_ns)
    with TemporaryFolder(place_for_sockets()) as folder:
        path = Path(folder, "cri.sock")
        async with RuntimeServer(node.runtime, path), _calls(path) as services:
            direct = node.direct(services, shared=True)
            # A restart of the fake leaves its server alone, and ends what is called just then.
            yield replace(direct, name=f"{direct.name} over gRPC")


@asynccontextmanager
async def _calls(path: Path) -> AsyncGenerator[Any]:
    async with channel_to(path, [("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX)]) as channel:
        yield services_at(channel)


async def _see_the_image(path: Path, services: Any, image: str) -> None:  # noqa: ANN401 - a stub
    request = cri.ImageStatusRequest(image=cri.ImageSpec(image=image))
    try:
        found = await services.ImageStatus(request, timeout=_ANSWER_SECONDS)
        if found.HasField("image"):
            return
        listed = await services.ListImages(cri.ListImagesRequest(), timeout=_ANSWER_SECONDS)
    except grpc.aio.AioRpcError as error:
        raise TargetError(
            f"{path}: its images cannot be read: {error.code().name}: {error.details()}"
        ) from None
    tags = sorted(tag for each in listed.images for tag in each.repo_tags)
    more = f" and {len(tags) - _SHOWN} more" if len(tags) > _SHOWN else ""
    raise TargetError(
        f"{path}: image {image} is not there; name one that has a shell with --image"
        f" (there are {', '.join(tags[:_SHOWN]) or 'no images'}{more}), or import one"
    )


async def _lacks(
    services: Any,  # noqa: ANN401 - a stub
    *,
    is_fake: bool,
    can_restart: bool,
) -> Mapping[str, str]:
    """What this runtime cannot be asked for, and why."""
    lacks = {"state_loss": "only a fake can be made to lose what it knows"}
    if not can_restart:
        lacks["restart"] = "a runtime at a socket is not restarted"
    if is_fake:
        lacks["files"] = "a fake that is served at a socket writes no log files"
        lacks["starvation"] = "a fake that is served at a socket cannot be made short of memory"
        lacks["registry"] = "the fake's registry gives every tag an image of its own"
    try:
        stream = services.GetContainerEvents(cri.GetEventsRequest(), timeout=_STREAM_SECONDS)
        # The first headers come at once, or with the first event: either says that it is offered.
        await stream.initial_metadata()
        code = await stream.code() if stream.done() else grpc.StatusCode.OK
        stream.cancel()
    except (grpc.aio.AioRpcError, asyncio.CancelledError) as error:
        code = error.code() if isinstance(error, grpc.aio.AioRpcError) else grpc.StatusCode.OK
    if code is grpc.StatusCode.UNIMPLEMENTED:
        lacks["events"] = "the runtime does not offer GetContainerEvents"
        lacks["stamps"] = (
            "the runtime does not offer GetContainerEvents, without which no status has a timestamp"
        )
    return lacks


async def _restarted(restart: Callable[[], Awaitable[None]], services: Any) -> None:  # noqa: ANN401 - a stub
    """Restart, and wait until the connection is there again."""
    await restart()
    await services.Version(cri.VersionRequest(), timeout=_ANSWER_SECONDS, wait_for_ready=True)


def _by_itself(_container_id: str) -> None:
    """A real process needs no help to use up its memory."""


@dataclass(frozen=True, slots=True)
class _Logs:
    """Files of this machine."""

    folder: str

    def read(self, path: str) -> str | None:
        """What a file holds."""
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def move(self, path: str, to: str) -> None:
        """Rename a file."""
        Path(path).rename(to)
