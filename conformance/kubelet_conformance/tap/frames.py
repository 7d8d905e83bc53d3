"""Frames of HTTP/2 (RFC 9113) out of the bytes of one direction, however they are cut."""

import struct
from enum import IntEnum
from typing import Final

from kubelet_conformance.tap.errors import UndecodableError
from kubelet_conformance.tap.headers import HEADER_BYTES_MAX

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client says first."""


class Kind(IntEnum):
    """The frames that matter to a tap, by their number on the wire."""

    DATA = 0x0
    HEADERS = 0x1
    RST_STREAM = 0x3
    SETTINGS = 0x4
    PUSH_PROMISE = 0x5
    GOAWAY = 0x7
    CONTINUATION = 0x9


Frame = tuple[int, int, bool, bytes]
"""Kind, stream, whether its sender ends the stream with it, and what it carries: of DATA and HEADERS without
padding and priority, of HEADERS together with what CONTINUATION added; SETTINGS that only acknowledge are
left out."""

_HEAD: Final = struct.Struct(">HBBBL")
_HEAD_BYTES: Final = 9
_STREAM_BITS: Final = 0x7FFFFFFF
_END_STREAM: Final = 0x1
_ACK: Final = 0x1
_END_HEADERS: Final = 0x4
_PADDED: Final = 0x8
_PRIORITY: Final = 0x20
_PRIORITY_BYTES: Final = 5

# Plain numbers: they are compared for every frame.
_DATA: Final = int(Kind.DATA)
_HEADERS: Final = int(Kind.HEADERS)
_SETTINGS: Final = int(Kind.SETTINGS)
_CONTINUATION: Final = int(Kind.CONTINUATION)
_WHOLE: Final = frozenset(map(int, (Kind.RST_STREAM, Kind.PUSH_PROMISE, Kind.GOAWAY)))


class FrameReader:
    """Takes the bytes of one direction and gives the frames that are complete.

    It keeps at most one incomplete frame (the wire's limit for it is 16 MiB) and one header block.
    """

    def __init__(self, *, from_client: bool) -> None:
        self._preface = from_client
        """Whether the preface is still to come."""
        self._rest = bytearray()
        self._need = 0
        """How long the rest must be before there is anything in it."""
        self._block: bytearray | None = None
        """A header block whose end is still to come, and the stream and the flags it began with."""
        self._block_stream = 0
        self._block_ends = False

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these bytes complete.

        Raises:
            UndecodableError: This is not HTTP/2. Nothing can be read after it.
        """
        if self._rest:
            self._rest += data
            if len(self._rest) < self._need:
                return []
            data = bytes(self._rest)
            self._rest.clear()
        at = self._past_preface(data) if self._preface else 0
        frames: list[Frame] = []
        at = self._frames(data, at, frames) if not self._preface else at
        if at < len(data):
            self._rest += data[at:] if at else data
        return frames

    def _past_preface(self, data: bytes) -> int:
        begin = data[: len(PREFACE)]
        if not PREFACE.startswith(begin):
            raise UndecodableError(f"it does not begin as HTTP/2 does, but with {begin!r}")
        if len(begin) < len(PREFACE):
            self._need = len(PREFACE)
            return 0
        self._preface = False
        return len(PREFACE)

    def _frames(self, data: bytes, at: int, frames: list[Frame]) -> int:
        """Add the frames from `at` on; where the first incomplete one begins."""
        end = len(data)
        unpack = _HEAD.unpack_from
        self._need = _HEAD_BYTES
        while at + _HEAD_BYTES <= end:
            high, low, kind, flags, stream = unpack(data, at)
            begin = at + _HEAD_BYTES
            after = begin + (high << 8 | low)
            if after > end:
                self._need = after - at
                break
            at = after
            if self._block is not None or kind == _CONTINUATION:
                self._continue(kind, flags, stream & _STREAM_BITS, data[begin:after], frames)
            elif kind == _DATA:
                payload = data[begin:after]
                if flags & _PADDED:
                    payload = _unpadded(payload)
                frames.append((kind, stream & _STREAM_BITS, bool(flags & _END_STREAM), payload))
            elif kind == _HEADERS:
                self._begin(flags, stream & _STREAM_BITS, data[begin:after], frames)
            elif kind in _WHOLE or (kind == _SETTINGS and not flags & _ACK):
                frames.append((kind, stream & _STREAM_BITS, False, data[begin:after]))
        return at

    def _begin(self, flags: int, stream: int, payload: bytes, frames: list[Frame]) -> None:
        """HEADERS, which may need CONTINUATION."""
        if flags & _PADDED:
            payload = _unpadded(payload)
        if flags & _PRIORITY:
            if len(payload) < _PRIORITY_BYTES:
                raise UndecodableError("HEADERS too short for their priority")
            payload = payload[_PRIORITY_BYTES:]
        if flags & _END_HEADERS:
            frames.append((_HEADERS, stream, bool(flags & _END_STREAM), payload))
            return
        self._block = bytearray()
        self._block_stream = stream
        self._block_ends = bool(flags & _END_STREAM)
        self._add(payload)

    def _continue(self, kind: int, flags: int, stream: int, payload: bytes, frames: list[Frame]) -> None:
        """Nothing may come between the parts of a header block (RFC 9113, 6.10)."""
        if self._block is None or kind != _CONTINUATION or stream != self._block_stream:
            raise UndecodableError("CONTINUATION without its HEADERS, or another frame in its place")
        block = self._add(payload)
        if flags & _END_HEADERS:
            frames.append((_HEADERS, stream, self._block_ends, bytes(block)))
            self._block = None

    def _add(self, payload: bytes) -> bytearray:
        block = self._block = bytearray() if self._block is None else self._block
        block += payload
        if len(block) > HEADER_BYTES_MAX:
            raise UndecodableError(f"a header block of more than {HEADER_BYTES_MAX} bytes")
        return block


def _unpadded(payload: bytes) -> bytes:
    """What is left of a padded frame (RFC 9113, 6.1)."""
    if not payload or payload[0] >= len(payload):
        raise UndecodableError("a frame that is all padding")
    return payload[1 : len(payload) - payload[0]]
