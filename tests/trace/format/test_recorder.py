"""The recorder: what is seen, in order, as messages, and a valid trace of it in the end."""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2 as cri
from google.protobuf.json_format import MessageToDict

from kubelet_conformance.trace.format.header import FORMAT_VERSION, Channels, Header
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.recorder import Failed, RecordedReply, Recorder, Seen
from kubelet_conformance.trace.format.records import Reply

HEADER = Header(trace=FORMAT_VERSION, clock="virtual", channels=Channels(cri="full"), kubernetes="1.32")
LIST = cri.ListContainersRequest()


@dataclass
class Watch:
    """A clock that is set by hand."""

    seconds: float = 0.0


@pytest.fixture
def watch() -> Watch:
    """The time of the recorder."""
    return Watch()


@pytest.fixture
def recorder(watch: Watch) -> Recorder:
    """A recorder that has seen nothing."""
    return Recorder(lambda: watch.seconds)


def written(recorder: Recorder) -> list[dict[str, Any]]:
    """The records of its trace, without the header."""
    file = io.BytesIO()
    recorder.write(file, HEADER)
    return [json.loads(line) for line in file.getvalue().splitlines()[1:]]


def containers(*ids: str) -> cri.ListContainersResponse:
    """What a list is answered."""
    return cri.ListContainersResponse(containers=[cri.Container(id=each) for each in ids])


def test_calls_and_replies_are_reported_in_order(recorder: Recorder, watch: Watch) -> None:
    """Each record has its time; a reply names its call, though others came between."""
    first = recorder.call("ListContainers", LIST)
    second = recorder.call("Version", cri.VersionRequest(version="v1"))
    watch.seconds = 0.5
    recorder.reply(second, cri.VersionResponse(version="0.1.0"))
    watch.seconds = 2.0
    recorder.reply(first, containers("a"))
    records = written(recorder)

    assert [(each["seq"], each["t"], each["kind"]) for each in records] == [
        (1, 0, "call"),
        (2, 0, "call"),
        (3, 0.5, "reply"),
        (4, 2, "reply"),
        (5, 2, "end"),
    ]
    assert records[2]["id"] == records[1]["id"] != records[0]["id"]
    assert records[1]["request"] == {"version": "v1"}
    assert records[3]["response"] == {"containers": [{"id": "a"}]}


def test_equal_replies_are_written_once(recorder: Recorder) -> None:
    """A reply that is equal to the one before refers to it, whatever object it is; a changed one does not."""
    for response in (containers("a"), containers("a"), containers("b"), containers("a")):
        recorder.reply(recorder.call("ListContainers", LIST), response)
    replies = [each for each in written(recorder) if each["kind"] == "reply"]

    assert [each.get("same") for each in replies] == [None, "c1", None, None]


def test_lists_are_written_as_protobuf_writes_them(recorder: Recorder) -> None:
    """A list that is put together item by item reads as if it had been written in one go."""
    items = [cri.Container(id=each, created_at=1 << 60, labels={"b": each, "a": ""}) for each in "xy"]
    response = cri.ListContainersResponse(containers=items)
    recorder.reply(recorder.call("ListContainers", LIST), response)
    reported = written(recorder)[1]["response"]

    assert reported == MessageToDict(response, preserving_proto_field_name=True)


def test_replies_to_different_requests_are_not_the_same(recorder: Recorder) -> None:
    """A reply refers only to a call with an equal request."""
    for container_id in ("a", "b"):
        request = cri.ContainerStatusRequest(container_id=container_id)
        recorder.reply(recorder.call("ContainerStatus", request), cri.ContainerStatusResponse())

    assert not any("same" in each for each in written(recorder))


def test_failure_tells_whether_it_took_effect(recorder: Recorder) -> None:
    """A failed call has its code and message, and says so where a fault kept it from taking place."""
    for effect in (True, False):
        call = recorder.call("StopContainer", cri.StopContainerRequest(container_id="a"))
        recorder.reply(call, Failed("UNAVAILABLE", "away", effect=effect))
    real, kept_off = [each for each in written(recorder) if each["kind"] == "reply"]

    assert real["error"] == kept_off["error"] == {"code": "UNAVAILABLE", "message": "away"}
    assert "effect" not in real
    assert kept_off["effect"] is False


def test_failed_call_has_no_response(recorder: Recorder) -> None:
    """Asking a failed reply for its response is an error that says there is none."""
    call = recorder.call("Version", cri.VersionRequest())
    recorder.reply(call, Failed("UNAVAILABLE", "away"))
    reply = recorder.records[-1]

    assert isinstance(reply, RecordedReply)
    with pytest.raises(TypeError, match="Version failed and has no response"):
        _ = reply.response


def test_fields_that_are_none_are_left_out(recorder: Recorder) -> None:
    """A record of any other kind has the fields that are known."""
    recorder.record("runtime", op="exited", container_id="a", sandbox_id=None, exit_code=0)
    [record, _] = written(recorder)

    assert record == {
        "seq": 1,
        "t": 0,
        "kind": "runtime",
        "op": "exited",
        "container_id": "a",
        "exit_code": 0,
    }


def test_listeners_hear_at_once(recorder: Recorder) -> None:
    """Each listener gets each record when it is made, before its maker goes on."""
    received: list[Seen] = []
    recorder.listeners.append(received.append)
    call = recorder.call("Version", cri.VersionRequest())

    assert received == [call]


def test_trace_ends_when_it_is_written(recorder: Recorder, watch: Watch) -> None:
    """Observation ends at the time of writing, or with the last record if that is later."""
    recorder.record("kubelet", op="started")
    watch.seconds = 7.0
    late = written(recorder)[-1]
    recorder.record("kubelet", op="killed")
    watch.seconds = 3.0
    clamped = written(recorder)[-1]

    assert (late["kind"], late["t"]) == ("end", 7)
    assert clamped["t"] == 7


def test_trace_can_be_read(recorder: Recorder, tmp_path: Path) -> None:
    """What is written reads back: an open call, a reply in full and one that is the same."""
    path = tmp_path / "t.jsonl"
    for _ in range(2):
        recorder.reply(recorder.call("ListContainers", LIST), containers("a"))
    recorder.call("Version", cri.VersionRequest())
    with path.open("wb") as file:
        count = recorder.write(file, HEADER)
    with Reader(str(path)) as reader:
        records = list(reader)

    assert count == len(records) == 6
    first, second = [each for each in records if isinstance(each, Reply)]
    assert (first.same, second.same) == (False, True)
    assert first.response is second.response
