"""Requests and replies as protobuf messages of the CRI, made on demand.

Judges never need them: they read typed accessors on the JSON. A message is for whoever wants the whole
request as the runtime got it. Fields that the installed messages do not know are ignored.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import msgspec
from cri_api.v1 import api_pb2
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kubelet_conformance.trace.errors import BodyError
from kubelet_conformance.trace.records import Body, Call, Reply

M = TypeVar("M", bound=Message)


def message(body: Body, kind: type[M]) -> M:
    """The body as a message of this type.

    Raises:
        BodyError: a field has a type the protocol does not give it.
    """
    try:
        value = msgspec.json.decode(body.raw, type=dict[str, Any])
        return ParseDict(value, kind(), ignore_unknown_fields=True)
    except (ParseError, RecursionError, ValueError) as error:
        raise BodyError(f"this is no {kind.DESCRIPTOR.name}: {error}") from None


def request_message(call: Call) -> Message:
    """The request of a call, as the type that its rpc takes.

    Raises:
        LookupError: the installed messages do not know the rpc.
        BodyError: a field has a type the protocol does not give it.
    """
    return message(call.request, GetMessageClass(_method(call.rpc).input_type))


def response_message(reply: Reply) -> Message | None:
    """The response of a reply, as the type that its rpc gives; None where it ended with an error.

    Raises:
        LookupError: the installed messages do not know the rpc.
        BodyError: a field has a type the protocol does not give it.
    """
    if reply.response is None:
        return None
    return message(reply.response, GetMessageClass(_method(reply.call.rpc).output_type))


@cache
def _methods() -> dict[str, MethodDescriptor]:
    services = api_pb2.DESCRIPTOR.services_by_name.values()
    return {method.name: method for service in services for method in service.methods}


def _method(rpc: str) -> MethodDescriptor:
    found = _methods().get(rpc)
    if found is None:
        raise LookupError(f"the installed CRI messages have no call {rpc}")
    return found
