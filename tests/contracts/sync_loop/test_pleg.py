"""PLEG contracts: each is kept by a right trace and broken by a wrong one."""

import pytest
from running import BROKEN, KEPT, running, two_running
from trace_builder import ContainerHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def relist(s: TraceBuilder, *, containers: bool = True) -> None:
    """A relist that finds nothing new: the reply is not looked at."""
    s.record("call", rpc="ListPodSandbox", id=(one := s.new_id("list")), request={})
    s.end("ListPodSandbox", one, error="UNAVAILABLE")
    if containers:
        s.call("ListContainers", {}, {}, error="UNAVAILABLE")


@detects("PLEG-01", begin=running, both=(True, False))
def test_relist_asks_for_both(s: TraceBuilder, *, both: bool) -> None:
    """PLEG-01: all sandboxes are listed, then all containers."""
    s.call("ListPodSandbox", {}, {})
    if both:
        s.call("ListContainers", {}, {})


@pytest.mark.parametrize("hangs", [True, False])
def test_relist_may_wait_for_its_second_half(*, hangs: bool) -> None:
    """PLEG-01: while a listing of containers hangs, others list what they need."""
    s, *_ = running()
    s.call("ListPodSandbox", {}, {})
    call_id = s.begin("ListContainers", {})
    if not hangs:
        s.end("ListContainers", call_id, {})
    s.wait(30).call("ListPodSandbox", {}, {})
    s.wait(30).call("ListPodSandbox", {}, {})
    if hangs:
        s.end("ListContainers", call_id, {})

    assert s.judge("PLEG-01").verdict is (KEPT if hangs else BROKEN)


@detects("PLEG-01", begin=running, hangs=(True, False), late=(True, False))
def test_relist_may_wait_for_an_inspection(
    s: TraceBuilder, c1: ContainerHandle, *, hangs: bool, late: bool
) -> None:
    """PLEG-01: while an inspection hangs garbage collection lists all sandboxes, and nobody relists."""
    s.call("ListPodSandbox", {}, {})
    s.call("ListContainers", {}, {})
    waiting = s.begin("ContainerStatus", {"container_id": c1.id}) if hangs else ""
    s.wait(10).call("ListPodSandbox", {}, {})
    s.wait(10)
    if hangs and late:
        s.end("ContainerStatus", waiting, error="DEADLINE_EXCEEDED")
    s.call("ListContainers", {}, {})


@detects("PLEG-13", begin=two_running, if_right=Verdict.NOT_EXERCISED)
def test_relist_that_inspects_for_long_delays_the_next(
    s: TraceBuilder, c1: ContainerHandle, c2: ContainerHandle, *, right: bool
) -> None:
    """PLEG-13: what exits while a relist inspects other pods is read by the next one, after its period."""
    s.container_status(c1, state="CONTAINER_RUNNING")
    same = ("metadata", "image", "labels", "annotations")
    records = [
        {"id": one.id, "state": "CONTAINER_RUNNING", **{name: one.config[name] for name in same}}
        for one in (c1, c2)
    ]
    s.call("ListContainers", {}, {"containers": records})
    s.exited(c1, 1, seen=False)
    for _ in range(6 if right else 2):
        s.wait(0.3).container_status(c2, state="CONTAINER_RUNNING")
    s.wait(4).call("ListPodSandbox", {}, {})


@detects("PLEG-04", if_right=Verdict.NOT_EXERCISED, hook_is_over=(False, True))
def test_worker_in_a_hook_deals_with_a_death_later(s: TraceBuilder, *, hook_is_over: bool) -> None:
    """PLEG-04: a worker that waits for a postStart hook comes to a dead sandbox only after it."""
    hook = {"postStart": {"exec": {"command": ["x", "0", "40"]}}}
    web = s.pod(containers=[{"name": "c1", "image": "img:1", "lifecycle": hook}])
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    call_id = s.begin("ExecSync", {"container_id": c1.id, "cmd": ["x", "0", "40"]})
    s.wait(30)
    if hook_is_over:
        s.end("ExecSync", call_id)
    s.sandbox_died(sandbox)
    s.wait(10)
    if not hook_is_over:
        s.end("ExecSync", call_id)
    s.wait(1).stop(c1)
