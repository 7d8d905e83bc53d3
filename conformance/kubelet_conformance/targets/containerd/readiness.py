"""Waiting for a containerd that was just started: until it answers, until it lists images, until it ends."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import grpc.aio
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.targets.cri_endpoint import Services, channel_to, services_at
from kubelet_reference.server.host.clock import LoopClock

_POLL_SECONDS = 0.01
_EAGER = [
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
]
"""How a client connects to a socket that is about to be there."""


async def until_ready(socket: Path) -> None:
    """Return when the CRI plugin answers Version and says that runtime and network are ready."""

    async def is_ready(services: Services) -> bool:
        # The socket is there before its CRI plugin is.
        with contextlib.suppress(grpc.aio.AioRpcError):
            await services.Version(cri.VersionRequest(), wait_for_ready=True)
            reply: cri.StatusResponse = await services.Status(cri.StatusRequest())
            return all(each.status for each in reply.status.conditions)
        return False

    await _until(socket, is_ready)


async def until_listed(socket: Path, names: Iterable[str]) -> None:
    """Return when the CRI plugin lists all these images."""
    wanted = frozenset(names)

    async def is_listed(services: Services) -> bool:
        reply: cri.ListImagesResponse = await services.ListImages(cri.ListImagesRequest())
        return wanted <= {tag for image in reply.images for tag in image.repo_tags}

    await _until(socket, is_listed)


async def _until(socket: Path, holds: Callable[[Services], Awaitable[bool]]) -> None:
    """Ask the runtime at a socket again and again until it holds."""
    clock = LoopClock(0)
    async with channel_to(socket, _EAGER) as channel:
        services = services_at(channel)
        while not await holds(services):
            await clock.sleep(_POLL_SECONDS)


async def until_ended(pid: int) -> None:
    """Return when this child has ended, without burying it."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    descriptor = os.pidfd_open(pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
