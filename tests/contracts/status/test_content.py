"""STATUS contracts about the course of statuses: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from pod_status import condition, ended, runs, tell_status, waits
from running import BROKEN, running
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

READINESS: dict[str, Any] = {
    "readinessProbe": {"exec": {"command": ["alive"]}, "failureThreshold": 1, "successThreshold": 1}
}
UNREADY = [condition("ContainersReady", "False"), condition("Ready", "False")]
READY = [condition("ContainersReady"), condition("Ready")]


@pytest.mark.parametrize("wrong", ["runs", "waits", "older"])
@detects("STATUS-02", begin=running)
def test_older_status_does_not_follow(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, wrong: str, *, right: bool
) -> None:
    """STATUS-02: what was reported last is not contradicted by an older status."""
    tell_status(s, web, "Running", [runs(c1)])
    if wrong == "runs":
        s.exited(c1, 1)
        tell_status(s, web, "Running", [ended(1, c1)])
        tell_status(s, web, "Running", [ended(1, c1) if right else runs(c1)])
    elif wrong == "waits":
        tell_status(s, web, "Running", [runs(c1) if right else waits()])
    else:
        s.exited(c1, 1)
        second = s.run_container(web, sandbox, "c1", 1)
        tell_status(s, web, "Running", [runs(second)])
        tell_status(s, web, "Running", [runs(second) if right else ended(1, c1)])


def _probed(s: TraceBuilder, container: str, code: int) -> None:
    request = {"container_id": container, "cmd": ["alive"], "timeout": "1"}
    s.call("ExecSync", request, {"exit_code": code} if code else {})


@detects("STATUS-13", begin=lambda: running(**READINESS), after=(0.5, 8))
def test_readiness_is_reported_at_once(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, after: float
) -> None:
    """STATUS-13: what a readiness probe has found stands in a status at once."""
    tell_status(s, web, "Running", [runs(c1)], conditions=READY)
    _probed(s, c1.id, 1)
    tell_status(s.wait(after), web, "Running", [runs(c1, ready=False)], conditions=UNREADY)


@detects("STATUS-13", begin=running, conditions=(UNREADY, READY))
def test_conditions_change_with_readiness(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, conditions: list[dict[str, Any]]
) -> None:
    """STATUS-13: the conditions change in the same status."""
    tell_status(s, web, "Running", [runs(c1)], conditions=READY)
    tell_status(s, web, "Running", [runs(c1, ready=False)], conditions=conditions)


@detects("STATUS-17")
def test_reason_of_a_static_pod_is_forgotten(s: TraceBuilder, *, right: bool) -> None:
    """STATUS-17: a kubelet that starts does not know why a static pod had ended; one that goes on does."""
    web = s.pod("web-node-1", source="file", uid="static")
    c1 = s.run_container(web, s.run_sandbox(web))
    s.exited(c1, 1)
    tell_status(s, web, "Failed", [ended(1, c1)], reason="DeadlineExceeded")
    if right:
        s.wait(1).record("kubelet", op="killed")
        s.wait(1).record("kubelet", op="started")
    tell_status(s, web, "Failed", [ended(1, c1)])
    tell_status(s, web, "Failed", [ended(1, c1)], reason="DeadlineExceeded")
    tell_status(s, web, "Failed", [ended(1, c1)], reason="DeadlineExceeded", message="late")


def test_stale_reason_is_dropped() -> None:
    """STATUS-17: a reason does not outlive its phase."""
    s, web, _, c1 = running()
    tell_status(s, web, "Pending", [waits()], reason="Odd")
    tell_status(s, web, "Running", [runs(c1)], reason="Odd")

    assert s.judge("STATUS-17").verdict is BROKEN


@pytest.mark.parametrize("wrong", [None, 1, 7])
@detects("STATUS-18", kubernetes="1.34")
def test_generation_is_observed(s: TraceBuilder, wrong: int | None, *, right: bool) -> None:
    """STATUS-18: a status tells the generation of the spec, and follows it."""
    web = s.pod()
    web.manifest["metadata"]["generation"] = 1
    s.set(web)
    tell_status(s, web, "Running", [runs()], observedGeneration=1)
    web.manifest["metadata"]["generation"] = 2
    s.wait(5).set(web)
    tell_status(s.wait(1), web, "Running", [runs()], observedGeneration=2 if right else wrong)
    s.wait(60).call("ListContainers", {}, {})


@detects("STATUS-18", if_right=Verdict.NOT_EXERCISED, begin=lambda: running("1.34"), busy=(True, False))
def test_generation_follows_with_the_next_sync(s: TraceBuilder, web: PodHandle, *, busy: bool) -> None:
    """STATUS-18: a change during a long pull is followed when that is over."""
    web.manifest["metadata"]["generation"] = 1
    s.set(web)
    if busy:
        s.begin("PullImage", {"image": {"image": "img:2"}, "sandbox_config": s.sandbox_config(web)})
    web.manifest["metadata"]["generation"] = 2
    s.wait(5).set(web)
    s.wait(60).stop_here()
