"""A plugin of dynamic resources beside the fake runtime: what the kubelet says to it is on the record."""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Protocol, TypeVar

from google.protobuf.struct_pb2 import Struct

from kubelet_conformance.trace.format.recorder import Failed, RecordedCall, Recorder
from kubelet_fakes.faults import Faults
from kubelet_fakes.runtime.faults import error_of


class _Named(Hashable, Protocol):
    """A ResourceClaim, as the reference and the fakes have it."""

    @property
    def namespace(self) -> str: ...

    @property
    def name(self) -> str: ...


Claim = TypeVar("Claim", bound=_Named)


class RecordedPlugin:
    """Has one device for each claim. Faults strike its calls as they do the runtime's: before and after."""

    def __init__(self, faults: Faults, recorder: Recorder, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._faults = faults
        self._recorder = recorder
        self._sleep = sleep

    async def prepare(self, claims: Sequence[Claim]) -> dict[Claim, tuple[str, ...]]:
        """NodePrepareResources."""
        call = await self._begun("NodePrepareResources", claims)
        devices: dict[Claim, tuple[str, ...]]
        devices = {one: (f"devices.example/device={one.namespace}-{one.name}",) for one in claims}
        answer = [{"name": one.name, "CDI_devices": list(names)} for one, names in devices.items()]
        self._recorder.reply(call, _message({"claims": answer}))
        return devices

    async def unprepare(self, claims: Sequence[_Named]) -> None:
        """NodeUnprepareResources."""
        call = await self._begun("NodeUnprepareResources", claims)
        self._recorder.reply(call, _message({}))

    async def _begun(self, rpc: str, claims: Sequence[_Named]) -> RecordedCall:
        """The call, unless a fault keeps it from taking place."""
        asked = [{"namespace": one.namespace, "name": one.name} for one in claims]
        call = self._recorder.call(rpc, _message({"claims": asked}))
        delay, active = self._faults.on_call(rpc, {})
        if delay:
            await self._sleep(delay)
        if active is not None:
            error = error_of(active.fault)
            self._recorder.reply(call, Failed(error.code().name, error.details() or "", effect=error.effect))
            raise error
        return call


def _message(fields: dict[str, Any]) -> Struct:
    """A message that is written as these fields; the plugins' own protocol is not part of the CRI."""
    message = Struct()
    message.update(fields)
    return message
