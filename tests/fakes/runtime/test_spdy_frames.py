"""Frames of SPDY/3.1 as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_fakes.runtime.serving.spdy_frames import (
    Data,
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    Ping,
    Reset,
    SpdyError,
    SynReply,
    SynStream,
)

IDS = st.integers(0, (1 << 31) - 1)
NUMBERS = st.integers(0, (1 << 32) - 1)
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1).map(str.lower)
HEADERS = st.dictionaries(NAMES, st.text(st.characters(min_codepoint=32, max_codepoint=126)), max_size=4)
FRAMES = st.one_of(
    st.builds(SynStream, IDS, HEADERS, st.booleans()),
    st.builds(SynReply, IDS, HEADERS, st.booleans()),
    st.builds(Data, IDS, st.binary(), st.booleans()),
    st.builds(Reset, IDS, NUMBERS),
    st.builds(Ping, NUMBERS),
    st.builds(GoAway, IDS, NUMBERS),
)

#: The first frame of a client of Go (moby/spdystream), which opens a stream of errors: port 80, request 0.
FROM_GO = bytes.fromhex(
    "80030001000000430000000100000000000078f9e3c6a7c26260606006a7b392a2d4c45c6851"
    "c29a5a54945f0429968b4a181818982c0c181818388b20919899c2c0c0c06800000000ffff"
)


@given(st.lists(FRAMES, max_size=6), st.integers(1, 40))
def test_frames_are_read_as_they_were_written(frames: list[Frame], piece: int) -> None:
    """Whatever pieces the bytes come in, and whatever the compressor has seen before."""
    writer, reader = FrameWriter(), FrameReader()
    data = b"".join(writer.encode(frame) for frame in frames)

    read = [frame for at in range(0, len(data), piece) for frame in reader.feed(data[at : at + piece])]

    assert read == frames


def test_frame_of_another_implementation() -> None:
    """What Go writes is read, with the dictionary of the specification."""
    assert list(FrameReader().feed(FROM_GO)) == [
        SynStream(1, {"port": "80", "requestid": "0", "streamtype": "error"})
    ]


def test_settings_and_windows_are_read_over() -> None:
    """Frames that change nothing are no frames; those of headers keep the compressor in step."""
    writer = FrameWriter()
    headers = bytearray(writer.encode(SynReply(1, {"a": "b"})))
    headers[3] = 8
    settings = bytes.fromhex("80030004 00000004 00000000")
    window = bytes.fromhex("80030009 00000008 00000001 00001000")

    read = list(FrameReader().feed(settings + window + headers + writer.encode(SynReply(3, {"a": "b"}))))

    assert read == [SynReply(3, {"a": "b"})]


BROKEN = {
    "version 2": ("80020006 00000004 00000001", "expected version 3 of SPDY, got 2"),
    "no compressed headers": ("80030002 00000008 00000001 ffffffff", "headers cannot be decompressed"),
    "no headers": ("80030002 00000004 00000001", "longer or shorter than they say"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_frame(name: str) -> None:
    """The error says what was expected."""
    data, words = BROKEN[name]

    with pytest.raises(SpdyError, match=words):
        list(FrameReader().feed(bytes.fromhex(data)))


def test_too_much_data_for_one_frame() -> None:
    """A frame has 24 bits for its length."""
    with pytest.raises(SpdyError, match="at most, not 16777216"):
        FrameWriter().encode(Data(1, bytes(1 << 24)))
