"""Faults on calls: errors before or after the effect, delays, hangs, lost replies.

>>> from kubelet_fakes.runtime import Faults, about
>>> faults = Faults()
>>> with faults.add("StopContainer", code="UNAVAILABLE", where=about(container="c1")):
...     faults.names()
('StopContainer before: UNAVAILABLE injected',)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import grpc
from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message

from kubelet_fakes.runtime.core import RuntimeCore
from kubelet_fakes.runtime.errors import CallError
from kubelet_fakes.runtime.records import POD_UID

#: A fault on this applies to every call.
ANY_RPC = "*"

#: The calls to a plugin of dynamic resources, which stands beside the runtime.
PLUGIN_CALLS = ("NodePrepareResources", "NodeUnprepareResources")

#: The names of all calls.
CALLS = tuple(
    sorted(
        [*PLUGIN_CALLS]
        + [one.name for service in cri.DESCRIPTOR.services_by_name.values() for one in service.methods]
    )
)


class Effect(StrEnum):
    """What a fault does to the call that it applies to."""

    NONE = "none"
    """It does not: the call is only late."""
    BEFORE = "before"
    """The call fails and does not take place."""
    AFTER = "after"
    """The call takes place and fails all the same."""
    HANG = "hang"
    """The call is held up until its deadline, and does not take place then; healed, it does."""
    PRETEND = "pretend"
    """The call is answered as done and does not take place: the runtime reports wrongly."""
    LOST_REPLY = "lost-reply"
    """The call takes place and is not answered before its deadline, or before the fault is healed."""


@dataclass(eq=False, slots=True)
class Fault:
    """A fault in force; also a context manager that heals it at its end."""

    rpc: str
    effect: Effect
    code: grpc.StatusCode
    message: str
    delay: float
    times: int | None
    where: Callable[[Subject], bool] | None
    _healed: asyncio.Event
    _on_heal: Callable[[Fault], None]

    def heal(self) -> None:
        """End it; again is fine. Calls that it holds up go on."""
        if not self._healed.is_set():
            self._healed.set()
            self._on_heal(self)

    async def until_healed(self) -> None:
        """Return when it is healed."""
        await self._healed.wait()

    def error(self) -> CallError:
        """What a call that it applies to raises."""
        return CallError(self.code, self.message, effect=self.effect is not Effect.BEFORE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()

    def __str__(self) -> str:
        late = f" late by {self.delay:g} s" if self.delay else ""
        match self.effect:
            case Effect.NONE:
                return f"{self.rpc}{late}"
            case Effect.BEFORE | Effect.AFTER:
                return f"{self.rpc}{late} {self.effect}: {self.code.name} {self.message}"
            case _:
                return f"{self.rpc}{late} {self.effect}"


class Faults:
    """The faults in force, oldest first."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def __bool__(self) -> bool:
        return bool(self._faults)

    def names(self) -> tuple[str, ...]:
        """The faults in force, in words."""
        return tuple(map(str, self._faults))

    def add(  # noqa: PLR0913 - one keyword for each property of a fault
        self,
        rpc: str,
        effect: Effect | str = Effect.BEFORE,
        *,
        code: str | grpc.StatusCode = grpc.StatusCode.UNKNOWN,
        message: str = "injected",
        delay: float = 0,
        times: int | None = None,
        where: Callable[[Subject], bool] | None = None,
    ) -> Fault:
        """Let calls of `rpc` fail from now on, until healed.

        Args:
            rpc: The name of the call, or `*` for all.
            effect: What it does to the call, by value or name.
            code: The error, by gRPC's name; of no account for a hang, a lost reply, or a mere delay.
            message: The error's text.
            delay: How many seconds late the call is.
            times: How many calls it applies to; None is all of them.
            where: What a call must be about to get the fault (see `about`); None is anything.

        Raises:
            ValueError: There is no such call, effect or code.
        """
        if rpc != ANY_RPC and rpc not in CALLS:
            raise ValueError(f"no call is named {rpc!r}: expected {ANY_RPC} or one of {', '.join(CALLS)}")
        status = code if isinstance(code, grpc.StatusCode) else _status(code)
        fault = Fault(
            rpc, Effect(effect), status, message, delay, times, where, asyncio.Event(), self._faults.remove
        )
        self._faults.append(fault)
        return fault

    def delay(self, rpc: str, seconds: float) -> Fault:
        """Let calls take place and be answered late; a caller that leaves earlier does not stop them."""
        return self.add(rpc, Effect.NONE, delay=seconds)

    def heal(self) -> None:
        """End all faults."""
        for fault in list(self._faults):
            fault.heal()

    def on_call(self, rpc: str, subject: Subject) -> tuple[float, Fault | None]:
        """How late this call is (s), by all faults that match, and the oldest of them that does more."""
        delay, decisive = 0.0, None
        for fault in self._matching(rpc, subject):
            if fault.effect is not Effect.NONE:
                if decisive is not None:
                    continue
                decisive = fault
            delay += fault.delay
            if fault.times is not None:
                fault.times -= 1
        return delay, decisive

    def _matching(self, rpc: str, subject: Subject) -> list[Fault]:
        return [
            fault
            for fault in self._faults
            if fault.rpc in {rpc, ANY_RPC}
            and fault.times != 0
            and (fault.where is None or fault.where(subject))
        ]


def _status(code: str) -> grpc.StatusCode:
    try:
        return grpc.StatusCode[code]
    except KeyError:
        raise ValueError(f"gRPC has no status code {code!r}") from None


@dataclass(frozen=True, slots=True)
class Subject:
    """What a call is about; what is not known, or does not apply, is empty."""

    pod_uid: str = ""
    pod_name: str = ""
    namespace: str = ""
    container: str = ""
    sandbox_id: str = ""
    container_id: str = ""
    image: str = ""


def about(**fields: str) -> Callable[[Subject], bool]:
    """A filter: a subject that has all these values, such as `about(pod_name="web", container="c1")`."""
    unknown = fields.keys() - set(Subject.__dataclass_fields__)
    if unknown:
        raise TypeError(f"a subject has no {', '.join(sorted(unknown))}")
    return lambda subject: all(getattr(subject, name) == value for name, value in fields.items())


def subject_of(core: RuntimeCore, request: Message) -> Subject:
    """What a request is about, as far as the runtime knows."""
    match request:
        case cri.RunPodSandboxRequest():
            return _of_pod(request.config.metadata)
        case cri.CreateContainerRequest():
            return _of_sandbox(core, request.pod_sandbox_id, request.config.metadata.name)
        case cri.PullImageRequest():
            return _of_pod(request.sandbox_config.metadata, image=request.image.image)
        case cri.ImageStatusRequest() | cri.RemoveImageRequest():
            return Subject(image=request.image.image)
        case cri.ListPodSandboxRequest() | cri.ListContainersRequest():
            return Subject(pod_uid=request.filter.label_selector.get(POD_UID, ""))
        case _:
            return _by_id(core, request)


def _by_id(core: RuntimeCore, request: Message) -> Subject:
    fields = request.DESCRIPTOR.fields_by_name
    if "container_id" in fields:
        container_id: str = getattr(request, "container_id", "")
        container = core.store.containers.get(container_id)
        if container is None:
            return Subject(container_id=container_id)
        return _of_sandbox(core, container.sandbox.id, container.name, container_id)
    if "pod_sandbox_id" in fields:
        return _of_sandbox(core, getattr(request, "pod_sandbox_id", ""))
    return Subject()


def _of_pod(metadata: cri.PodSandboxMetadata, *, image: str = "") -> Subject:
    return Subject(metadata.uid, metadata.name, metadata.namespace, image=image)


def _of_sandbox(core: RuntimeCore, sandbox_id: str, container: str = "", container_id: str = "") -> Subject:
    sandbox = core.store.sandboxes.get(sandbox_id)
    if sandbox is None:
        return Subject(container=container, sandbox_id=sandbox_id, container_id=container_id)
    metadata = sandbox.config.metadata
    return Subject(metadata.uid, metadata.name, metadata.namespace, container, sandbox_id, container_id)
