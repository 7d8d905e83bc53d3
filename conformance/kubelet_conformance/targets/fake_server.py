"""Runs the server of a fake in this process until a signal ends it: the runtime's, or the API server's."""

import asyncio
import os
import re
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from kubelet_conformance.targets.process.manifest_api import unique_uids
from kubelet_conformance.trace.format.errors import BadInputError
from kubelet_fakes.api import ApiCore
from kubelet_fakes.api_server import ApiServer, CannotListenError
from kubelet_fakes.clock import LoopClock
from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.logs import NodeFiles
from kubelet_fakes.runtime.service import FakeRuntime
from kubelet_fakes.runtime.serving.methods import METHODS
from kubelet_fakes.runtime.serving.server import AddressError, RuntimeServer, socket_path
from kubelet_fakes.runtime.serving.streams import StreamServer
from kubelet_fakes.runtime.settings import RuntimeSettings

_LOOPBACK = re.compile(r"127(\.\d{1,3}){3}|\[::1\]|localhost")
_PORT_MAX = 65535
_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
"""Those that an API server creates by itself."""


class CannotServeError(BadInputError):
    """Nothing can be served at that address; the message says why and what to do."""


def serve(address: str, root: Path | None, now_ns: int, say: Callable[[str], object]) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        address: Of the unix socket, such as unix:///run/fake.sock.
        root: The folder that stands for / where containers write logs and messages; None writes none.
        now_ns: The time of day, in nanoseconds since the epoch.
        say: Called once with what is served, as soon as clients can connect.

    Raises:
        CannotServeError: The address is none, or something else is there.
    """
    try:
        asyncio.run(_serve(socket_path(address), root, now_ns, say))
    except AddressError as error:
        raise CannotServeError(str(error)) from None


def serve_api(address: str, kubeconfig: Path, now_ns: int, say: Callable[[str], object]) -> None:
    """Serve the API server until SIGINT or SIGTERM.

    Args:
        address: Where to listen, such as 127.0.0.1:6443; port 0 is a free one.
        kubeconfig: The file to write for clients, which is removed in the end.
        now_ns: The time of day, in nanoseconds since the epoch.
        say: Called once with what is served, as soon as clients can connect.

    Raises:
        CannotServeError: The address is none or in use, or the file cannot be written.
    """
    try:
        asyncio.run(_serve_api(*_host_and_port(address), kubeconfig, now_ns, say))
    except CannotListenError as error:
        raise CannotServeError(str(error)) from None


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not _LOOPBACK.fullmatch(host) or not port.isdecimal() or int(port) > _PORT_MAX:
        raise CannotServeError(f"{address}: no loopback address with a port; write it like 127.0.0.1:6443")
    return host.strip("[]"), int(port)


async def _serve_api(
    host: str, port: int, kubeconfig: Path, now_ns: int, say: Callable[[str], object]
) -> None:
    stopped, clock = _stopped(), _clock(now_ns)
    core = ApiCore(clock.wall_ns, unique_uids())
    for name in _NAMESPACES:
        core.create("namespaces", {"metadata": {"name": name}})
    async with ApiServer(core, host=host, port=port) as server:
        with _written(kubeconfig, server.kubeconfig()):
            say(f"API server at {server.url}, kubeconfig {kubeconfig}; end it with Ctrl-C")
            await stopped.wait()


@contextmanager
def _written(path: Path, text: str) -> Generator[None]:
    """A file that was not there before and is not there afterwards, for its owner only."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except FileExistsError:
        raise CannotServeError(f"{path}: is there already: name another file, or remove that") from None
    except OSError as error:
        raise CannotServeError(f"{path}: cannot be written: {error.strerror}: name another file") from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _stopped() -> asyncio.Event:
    """An event that the signals set which ask this process to end."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    return stopped


def _clock(now_ns: int) -> LoopClock:
    return LoopClock(now_ns - round(asyncio.get_running_loop().time() * 1e9))


async def _serve(path: Path, root: Path | None, now_ns: int, say: Callable[[str], object]) -> None:
    stopped, settings = _stopped(), RuntimeSettings()
    runtime = FakeRuntime(RuntimeCore(settings), _clock(now_ns))
    runtime.core.store.logs.files = None if root is None else NodeFiles(root)
    async with StreamServer(runtime), RuntimeServer(runtime, path) as server:
        say(f"{settings.name} {settings.version}: {_services()} at {server.address}; end it with Ctrl-C")
        await stopped.wait()


def _services() -> str:
    """The services by name, each with the number of its methods."""
    counts: dict[str, int] = {}
    for method in METHODS:
        counts[method.service] = counts.get(method.service, 0) + 1
    return ", ".join(f"{service} ({count} methods)" for service, count in counts.items())
