"""Configured delays of restarts, foreign files among logs, the health of the loop."""

import pytest
from outside_world import tell_status
from running import BROKEN, KEPT
from trace_builder import TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

PERIOD = {"crashLoopBackOff": {"maxContainerRestartPeriod": "2s"}}


@pytest.mark.parametrize(("delay", "verdict"), [("2s", KEPT), ("10s", BROKEN), ("1m20s", BROKEN)])
def test_configured_delay(delay: str, verdict: Verdict) -> None:
    """BACKOFF-11: no delay is longer than the configured one."""
    s = TraceBuilder("1.35", configuration=PERIOD)
    _is_held_up(s, delay)

    assert s.judge("BACKOFF-11").verdict is verdict


@pytest.mark.parametrize(
    ("version", "delay", "verdict"),
    [("1.34", "1m0s", KEPT), ("1.34", "1m4s", BROKEN), ("1.35", "1m4s", KEPT), ("1.35", "1m0s", BROKEN)],
)
def test_reduced_delay(version: str, delay: str, verdict: Verdict) -> None:
    """BACKOFF-11: where the longest delay may be configured, by default from 1.35 on, it is not the 60 s."""
    s = TraceBuilder(version, featureGates={"ReduceDefaultCrashLoopBackOffDecay": True}, configuration={})
    _is_held_up(s, delay)

    assert s.judge("BACKOFF-11").verdict is verdict


def _is_held_up(s: TraceBuilder, delay: str) -> None:
    pod = s.pod()
    message = f"back-off {delay} restarting failed container=c1 pod=web_default({pod.uid})"
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    s.status(pod, containerStatuses=[{"name": "c1", "state": waiting}])


@pytest.mark.parametrize(
    ("version", "number", "verdict"),
    [("1.32", 1, KEPT), ("1.32", 8, BROKEN), ("1.26", 8, KEPT), ("1.26", 1, BROKEN)],
)
def test_foreign_file_among_logs(version: str, number: int, verdict: Verdict) -> None:
    """RESTART-15: `old-7.log` is nobody's log since 1.27."""
    s = TraceBuilder(version)
    pod = s.pod()
    sandbox = s.run_sandbox(pod)
    c1 = s.run_container(pod, sandbox, "c1")
    folder = f"/var/log/pods/default_web_{pod.uid}/c1"
    for name in ("0.log", "old-7.log", "notes.txt"):
        s.record("disk", op="written", path=f"{folder}/{name}")
    s.record("runtime", op="removed", container_id=c1.id)
    s.call("ListContainers", {}, {"containers": []})
    s.wait(1)
    s.create(pod, sandbox, "c1", number)

    assert s.judge("RESTART-15").verdict is verdict


@pytest.mark.parametrize(
    ("silent", "healthy", "verdict"),
    [(100, 1, KEPT), (100, 0, BROKEN), (400, 0, KEPT), (400, 1, BROKEN)],
)
def test_health_of_the_loop(silent: float, healthy: int, verdict: Verdict) -> None:
    """LOOP-19: a loop that stands still for 5 minutes is ill, and not before."""
    s = TraceBuilder()
    s.record("kubelet", op="started")
    tell_status(s)
    tell_status(s, runtime=False)
    s.wait(silent)
    tell_status(s, runtime=False)
    s.record("metrics", values={"healthz/syncloop": healthy})

    assert s.judge("LOOP-19").verdict is verdict
