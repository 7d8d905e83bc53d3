"""WORK contracts on news that pile up and on looking again: each is kept and broken by a trace."""

import pytest
from running import BROKEN, KEPT, running, two_running
from trace_builder import PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


@detects("WORK-15", begin=lambda: running(source="file"), waits=(70, 300))
def test_healthy_pod_is_synced_again(s: TraceBuilder, web: PodHandle, waits: float) -> None:
    """WORK-15: a mirror pod that could not be made in an outage is made with the next sync."""
    s.record("fault", what="the API server is away")
    s.wait(30).record("fault", what="healed: the API server is back")
    mirror = {"metadata": {"name": f"{web.name}-node-1", "namespace": web.namespace}}
    s.wait(waits).record("api", verb="create", resource="pods", uid="m", body=mirror, code=201)


@pytest.mark.parametrize(("does", "verdict"), [("tells", KEPT), ("is silent", BROKEN), ("stops it", BROKEN)])
def test_unreadable_pod_is_left_alone(does: str, verdict: Verdict) -> None:
    """WORK-18: a sync of a pod that cannot be read is reported by an event, and does nothing."""
    s, web, sandbox, c1, _ = two_running()
    for _ in range(12):
        s.wait(1).call("PodSandboxStatus", {"pod_sandbox_id": sandbox.id}, error="INTERNAL")
    web.manifest["metadata"]["annotations"] = {"colour": "green"}
    s.set(web)
    s.wait(1)
    if does == "tells":
        s.record("event", uid=web.uid, type="Warning", reason="FailedSync", message="", count=1)
    elif does == "stops it":
        s.stop(c1)
    s.wait(40).sandbox_status(sandbox)

    assert s.judge("WORK-18").verdict is verdict
