"""gRPC over HTTP/2: the messages in the DATA of a call, and how calls end."""

import re
import zlib
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

from kubelet_conformance.tap.errors import UndecodableError

MESSAGE_BYTES_MAX: Final = 16 << 20
"""The longest message: what a kubelet and containerd allow, in bytes."""
_HEAD_BYTES: Final = 5
_PLAIN: Final = 0
_COMPRESSED: Final = 1
_WINDOW_BITS = {b"gzip": 31, b"deflate": 15}
"""What zlib calls gRPC's encodings."""

_CODES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
_BY_NUMBER = {str(number).encode(): name for number, name in enumerate(_CODES)}

_BY_HTTP_STATUS = {
    b"400": "INTERNAL",
    b"401": "UNAUTHENTICATED",
    b"403": "PERMISSION_DENIED",
    b"404": "UNIMPLEMENTED",
    b"429": "UNAVAILABLE",
    b"502": "UNAVAILABLE",
    b"503": "UNAVAILABLE",
    b"504": "UNAVAILABLE",
}
"""What an answer without grpc-status means (gRPC's http-grpc-status-mapping)."""

_BY_RESET = {7: "UNAVAILABLE", 8: "CANCELLED", 11: "RESOURCE_EXHAUSTED", 12: "PERMISSION_DENIED"}
"""What the codes of RST_STREAM mean (gRPC over HTTP/2, Errors); the others are INTERNAL."""

_TIMEOUT = re.compile(rb"([0-9]{1,8})([HMSmun])")
_UNITS_NS = {
    b"H": 3600 * 10**9,
    b"M": 60 * 10**9,
    b"S": 10**9,
    b"m": 10**6,
    b"u": 10**3,
    b"n": 1,
}


class TooLongError(Exception):
    """A message is longer than the bound; the text says so."""


def whole_message(data: bytes) -> bytes | None:
    """The message, if the data is just one that is not compressed: nearly always it is."""
    if len(data) >= _HEAD_BYTES and not data[0] and int.from_bytes(data[1:5]) == len(data) - _HEAD_BYTES:
        return data[_HEAD_BYTES:]
    return None


class MessageReader:
    """Takes the DATA of one direction of a call and gives the messages that are complete.

    Args:
        encoding: How a message with the compressed flag is compressed, as grpc-encoding says.
    """

    __slots__ = ("_encoding", "_need", "_rest")

    def __init__(self, encoding: bytes) -> None:
        self._encoding = encoding
        self._rest = bytearray()
        self._need = _HEAD_BYTES

    def __len__(self) -> int:
        """How many bytes wait for the end of their message."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that these bytes complete.

        Raises:
            TooLongError: The next message is over the bound.
            UndecodableError: This is not gRPC.
        """
        rest = self._rest
        rest += data
        messages: list[bytes] = []
        at = 0
        while len(rest) - at >= self._need:
            length = int.from_bytes(rest[at + 1 : at + _HEAD_BYTES])
            if length > MESSAGE_BYTES_MAX:
                raise TooLongError(_too_long(f"{length} bytes"))
            end = at + _HEAD_BYTES + length
            if len(rest) < end:
                self._need = end - at
                break
            messages.append(self._plain(rest[at], bytes(rest[at + _HEAD_BYTES : end])))
            at = end
            self._need = _HEAD_BYTES
        del rest[:at]
        return messages

    def _plain(self, flag: int, message: bytes) -> bytes:
        if flag == _PLAIN:
            return message
        if flag != _COMPRESSED:
            raise UndecodableError(f"a message with the flag {flag}, which gRPC does not know")
        bits = _WINDOW_BITS.get(self._encoding)
        if bits is None:
            name = self._encoding.decode(errors="replace") or "nothing that is named"
            raise UndecodableError(f"messages compressed by {name}: gzip and deflate are known")
        unpacking = zlib.decompressobj(bits)
        try:
            plain = unpacking.decompress(message, MESSAGE_BYTES_MAX + 1)
        except zlib.error as error:
            raise UndecodableError(f"a message that is not compressed as it says: {error}") from None
        if len(plain) > MESSAGE_BYTES_MAX:
            raise TooLongError(_too_long("unpacked more"))
        if not unpacking.eof:
            raise UndecodableError("a compressed message that is cut short")
        return plain


def _too_long(size: str) -> str:
    return f"a message of {size}; the tap keeps at most {MESSAGE_BYTES_MAX}, as a kubelet does"


def outcome(headers: Mapping[bytes, bytes]) -> tuple[str, str]:
    """The code and the message in the last headers of an answer."""
    number = headers.get(b"grpc-status")
    message = headers.get(b"grpc-message", b"")
    if number is not None:
        text = (unquote_to_bytes(message) if b"%" in message else message).decode(errors="replace")
        return _BY_NUMBER.get(number, "UNKNOWN"), text
    status = headers.get(b":status", b"")
    if status in {b"", b"200"}:
        return "UNKNOWN", "the answer ended without grpc-status"
    code = _BY_HTTP_STATUS.get(status, "UNKNOWN")
    return code, f"HTTP status {status.decode(errors='replace')} and no grpc-status"


def code_of_reset(number: int) -> str:
    """What it means when the runtime resets a call."""
    return _BY_RESET.get(number, "INTERNAL")


def timeout_ns(header: bytes | None) -> int | None:
    """How long a client waits, in nanoseconds, as grpc-timeout says; None for ever, or if it is malformed."""
    found = None if header is None else _TIMEOUT.fullmatch(header)
    return None if found is None else int(found[1]) * _UNITS_NS[found[2]]
