"""Frames come out of the bytes however these are cut; what is no HTTP/2 is refused."""

import contextlib
from itertools import pairwise

import pytest
import tap_wire as wire
from hpack import Encoder
from hypothesis import given
from hypothesis import strategies as st
from tap_wire import Peer, fed, frame

from kubelet_conformance.tap.errors import UndecodableError
from kubelet_conformance.tap.frames import FrameReader
from kubelet_conformance.tap.headers import HEADER_BYTES_MAX

BLOCK = Encoder().encode([("x", "1"), ("y", "2")])


def client(*frames: bytes) -> bytes:
    """What a client says from the beginning."""
    return wire.PREFACE + b"".join(frames)


def every_kind() -> bytes:
    """At least one frame of each kind, with everything that may be around its payload."""
    peer = Peer()
    return client(
        frame(wire.SETTINGS, 0, 0, b"\0\1\0\0\0\0"),
        frame(wire.SETTINGS, 1, 0),
        frame(wire.PING, 0, 0, bytes(8)),
        peer.headers(1, [("x", "1"), ("y", "2")], parts=3, pad=4, priority=True),
        frame(wire.DATA, wire.PADDED, 1, b"\3abc" + bytes(3)),
        frame(wire.DATA, wire.PADDED | wire.END_STREAM, 1, b"\0"),
        frame(wire.WINDOW, 0, 1, bytes(4)),
        frame(0x77, 0xFF, 5, b"of the future"),
        frame(wire.RST, 0, 1, b"\0\0\0\x08"),
        frame(wire.GOAWAY, 0, 0, bytes(8)),
        frame(wire.DATA, 0, 0x80000003, b"the reserved bit is ignored"),
    )


EVERY_KIND = [
    (wire.SETTINGS, 0, False, b"\0\1\0\0\0\0"),
    (wire.HEADERS, 1, False, BLOCK),
    (wire.DATA, 1, False, b"abc"),
    (wire.DATA, 1, True, b""),
    (wire.RST, 1, False, b"\0\0\0\x08"),
    (wire.GOAWAY, 0, False, bytes(8)),
    (wire.DATA, 3, False, b"the reserved bit is ignored"),
]


@given(st.sets(st.integers(0, len(every_kind()))))
def test_frames_do_not_depend_on_the_cuts(cuts: set[int]) -> None:
    """Any split of the stream gives the same frames, without padding, priority and continuation."""
    data = every_kind()
    edges = [0, *sorted(cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(edges)]

    assert fed(FrameReader(from_client=True), pieces) == EVERY_KIND


def test_server_has_no_preface() -> None:
    """What a server says begins with a frame."""
    assert FrameReader(from_client=False).feed(frame(wire.DATA, 1, 7, b"x")) == [(0, 7, True, b"x")]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n", "does not begin as HTTP/2 does", id="http1"),
        pytest.param(b"\x16\x03\x01", "does not begin", id="tls"),
        pytest.param(client(frame(9, 4, 1)), "CONTINUATION", id="continues-nothing"),
        pytest.param(client(frame(1, 0, 1), frame(0, 0, 1)), "another frame", id="interrupted"),
        pytest.param(client(frame(1, 0, 1), frame(9, 4, 3)), "another frame", id="other-stream"),
        pytest.param(client(frame(0, 8, 1)), "all padding", id="no-pad-length"),
        pytest.param(client(frame(0, 8, 1, b"\4abc")), "all padding", id="too-much-padding"),
        pytest.param(client(frame(1, 0x24, 1, b"ab")), "priority", id="no-room-for-priority"),
    ],
)
def test_what_is_no_http2_is_refused(data: bytes, why: str) -> None:
    """Each way to be wrong has its reason reported, even when the bytes come one by one."""
    pieces = [data[at : at + 1] for at in range(len(data))]

    with pytest.raises(UndecodableError, match=why):
        fed(FrameReader(from_client=True), pieces)


def test_header_block_is_bounded() -> None:
    """CONTINUATION without end does not fill the memory."""
    more = frame(wire.CONTINUATION, 0, 1, bytes(1 << 18))
    pieces = [frame(wire.HEADERS, 0, 1), *[more] * ((HEADER_BYTES_MAX >> 18) + 1)]

    with pytest.raises(UndecodableError, match="header block of more than"):
        fed(FrameReader(from_client=False), pieces)


@given(st.lists(st.binary(max_size=60)), st.booleans())
def test_any_bytes_are_read_or_refused(pieces: list[bytes], from_client: bool) -> None:  # noqa: FBT001 - drawn
    """Nothing but the one error comes out of nonsense."""
    with contextlib.suppress(UndecodableError):
        fed(FrameReader(from_client=from_client), pieces)
