"""Slices: each kind of record has a readable line, and a call is one line with its reply."""

from pathlib import Path
from typing import Any

import pytest
from trace_builder import TraceBuilder

from kubelet_conformance.reports.safe import short
from kubelet_conformance.reports.trace_text.breaks import cut


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a trace lies."""
    return tmp_path / "t.jsonl"


def texts(path: Path, s: TraceBuilder, *wanted: int) -> list[str]:
    """The lines of these records, or of all."""
    path.write_bytes(s.text())
    lines = cut(path, wanted or range(1, len(s.records) + 2))
    return list(dict.fromkeys(lines[seq].text for seq in sorted(lines)))


def test_life_of_a_pod(path: Path) -> None:
    """Every call of a pod's life names whom it is about, in words that were learned from the trace."""
    s = TraceBuilder()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.call("ExecSync", {"container_id": c1.id, "cmd": ["sh", "-c", "x"], "timeout": "2"}, {"exit_code": 1})
    s.delete(web, grace=3)
    s.stop(c1, 3, code=137)
    s.container_status(c1, state="CONTAINER_EXITED", exit_code=137, reason="Error")
    s.stop_sandbox(sandbox, error="UNKNOWN")
    s.remove(c1)
    s.unset(web)
    s.deleted(web)

    assert [line.split(" (#")[0] for line in texts(path, s)] == [
        "kubelet started",
        "ListPodSandbox -> 0 sandboxes",
        "ListContainers -> 0 containers",
        "pod wanted: default/web (api), restartPolicy Always",
        f"RunPodSandbox default/web attempt 0 -> sandbox {short(sandbox.id)}",
        f"PodSandboxStatus sandbox {short(sandbox.id)} (attempt 0) of default/web -> ready",
        "ImageStatus img:1 -> present, sha256:img:1",
        (
            f"CreateContainer c1#0 in sandbox {short(sandbox.id)} (attempt 0) of default/web, image img:1 "
            f"-> container {short(c1.id)}"
        ),
        f"StartContainer c1#0 ({short(c1.id)}) of default/web -> ok",
        f"ContainerStatus c1#0 ({short(c1.id)}) of default/web -> running",
        f"ExecSync c1#0 ({short(c1.id)}) of default/web, `sh -c x`, timeout 2 s -> exit code 1",
        "pod is being deleted: default/web (api), grace 3 s",
        f"StopContainer c1#0 ({short(c1.id)}) of default/web, timeout 3 s -> ok",
        f"the runtime reports: exited c1#0 ({short(c1.id)}) of default/web, code 137",
        f"ContainerStatus c1#0 ({short(c1.id)}) of default/web -> exited with code 137 Error",
        (
            f"StopPodSandbox sandbox {short(sandbox.id)} (attempt 0) of default/web "
            "-> UNKNOWN: injected (without effect)"
        ),
        f"RemoveContainer c1#0 ({short(c1.id)}) of default/web -> ok",
        "pod removed from its source: default/web (api)",
        "pod object deleted: default/web",
        "end of observation",
    ]


def test_other_kinds(path: Path) -> None:
    """Statuses, events, faults, writes and waits have their own words; what is unknown has none."""
    s = TraceBuilder()
    web = s.pod()
    waiting = {"name": "c1", "state": {"waiting": {"reason": "ContainerCreating"}}}
    running: dict[str, Any] = {"name": "c2", "state": {"running": {}}, "ready": True, "restartCount": 2}
    ended = {"name": "i1", "state": {"terminated": {"exitCode": 3}}}
    s.status(web, "Pending", initContainerStatuses=[ended], containerStatuses=[waiting, running])
    s.record(
        "event",
        uid=web.uid,
        type="Warning",
        reason="BackOff",
        message="a\nb",
        container="spec.containers{c1}",
    )
    s.record("fault", what="RunPodSandbox fails")
    s.record("api", verb="patch", resource="pods", subresource="status", uid=web.uid, code=409)
    s.record("expect", contract="TERM-01", awaited="a stop", met=False)
    s.record("runtime", op="restarted")
    s.record("runtime", op="exited", container_id="0123456789abcdef", name="old", exit_code=1)
    s.record("runtime", op="sandbox-died", sandbox_id="0123456789abcdef")
    s.record("later", x=1)
    first = len(s.records) - 8

    assert texts(path, s, *range(first, first + 9)) == [
        (
            "status of default/web: Pending (i1 terminated 3, restarts 0; "
            "c1 waiting ContainerCreating, restarts 0; c2 running, ready, restarts 2)"
        ),
        r"event spec.containers{c1} of default/web: Warning BackOff a\nb",
        "fault: RunPodSandbox fails",
        "API write patch pods status 409 of default/web",
        "wait for a stop: it did not come",
        "the runtime reports: restarted",
        "the runtime reports: exited old (0123456789ab), code 1",
        "the runtime reports: sandbox-died sandbox 0123456789ab",
    ]


def test_call_and_reply_are_one_line(path: Path) -> None:
    """Whichever of the two the evidence names, the line is the same, at the time of the call."""
    s = TraceBuilder()
    web = s.pod()
    s.run_sandbox(web, takes=2)
    begin = next(record["seq"] for record in s.records if record.get("rpc") == "RunPodSandbox")
    path.write_bytes(s.text())
    by_call, by_reply = cut(path, [begin]), cut(path, [begin + 1])

    assert by_call == by_reply
    assert by_call[begin].seq == begin
    assert by_call[begin].text.endswith(f"(#{begin + 1}, 2.000 s later)")


def test_open_call_says_so(path: Path) -> None:
    """A call that was never answered is shown without a reply."""
    s = TraceBuilder()
    s.begin("Version", {})

    assert texts(path, s, len(s.records)) == ["Version (no reply)"]


def test_what_is_gone_is_named_by_its_id(path: Path) -> None:
    """An entity that the trace does not know is shown by its id."""
    s = TraceBuilder()
    s.call("StopContainer", {"container_id": "fedcba9876543210"}, {})
    s.call("StopPodSandbox", {"pod_sandbox_id": "fedcba9876543210"}, {})
    s.call("PullImage", {"image": {"image": "img"}}, {"image_ref": "ref"})
    lines = texts(path, s, *range(6, 12))

    assert [line.split(" (#")[0] for line in lines] == [
        "StopContainer container fedcba987654, timeout 0 s -> ok",
        "StopPodSandbox sandbox fedcba987654 -> ok",
        "PullImage img for an unknown pod -> ref",
    ]


def test_what_is_no_trace_any_more_gives_no_lines(path: Path) -> None:
    """A file that changed since it was judged, or is gone, is no reason to fail."""
    assert cut(path, [1]) == {}
    path.write_bytes(b"no trace")
    assert cut(path, [1]) == {}
