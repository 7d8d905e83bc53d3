"""Malformed and hostile bytes stop the decoding of their connection, and nothing else."""

import zlib

import pytest
import tap_wire as wire
from hypothesis import given
from hypothesis import strategies as st
from tap_wire import V1, Peer, Talk, frame, message

from kubelet_conformance.tap import connection as bounds
from kubelet_conformance.tap.chunks import What
from kubelet_conformance.tap.events import PeerChange
from kubelet_conformance.tap.grpc import MESSAGE_BYTES_MAX


def broken(talk: Talk) -> list[str]:
    """What is reported of connections that cannot be decoded."""
    reported = [each.what for each in talk.observations() if isinstance(each, PeerChange)]
    return [each for each in reported if each.startswith("cannot be decoded: ")]


def after_a_call(data: bytes) -> Talk:
    """A call whose answer is this."""
    return Talk().connects().asks(Peer().asks(1, "Version")).answers(Peer().begins(1)).answers(data)


@pytest.mark.parametrize(
    ("talk", "why"),
    [
        pytest.param(Talk().add(What.CONNECTED).asks(b"GET / HTTP/1.1\r\n"), "does not begin", id="http1"),
        pytest.param(after_a_call(frame(wire.DATA, 0, 1, message(b"", 7))), "the flag 7", id="flag"),
        pytest.param(
            after_a_call(frame(wire.DATA, 0, 1, message(b"", 1))), "nothing that is named", id="packed"
        ),
        pytest.param(after_a_call(frame(wire.HEADERS, 4, 1, b"\xff\xff")), "HPACK", id="hpack"),
        pytest.param(after_a_call(frame(wire.PUSH, 4, 1, b"")), "PUSH_PROMISE", id="push"),
        pytest.param(after_a_call(frame(wire.RST, 0, 1, b"\0")), "shorter than its kind", id="reset"),
        pytest.param(after_a_call(frame(wire.GOAWAY, 0, 0, b"\0")), "shorter than its kind", id="goaway"),
    ],
)
def test_reason_is_reported_once(talk: Talk, why: str) -> None:
    """One line says why; the bytes that follow are not looked at."""
    talk.answers(b"\xff" * 99).asks(b"\xff" * 99).add(What.RUNTIME_GONE).add(What.CLIENT_GONE)
    reported = broken(talk)

    assert len(reported) == 1
    assert why in reported[0]
    assert talk.observations()[-1] == PeerChange(talk.now, "client gone")


@pytest.mark.parametrize("packed", [b"no gzip at all", zlib.compress(b"x" * 99, wbits=31)[:-9]])
def test_message_that_is_not_compressed_as_it_says(packed: bytes) -> None:
    """Neither garbage nor half a message is handed on."""
    runtime = Peer()
    says = runtime.begins(1, grpc_encoding="gzip") + frame(wire.DATA, 0, 1, message(packed, 1))
    talk = Talk().connects().asks(Peer().asks(1, "Version")).answers(says)

    assert "compressed" in broken(talk)[0]


def test_other_connections_are_observed_as_before() -> None:
    """What one client breaks is its own."""
    talk = Talk().connects().connects(2).asks(b"\xff" * 99).asks(Peer().asks(1, "Version"), 2)

    assert talk.answers(Peer().answers(1, b"!"), 2).calls() == [
        ("CallBegan", "c1", V1, "Version", b""),
        ("Answered", "c1", "Version", b"!"),
    ]


@pytest.mark.parametrize("begins_well", [True, False])
@given(pieces=st.lists(st.tuples(st.booleans(), st.binary(max_size=80)), max_size=8))
def test_any_bytes_are_survived(*, begins_well: bool, pieces: list[tuple[bool, bytes]]) -> None:
    """A decoder never raises, and decodes the next connection."""
    talk = Talk().connects() if begins_well else Talk().add(What.CONNECTED)
    for asks, data in pieces:
        talk.add(What.REQUESTS if asks else What.REPLIES, data)
    talk.connects(2).asks(Peer().asks(1, "Version"), 2)

    assert talk.calls()[-1][2:] == (V1, "Version", b"")


@given(st.data())
def test_bytes_that_were_changed_are_survived(data: st.DataObject) -> None:
    """Neither does it when a real conversation has a few wrong bytes."""
    client, runtime = Peer(), Peer()
    asks = bytearray(client.asks(1, "Version", b"12345") + client.asks(3, "Status"))
    says = bytearray(runtime.answers(1, b"1", b"2") + runtime.answers(3, b"3"))
    for side in (asks, says):
        for at in data.draw(st.lists(st.integers(0, len(side) - 1), max_size=3)):
            side[at] = data.draw(st.integers(0, 255))
    talk = Talk().connects().asks(bytes(asks)).answers(bytes(says)).add(What.RUNTIME_GONE)

    assert isinstance(talk.observations(), list)


def ended_as_too_long(talk: Talk) -> bool:
    """Whether the call ended for its length while its connection is decoded on."""
    ended = talk.calls()[-1]
    return ended[:4] == ("CallEnded", "c1", "Version", "RESOURCE_EXHAUSTED") and not broken(talk)


def test_message_over_the_bound_ends_its_call_alone() -> None:
    """As a kubelet would: it allows 16 MiB for a message; a few bytes that unpack to more count as more."""
    head = b"\0" + (MESSAGE_BYTES_MAX + 1).to_bytes(4)
    bomb = message(zlib.compress(bytes(MESSAGE_BYTES_MAX + 1), wbits=31), 1)
    packed = Peer().begins(1, grpc_encoding="gzip") + frame(wire.DATA, 0, 1, bomb)
    asks = Peer().asks(1, "Version", None) + frame(wire.DATA, 0, 1, head)

    assert ended_as_too_long(after_a_call(frame(wire.DATA, 0, 1, head)))
    assert ended_as_too_long(Talk().connects().asks(Peer().asks(1, "Version")).answers(packed))
    assert ended_as_too_long(Talk().connects().asks(asks))


def test_messages_under_way_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for its end on one connection is bounded, and given back when it ends."""
    monkeypatch.setattr(bounds, "WAITING_BYTES_MAX", 1000)
    client, runtime = Peer(), Peer()
    talk = Talk().connects()
    for stream in range(1, 41, 2):
        talk.asks(client.asks(stream, "Version"))
        part = frame(wire.DATA, 0, stream, message(bytes(900))[:800])
        talk.answers(runtime.begins(stream) + part + runtime.ends(stream, "2"))
    well = len(broken(talk))
    for stream in (41, 43):
        talk.asks(client.asks(stream, "Version"))
        talk.answers(runtime.begins(stream) + frame(wire.DATA, 0, stream, message(bytes(900))[:800]))

    assert (well, broken(talk)) == (0, ["cannot be decoded: more than 1000 bytes of messages under way"])


def test_calls_under_way_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client cannot open calls without end."""
    monkeypatch.setattr(bounds, "CALLS_MAX", 3)
    client = Peer()
    talk = Talk().connects().asks(b"".join(client.asks(stream, "Version") for stream in (1, 3, 5, 7)))

    assert broken(talk) == ["cannot be decoded: more than 3 calls under way"]
