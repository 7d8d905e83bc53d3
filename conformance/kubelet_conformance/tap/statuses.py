"""How calls of gRPC end: its codes, and what stands for one where a peer names none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

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


def outcome(headers: Mapping[bytes, bytes]) -> tuple[str, str]:
    """The code and the message that the last headers of an answer tell."""
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
