"""A fake runtime behind a tap: what a client receives and what the tap observes, side by side."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from pod_life import stubs

from kubelet_conformance.tap.chunks import Chunk
from kubelet_conformance.tap.decoder import Decoder
from kubelet_conformance.tap.events import Answered, CallBegan, CallEnded, Observation, PeerChange, StreamItem
from kubelet_conformance.tap.relay import Relay
from kubelet_fakes.clock import LoopClock
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.serving.server import RuntimeServer

#: Tries to connect again follow at once: a test has no second to wait.
HASTY = (("grpc.initial_reconnect_backoff_ms", 20), ("grpc.max_reconnect_backoff_ms", 20))


def serving(path: Path) -> RuntimeServer:
    """A server of a new runtime, not started yet; it is made inside a running loop."""
    return RuntimeServer(FakeRuntime(RuntimeCore(), LoopClock()), path)


class Tapped:
    """The sockets of a runtime and of a tap in front of it, and what the tap observes."""

    def __init__(self, folder: Path) -> None:
        self.upstream = folder / "runtime.sock"
        self.listen = folder / "tap.sock"
        self.observed: list[Observation] = []
        self._decoder = Decoder()
        self._news = asyncio.Event()

    def sink(self, chunk: Chunk) -> None:
        """Decode as the bytes pass."""
        self.observed += self._decoder.feed(chunk)
        self._news.set()

    async def until(self, enough: Callable[[list[Observation]], bool]) -> None:
        """Wait until the tap observed that."""
        while not enough(self.observed):
            self._news.clear()
            await self._news.wait()

    def peers(self) -> list[str]:
        """What became of connections."""
        return [each.what for each in self.observed if isinstance(each, PeerChange)]

    def calls(self) -> list[tuple[str, bytes, list[bytes], str]]:
        """Each call that ended: its rpc, its request, the messages of its answer, and its code."""
        return described(self.observed)

    @contextlib.asynccontextmanager
    async def channel(self, **options: Any) -> AsyncGenerator[grpc.aio.Channel]:
        """A client of the tap."""
        async with grpc.aio.insecure_channel(f"unix:{self.listen}", options=HASTY, **options) as channel:
            yield channel

    @classmethod
    def played(cls, folder: Path, scenario: Callable[[Tapped, Any, Any], Awaitable[Any]]) -> Tapped:
        """The scenario, given both stubs of a client of the tap; afterwards everybody is gone."""

        async def main() -> Tapped:
            world = cls(folder)
            async with (
                serving(world.upstream),
                Relay(world.listen, world.upstream, world.sink),
                world.channel() as channel,
            ):
                await scenario(world, *stubs(channel))
            return world

        return asyncio.run(main())


def described(observed: list[Observation]) -> list[tuple[str, bytes, list[bytes], str]]:
    """Each call that ended: its rpc, its request, the messages of its answer, and its code."""
    open_calls: dict[str, tuple[str, bytes, list[bytes]]] = {}
    ended: list[tuple[str, bytes, list[bytes], str]] = []
    for each in observed:
        match each:
            case CallBegan():
                open_calls[each.id] = each.rpc, each.request, []
            case StreamItem():
                open_calls[each.id][2].append(each.message)
            case Answered():
                rpc, request, _ = open_calls.pop(each.id)
                ended.append((rpc, request, [each.response], "OK"))
            case CallEnded():
                ended.append((*open_calls.pop(each.id), each.code))
            case _:
                pass
    return ended
