"""A conversation in gRPC's bytes, made with hpack's encoder, and what a decoder observes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from hpack import Encoder

from kubelet_conformance.tap.chunks import Chunk, What
from kubelet_conformance.tap.decoder import Decoder
from kubelet_conformance.tap.events import Observation

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, END_HEADERS, PADDED, PRIORITY = 0x1, 0x4, 0x8, 0x20
V1 = "runtime.v1.RuntimeService"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def fed(reader: Any, pieces: Iterable[bytes]) -> list[Any]:
    """What a reader gives for all the pieces."""
    return [each for piece in pieces for each in reader.feed(piece)]


def message(data: bytes, flag: int = 0) -> bytes:
    """A message of gRPC with its head."""
    return bytes((flag,)) + len(data).to_bytes(4) + data


class Peer:
    """What one side says."""

    def __init__(self) -> None:
        self.encoder = Encoder()

    def headers(
        self,
        stream: int,
        fields: Iterable[tuple[str, str]],
        *,
        ends: bool = False,
        parts: int = 1,
        pad: int | None = None,
        priority: bool = False,
    ) -> bytes:
        """A header block in as many frames as wanted."""
        block = self.encoder.encode(fields)
        cut = [len(block) * part // parts for part in range(parts + 1)]
        pieces = [block[a:b] for a, b in pairwise(cut)]
        flags = (END_STREAM if ends else 0) | (END_HEADERS if parts == 1 else 0)
        head = pieces[0]
        if priority:
            head, flags = b"\0\0\0\0\x10" + head, flags | PRIORITY
        if pad is not None:
            head, flags = bytes((pad,)) + head + bytes(pad), flags | PADDED
        frames = [frame(HEADERS, flags, stream, head)]
        for number, piece in enumerate(pieces[1:], 2):
            frames.append(frame(CONTINUATION, END_HEADERS if number == parts else 0, stream, piece))
        return b"".join(frames)

    def asks(self, stream: int, rpc: str, data: bytes | None = b"", **more: str) -> bytes:
        """A call: headers and, unless it is None, the one message that ends the stream."""
        path = rpc if rpc.startswith("/") else f"/{V1}/{rpc}"
        fields = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost")]
        fields += [("content-type", "application/grpc"), ("te", "trailers")]
        fields += [(name.replace("_", "-"), value) for name, value in more.items()]
        begin = self.headers(stream, fields)
        return begin if data is None else begin + frame(DATA, END_STREAM, stream, message(data))

    def begins(self, stream: int, **more: str) -> bytes:
        """The first headers of an answer."""
        fields = [(":status", "200"), ("content-type", "application/grpc")]
        return self.headers(
            stream, fields + [(name.replace("_", "-"), value) for name, value in more.items()]
        )

    def ends(self, stream: int, status: str = "0", text: str = "") -> bytes:
        """The trailers of an answer."""
        fields = [("grpc-status", status), *([("grpc-message", text)] if text else [])]
        return self.headers(stream, fields, ends=True)

    def answers(self, stream: int, *items: bytes, status: str = "0") -> bytes:
        """A whole answer with its messages."""
        data = b"".join(frame(DATA, 0, stream, message(item)) for item in items)
        return self.begins(stream) + data + self.ends(stream, status)


class Talk:
    """Chunks of one tap, in order; each is a nanosecond after the one before unless stated otherwise."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self.now = 0

    def add(self, what: What, data: bytes = b"", connection: int = 1, *, after_ns: int = 1) -> Talk:
        """One more chunk."""
        self.now += after_ns
        self.chunks.append(Chunk(self.now, connection, what, data))
        return self

    def connects(self, connection: int = 1) -> Talk:
        """A client comes, and both sides say what they say first."""
        self.add(What.CONNECTED, connection=connection)
        self.add(What.REQUESTS, PREFACE + frame(SETTINGS, 0, 0), connection)
        return self.add(What.REPLIES, frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0), connection)

    def asks(self, data: bytes, connection: int = 1, *, after_ns: int = 1) -> Talk:
        """Bytes from the client."""
        return self.add(What.REQUESTS, data, connection, after_ns=after_ns)

    def answers(self, data: bytes, connection: int = 1, *, after_ns: int = 1) -> Talk:
        """Bytes from the runtime."""
        return self.add(What.REPLIES, data, connection, after_ns=after_ns)

    def observations(self) -> list[Observation]:
        """What a new decoder observes of it."""
        return observations(self.chunks)

    def calls(self) -> list[tuple[Any, ...]]:
        """The same without times and without who came: for comparing calls."""
        return [described(each) for each in self.observations() if type(each).__name__ != "PeerChange"]


def observations(chunks: Sequence[Chunk]) -> list[Observation]:
    """What a new decoder observes."""
    decoder = Decoder()
    return [each for chunk in chunks for each in decoder.feed(chunk)]


def described(observation: Any) -> tuple[Any, ...]:
    """What was observed without its times, and without who ended a call."""
    left_out = {"at_ns", "timeout_ns", "by_client"}
    fields = [getattr(observation, name) for name in observation.__struct_fields__ if name not in left_out]
    return (type(observation).__name__, *fields)
