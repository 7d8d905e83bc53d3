"""Changes of sources: each contract is kept by a right trace and broken by a wrong one."""

import pytest
from outside_world import killed, started, tell_status
from running import BROKEN, KEPT, running
from trace_builder import TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict


@pytest.mark.parametrize("wrong", ["", "no-stop", "no-sandbox"])
def test_change_concerns_its_pod_alone(wrong: str) -> None:
    """CONFIG-02: a new pod costs no other its container or its sandbox."""
    s, web, _, c1 = running()
    other = s.pod("other")
    s.run_sandbox(other)
    if wrong == "no-stop":
        s.wait(1).stop(c1)
    if wrong == "no-sandbox":
        s.wait(1).run_sandbox(web, 1)
    tell_status(s.wait(10))

    assert s.judge("CONFIG-02").verdict is (BROKEN if wrong else KEPT)


@pytest.mark.parametrize(("wait", "breaks"), [(0.1, False), (0.3, True)])
def test_event_of_a_preemption_follows_the_stop(wait: float, *, breaks: bool) -> None:
    """CONFIG-02: the event that explains a stop is on its way while the stop begins."""
    s, web, _, c1 = running()
    s.pod("urgent")
    s.stop(c1)
    s.wait(wait).record("event", uid=web.uid, type="Warning", reason="Preempting", message="", count=1)
    tell_status(s.wait(10))

    assert (s.judge("CONFIG-02").verdict is BROKEN) is breaks


@pytest.mark.parametrize(("kubernetes", "verdict"), [("1.36", KEPT), ("1.34", BROKEN)])
def test_pod_is_restarted_by_its_own_rule(kubernetes: str, verdict: Verdict) -> None:
    """CONFIG-02: a container that restarts its whole pod is a reason to stop the others."""
    s = TraceBuilder(kubernetes)
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    own = {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    two = [{"name": "c1", "image": "img:1", **own}, {"name": "c2", "image": "img:1"}]
    web = s.pod(containers=two)
    sandbox = s.run_sandbox(web)
    c1, c2 = (s.run_container(web, sandbox, name) for name in ("c1", "c2"))
    s.wait(10).run_sandbox(s.pod("other"))
    s.exited(c1, 42)
    s.stop(c2)
    tell_status(s.wait(10))

    assert s.judge("CONFIG-02").verdict is verdict


@pytest.mark.parametrize(
    ("early", "waits", "verdict"), [(False, 60, KEPT), (True, 2, BROKEN), (False, 80, BROKEN)]
)
def test_pods_are_asked_for_after_the_node(*, early: bool, waits: float, verdict: Verdict) -> None:
    """CONFIG-11: before the node is answered for no pod of the API server is run, and then all are."""
    s = TraceBuilder()
    killed(s)
    s.record("fault", what="the API server: list nodes before 500")
    web = s.pod()
    started(s.wait(1))
    s.call("ListPodSandbox", {}, {})
    s.call("ListContainers", {}, {})
    tell_status(s)
    if early:
        s.wait(5).run_sandbox(web)
    s.wait(5).record("fault", what="healed: the API server: list nodes before 500")
    if not early:
        tell_status(s)
        s.wait(waits).run_sandbox(web)

    assert s.judge("CONFIG-11").verdict is verdict


@pytest.mark.parametrize(
    ("waits", "stops", "verdict"), [(1, False, KEPT), (60, False, BROKEN), (1, True, BROKEN)]
)
def test_gate_is_noticed(waits: float, *, stops: bool, verdict: Verdict) -> None:
    """CONFIG-16: a gate that somebody opens makes the pod ready soon, and restarts nothing."""
    s = TraceBuilder()
    web = s.pod(readinessGates=[{"conditionType": "a/gate"}])
    c1 = s.run_container(web, s.run_sandbox(web))
    ready = {"type": "ContainersReady", "status": "True"}
    s.status(web, conditions=[ready, {"type": "Ready", "status": "False"}])
    web.manifest["status"] = {"phase": "Running", "conditions": [{"type": "a/gate", "status": "True"}]}
    s.set(web)
    if stops:
        s.stop(c1)
    s.wait(waits).status(web, conditions=[ready, {"type": "Ready", "status": "True"}])

    assert s.judge("CONFIG-16").verdict is verdict
