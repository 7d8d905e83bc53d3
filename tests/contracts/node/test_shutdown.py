"""SHUT contracts: each is kept by a right trace and broken by a wrong one."""

import pytest
from node_pressure import CRITICAL, configured_node, run, shut_down, stop
from running import BROKEN, KEPT

GRACEFUL = {"shutdownGracePeriod": "1m0s", "shutdownGracePeriodCriticalPods": "20s"}


@pytest.mark.parametrize("wrong", ["", "order", "grace", "forgotten", "started"])
def test_pods_are_ended_in_groups(wrong: str) -> None:
    """SHUT-01: critical pods last, nobody too long, nothing new."""
    s = configured_node(**GRACEFUL)
    system, web = run(s, "system", priority=CRITICAL, grace=60), run(s, grace=60)
    shut_down(s)
    if wrong == "order":
        stop(s, system, 20)
    if wrong != "forgotten":
        stop(s, web, 60 if wrong == "grace" else 40)
        late = s.wait(5).pod("late")
        if wrong == "started":
            s.run_sandbox(late)
        s.status(late, "Failed", reason="NodeShutdown", message="Pod was rejected: no")
    if wrong != "order":
        stop(s, system, 20)
    s.wait(90).stop_here()

    assert s.judge("SHUT-01").verdict is (BROKEN if wrong else KEPT)


@pytest.mark.parametrize(("phase", "reason"), [("Failed", "Terminated"), ("Succeeded", ""), ("Failed", "")])
def test_shut_down_pod_is_failed(phase: str, reason: str) -> None:
    """SHUT-02: Failed, and Terminated."""
    s = configured_node(**GRACEFUL)
    web = run(s)
    shut_down(s)
    stop(s, web, 30)
    web.fails(reason, phase)
    s.stop_here()

    assert s.judge("SHUT-02").verdict is (KEPT if reason else BROKEN)
