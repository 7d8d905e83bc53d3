"""Traces as trace events: what a viewer needs to draw them."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from trace_builder import TraceBuilder

from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.reports.formats.perfetto import as_perfetto
from kubelet_conformance.run_record.record import Record
from kubelet_conformance.run_record.results import Scoring, check_result
from kubelet_fixtures import traces


def events_of(path: Path) -> list[dict[str, Any]]:
    """The trace events of one trace."""
    check = Check([])
    check.add(judge_file(str(path), []))
    found: dict[str, Any] = json.loads(as_perfetto(Record(check_result(check, Scoring()), Path())))
    return list(found["traceEvents"])


def names_of_tracks(events: list[dict[str, Any]]) -> dict[int, str]:
    """The name of each track by its number."""
    return {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}


def test_pod_sandbox_and_container_have_tracks(tmp_path: Path) -> None:
    """Calls are slices on the track of what they are about, lives on one beside, all else is an instant."""
    s = TraceBuilder(scenario="two")
    web = s.pod(containers=[{"name": name, "image": "img:1"} for name in ("c1", "c2")])
    sandbox = s.run_sandbox(web)
    ended = s.run_container(web, sandbox, "c1")
    s.run_container(web, sandbox, "c2")
    s.wait(5).exited(ended)
    path = tmp_path / "t.jsonl"
    path.write_bytes(s.text())
    events = events_of(path)
    tracks = names_of_tracks(events)
    slices = [(each["name"].partition(" ")[0], tracks[each["tid"]]) for each in events if each["ph"] == "X"]
    [process] = [each["args"]["name"] for each in events if each["name"] == "process_name"]

    assert process == "two"
    assert ("StartContainer", "default/web container c1#0") in slices
    assert ("CreateContainer", "default/web sandbox #0") in slices
    assert ("ran", "default/web container c1#0 life") in slices
    assert ("runs", "default/web container c2#0 life") in slices
    assert ("runs", "default/web sandbox #0 life") in slices
    assert any(track.startswith("default/web pod") for track in tracks.values())
    assert all(each["s"] == "t" for each in events if each["ph"] == "i")


SHIPPED = sorted((traces() / "kubernetes-1.32").glob("*.jsonl"))


@pytest.mark.parametrize("trace", SHIPPED[:3], ids=lambda path: path.stem)
def test_slices_of_a_track_do_not_overlap(trace: Path) -> None:
    """A viewer draws no slice into another one that is not part of it; every slice has a named track."""
    events = events_of(trace)
    tracks = names_of_tracks(events)
    by_track: dict[int, list[tuple[float, float]]] = {}
    for each in events:
        if each["ph"] == "X":
            by_track.setdefault(each["tid"], []).append((each["ts"], each["ts"] + each["dur"]))

    assert by_track
    assert set(by_track) <= set(tracks)
    for spans in by_track.values():
        assert all(first[1] <= second[0] for first, second in pairwise(sorted(spans)))
