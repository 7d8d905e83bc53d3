"""Slices: traces again, with nothing broken that was kept in the whole, and nothing of other pods."""

import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from recording import Json, load, shipped
from trace_builder import TraceBuilder

from kubelet_conformance.trace.format.errors import TraceError
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.redaction.redactor import Redactor
from kubelet_conformance.trace.redaction.slicing import Cut, UnknownPodsError, slice_trace
from kubelet_fixtures import traces


def cut_out(path: Path, cut: Cut, redactor: Redactor | None = None) -> bytes:
    """The slice."""
    file = io.BytesIO()
    slice_trace(path, cut, file, redactor)
    return file.getvalue()


def lines(trace: bytes) -> list[Json]:
    """Header and records."""
    found: list[Json] = msgspec.json.Decoder().decode_lines(trace)
    return found


def test_everything_stays_without_a_cut(tmp_path: Path) -> None:
    """A slice of everything has each record of the whole, in order, and says what it is."""
    path = shipped(traces())[0]
    whole, sliced = load(path), tmp_path / "slice.jsonl"
    sliced.write_bytes(cut_out(path, Cut()))
    again = load(sliced)

    said = [{key: value for key, value in record.items() if value is not None} for record in whole.records]

    assert list(again.records) == said
    assert again.header | {"featureGates": {}} == whole.header | {
        "slice": {"pods": [], "from": None, "to": None}
    }


def two_pods(tmp_path: Path) -> Path:
    """A trace of pods `web` and `db`, each with its container; both are listed at the end."""
    s = TraceBuilder()
    for name in ("web", "db"):
        pod = s.pod(name, containers=[{"name": f"{name}-c", "image": f"{name}:1"}])
        sandbox = s.run_sandbox(pod)
        s.run_container(pod, sandbox, f"{name}-c")
        s.wait(5)
    path = tmp_path / "two.jsonl"
    s.record("end")
    path.write_bytes(msgspec.json.Encoder().encode_lines([s.header, *s.records]))
    return path


def test_nothing_of_other_pods_is_left(tmp_path: Path) -> None:
    """Of the other pod no id, no image, no name is in the slice; what is there is numbered from 1."""
    path = two_pods(tmp_path)
    made = cut_out(path, Cut(("default/db",)))
    header, *records = lines(made)

    assert b"web" not in made
    assert b"db-c" in made
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    assert header["slice"]["pods"] == ["default/db"]
    assert header["channels"]["cri"] == "full"
    assert header["from_start"] is True


def test_a_uid_names_a_pod_too(tmp_path: Path) -> None:
    """The pod's UID cuts out the same as its name."""
    path = two_pods(tmp_path)
    uid = next(r["pod"]["metadata"]["uid"] for r in lines(path.read_bytes())[1:] if r["kind"] == "pod")
    by_uid, by_name = (lines(cut_out(path, Cut((each,))))[1:] for each in (uid, "default/web"))

    assert by_uid == by_name


def test_span_begins_with_what_stands(tmp_path: Path) -> None:
    """The pods that were wanted at the begin are recorded again there, and since when; the start is cut."""
    path = two_pods(tmp_path)
    header, *records = lines(cut_out(path, Cut((), 6.0, 7.0)))
    reported = [record for record in records if record["kind"] == "pod"]

    assert not header.get("from_start")
    assert [(one["pod"]["metadata"]["name"], one["t"]) for one in reported] == [("web", 6.0), ("db", 6.0)]
    assert reported[0]["since"] == 0.002
    assert (records[-1]["kind"], records[-1]["t"]) == ("end", 7.0)


def test_same_is_written_out_where_its_source_fell_out() -> None:
    """A reply that is like one before the span is there in full, and the next ones refer to it."""
    path = next(each for each in shipped(traces()) if each.stem == "hooks")
    begin = 2.0
    _, *records = lines(cut_out(path, Cut((), begin)))
    replies = [
        record for record in records if record["kind"] == "reply" and record["rpc"] == "ListPodSandbox"
    ]
    calls = {record["id"] for record in records if record["kind"] == "call"}

    assert "response" in replies[0]
    assert all(reply["same"] in calls for reply in replies if "same" in reply)
    assert any("same" in reply for reply in replies)


def test_static_pod_brings_its_mirror() -> None:
    """A static pod is found by its manifest's name, by its full name and by its UID, its statuses with it."""
    path = next(each for each in shipped(traces()) if each.stem == "static_removed")
    records = load(path).records
    uid = next(
        r["request"]["config"]["metadata"]["uid"]
        for r in records
        if r["kind"] == "call" and r["rpc"] == "RunPodSandbox"
    )
    kinds = [
        [record["kind"] for record in lines(cut_out(path, Cut((name,))))[1:]]
        for name in ("default/st", "default/st-node-1", uid)
    ]

    assert kinds[0] == kinds[1] == kinds[2]
    assert {"pod", "status", "event", "call", "runtime"} <= set(kinds[0])


def test_unknown_pods_are_named(tmp_path: Path) -> None:
    """A pod that the trace does not know is an error that names it, before anything is written."""
    file = io.BytesIO()
    with pytest.raises(UnknownPodsError, match="default/nobody") as raised:
        slice_trace(two_pods(tmp_path), Cut(("default/web", "default/nobody")), file)

    assert raised.value.others == ["default/db"]
    assert not file.getvalue()


def test_span_after_the_end_is_bad_input(tmp_path: Path) -> None:
    """A span that begins when the trace is over is bad input that says when it ends."""
    with pytest.raises(TraceError, match=r"the trace ends at 10\.\d+ s, before the span begins"):
        cut_out(two_pods(tmp_path), Cut((), 100.0))


def test_fields_that_nobody_knows_stay(tmp_path: Path) -> None:
    """A record of a later version, and a field of a record, are kept where no pod is asked for."""
    header: dict[str, Any] = {"trace": 1, "channels": {"cri": "full"}}
    records: list[dict[str, Any]] = [
        {"seq": 1, "t": 0, "kind": "later", "says": {"what": 1}},
        {"seq": 2, "t": 1, "kind": "probe", "handler": "httpGet", "url": "http://10.0.0.1/", "extra": [1]},
        {"seq": 3, "t": 2, "kind": "end"},
    ]
    path = tmp_path / "later.jsonl"
    path.write_bytes(msgspec.json.Encoder().encode_lines([header, *records]))

    assert lines(cut_out(path, Cut()))[1:] == records


def test_slices_can_be_read(tmp_path: Path) -> None:
    """The reader takes a slice of a slice."""
    first = tmp_path / "first.jsonl"
    first.write_bytes(cut_out(two_pods(tmp_path), Cut(("default/web",), 1.0)))
    second = cut_out(first, Cut((), None, 3.0))
    with Reader("second", io.BytesIO(second)) as reader:
        kinds = [record.kind for record in reader]

    assert kinds[-1] == "end"
