"""WORK contracts on unusual ends: each is kept and broken by a trace."""

import pytest
from running import BROKEN, KEPT, running
from trace_builder import TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

NOT_EXERCISED = Verdict.NOT_EXERCISED
AWAY, BACK = "the API server is away", "healed: the API server is back"


@pytest.mark.parametrize(
    ("version", "waits", "verdict"),
    [("1.32", 1, KEPT), ("1.32", 60, BROKEN), ("1.26", 60, KEPT), ("1.26", 200, BROKEN)],
)
def test_wait_for_volumes_is_cut(version: str, waits: float, verdict: Verdict) -> None:
    """WORK-06: a pod that waits for its volumes goes at once (up to 1.26 when that wait gives up)."""
    s = TraceBuilder(version)
    s.wait(20)
    web = s.pod(volumes=[{"name": "v", "configMap": {"name": "absent"}}])
    s.wait(20).delete(web)
    s.wait(waits).deleted(web)

    assert s.judge("WORK-06").verdict is verdict


@pytest.mark.parametrize(("timeout", "waits", "verdict"), [(12, 3, KEPT), (2, 3, BROKEN), (12, 300, BROKEN)])
def test_removal_that_no_worker_was_notified_of(timeout: int, waits: float, verdict: Verdict) -> None:
    """WORK-27: what left its source before all were seen is stopped later, with its own grace."""
    s, web, sandbox, c1 = running(source="file", grace=12)
    s.record("kubelet", op="stopped")
    s.record("fault", what=AWAY)
    s.wait(1).record("kubelet", op="started")
    s.wait(10).unset(web)
    s.wait(5).record("fault", what=BACK)
    s.wait(waits).stop(c1, timeout)
    s.stop_sandbox(sandbox)

    assert s.judge("WORK-27").verdict is verdict


@pytest.mark.parametrize(("how", "verdict"), [("quietly", KEPT), ("no id", BROKEN), ("begins", BROKEN)])
def test_waiting_pod_ends_without_a_call(how: str, verdict: Verdict) -> None:
    """WORK-28: for a static pod that left while it waited for its name nothing is run or stopped."""
    s, web, sandbox, c1 = running(source="file", grace=60)
    s.unset(web)
    other = s.pod("web", source="file", uid="other")
    stop = s.begin("StopContainer", {"container_id": c1.id, "timeout": "60"})
    s.wait(3).unset(other)
    if how == "no id":
        s.wait(1).call("StopPodSandbox", {}, {})
    s.wait(40).exited(c1, seen=False)
    s.end("StopContainer", stop)
    s.stop_sandbox(sandbox)
    if how == "begins":
        s.run_sandbox(other)

    assert s.judge("WORK-28").verdict is verdict


@pytest.mark.parametrize(("forgets", "verdict"), [(False, BROKEN), (True, NOT_EXERCISED)])
def test_ended_pod_may_be_forgotten(*, forgets: bool, verdict: Verdict) -> None:
    """WORK-23: what housekeeping has forgotten while its file was gone may run again."""
    s, web, sandbox, c1 = running(source="file", policy="Never")
    s.exited(c1, 1)
    stop = s.begin("StopPodSandbox", {"pod_sandbox_id": sandbox.id})
    s.unset(web)
    if forgets:
        s.wait(1).call("ListPodSandbox", {"filter": {"state": {}}}, {})
    s.wait(1).set(web)
    s.wait(5).end("StopPodSandbox", stop)
    s.run_sandbox(web, attempt=1)

    assert s.judge("WORK-23").verdict is verdict
