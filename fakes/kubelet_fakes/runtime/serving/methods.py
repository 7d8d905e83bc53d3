"""Every method of the two CRI services, as the protocol's own descriptors have them."""

from dataclasses import dataclass
from typing import Any

from cri_api.v1 import api_pb2 as cri
from google.protobuf.message import Message

SERVICES = tuple(cri.DESCRIPTOR.services_by_name.values())
"""RuntimeService and ImageService."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method: `service` is its full name, such as runtime.v1.RuntimeService."""

    service: str
    name: str
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


METHODS = tuple(_method(method) for service in SERVICES for method in service.methods)
