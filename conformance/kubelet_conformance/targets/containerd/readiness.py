"""Waiting for a containerd that was just started: until it answers, until it lists images, until it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc.aio
from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message

from kubelet_reference.clocks import LoopClock

_POLL_SECONDS = 0.01
_EAGER = [
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
]
"""How a client connects to a socket that is about to be there."""
_RUNTIME, _IMAGES = "/runtime.v1.RuntimeService/", "/runtime.v1.ImageService/"


async def until_ready(socket: Path) -> None:
    """Return when the CRI plugin answers Version and says that runtime and network are ready."""
    clock = LoopClock(0)
    async with _channel(socket) as channel:
        version = _method(channel, f"{_RUNTIME}Version", cri.VersionResponse)
        status = _method(channel, f"{_RUNTIME}Status", cri.StatusResponse)
        while True:
            # The socket is there before its CRI plugin is.
            with contextlib.suppress(grpc.aio.AioRpcError):
                await version(cri.VersionRequest(), wait_for_ready=True)
                told: cri.StatusResponse = await status(cri.StatusRequest())
                if all(each.status for each in told.status.conditions):
                    return
            await clock.sleep(_POLL_SECONDS)


async def until_listed(socket: Path, names: Iterable[str]) -> None:
    """Return when the CRI plugin has heard of all these images."""
    wanted = frozenset(names)
    clock = LoopClock(0)
    async with _channel(socket) as channel:
        listing = _method(channel, f"{_IMAGES}ListImages", cri.ListImagesResponse)
        while True:
            told: cri.ListImagesResponse = await listing(cri.ListImagesRequest())
            if wanted <= {tag for image in told.images for tag in image.repo_tags}:
                return
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


@asynccontextmanager
async def _channel(socket: Path) -> AsyncGenerator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(f"unix:{socket}", options=_EAGER) as channel:
        yield channel


def _method(channel: grpc.aio.Channel, path: str, response: type[Message]) -> Any:  # noqa: ANN401 - untyped
    make: Any = channel.unary_unary
    return make(path, request_serializer=_bytes, response_deserializer=response.FromString)


def _bytes(request: Message) -> bytes:
    return request.SerializeToString()
