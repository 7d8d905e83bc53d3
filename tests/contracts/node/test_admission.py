"""ADMIT contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from outside_world import api_write, event, killed, started, tell_status
from running import BROKEN, KEPT, running
from trace_builder import PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

PORT = [{"name": "c1", "image": "img:1", "ports": [{"containerPort": 80, "hostPort": 80}]}]


def refused(s: TraceBuilder, reason: str = "OutOfcpu", **status: Any) -> PodHandle:
    """A pod that the node refuses."""
    web = s.pod()
    event(s, web, reason, kind="Warning", message="Node didn't have enough resource: cpu")
    s.status(web, "Failed", reason=reason, **{"message": "Pod was rejected: too much", **status})
    return web


@pytest.mark.parametrize("wrong", ["", "event", "message", "started", "revived"])
def test_refused_pod_is_reported_and_left_alone(wrong: str) -> None:
    """ADMIT-02: an event, a status, and then nothing any more."""
    s = TraceBuilder()
    if wrong == "event":
        web = s.pod()
        s.status(web, "Failed", reason="OutOfcpu", message="Pod was rejected: too much")
    else:
        web = refused(s, **({"message": "no"} if wrong == "message" else {}))
    if wrong == "started":
        s.run_sandbox(web)
    if wrong == "revived":
        s.status(web, "Pending")
    s.wait(6).stop_here()

    assert s.judge("ADMIT-02").verdict is (BROKEN if wrong else KEPT)


@pytest.mark.parametrize(
    ("clock", "wait", "breaks"), [("wall", 0.1, False), ("wall", 0.3, True), ("virtual", 0.1, True)]
)
def test_process_posts_the_event_beside_the_status(clock: str, wait: float, *, breaks: bool) -> None:
    """ADMIT-02: on wall time the event may be later than the status by a moment."""
    s = TraceBuilder(clock=clock)
    web = s.pod()
    s.status(web, "Failed", reason="OutOfcpu", message="Pod was rejected: too much")
    event(s.wait(wait), web, "OutOfcpu", kind="Warning", message="Node didn't have enough resource: cpu")
    s.wait(10).stop_here()

    assert bool(s.judge("ADMIT-02").breaks) is breaks


@detects("ADMIT-04", begin=lambda: running(ports=PORT[0]["ports"]), refuses=(True, False))
def test_leaving_pod_still_counts(s: TraceBuilder, web: PodHandle, *, refuses: bool) -> None:
    """ADMIT-04: a pod that is being deleted has its port until it has ended."""
    s.delete(web)
    other = s.wait(1).pod("other", containers=PORT)
    if refuses:
        s.status(other, "Failed", reason="NodePorts")
    else:
        s.run_sandbox(other)


def test_another_protocol_is_another_port() -> None:
    """ADMIT-06 does not concern ports that differ in their protocol."""
    s, _, _, _ = running(ports=PORT[0]["ports"])
    port = {"containerPort": 80, "hostPort": 80, "protocol": "UDP"}
    s.run_sandbox(s.pod("other", containers=[PORT[0] | {"ports": [port]}]))

    assert s.judge("ADMIT-06").activations == 0


@pytest.mark.parametrize("contract", ["ADMIT-10", "WORK-34"])
@pytest.mark.parametrize(("goes", "verdict"), [(True, KEPT), (False, BROKEN)])
def test_refused_pod_can_be_deleted(contract: str, *, goes: bool, verdict: Verdict) -> None:
    """ADMIT-10 and WORK-34: a refused pod that is deleted goes."""
    s = TraceBuilder()
    web = refused(s)
    s.wait(5).delete(web)
    if goes:
        api_write(s.wait(3), "delete", web.uid, grace=0, precondition=web.uid)
        s.deleted(web)
    tell_status(s.wait(60))

    assert s.judge(contract).verdict is verdict


def test_refused_pod_is_deleted_without_grace() -> None:
    """WORK-34: a deletion with a grace period breaks it."""
    s = TraceBuilder()
    web = refused(s)
    s.wait(5).delete(web)
    api_write(s, "delete", web.uid, grace=30)

    assert s.judge("WORK-34").verdict is BROKEN


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_deadline_gives_an_ended_pod_a_reason(phase: str) -> None:
    """ADMIT-05: a deadline that passed after the end changes the reason, and not the phase."""
    s = TraceBuilder()
    web = s.pod(restartPolicy="Never", activeDeadlineSeconds=60)
    s.exited(s.run_container(web, s.run_sandbox(web)))
    s.status(web, "Succeeded")
    killed(s)
    started(s.wait(90))
    s.wait(2).status(web, phase, reason="DeadlineExceeded")
    s.wait(5).stop_here()

    assert s.judge("ADMIT-05").verdict is (KEPT if phase == "Succeeded" else BROKEN)


@detects("WORK-34", goes=(True, False))
def test_pod_deleted_before_its_refusal_was_reported_goes(s: TraceBuilder, *, goes: bool) -> None:
    """WORK-34: so does one whose deletion came before the API server received the refusal."""
    web = s.pod()
    s.wait(1).delete(web)
    s.wait(5).status(web, "Failed", reason="NodeAffinity")
    if goes:
        api_write(s.wait(3), "delete", web.uid, grace=0, precondition=web.uid)
        s.deleted(web)
    tell_status(s.wait(60))
