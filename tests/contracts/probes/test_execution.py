"""PROBE contracts on when probes are executed: each is kept by a right trace and broken by a wrong one."""

import pytest
from running import BROKEN, KEPT, POST_START, running
from trace_builder import ContainerHandle, PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

ALIVE = {"exec": {"command": ["alive"]}, "periodSeconds": 5}
READY = {"exec": {"command": ["ready"]}, "periodSeconds": 5}


def run(s: TraceBuilder, c1: ContainerHandle, command: str, code: int = 0, timeout: str = "1") -> None:
    """An exec probe by its command."""
    request = {"container_id": c1.id, "cmd": [command], "timeout": timeout}
    s.call("ExecSync", request, {"exit_code": code})


@pytest.mark.parametrize("contract_id", ["PROBE-01", "PROBE-23"])
@pytest.mark.parametrize(("hooked", "verdict"), [(True, Verdict.NOT_EXERCISED), (False, BROKEN)])
def test_probes_wait_for_the_hooks_after_the_start(
    contract_id: str, *, hooked: bool, verdict: Verdict
) -> None:
    """PROBE-01, PROBE-23: as long as a postStart hook runs, no status tells that the container does."""
    s = TraceBuilder().wait(100)
    own = {"readinessProbe": READY | {"periodSeconds": 60}, "lifecycle": POST_START if hooked else {}}
    web = s.pod(containers=[{"name": "c1", "image": "img:1", **own}])
    c1 = s.run_container(web, s.run_sandbox(web))
    hook = s.begin("ExecSync", {"container_id": c1.id, "cmd": ["warm"]})
    s.wait(200).end("ExecSync", hook, {})

    assert s.judge(contract_id).verdict is verdict


@pytest.mark.parametrize(("delay", "verdict"), [(10, KEPT), (20, BROKEN)])
def test_probes_wait_for_the_initial_delay(delay: int, verdict: Verdict) -> None:
    """PROBE-04: not before initialDelaySeconds have passed."""
    s, _, _, c1 = running(livenessProbe=ALIVE | {"initialDelaySeconds": delay})
    run(s, c1, "alive")

    assert s.judge("PROBE-04").verdict is verdict


@pytest.mark.parametrize(("late", "gap", "verdict"), [(7, 3, KEPT), (6, 3, BROKEN), (5.2, 4.2, BROKEN)])
def test_tick_that_is_late_does_not_move_the_next(late: float, gap: float, verdict: Verdict) -> None:
    """PROBE-05: the next one keeps to the grid, and comes as much sooner after it, but for half a second."""
    s, _, _, c1 = running(livenessProbe=ALIVE)
    run(s, c1, "alive")
    run(s.wait(late), c1, "alive")
    run(s.wait(gap), c1, "alive")
    s.exited(c1)

    assert s.judge("PROBE-05").verdict is verdict


@pytest.mark.parametrize(("gap", "verdict"), [(5, KEPT), (1, BROKEN), (30, BROKEN)])
def test_probes_keep_their_period(gap: int, verdict: Verdict) -> None:
    """PROBE-05: neither more often nor less often than periodSeconds."""
    s, _, _, c1 = running(livenessProbe=ALIVE)
    for _ in range(3):
        run(s, c1, "alive")
        s.wait(gap)
    s.exited(c1)
    s.stop_here()

    assert s.judge("PROBE-05").verdict is verdict


@pytest.mark.parametrize(
    ("tries", "takes", "verdict"), [(1, 0.1, BROKEN), (3, 0.1, KEPT), (5, 0.1, BROKEN), (4, 2.0, KEPT)]
)
def test_probe_without_result_is_tried_thrice(tries: int, takes: float, verdict: Verdict) -> None:
    """PROBE-14: three times at once, then not before the next period, which slow answers may reach."""
    s, _, _, c1 = running(livenessProbe=ALIVE)
    for _ in range(tries):
        asked = {"container_id": c1.id, "cmd": ["alive"], "timeout": "1"}
        s.call("ExecSync", asked, error="INTERNAL", takes=takes)
    run(s.wait(5), c1, "alive")

    assert s.judge("PROBE-14").verdict is verdict


@detects("PROBE-15", begin=lambda: running(readinessProbe=READY), ready=(False, True))
def test_readiness_out_of_time_has_failed(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, *, ready: bool
) -> None:
    """PROBE-15: a slow readiness probe makes nothing ready."""
    s.call("ExecSync", {"container_id": c1.id, "cmd": ["ready"], "timeout": "1"}, error="DEADLINE_EXCEEDED")
    one = {
        "name": "c1",
        "state": {"running": {"startedAt": None}},
        "containerID": f"x://{c1.id}",
        "ready": ready,
    }
    s.status(web, containerStatuses=[one])
    run(s.wait(5), c1, "ready")
