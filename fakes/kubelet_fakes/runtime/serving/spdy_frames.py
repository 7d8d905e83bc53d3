"""Frames of SPDY/3.1 as bytes, as far as streams of containers use them; no I/O.

Clients of Kubernetes open streams, send data on them and ping. Frames of flow control and settings are
read over, as client-go neither counts windows nor heeds settings.
"""

import enum
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_VERSION = 3
_CONTROL = 1 << 31
_STREAM_ID = _CONTROL - 1
_FIN = 1
_HEAD_BYTES = 8
_DATA_BYTES_MAX = (1 << 24) - 1
_BLOCK_BYTES_MAX = 1 << 16
"""How long the names and values of one frame may be, before they are compressed."""
_MANY = "\0"
"""What stands between several values of one name."""

_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges "
    "age allow authorization cache-control connection content-base content-encoding content-language "
    "content-length content-location content-md5 content-range content-type date etag expect expires from "
    "host if-match if-modified-since if-none-match if-range if-unmodified-since last-modified location "
    "max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after server te trailer "
    "transfer-encoding upgrade user-agent vary via warning www-authenticate method get status 200_OK version "
    "HTTP/1.1 url public set-cookie keep-alive origin"
)
_TEXT = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _sized(text: str) -> bytes:
    data = text.encode("latin-1")
    return len(data).to_bytes(4) + data


_DICTIONARY = b"".join(_sized(word.replace("_", " ")) for word in _WORDS.split()) + _TEXT.encode()
"""What both sides' compressors begin with, by the specification of SPDY/3."""


class _Kind(enum.IntEnum):
    """Kinds of control frames, by their numbers."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RESET = 3
    PING = 6
    GO_AWAY = 7
    HEADERS = 8


class SpdyError(ValueError):
    """What came is no frame of SPDY/3.1."""


@dataclass(frozen=True, slots=True)
class SynStream:
    """A stream begins."""

    stream_id: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    fin: bool = False


@dataclass(frozen=True, slots=True)
class SynReply:
    """A stream is accepted."""

    stream_id: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of a stream; `fin` is the end of what this side sends."""

    stream_id: int
    data: bytes = b""
    fin: bool = False


@dataclass(frozen=True, slots=True)
class Reset:
    """A stream ends in both directions."""

    stream_id: int
    status: int


@dataclass(frozen=True, slots=True)
class Ping:
    """To be sent back as it is."""

    ping_id: int


@dataclass(frozen=True, slots=True)
class GoAway:
    """No more streams are accepted."""

    last_stream_id: int
    status: int = 0


Frame = SynStream | SynReply | Data | Reset | Ping | GoAway


class FrameWriter:
    """Makes bytes of frames, in the order in which they are sent."""

    def __init__(self) -> None:
        self._compressor = zlib.compressobj(zdict=_DICTIONARY)

    def encode(self, frame: Frame) -> bytes:
        """The bytes of a frame; data may be at most 16 MiB less one byte long."""
        match frame:
            case SynStream():
                body = _numbers(frame.stream_id, 0) + bytes(2) + self._block(frame.headers)
                return _control(_Kind.SYN_STREAM, body, fin=frame.fin)
            case SynReply():
                body = _numbers(frame.stream_id) + self._block(frame.headers)
                return _control(_Kind.SYN_REPLY, body, fin=frame.fin)
            case Data():
                if len(frame.data) > _DATA_BYTES_MAX:
                    raise SpdyError(f"a frame holds {_DATA_BYTES_MAX} bytes at most, not {len(frame.data)}")
                return _numbers(frame.stream_id, frame.fin << 24 | len(frame.data)) + frame.data
            case Reset():
                return _control(_Kind.RESET, _numbers(frame.stream_id, frame.status))
            case Ping():
                return _control(_Kind.PING, _numbers(frame.ping_id))
            case GoAway():
                return _control(_Kind.GO_AWAY, _numbers(frame.last_stream_id, frame.status))

    def _block(self, headers: Mapping[str, str]) -> bytes:
        pairs = (_sized(name.lower()) + _sized(value) for name, value in headers.items())
        plain = _numbers(len(headers)) + b"".join(pairs)
        return self._compressor.compress(plain) + self._compressor.flush(zlib.Z_SYNC_FLUSH)


class FrameReader:
    """Reads frames from bytes that come in pieces of any length."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(zdict=_DICTIONARY)
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are now whole; raises `SpdyError` for what is none."""
        self._rest += data
        while len(self._rest) >= _HEAD_BYTES:
            first, second = (int.from_bytes(self._rest[at : at + 4]) for at in (0, 4))
            end = _HEAD_BYTES + (second & _DATA_BYTES_MAX)
            if len(self._rest) < end:
                return
            body, self._rest = self._rest[_HEAD_BYTES:end], self._rest[end:]
            fin = bool(second >> 24 & _FIN)
            if not first & _CONTROL:
                yield Data(first, body, fin)
            elif (frame := self._control_frame(first, body, fin=fin)) is not None:
                yield frame

    def _control_frame(self, first: int, body: bytes, *, fin: bool) -> Frame | None:
        """The frame; None for a kind that is read over."""
        if (version := first >> 16 & 0x7FFF) != _VERSION:
            raise SpdyError(f"expected version {_VERSION} of SPDY, got {version}")
        number, other = int.from_bytes(body[:4]) & _STREAM_ID, int.from_bytes(body[4:8])
        match first & 0xFFFF:
            case _Kind.SYN_STREAM:
                return SynStream(number, self._headers(body[10:]), fin)
            case _Kind.SYN_REPLY:
                return SynReply(number, self._headers(body[4:]), fin)
            case _Kind.RESET:
                return Reset(number, other)
            case _Kind.PING:
                return Ping(int.from_bytes(body[:4]))
            case _Kind.GO_AWAY:
                return GoAway(number, other)
            case _Kind.HEADERS:
                # Both sides' compressors have to have seen the same.
                self._headers(body[4:])
            case _:
                pass
        return None

    def _headers(self, block: bytes) -> dict[str, str]:
        """Names and values; of several values of one name the first."""
        try:
            plain = self._decompressor.decompress(block, _BLOCK_BYTES_MAX)
        except zlib.error as error:
            raise SpdyError(f"headers cannot be decompressed: {error}") from None
        texts, at = list[str](), 4
        for _ in range(2 * min(int.from_bytes(plain[:4]), len(plain))):
            end = at + 4 + int.from_bytes(plain[at : at + 4])
            texts.append(plain[at + 4 : end].decode("latin-1"))
            at = end
        if at != len(plain) or self._decompressor.unconsumed_tail:
            raise SpdyError("the headers of a frame are longer or shorter than they say")
        return {name: value.partition(_MANY)[0] for name, value in zip(texts[::2], texts[1::2], strict=True)}


def _numbers(*values: int) -> bytes:
    return b"".join(value.to_bytes(4) for value in values)


def _control(kind: int, body: bytes, *, fin: bool = False) -> bytes:
    return _numbers(_CONTROL | _VERSION << 16 | kind, fin << 24 | len(body)) + body
