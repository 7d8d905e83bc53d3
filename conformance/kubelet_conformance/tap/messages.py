"""The messages of the CRI: which classes a method has, and what a message is in JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from cri_api.v1 import api_pb2 as cri
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message

from kubelet_conformance.tap.errors import UndecodableError


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the CRI; `service` is its full name, such as runtime.v1.RuntimeService."""

    service: str
    rpc: str
    request: type[Message]
    response: type[Message]
    streams: bool
    """Whether the answer is a stream of messages."""


def _method(descriptor: Any) -> Method:  # noqa: ANN401 - protobuf has no public type for it
    return Method(
        descriptor.containing_service.full_name,
        descriptor.name,
        getattr(cri, descriptor.input_type.name),
        getattr(cri, descriptor.output_type.name),
        descriptor.server_streaming,
    )


METHODS: Mapping[tuple[str, str], Method] = {
    (service.full_name, each.name): _method(each)
    for service in cri.DESCRIPTOR.services_by_name.values()
    for each in service.methods
}
"""The methods of v1 by service and name."""
_ALPHA, _V1 = "runtime.v1alpha2.", "runtime.v1."


def as_v1(service: str) -> str:
    """The service of v1 that one of v1alpha2 is like: it is the same under another name (KEP-2040)."""
    return _V1 + service.removeprefix(_ALPHA) if service.startswith(_ALPHA) else service


def method(service: str, rpc: str) -> Method | None:
    """The method of that name; None for one that the CRI's v1 does not have."""
    return METHODS.get((service, rpc))


def streams(service: str, rpc: str) -> bool | None:
    """Whether a method answers with a stream; None where that is not known.

    A method of v1alpha2 is taken to be like its namesake.
    """
    known = METHODS.get((as_v1(service), rpc))
    return None if known is None else known.streams


def as_json(of: type[Message], message: bytes) -> msgspec.Raw:
    """A message in protobuf's JSON as a trace has it: snake_case names, keys sorted, defaults absent.

    Raises:
        UndecodableError: The bytes are no message of that class.
    """
    try:
        parsed = of.FromString(message)
    except DecodeError:
        raise UndecodableError(f"{len(message)} bytes that are no {of.DESCRIPTOR.name}") from None
    fields = MessageToDict(parsed, preserving_proto_field_name=True)
    return msgspec.Raw(msgspec.json.encode(fields, order="deterministic"))
