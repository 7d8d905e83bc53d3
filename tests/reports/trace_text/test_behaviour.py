"""Behaviour as text: names for ids, pauses for times, one order for what runs at once, counts for repeats."""

from pathlib import Path
from typing import Any

import pytest
from trace_builder import ContainerHandle, PodHandle, TraceBuilder

from kubelet_conformance.reports.trace_text.behaviour import behaviour
from kubelet_conformance.reports.trace_text.steps import steps
from kubelet_conformance.trace.format.errors import TraceError

PROBE = {"cmd": ["xf", "ok"], "timeout": 1}


@pytest.fixture
def begun_trace() -> TraceBuilder:
    """A trace of a node that just started."""
    return TraceBuilder()


def running(begun_trace: TraceBuilder, *names: str) -> tuple[PodHandle, list[ContainerHandle]]:
    """A pod whose containers run."""
    web = begun_trace.pod("web", containers=[{"name": name, "image": "img:1"} for name in names])
    sandbox = begun_trace.run_sandbox(web)
    return web, [begun_trace.run_container(web, sandbox, name) for name in names]


def text(begun_trace: TraceBuilder, folder: Path) -> str:
    """The behaviour of a trace that ends now."""
    if begun_trace.records[-1]["kind"] != "end":
        begun_trace.stop_here()
    path = folder / "t.jsonl"
    path.write_bytes(begun_trace.text())
    return behaviour(str(path))


def test_ids_become_names_and_a_container_begins_in_one_line(
    begun_trace: TraceBuilder, tmp_path: Path
) -> None:
    """What is asked for stands in words that are the same in every run."""
    running(begun_trace, "c1")

    assert text(begun_trace, tmp_path) == (
        "kubelet started\n"
        "pod web wanted from api: c1 img:1 ``\n"
        "  RunPodSandbox web#0\n"
        "  CreateContainer, StartContainer web/c1#0\n\n"
        "end\n"
    )


def test_calls_at_once_stand_in_one_order(begun_trace: TraceBuilder, tmp_path: Path) -> None:
    """Which of parallel calls begins first is chance, and does not show."""
    _, (one, two) = running(begun_trace, "c1", "c2")
    texts: list[str] = []
    for first, second in ((one, two), (two, one)):
        s = TraceBuilder()
        running(s, "c1", "c2")
        begun = [s.begin("StopContainer", {"container_id": each.id}) for each in (first, second)]
        for call in begun:
            s.end("StopContainer", call, {})
        texts.append(text(s, tmp_path))

    assert texts[0] == texts[1]
    assert "StopContainer web/c1#0 timeout 0\n  StopContainer web/c2#0 timeout 0\n" in texts[0]


def test_repeats_are_counted_where_they_began(begun_trace: TraceBuilder, tmp_path: Path) -> None:
    """A probe is one line as long as its outcome stays the same, whatever lies between."""
    _, (c1,) = running(begun_trace, "c1")
    for code in (0, 0, 0, 1, 1):
        begun_trace.wait(10).call(
            "ExecSync", {"container_id": c1.id, **PROBE}, {"exit_code": code} if code else {}
        )
    shown = text(begun_trace, tmp_path)

    assert "  ExecSync web/c1#0 `xf ok` -> 0 (x3)\n" in shown
    assert "  ExecSync web/c1#0 `xf ok` -> 1 (x2)\n" in shown


def test_pauses_are_round(begun_trace: TraceBuilder, tmp_path: Path) -> None:
    """Seconds that differ from run to run by a little are shown alike."""
    _, (c1,) = running(begun_trace, "c1")
    begun_trace.wait(9.2).call("RemoveContainer", {"container_id": c1.id}, {})
    begun_trace.wait(118.0)

    assert text(begun_trace, tmp_path).endswith(
        "\n\nabout 10 s later\n  RemoveContainer web/c1#0\n\nabout 120 s later\nend\n"
    )


def test_a_second_removal_still_has_its_name(begun_trace: TraceBuilder, tmp_path: Path) -> None:
    """A name is remembered when the record is gone, and an id nobody has seen is called unknown."""
    _, (c1,) = running(begun_trace, "c1")
    for each in (c1.id, c1.id, "stranger"):
        begun_trace.call("RemoveContainer", {"container_id": each}, {})

    assert text(begun_trace, tmp_path).count("  RemoveContainer web/c1#0\n") == 2
    assert "  RemoveContainer an unknown id\n" in text(begun_trace, tmp_path)


def test_errors_are_reported_though_something_came_between(begun_trace: TraceBuilder, tmp_path: Path) -> None:
    """An outcome belongs to its call even if an event is recorded before the reply."""
    web, (c1,) = running(begun_trace, "c1")
    call = begun_trace.begin("StopContainer", {"container_id": c1.id, "timeout": "30"})
    begun_trace.record("event", uid=web.uid, type="Normal", reason="Killing", message="", count=1)
    begun_trace.end("StopContainer", call, error="UNKNOWN")

    assert "  StopContainer web/c1#0 timeout 30 -> UNKNOWN\n" in text(begun_trace, tmp_path)


def test_conditions_are_reported_as_news(begun_trace: TraceBuilder, tmp_path: Path) -> None:
    """A status says what became true and what is no longer, with the reason; an equal one says nothing."""
    web, _ = running(begun_trace, "c1")
    ready: dict[str, Any] = {"type": "Ready", "status": "True"}
    unready: dict[str, Any] = {"type": "Ready", "status": "False", "reason": "ContainersNotReady"}
    for condition in (unready, ready, ready, unready):
        status = {"phase": "Running", "conditions": [condition, {"type": "PodScheduled", "status": "True"}]}
        begun_trace.record("status", uid=web.uid, namespace="default", name="web", status=status)
    lines = [line.strip() for line in text(begun_trace, tmp_path).splitlines() if "status" in line]

    assert lines == [
        "status web Running; +PodScheduled",
        "status web Running; +Ready",
        "status web Running; -Ready (ContainersNotReady)",
    ]


def test_every_step_has_its_time(begun_trace: TraceBuilder, tmp_path: Path) -> None:
    """Steps carry the seconds of the trace, and the last is its end."""
    running(begun_trace, "c1")
    begun_trace.wait(5)
    path = tmp_path / "t.jsonl"
    path.write_bytes(begun_trace.text())
    seen = steps(str(path))

    assert seen[-1].what == "end"
    assert seen[-1].t >= 5
    assert [each.t for each in seen] == sorted(each.t for each in seen)


def test_what_is_no_trace_is_reported(tmp_path: Path) -> None:
    """A file that cannot be read as a trace raises, with the line."""
    path = tmp_path / "t.jsonl"
    path.write_text("{}\n", encoding="utf-8")

    with pytest.raises(TraceError, match=r"t\.jsonl:1"):
        behaviour(str(path))
