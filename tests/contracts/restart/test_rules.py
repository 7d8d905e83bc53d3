"""Containers with restart policies and rules of their own: right traces and wrong ones."""

from typing import Any

import pytest
from running import BROKEN, KEPT
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

Json = dict[str, Any]


def rule(action: str, *codes: int) -> Json:
    """A rule for these exit codes."""
    return {"action": action, "exitCodes": {"operator": "In", "values": list(codes)}}


def pod_of(
    own: Json, *, init: Json | None = None, policy: str = "Never", version: str = "1.36"
) -> tuple[TraceBuilder, PodHandle, SandboxHandle, ContainerHandle, ContainerHandle]:
    """A pod of two app containers that run, the first with fields of its own."""
    s = TraceBuilder(version)
    spec: Json = {"restartPolicy": policy}
    if init is not None:
        spec["initContainers"] = [{"name": "i1", "image": "img:1", **init}]
    containers = [{"name": "c1", "image": "img:1", **own}, {"name": "c2", "image": "img:1"}]
    pod = s.pod(containers=containers, **spec)
    sandbox = s.run_sandbox(pod)
    if init is not None:
        s.exited(s.run_container(pod, sandbox, "i1"), 0)
    c1 = s.run_container(pod, sandbox, "c1")
    return s, pod, sandbox, c1, s.run_container(pod, sandbox, "c2")


REASONS = {"True": "RestartAllContainersStarted", "False": ""}


@pytest.mark.parametrize(("said", "verdict"), [("False", KEPT), ("True", BROKEN)])
def test_condition_is_cleared(said: str, verdict: Verdict) -> None:
    """COND-10: once all containers run again the condition is True no more."""
    own = {"restartPolicy": "Never", "restartPolicyRules": [rule("RestartAllContainers", 42)]}
    s, pod, *_, c1, _ = pod_of(own)
    s.exited(c1, 42)
    runs: list[Json] = [{"name": name, "state": {"running": {}}} for name in ("c1", "c2")]
    for status in ("True", said):
        conditions = [{"type": "AllContainersRestarting", "status": status, "reason": REASONS[status]}]
        s.wait(1).status(pod, containerStatuses=runs if status is said else [], conditions=conditions)

    assert s.judge("COND-10").verdict is verdict


@pytest.mark.parametrize(
    ("said", "reason", "verdict"),
    [("True", "RestartAllContainersStarted", KEPT), ("True", "", BROKEN), ("", "", BROKEN)],
)
def test_restart_has_a_reason(said: str, reason: str, verdict: Verdict) -> None:
    """COND-10: the condition is True with its reason, or False."""
    own = {"restartPolicy": "Never", "restartPolicyRules": [rule("RestartAllContainers", 42)]}
    s, pod, *_, c1, _ = pod_of(own)
    s.exited(c1, 42)
    conditions = [{"type": "AllContainersRestarting", "status": said, "reason": reason}]
    s.wait(1).status(pod, containerStatuses=[], conditions=conditions)

    assert s.judge("COND-10").verdict is verdict


@pytest.mark.parametrize(("whose", "verdict"), [("another pod's", KEPT), ("its own", BROKEN)])
@pytest.mark.parametrize("contract_id", ["RESTART-19", "RESTART-20"])
def test_container_that_is_over_has_namesakes(contract_id: str, whose: str, verdict: Verdict) -> None:
    """RESTART-19, RESTART-20: a container of the same name in another pod may run again."""
    rules = [rule("Restart", 42)] if contract_id == "RESTART-20" else []
    s, pod, sandbox, c1, _ = pod_of({"restartPolicy": "Never", "restartPolicyRules": rules}, policy="Always")
    other = s.pod("other")
    apart = s.run_sandbox(other)
    s.wait(10).exited(c1, 1)
    if whose == "its own":
        s.run_container(pod, sandbox, "c1", 1)
    else:
        s.run_container(other, apart, "c1")
    s.wait(60).record("kubelet", op="killed")

    assert s.judge(contract_id).verdict is verdict


@pytest.mark.parametrize(("since", "verdict"), [("12:00:10", KEPT), ("12:00:00", BROKEN)])
def test_restart_that_no_status_showed(since: str, verdict: Verdict) -> None:
    """COND-10: a condition that is False since another time than before has been True in between."""
    own = {"restartPolicy": "Never", "restartPolicyRules": [rule("RestartAllContainers", 42)]}
    s, pod, _, c1, _ = pod_of(own)
    restarting = {"type": "AllContainersRestarting", "status": "False"}
    s.status(pod, conditions=[{**restarting, "lastTransitionTime": "2025-06-15T12:00:00Z"}])
    s.exited(c1, 42)
    s.wait(1).status(
        pod, "Pending", conditions=[{**restarting, "lastTransitionTime": f"2025-06-15T{since}Z"}]
    )
    s.wait(60).record("kubelet", op="killed")

    assert s.judge("COND-10").verdict is verdict
