"""A DRA driver as kubelets from 1.32 on find it: a plugin at a socket in their folder (KEP-4381)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from kubelet_fakes.dra.protocol import METHODS, SERVICES, message
from kubelet_fakes.runtime.serving.server import RuntimeServer

NAME = "devices.example"
"""The driver's."""
REQUEST = "device"
"""The name of the one request that each claim has."""
_SOCKET = "plugins_registry/dra.sock"
"""Below the kubelet's root folder: there it looks for plugins."""


class ClaimName(NamedTuple):
    """A ResourceClaim by its name."""

    namespace: str
    name: str


class Devices(Protocol):
    """What stands behind a driver; a failed call raises `grpc.aio.AioRpcError`."""

    async def prepare(self, claims: Sequence[ClaimName]) -> Mapping[ClaimName, Sequence[str]]:
        """Make the claims' devices ready; their CDI names by claim."""
        ...

    async def unprepare(self, claims: Sequence[ClaimName]) -> None:
        """Give the claims' devices back."""
        ...


class DraDriver:
    """Lets the kubelet with that root folder call `devices` for as long as its context is open."""

    def __init__(self, root: Path, devices: Devices) -> None:
        self._devices = devices
        self._server = RuntimeServer(self, root / _SOCKET, METHODS)

    async def __aenter__(self) -> Self:
        """Listen; the kubelet finds it when it starts, or soon."""
        self._server.path.parent.mkdir(parents=True, exist_ok=True)
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Listen no more."""
        await self._server.__aexit__()

    async def GetInfo(self, _: Any) -> Any:  # noqa: ANN401, N802 - as the protocol has it
        """Its kind, name and socket, and the versions that it serves."""
        endpoint = str(self._server.path)
        return message("PluginInfo")(
            type="DRAPlugin", name=NAME, endpoint=endpoint, supported_versions=SERVICES
        )

    async def NotifyRegistrationStatus(self, _: Any) -> Any:  # noqa: ANN401, N802
        """Whether the kubelet takes it; if not, its log says why."""
        return message("Nothing")()

    async def NodePrepareResources(self, request: Any) -> Any:  # noqa: ANN401, N802
        """Prepare all claims of the request."""
        prepared = await self._devices.prepare([_name(each) for each in request.claims])
        return _answer(request, prepared)

    async def NodeUnprepareResources(self, request: Any) -> Any:  # noqa: ANN401, N802
        """Give all claims of the request back."""
        await self._devices.unprepare([_name(each) for each in request.claims])
        return _answer(request, {})


def _name(claim: Any) -> ClaimName:  # noqa: ANN401 - see `message`
    return ClaimName(claim.namespace, claim.name)


def _answer(request: Any, devices: Mapping[ClaimName, Sequence[str]]) -> Any:  # noqa: ANN401
    """For each claim by its UID, what is given of these devices."""
    of_claim = message("DevicesOfClaim")
    found = [of_claim(uid=each.uid, devices=_devices(each, devices)) for each in request.claims]
    return message("DevicesOfClaims")(claims=found)


def _devices(claim: Any, devices: Mapping[ClaimName, Sequence[str]]) -> Any:  # noqa: ANN401
    what = {"request_names": [REQUEST], "pool_name": NAME, "device_name": claim.name}
    every = [message("Device")(**what, cdi_device_ids=[cdi]) for cdi in devices.get(_name(claim), ())]
    return message("Devices")(devices=every)
