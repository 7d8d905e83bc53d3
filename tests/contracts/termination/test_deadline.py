"""DEADLINE contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from outside_world import killed, started, tell_status
from running import BROKEN, KEPT
from trace_builder import ContainerHandle, PodHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

ZERO = "2026-01-01T00:00:00Z"


def limited(**spec: Any) -> tuple[TraceBuilder, PodHandle, ContainerHandle]:
    """A pod that may run for 10 s from the start of the trace."""
    s = TraceBuilder(started=ZERO)
    job = s.pod("job", activeDeadlineSeconds=10, **spec)
    name = "i1" if "initContainers" in spec else "c1"
    c1 = s.run_container(job, s.run_sandbox(job), name)
    s.status(job, startTime=ZERO)
    return s, job, c1


@pytest.mark.parametrize(("t", "verdict"), [(11, KEPT), (5, BROKEN)])
def test_deadline_is_not_early(t: int, verdict: Verdict) -> None:
    """DEADLINE-01: DeadlineExceeded before the time is over breaks it."""
    s, job, c1 = limited()
    s.wait(t).stop(c1)
    s.status(job, "Failed", reason="DeadlineExceeded", startTime=ZERO)
    tell_status(s.wait(30))

    assert s.judge("DEADLINE-01").verdict is verdict


@pytest.mark.parametrize(("time", "verdict"), [(ZERO, KEPT), ("2026-01-01T00:00:09Z", BROKEN)])
def test_start_time_stays(time: str, verdict: Verdict) -> None:
    """DEADLINE-02: startTime is not set anew."""
    s, job, c1 = limited()
    killed(s.wait(6))
    started(s.wait(1))
    s.status(job, startTime=time)
    s.wait(4).stop(c1)

    assert s.judge("DEADLINE-02").verdict is verdict


@pytest.mark.parametrize(("source", "verdict"), [("api", BROKEN), ("file", Verdict.NOT_EXERCISED)])
def test_time_of_a_static_pod_without_a_mirror_begins_anew(source: str, verdict: Verdict) -> None:
    """DEADLINE-02: a kubelet that starts again cannot know the startTime that no API server keeps."""
    s = TraceBuilder(started=ZERO)
    job = s.pod("job", source=source, activeDeadlineSeconds=10)
    s.run_container(job, s.run_sandbox(job), "c1")
    s.status(job, startTime=ZERO)
    killed(s.wait(6))
    started(s.wait(1))
    tell_status(s.wait(60))

    assert s.judge("DEADLINE-02").verdict is verdict
