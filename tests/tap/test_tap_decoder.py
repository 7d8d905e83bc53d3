"""Calls come out of the bytes of both directions, whatever becomes of them."""

import gzip
import zlib
from typing import Any

import pytest
import tap_wire as wire
from hypothesis import given
from hypothesis import strategies as st
from tap_wire import V1, Peer, Talk, described, frame, message, observations

from kubelet_conformance.tap.chunks import Chunk, What
from kubelet_conformance.tap.events import Answered, CallBegan, CallEnded, Note, PeerChange

SECOND = 10**9
BROKEN = "the runtime's connection broke"


def conversation() -> Talk:
    """Two clients: unary calls that overlap, one that fails, a stream, an unknown method."""
    one, runtime, two, other = Peer(), Peer(), Peer(), Peer()
    talk = Talk().connects().connects(2)
    talk.asks(one.asks(1, "Version", b"\x0a\x01v") + one.asks(3, "GetContainerEvents"))
    talk.asks(two.asks(1, "ListContainers"), 2)
    talk.answers(runtime.begins(3) + runtime.answers(1, b"\x0a\x03one"))
    talk.answers(frame(wire.DATA, 0, 3, message(b"\x0a\x01a") + message(b"\x0a\x01b")))
    talk.answers(other.headers(1, [(":status", "200"), ("grpc-status", "5")], ends=True), 2)
    talk.asks(one.asks(5, "/runtime.v9.RuntimeService/Dream", b"?"))
    talk.answers(runtime.answers(5, b"!") + runtime.ends(3))
    talk.add(What.CLIENT_GONE).add(What.RUNTIME_GONE)
    return talk.add(What.CLIENT_GONE, connection=2).add(What.RUNTIME_GONE, connection=2)


CONVERSATION = [
    ("CallBegan", "c1", V1, "Version", b"\x0a\x01v"),
    ("CallBegan", "c2", V1, "GetContainerEvents", b""),
    ("CallBegan", "c3", V1, "ListContainers", b""),
    ("Answered", "c1", "Version", b"\x0a\x03one"),
    ("StreamItem", "c2", "GetContainerEvents", b"\x0a\x01a"),
    ("StreamItem", "c2", "GetContainerEvents", b"\x0a\x01b"),
    ("CallEnded", "c3", "ListContainers", "NOT_FOUND", ""),
    ("CallBegan", "c4", "runtime.v9.RuntimeService", "Dream", b"?"),
    ("Answered", "c4", "Dream", b"!"),
    ("CallEnded", "c2", "GetContainerEvents", "OK", ""),
]


def test_conversation_is_observed_in_order() -> None:
    """Each call, answer, item, failure and end, in the order in which they passed."""
    assert conversation().calls() == CONVERSATION


def test_times_are_those_of_the_bytes_that_complete() -> None:
    """A call begins and ends when the last byte of its request and of its trailers passes."""
    client, runtime = Peer(), Peer()
    asks, answers = client.asks(1, "Version", b"1234"), runtime.answers(1, b"5678")
    talk = Talk().connects().asks(asks[:-1]).asks(asks[-1:], after_ns=50)
    talk.answers(answers[:-1], after_ns=100).answers(answers[-1:], after_ns=1000)

    assert talk.observations()[1:] == [
        CallBegan(54, "c1", V1, "Version", b"1234"),
        Answered(1154, "c1", "Version", b"5678"),
    ]


@pytest.mark.slow
@given(st.data())
def test_cuts_do_not_matter(data: st.DataObject) -> None:
    """However the stream of bytes is split into chunks, the same calls are observed."""
    chunks: list[Chunk] = []
    for chunk in conversation().chunks:
        cuts = data.draw(st.lists(st.integers(0, len(chunk.data)), max_size=6)) if chunk.data else []
        edges = [0, *sorted(cuts), len(chunk.data)]
        for at, begin in enumerate(edges[:-1]):
            chunks.append(Chunk(chunk.at_ns, chunk.connection, chunk.what, chunk.data[begin : edges[at + 1]]))

    observed = [described(each) for each in observations(chunks) if not isinstance(each, PeerChange)]
    assert observed == CONVERSATION


def test_bytes_one_by_one() -> None:
    """The longest cut of all."""
    talk = conversation()
    chunks = [
        Chunk(each.at_ns, each.connection, each.what, piece)
        for each in talk.chunks
        for piece in ([bytes((byte,)) for byte in each.data] or [b""])
    ]

    assert [
        described(each) for each in observations(chunks) if not isinstance(each, PeerChange)
    ] == CONVERSATION


def answered(*says: bytes, rpc: str = "Version") -> list[tuple[Any, ...]]:
    """What is observed after the beginning of a call of which the runtime says this."""
    talk = Talk().connects().asks(Peer().asks(1, rpc))
    for piece in says:
        talk.answers(piece)
    assert talk.calls()[0] == ("CallBegan", "c1", V1, rpc, b"")
    return talk.calls()[1:]


def by_client(talk: Talk) -> bool:
    """Whether the one call that ended was given up by its client."""
    return next(each for each in talk.observations() if isinstance(each, CallEnded)).by_client


def ended(code: str, text: str = "") -> list[tuple[Any, ...]]:
    """A failure of the one call."""
    return [("CallEnded", "c1", "Version", code, text)]


@pytest.mark.parametrize(
    ("status", "text", "code", "expected"),
    [
        ("5", "no such container: %C3%BC%0Aend", "NOT_FOUND", "no such container: ü\nend"),
        ("14", "50% %zz", "UNAVAILABLE", "50% %zz"),
        ("4", "%FF", "DEADLINE_EXCEEDED", "\ufffd"),
        ("99", "", "UNKNOWN", ""),
        ("none", "", "UNKNOWN", ""),
    ],
)
def test_status_and_text_of_a_failure(status: str, text: str, code: str, expected: str) -> None:
    """Codes get gRPC's names; texts are percent-decoded as far as they are well formed."""
    says = Peer().headers(1, [(":status", "200"), ("grpc-status", status), ("grpc-message", text)], ends=True)

    assert answered(says) == ended(code, expected)


def test_failure_after_a_message_is_a_failure() -> None:
    """What a unary call was answered does not count when its trailers report a failure."""
    assert answered(Peer().answers(1, b"\x0a\x01x", status="13")) == ended("INTERNAL")


@pytest.mark.parametrize(
    ("status", "code"), [("404", "UNIMPLEMENTED"), ("503", "UNAVAILABLE"), ("500", "UNKNOWN")]
)
def test_http_status_stands_in(status: str, code: str) -> None:
    """A server that is no gRPC answers with HTTP's status alone."""
    observed = answered(Peer().headers(1, [(":status", status)], ends=True))

    assert observed == ended(code, f"HTTP status {status} and no grpc-status")


def test_answer_without_trailers_or_without_a_message() -> None:
    """An end without a status, and a status without what it is about."""
    runtime = Peer()
    cut = runtime.begins(1) + frame(wire.DATA, wire.END_STREAM, 1, message(b""))

    assert answered(cut) == ended("UNKNOWN", "the answer ended without grpc-status")
    assert answered(Peer().answers(1)) == ended("INTERNAL", "the call ended well without an answer")


@pytest.mark.parametrize(
    ("number", "code"), [(0, "INTERNAL"), (7, "UNAVAILABLE"), (8, "CANCELLED"), (11, "RESOURCE_EXHAUSTED")]
)
def test_reset_by_the_runtime(number: int, code: str) -> None:
    """RST_STREAM from the runtime has the meaning that gRPC gives it."""
    says = frame(wire.RST, 0, 1, number.to_bytes(4))

    assert answered(says) == ended(code, f"the runtime reset the call ({number})")


@pytest.mark.parametrize(
    ("after_ns", "code", "text"),
    [
        (SECOND, "CANCELLED", "the client gave the call up"),
        (2 * SECOND - 1000, "DEADLINE_EXCEEDED", "the client's deadline passed"),
    ],
)
def test_call_given_up_by_the_client(after_ns: int, code: str, text: str) -> None:
    """A client that resets a call cancelled it, or waited as long as it had said it would."""
    client, runtime = Peer(), Peer()
    talk = Talk().connects().asks(client.asks(1, "Version", grpc_timeout="2S"))
    talk.asks(frame(wire.RST, 0, 1, b"\0\0\0\x08"), after_ns=after_ns)
    talk.answers(runtime.answers(1, b"too late"))

    assert talk.calls()[1:] == ended(code, text)
    assert by_client(talk) == (code == "CANCELLED")
    assert next(each for each in talk.observations() if isinstance(each, CallBegan)).timeout_ns == 2 * SECOND


def test_runtime_that_breaks_the_connection_ends_its_calls() -> None:
    """A call under way, one whose request is not whole among them, ends as its client sees it."""
    client = Peer()
    talk = Talk().connects().asks(client.asks(1, "Version") + client.asks(3, "Status", None))

    assert talk.add(What.RUNTIME_GONE).calls() == [
        ("CallBegan", "c1", V1, "Version", b""),
        ("CallEnded", "c1", "Version", "UNAVAILABLE", BROKEN),
        ("CallBegan", "c2", V1, "Status", b""),
        ("CallEnded", "c2", "Status", "UNAVAILABLE", BROKEN),
    ]


@pytest.mark.parametrize("gives_up", [False, True], ids=["is gone", "gives up"])
def test_client_that_has_not_finished_asking_has_not_called(gives_up: bool) -> None:  # noqa: FBT001
    """A kubelet that is killed after the headers of its call has asked the runtime for nothing."""
    client = Peer()
    talk = Talk().connects().asks(client.asks(1, "Version") + client.asks(3, "CreateContainer", None))
    if gives_up:
        talk.asks(frame(wire.RST, 0, 3, b"\0\0\0\x08"))

    assert talk.add(What.CLIENT_GONE).calls() == [
        ("CallBegan", "c1", V1, "Version", b""),
        ("CallEnded", "c1", "Version", "CANCELLED", "the client is gone"),
    ]


@pytest.mark.parametrize("then", [b"", frame(wire.RST, 0, 1, b"\0\0\0\x08")], ids=["waits", "gives up"])
def test_call_after_the_runtime_is_gone(then: bytes) -> None:
    """What a client still asks on a connection whose other end broke is never answered."""
    client = Peer()
    talk = Talk().connects().add(What.RUNTIME_GONE).asks(client.asks(1, "Version") + then)
    talk.add(What.CLIENT_GONE)

    assert talk.calls()[1:] == ended("UNAVAILABLE", BROKEN)
    assert not by_client(talk)
    assert [each.what for each in talk.observations() if isinstance(each, PeerChange)] == [
        "client connected",
        "client gone",
    ]


def test_runtime_that_goes_away_leaves_out_later_calls() -> None:
    """GOAWAY names the last call that is looked at; those after it are reported as UNAVAILABLE."""
    client = Peer()
    talk = Talk().connects().asks(client.asks(1, "Version") + client.asks(3, "Status"))
    talk.answers(frame(wire.GOAWAY, 0, 0, b"\x7f\xff\xff\xff" + bytes(4)))
    talk.answers(frame(wire.GOAWAY, 0, 0, b"\0\0\0\1" + bytes(4)) + Peer().answers(1, b""))

    assert talk.calls()[2:] == [
        ("CallEnded", "c2", "Status", "UNAVAILABLE", "the runtime goes away and did not look at the call"),
        ("Answered", "c1", "Version", b""),
    ]


def test_messages_over_several_frames_and_several_in_one() -> None:
    """A message is where its bytes are, not where frames begin and end."""
    runtime = Peer()
    items = message(b"a" * 20) + message(b"") + message(b"c" * 3)
    says = [runtime.begins(1)]
    says += [frame(wire.DATA, 0, 1, items[at : at + 7]) for at in range(0, len(items), 7)]
    observed = answered(*says, frame(wire.DATA, 0, 1), runtime.ends(1), rpc="GetContainerEvents")

    assert [each[3] for each in observed[:-1]] == [b"a" * 20, b"", b"c" * 3]
    assert observed[-1] == ("CallEnded", "c1", "GetContainerEvents", "OK", "")


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed_messages_are_observed_plain(encoding: str, pack: Any) -> None:
    """Both ways, where the flag says so; a message without the flag is plain all the same."""
    client, runtime = Peer(), Peer()
    asks = client.asks(1, "Version", None, grpc_encoding=encoding)
    asks += frame(wire.DATA, wire.END_STREAM, 1, message(pack(b"asked"), 1))
    says = runtime.begins(1, grpc_encoding=encoding) + frame(wire.DATA, 0, 1, message(pack(b"said" * 9), 1))
    talk = Talk().connects().asks(asks).answers(says + runtime.ends(1))

    assert talk.calls() == [
        ("CallBegan", "c1", V1, "Version", b"asked"),
        ("Answered", "c1", "Version", b"said" * 9),
    ]


def test_unknown_method_may_be_a_stream() -> None:
    """Several messages make a stream of it; one is an answer; none is an end."""

    def kinds(*items: bytes) -> list[str]:
        talk = Talk().connects().asks(Peer().asks(1, "/runtime.v1.RuntimeService/StreamDreams"))
        return [each[0] for each in talk.answers(Peer().answers(1, *items)).calls()[1:]]

    assert kinds(b"a", b"b", b"c") == ["StreamItem", "StreamItem", "StreamItem", "CallEnded"]
    assert kinds(b"a") == ["Answered"]
    assert kinds() == ["CallEnded"]


def test_alpha_version_is_named_and_carried() -> None:
    """A service of v1alpha2 is reported by its name, and its methods are what they are in v1."""
    talk = Talk().connects().asks(Peer().asks(1, "/runtime.v1alpha2.ImageService/ImageFsInfo", b"?"))

    assert talk.answers(Peer().answers(1, b"!")).calls() == [
        ("CallBegan", "c1", "runtime.v1alpha2.ImageService", "ImageFsInfo", b"?"),
        ("Answered", "c1", "ImageFsInfo", b"!"),
    ]


def test_streams_that_are_no_grpc_are_not_observed() -> None:
    """A plain HTTP/2 request passes and is no call."""
    get = Peer().headers(1, [(":method", "GET"), (":path", "/healthz")], ends=True)
    talk = Talk().connects().asks(get).answers(Peer().headers(1, [(":status", "200")]))

    assert talk.answers(frame(wire.DATA, wire.END_STREAM, 1, b"ok")).calls() == []


def test_what_the_tap_tells_of_peers() -> None:
    """Clients and the runtime come and go, and notes keep their place."""
    talk = Talk().add(What.AWAY, b"No such file", 0).connects().add(What.BACK, b"", 0)
    talk.add(What.NOTE, b"{}", 0).add(What.CLIENT_GONE).add(What.RUNTIME_GONE)

    assert talk.observations() == [
        PeerChange(1, "runtime away", "No such file"),
        PeerChange(2, "client connected"),
        PeerChange(5, "runtime back"),
        Note(6, b"{}"),
        PeerChange(7, "client gone"),
    ]


def test_lost_chunks_stop_a_connection() -> None:
    """Where bytes are missing nothing may be guessed: what is under way stays without an end."""
    client = Peer()
    talk = Talk().connects().asks(client.asks(1, "Version")).add(What.LOST, b"the spool is full")
    talk.asks(client.asks(3, "Version")).add(What.CLIENT_GONE)
    observed = talk.observations()[1:]

    assert isinstance(observed[0], CallBegan)
    assert observed[1:] == [
        PeerChange(5, "cannot be decoded: the spool is full"),
        PeerChange(7, "client gone"),
    ]


def test_frames_that_belong_to_no_call_are_ignored() -> None:
    """After the end of a call, before its beginning, and with a number that was there already."""
    client, runtime = Peer(), Peer()
    talk = Talk().connects().asks(client.asks(3, "Version")).answers(runtime.answers(3, b""))
    talk.answers(runtime.answers(3, b"") + frame(wire.DATA, 0, 9, b"x") + frame(wire.RST, 0, 3, bytes(4)))
    talk.asks(client.asks(1, "Version") + client.asks(3, "Version") + frame(wire.RST, 0, 9, bytes(4)))

    assert talk.calls() == [("CallBegan", "c1", V1, "Version", b""), ("Answered", "c1", "Version", b"")]


def test_second_answer_of_a_unary_call_is_left_out() -> None:
    """The first message is the answer."""
    assert answered(Peer().answers(1, b"a", b"b")) == [("Answered", "c1", "Version", b"a")]


def test_call_that_ended_is_not_ended_again() -> None:
    """Neither by a reset nor by the end of the connection."""
    talk = Talk().connects().asks(Peer().asks(1, "Version")).answers(Peer().answers(1, b"", status="2"))
    talk.asks(frame(wire.RST, 0, 1, bytes(4))).add(What.RUNTIME_GONE).add(What.CLIENT_GONE)

    assert [each for each in talk.observations() if isinstance(each, CallEnded)] == [
        CallEnded(5, "c1", "Version", "UNKNOWN", "")
    ]
