"""Messages of gRPC out of the DATA of one direction of one call."""

from __future__ import annotations

import zlib
from typing import Final

from kubelet_conformance.tap.undecodable import UndecodableError

MESSAGE_BYTES_MAX: Final = 16 << 20
"""The longest message: what a kubelet and containerd allow, in bytes."""
_HEAD_BYTES: Final = 5
_PLAIN: Final = 0
_COMPRESSED: Final = 1
_WINDOW_BITS = {b"gzip": 31, b"deflate": 15}
"""What zlib calls gRPC's encodings."""


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
