"""The JSON of messages as a trace has them: each parsed once as long as it comes again, secrets taken out."""

from base64 import b64encode
from typing import Any

import msgspec
from google.protobuf.message import Message

from kubelet_conformance.tap.errors import UndecodableError
from kubelet_conformance.tap.messages import as_json, as_v1, method
from kubelet_conformance.trace.format.records import NAME_CHARS_MAX
from kubelet_conformance.trace.redaction.cri_secrets import redacted_request, redacted_response
from kubelet_conformance.trace.redaction.redactor import Redactor


def name_of(service: str, rpc: str) -> str:
    """What a trace calls a method: that of the CRI by its name alone, another with its service."""
    known = as_v1(service).startswith("runtime.v1.")
    return (rpc if known else f"{service}/{rpc}")[:NAME_CHARS_MAX]


class Bodies:
    """Remembers the JSON of the latest messages.

    A message of a method that is not known, and one that does not decode, becomes
    `{"bytes": N, "opaque": ...}` with the bytes in base64, or their digest where there is a redactor.
    v1alpha2 is read as v1, which is the same under another name (KEP-2040).

    Args:
        redactor: Takes secrets out; None leaves them in.
        bytes_max: How much of messages and JSON together is remembered.
    """

    def __init__(self, redactor: Redactor | None, bytes_max: int = 64 << 20) -> None:
        self.redactor = redactor
        self._bytes_max = bytes_max
        self._bytes = 0
        self._latest: dict[tuple[str, bool, bytes], msgspec.Raw] = {}

    def request(self, service: str, rpc: str, message: bytes) -> msgspec.Raw:
        """A request."""
        return self._of(service, rpc, message, is_request=True)

    def response(self, service: str, rpc: str, message: bytes) -> msgspec.Raw:
        """A response, or an item of a stream."""
        return self._of(service, rpc, message, is_request=False)

    def text(self, text: str) -> str:
        """A text for people."""
        return text if self.redactor is None else self.redactor.text(text)

    def opaque(self, message: bytes) -> msgspec.Raw:
        """A message of a type that this version does not know."""
        opaque = b64encode(message).decode()
        if self.redactor is not None:
            opaque = self.redactor.digest(opaque)
        return _encoded({"bytes": len(message), **({"opaque": opaque} if opaque else {})})

    def _of(self, service: str, rpc: str, message: bytes, *, is_request: bool) -> msgspec.Raw:
        key = f"{service}/{rpc}", is_request, message
        made = self._latest.pop(key, None)
        if made is None:
            made = self._made(service, rpc, message, is_request=is_request)
            self._bytes += len(message) + len(bytes(made))
        self._latest[key] = made
        while self._bytes > self._bytes_max:
            oldest = next(iter(self._latest))
            self._bytes -= len(oldest[2]) + len(bytes(self._latest.pop(oldest)))
        return made

    def _made(self, service: str, rpc: str, message: bytes, *, is_request: bool) -> msgspec.Raw:
        known = method(as_v1(service), rpc)
        if known is None:
            return self.opaque(message)
        kind: type[Message] = known.request if is_request else known.response
        try:
            raw = as_json(kind, message)
        except UndecodableError:
            return self.opaque(message)
        if self.redactor is None:
            return raw
        value = msgspec.json.decode(raw)
        redact = redacted_request if is_request else redacted_response
        return _encoded(redact(self.redactor, rpc, value))


def _encoded(value: Any) -> msgspec.Raw:  # noqa: ANN401 - a JSON value
    return msgspec.Raw(msgspec.json.encode(value, order="deterministic"))
