"""Runs the fake runtime's server in this process until a signal ends it."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from kubelet_conformance.trace.format.errors import BadInputError
from kubelet_fakes.clock import LoopClock
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.serving.methods import METHODS
from kubelet_fakes.runtime.serving.server import AddressError, RuntimeServer, socket_path
from kubelet_fakes.runtime.settings import RuntimeSettings


class CannotServeError(BadInputError):
    """Nothing can be served at that address; the message says why and what to do."""


def serve(address: str, now_ns: int, say: Callable[[str], object]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        address: Of the unix socket, such as unix:///run/fake.sock.
        now_ns: The time of day, in nanoseconds since the epoch.
        say: Called once with what is served, as soon as clients can connect.

    Raises:
        CannotServeError: The address is none, or something else is there.
    """
    try:
        asyncio.run(_serve(socket_path(address), now_ns, say))
    except AddressError as error:
        raise CannotServeError(str(error)) from None


async def _serve(path: Path, now_ns: int, say: Callable[[str], object]) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    settings = RuntimeSettings()
    clock = LoopClock(now_ns - round(loop.time() * 1e9))
    runtime = FakeRuntime(RuntimeCore(settings), clock)
    async with RuntimeServer(runtime, path) as server:
        say(f"{settings.name} {settings.version}: {_services()} at {server.address}; end it with Ctrl-C")
        await stopped.wait()


def _services() -> str:
    """The services by name, each with the number of its methods."""
    counts: dict[str, int] = {}
    for method in METHODS:
        counts[method.service] = counts.get(method.service, 0) + 1
    return ", ".join(f"{service} ({count} methods)" for service, count in counts.items())
