"""Header blocks mean to the tap what they mean to hpack's own decoder, and nonsense is reported as such."""

import contextlib
from typing import Any

import pytest
from hpack import Decoder, Encoder
from hypothesis import example, given
from hypothesis import strategies as st

from kubelet_conformance.tap.errors import UndecodableError
from kubelet_conformance.tap.headers import HEADER_BYTES_MAX, HeaderReader

NAMES = st.sampled_from([b":path", b":status", b"grpc-timeout", b"grpc-status", b"x", b"user-agent", b"te"])
VALUES = st.binary(max_size=12) | st.sampled_from([b"/a/B", b"200", b"0", b"v" * 3000])
FIELDS = st.lists(st.tuples(NAMES, VALUES), max_size=8)
STEPS = st.lists(st.tuples(FIELDS, st.booleans(), st.none() | st.integers(0, 9000)), max_size=12)


@pytest.mark.slow
@given(STEPS)
def test_blocks_mean_what_they_mean_to_hpack(
    steps: list[tuple[list[tuple[bytes, bytes]], bool, Any]],
) -> None:
    """Over any row of blocks, plain or packed, and with a table that grows and shrinks."""
    encoder, theirs, ours = Encoder(), Decoder(), HeaderReader()
    for fields, huffman, table in steps:
        if table is not None:
            ours.allow(table)
            theirs.max_allowed_table_size = max(table, theirs.max_allowed_table_size)
            encoder.header_table_size = table
        block = encoder.encode(fields, huffman=huffman)

        assert dict(ours.read(block)) == dict(theirs.decode(block, raw=True))


def test_same_block_is_read_anew_after_the_table_changed() -> None:
    """An index means another field once another one was put before it."""
    reader, encoder = HeaderReader(), Encoder()
    reader.read(encoder.encode([(b"x", b"1")]))
    first = bytes((0x80 | 62,))
    before = [reader.read(first), reader.read(first)]
    reader.read(encoder.encode([(b"y", b"2")]))

    assert before == [{b"x": b"1"}] * 2
    assert reader.read(first) == {b"y": b"2"}


@given(st.binary(max_size=40))
@example(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
@example(b"\x40")
@example(b"\x40\x85\xff\xff\xff\xff\xff\x01a")
@example(b"\x80")
def test_nonsense_is_reported_as_such(block: bytes) -> None:
    """Whatever the bytes, they are read or refused."""
    reader = HeaderReader()
    with contextlib.suppress(UndecodableError):
        reader.read(block)


@pytest.mark.parametrize("bytes_of_table", [4097, 1 << 30])
def test_table_may_not_be_larger_than_allowed(bytes_of_table: int) -> None:
    """A writer that takes a larger table than its reader allows is not followed."""
    encoder = Encoder()
    encoder.header_table_size = bytes_of_table
    block = encoder.encode([(b"x", b"1")])

    with pytest.raises(UndecodableError, match=f"{bytes_of_table} bytes where 4096 are allowed"):
        HeaderReader().read(block)


def test_table_is_bounded_whatever_the_peers_agree_on() -> None:
    """A peer that allows more than a mebibyte is not taken at its word."""
    encoder, reader = Encoder(), HeaderReader()
    reader.allow(1 << 31)
    encoder.header_table_size = HEADER_BYTES_MAX + 1

    with pytest.raises(UndecodableError, match="header table"):
        reader.read(encoder.encode([(b"x", b"1")]))


def test_small_block_cannot_mean_megabytes() -> None:
    """A long field that a block names again and again is counted each time."""
    reader, encoder = HeaderReader(), Encoder()
    reader.read(encoder.encode([(b"x", b"v" * 3000)], huffman=False))

    with pytest.raises(UndecodableError, match="headers of more than"):
        reader.read(bytes((0x80 | 62,)) * 400)
