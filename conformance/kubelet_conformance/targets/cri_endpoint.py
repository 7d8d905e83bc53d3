"""The runtime at a socket: asked who it is, and refused with a reason if it cannot be played on."""

import socket
import stat
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import grpc.aio
from cri_api.v1 import api_pb2 as cri
from cri_api.v1 import api_pb2_grpc as services

from kubelet_conformance.reports.safe import nearest
from kubelet_conformance.tap.address import AddressError, socket_path
from kubelet_conformance.targets.choice import TargetError, UnknownTargetError
from kubelet_reference.server.host.channel import OPTIONS

_ANSWER_SECONDS = 5.0
_OLD_VERSION = "/runtime.v1alpha2.RuntimeService/Version"
_CONDITIONS = {
    "RuntimeReady": "it does not run containers yet: wait for it, or look into its log",
    "NetworkReady": "pods would get no network: give it a CNI configuration, usually in /etc/cni/net.d",
}

Services = Any
"""The methods of both services by their names, as a `grpc.aio` stub has them."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A runtime that can be played on: `name` and `version` are its own words, `services` calls it."""

    path: Path
    name: str
    version: str
    services: Services


def path_of(address: str) -> Path:
    """The path of an address such as `unix:///run/containerd/containerd.sock`.

    Raises:
        UnknownTargetError: It is no address of a unix socket.
    """
    if not address.startswith("unix:///"):
        near = nearest(address, ("fake", "containerd"))
        raise UnknownTargetError(
            f"no runtime is named {address!r}{near}; choose fake, containerd or unix:///PATH"
        )
    try:
        return socket_path(address)
    except AddressError as error:
        raise UnknownTargetError(str(error)) from None


def channel_to(path: Path, options: Sequence[tuple[str, int]] = OPTIONS) -> grpc.aio.Channel:
    """A channel of its own to a socket; to be made and closed within the running loop."""
    return grpc.aio.insecure_channel(f"unix:{path}", options=options)


def services_at(channel: grpc.aio.Channel) -> Services:
    """The methods of both services over a channel."""

    class Both:
        """Has each method as an attribute."""

    both = Both()
    for stub in (services.RuntimeServiceStub, services.ImageServiceStub):
        vars(both).update(vars(stub(channel)))
    return both


@asynccontextmanager
async def connected(path: Path) -> AsyncGenerator[Endpoint]:
    """The runtime at a socket, for as long as the context is open.

    Raises:
        TargetError: It cannot be played on; the text says why and what to do.
    """
    async with _answering(path) as (both, version):
        await _see_that_it_is_ready(path, both)
        yield Endpoint(path, version.runtime_name, version.runtime_version, both)


async def check_speaks_cri(path: Path) -> None:
    """See that a CRI runtime answers at a socket; raises `TargetError`."""
    async with _answering(path):
        pass


@asynccontextmanager
async def _answering(path: Path) -> AsyncGenerator[tuple[Services, cri.VersionResponse]]:
    _see_that_somebody_listens(path)
    async with channel_to(path) as channel:
        both = services_at(channel)
        yield both, await _version(path, channel, both)


def _see_that_somebody_listens(path: Path) -> None:
    try:
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise TargetError(f"{path}: this is no socket: name the one that the runtime listens on")
        with socket.socket(socket.AF_UNIX) as trial:
            trial.settimeout(_ANSWER_SECONDS)
            trial.connect(str(path))
    except FileNotFoundError:
        raise TargetError(f"{path}: there is no such socket: start the runtime, or name its socket") from None
    except ConnectionRefusedError:
        raise TargetError(f"{path}: nothing listens there: start the runtime, or name its socket") from None
    except PermissionError:
        raise TargetError(f"{path}: permission denied: run as a user who may use the runtime") from None
    except OSError as error:
        raise TargetError(f"{path}: cannot be connected to: {error.strerror or error}") from None


async def _version(path: Path, channel: grpc.aio.Channel, both: Services) -> cri.VersionResponse:
    try:
        found: cri.VersionResponse = await both.Version(cri.VersionRequest(), timeout=_ANSWER_SECONDS)
    except grpc.aio.AioRpcError as error:
        raise TargetError(f"{path}: {await _why_no_version(channel, error)}") from None
    if not found.runtime_name or not found.runtime_api_version:
        raise TargetError(
            f"{path}: its Version has no name or no API version: a kubelet refuses such a runtime"
        )
    return found


async def _why_no_version(channel: grpc.aio.Channel, error: grpc.aio.AioRpcError) -> str:
    match error.code():
        case grpc.StatusCode.UNIMPLEMENTED:
            if await _speaks_alpha(channel):
                return "speaks CRI v1alpha2 only: v1 is needed, as in containerd 1.6 and CRI-O 1.20"
            return "speaks gRPC and not the CRI (no runtime.v1.RuntimeService): is its CRI plugin disabled?"
        case grpc.StatusCode.UNAVAILABLE:
            return "what listens there does not speak gRPC: name the socket of a container runtime"
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"did not answer Version within {_ANSWER_SECONDS:g} s: is that a container runtime?"
        case code:
            return f"its Version fails: {code.name}: {error.details()}"


async def _speaks_alpha(channel: grpc.aio.Channel) -> bool:
    anything: Any = channel
    ask = anything.unary_unary(_OLD_VERSION)
    try:
        await ask(b"", timeout=_ANSWER_SECONDS)
    except grpc.aio.AioRpcError as error:
        return error.code() is not grpc.StatusCode.UNIMPLEMENTED
    return True


async def _see_that_it_is_ready(path: Path, both: Services) -> None:
    try:
        found: cri.StatusResponse = await both.Status(cri.StatusRequest(), timeout=_ANSWER_SECONDS)
    except grpc.aio.AioRpcError as error:
        raise TargetError(f"{path}: its Status fails: {error.code().name}: {error.details()}") from None
    conditions = {each.type: each for each in found.status.conditions}
    for name, remedy in _CONDITIONS.items():
        condition = conditions.get(name)
        if condition is None:
            raise TargetError(
                f"{path}: its Status has no condition {name}: a kubelet would never start a pod"
            )
        if not condition.status:
            why = " ".join(filter(None, (condition.reason, condition.message)))
            raise TargetError(f"{path}: {name} is false ({why or 'it does not say why'}): {remedy}")


def shipped_baseline(folder: ModuleType, name: str, version: str) -> Path | None:
    """The file with the known deviations of a runtime of this name and version, if one comes along."""
    minor = ".".join(version.removeprefix("v").split(".")[:2])
    file = Path(str(resources.files(folder).joinpath(f"{name}-{minor}.toml")))
    return file if file.is_file() else None
