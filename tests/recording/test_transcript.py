"""What is observed becomes records, and the files of a recording are traces each by itself."""

from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2 as cri

from kubelet_conformance.recording.bodies import Bodies, name_of
from kubelet_conformance.recording.rotation import Pieces
from kubelet_conformance.recording.transcript import Transcript
from kubelet_conformance.tap.events import Answered, CallBegan, CallEnded, Observation, PeerChange, StreamItem
from kubelet_conformance.trace.format.header import Channels, Header
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import Call, Fault, Message, PodChange, Record, Reply
from kubelet_conformance.trace.redaction.redactor import Redactor

RUNTIME = "runtime.v1.RuntimeService"
VERSION = cri.VersionResponse(version="0.1.0").SerializeToString()
HEADER = Header(trace=1, channels=Channels(cri="full", pods="sampled"), redacted=True)
MS = 1_000_000


def transcript(folder: Path, max_bytes: int = 1 << 30, keep: int = 100) -> tuple[Transcript, Pieces]:
    """One that begins at 1 s of the monotonic clock."""
    pieces = Pieces(folder / "trace.jsonl", keep)
    bodies = Bodies(Redactor(b"k" * 16))
    return Transcript(pieces, HEADER, bodies, started_ns=1000 * MS, max_bytes=max_bytes), pieces


def read(path: Path) -> tuple[Header, list[Record]]:
    """The header and the records, `end` left out."""
    with Reader(path) as reader:
        *records, last = reader

        assert last.kind == "end"
        return reader.header, records


def version(number: int, at_ms: int, took_ms: int = 1) -> list[Observation]:
    """A call of Version that is answered."""
    call_id = f"c{number}"
    return [
        CallBegan(at_ms * MS, call_id, RUNTIME, "Version", b""),
        Answered((at_ms + took_ms) * MS, call_id, "Version", VERSION),
    ]


def test_calls_have_the_times_of_their_bytes(tmp_path: Path) -> None:
    """Times are seconds since the start; equal replies are parsed once and written as `same`."""
    made, _ = transcript(tmp_path)
    for observation in [*version(1, 1500), *version(2, 2500)]:
        made.observe(observation)
    made.end(3000 * MS)
    _, records = read(tmp_path / "trace.jsonl")

    assert [record.t for record in records] == [0.5, 0.501, 1.5, 1.501]
    assert [record.same for record in records if isinstance(record, Reply)] == [False, True]
    assert (made.counts.records, made.counts.calls) == (5, 2)


def test_failures_and_streams(tmp_path: Path) -> None:
    """A failure has its code and text; a stream has its items, and an end."""
    made, _ = transcript(tmp_path)
    item = cri.ContainerEventResponse(container_id="x1").SerializeToString()
    observations: list[Observation] = [
        CallBegan(1001 * MS, "c1", RUNTIME, "StopContainer", b"\x0a\x02x1"),
        CallEnded(1002 * MS, "c1", "StopContainer", "NOT_FOUND", "no password=hunter22 here"),
        CallBegan(1003 * MS, "c2", RUNTIME, "GetContainerEvents", b""),
        StreamItem(1004 * MS, "c2", "GetContainerEvents", item),
        CallEnded(1005 * MS, "c2", "GetContainerEvents", "OK", ""),
    ]
    for observation in observations:
        made.observe(observation)
    made.end(1006 * MS)
    _, records = read(tmp_path / "trace.jsonl")
    failed, item_reported, ended = records[1], records[3], records[4]

    assert isinstance(failed, Reply)
    assert failed.error is not None
    assert failed.error.code == "NOT_FOUND"
    assert "hunter22" not in failed.error.message
    assert isinstance(item_reported, Message)
    assert b'"container_id":"x1"' in bytes(item_reported.message)
    assert isinstance(ended, Reply)
    assert ended.error is None


def test_client_that_goes_leaves_its_calls_open(tmp_path: Path) -> None:
    """No client learned how the call went, so it has no reply."""
    made, _ = transcript(tmp_path)
    made.observe(CallBegan(1001 * MS, "c1", RUNTIME, "StopContainer", b"\x0a\x02x1"))
    made.observe(CallEnded(1002 * MS, "c1", "StopContainer", "CANCELLED", "the client is gone"))
    made.end(1006 * MS)

    assert [record.kind for record in read(tmp_path / "trace.jsonl")[1]] == ["call"]


@pytest.mark.parametrize(
    ("service", "rpc", "name"),
    [
        (RUNTIME, "OfALaterVersion", "OfALaterVersion"),
        ("containerd.services.Tasks", "Get", "containerd.services.Tasks/Get"),
        ("runtime.v1alpha2.RuntimeService", "Version", "Version"),
    ],
)
def test_unknown_methods_are_opaque_calls(tmp_path: Path, service: str, rpc: str, name: str) -> None:
    """A method that is not known is a call with its size; one of v1alpha2 is read as v1."""
    made, _ = transcript(tmp_path)
    made.observe(CallBegan(1001 * MS, "c1", service, rpc, b"\x0a\x05v1..2"))
    made.observe(Answered(1002 * MS, "c1", rpc, VERSION))
    made.end(1006 * MS)
    call = read(tmp_path / "trace.jsonl")[1][0]

    assert isinstance(call, Call)
    assert call.rpc == name == name_of(service, rpc)
    if rpc == "Version":
        assert call.request.json() == {"version": "v1..2"}
    else:
        assert call.request.json()["bytes"] == 7
        assert call.request.json()["opaque"].startswith("redacted:")


def test_bytes_that_are_no_message_are_opaque(tmp_path: Path) -> None:
    """What does not decode is written by its size, and the recording goes on."""
    made, _ = transcript(tmp_path)
    made.observe(CallBegan(1001 * MS, "c1", RUNTIME, "StopContainer", b"\xff\xff\xff"))
    made.end(1006 * MS)
    call = read(tmp_path / "trace.jsonl")[1][0]

    assert isinstance(call, Call)
    assert call.request.json()["bytes"] == 3


def test_runtime_away_and_back_is_a_fault_that_heals(tmp_path: Path) -> None:
    """What is owed is excused when the runtime goes; clients that come and go are only counted."""
    made, _ = transcript(tmp_path)
    for what in ("client connected", "runtime away", "runtime back", "client gone"):
        made.observe(PeerChange(1001 * MS, what, "Connection refused" if what == "runtime away" else ""))
    made.end(1006 * MS)
    _, records = read(tmp_path / "trace.jsonl")

    assert [record.what for record in records if isinstance(record, Fault)] == [
        "the runtime is away",
        "healed: the runtime is away",
    ]
    assert len(records) == 2


def test_lost_calls_end_the_claim_to_have_them_all(tmp_path: Path) -> None:
    """A connection that cannot be decoded begins a new file, whose header says that calls are missing."""
    made, pieces = transcript(tmp_path)
    made.observe(PeerChange(1001 * MS, "cannot be decoded: no HTTP/2"))
    made.end(1006 * MS)
    headers = [read(path)[0] for path in pieces.paths]

    assert [header.channels.cri for header in headers] == ["full", "sampled"]
    assert made.counts.undecodable == 1


def test_pieces_are_traces_of_their_own(tmp_path: Path) -> None:
    """Each file has a header and an end, none is much larger than asked, and every call is in one of them."""
    made, pieces = transcript(tmp_path, max_bytes=4000)
    for number in range(200):
        for observation in version(number, 1000 + 10 * number):
            made.observe(observation)
    made.end(9000 * MS)
    found = [read(path) for path in pieces.paths]
    calls = [record.id for _, records in found for record in records if isinstance(record, Call)]

    assert len(found) > 3
    assert [path.name for path in pieces.paths[:2]] == ["trace.jsonl", "trace.1.jsonl"]
    assert all(path.stat().st_size < 4400 for path in pieces.paths)
    assert calls == [f"c{number}" for number in range(200)]
    assert not any(header.from_start for header, _ in found)


def test_open_call_waits_for_the_cut_and_then_is_lost(tmp_path: Path) -> None:
    """A file waits a little for open calls; a reply that comes later still is in no file, and breaks none."""
    made, pieces = transcript(tmp_path, max_bytes=2000)
    made.observe(CallBegan(1001 * MS, "long", RUNTIME, "StopContainer", b"\x0a\x02x1"))
    for number in range(100):
        for observation in version(number, 1010 + 10 * number):
            made.observe(observation)
    made.observe(Answered(8000 * MS, "long", "StopContainer", b""))
    made.end(9000 * MS)
    replied = [
        record.call.id for path in pieces.paths for record in read(path)[1] if isinstance(record, Reply)
    ]

    assert len(pieces.paths) > 2
    assert "long" not in replied
    assert len(replied) >= 99


def test_next_piece_tells_again_what_stands(tmp_path: Path) -> None:
    """Desired pods, a runtime that is away and streams that go on are stated at the begin of each file."""
    made, pieces = transcript(tmp_path, max_bytes=3000)
    pod: dict[str, Any] = {"metadata": {"name": "web", "uid": "1"}, "spec": {"containers": []}}
    made.record(1001 * MS, "pod", {"op": "set", "source": "api", "pod": pod})
    made.observe(CallBegan(1002 * MS, "events", RUNTIME, "GetContainerEvents", b""))
    made.observe(PeerChange(1003 * MS, "runtime away"))
    for number in range(100):
        for observation in version(number, 1010 + 10 * number):
            made.observe(observation)
    made.end(9000 * MS)
    last = read(pieces.paths[-1])[1]

    assert len(pieces.paths) > 2
    assert [record.kind for record in last[:3]] == ["fault", "pod", "call"]
    assert isinstance(last[1], PodChange)
    assert b'"since":0.001' in pieces.paths[-1].read_bytes()


def test_only_the_newest_files_stay(tmp_path: Path) -> None:
    """The oldest files of a recording go; those of an earlier one are neither touched nor overwritten."""
    (tmp_path / "trace.jsonl").write_text("mine")
    (tmp_path / "trace.7.jsonl").write_text("mine too")
    made, pieces = transcript(tmp_path, max_bytes=2000, keep=2)
    for number in range(100):
        for observation in version(number, 1010 + 10 * number):
            made.observe(observation)
    made.end(9000 * MS)
    names = sorted(path.name for path in tmp_path.iterdir())

    assert pieces.removed > 3
    assert len(names) == 4
    assert (tmp_path / "trace.jsonl").read_text() == "mine"
    assert min(int(path.name.split(".")[1]) for path in pieces.paths) > 8
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in pieces.paths)
