"""PROBE contracts: each is kept by a right trace and broken by a wrong one."""

import pytest
from running import BROKEN, KEPT, probe, running
from trace_builder import ContainerHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

LIVENESS = {"exec": {"command": ["alive"]}, "failureThreshold": 2}


@pytest.mark.parametrize(("command", "verdict"), [("alive", Verdict.NOT_EXERCISED), ("up", BROKEN)])
def test_probes_alike_are_not_distinguished(command: str, verdict: Verdict) -> None:
    """PROBE-07: where the startup probe executes the same, nobody can say which of them failed."""
    startup = {"exec": {"command": [command]}, "failureThreshold": 30}
    s, _, _, c1 = running(livenessProbe=LIVENESS, startupProbe=startup)
    for code in (1, 1):
        s.wait(1)
        probe(s, c1, code)
    s.wait(60).stop_here()

    assert s.judge("PROBE-07").verdict is verdict


@pytest.mark.parametrize("way", ["ended", "stopped"])
@pytest.mark.parametrize(("probed", "verdict"), [(False, KEPT), (True, BROKEN)])
def test_nothing_of_an_ended_pod_is_probed(way: str, *, probed: bool, verdict: Verdict) -> None:
    """PROBE-12: the probes of a pod that ended, or was stopped to go, run no more."""
    s, web, sandbox, c1 = running(policy="Never", livenessProbe={"exec": {"command": ["alive"]}})
    probe(s, c1, 0)
    if way == "ended":
        s.exited(c1)
        s.status(web, "Succeeded")
    else:
        s.delete(web)
        s.stop(c1)
        s.stop_sandbox(sandbox)
    if probed:
        probe(s.wait(10), c1, 0)
    s.wait(5).stop_here()

    assert s.judge("PROBE-12").verdict is verdict


@detects("PROBE-12", if_right=Verdict.NOT_EXERCISED, error=("UNKNOWN", None))
def test_probes_go_on_where_the_kill_has_failed(s: TraceBuilder, error: str | None) -> None:
    """PROBE-12: a kill of which a part has failed is tried again, and until then the pod is probed."""
    probing = {"exec": {"command": ["alive"]}}
    web = s.pod(containers=[{"name": "c1", "image": "img:1", "readinessProbe": probing}])
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox, "c1")
    s.delete(web)
    s.stop(c1, error=error)
    s.stop_sandbox(sandbox)
    probe(s.wait(10), c1, 0)
    s.wait(5).stop_here()


@pytest.mark.parametrize(("probes_on", "verdict"), [(False, KEPT), (True, BROKEN)])
def test_liveness_ends_with_the_deadline(*, probes_on: bool, verdict: Verdict) -> None:
    """PROBE-13: a pod whose time is over is not probed for liveness, though nobody has deleted it."""
    s, web, _, c1 = running(livenessProbe={"exec": {"command": ["alive"]}, "periodSeconds": 1})
    s.record("event", uid=web.uid, type="Normal", reason="DeadlineExceeded", message="")
    if probes_on:
        probe(s.wait(8), c1, 0)
    s.stop(c1)

    assert s.judge("PROBE-13").verdict is verdict


@detects(
    "PROBE-07", if_right=Verdict.NOT_EXERCISED, begin=lambda: running(livenessProbe=LIVENESS), ends=(0.8, 4)
)
def test_exit_before_the_next_relist(s: TraceBuilder, c1: ContainerHandle, ends: float) -> None:
    """PROBE-07: the sync that kills waits for a relist, and may find the container gone by itself."""
    for code in (1, 1):
        s.wait(1)
        probe(s, c1, code)
    s.wait(ends).exited(c1)
    s.wait(30).stop_here()


@pytest.mark.parametrize(("waits", "verdict"), [(20, KEPT), (60, BROKEN)])
def test_hook_over_http_comes_before_the_stop(waits: float, verdict: Verdict) -> None:
    """PROBE-07: a preStop hook that nobody sees may take the whole grace."""
    pre_stop = {"preStop": {"httpGet": {"port": 8080}}}
    s, _, _, c1 = running(livenessProbe=LIVENESS, lifecycle=pre_stop)
    for code in (1, 1):
        s.wait(1)
        probe(s, c1, code)
    s.wait(waits).stop(c1)

    assert s.judge("PROBE-07").verdict is verdict
