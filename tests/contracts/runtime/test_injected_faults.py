"""Judges of runtimes know which calls somebody lets fail, hang or wait, and judge all others."""

from typing import Any

import pytest
from running import running
from runtime_reads import refuse
from trace_builder import TraceBuilder

STRUCK = "{rpc}#1 after INTERNAL delay=1"


def strike(s: TraceBuilder, rpc: str, *, healed: bool) -> None:
    """Calls of this RPC are tampered with, and no longer."""
    s.record("fault", what=STRUCK.format(rpc=rpc))
    if healed:
        s.record("fault", what="healed: " + STRUCK.format(rpc=rpc))


@pytest.mark.parametrize(("contract", "rpc"), [("CRI-02", "Status"), ("CRI-09", "ListContainers")])
@pytest.mark.parametrize(
    ("other", "healed", "breaks"), [(False, False, 0), (False, True, 1), (True, False, 1)]
)
def test_a_struck_call_may_fail(contract: str, rpc: str, *, other: bool, healed: bool, breaks: int) -> None:
    """CRI-02, CRI-09: a call that is struck may fail though it takes place; any other must not."""
    s = TraceBuilder()
    strike(s, "PullImage" if other else rpc, healed=healed)
    refuse(s, rpc, {}, "INTERNAL")

    assert s.judge(contract).breaks == breaks


@pytest.mark.parametrize(("calls", "breaks"), [("*", 0), ("List*", 0), ("Pull*", 1)])
def test_a_star_stands_for_any_text(calls: str, breaks: int) -> None:
    """CRI-09: a call that one of a kind is struck by may fail."""
    s = TraceBuilder()
    strike(s, calls, healed=False)
    refuse(s, "ListContainers", {}, "INTERNAL")

    assert s.judge("CRI-09").breaks == breaks


@pytest.mark.parametrize(
    ("contract", "rpc", "request_", "error"),
    [
        ("CRI-13", "StopContainer", {"timeout": "2"}, ""),
        ("CRI-13", "StopContainer", {"timeout": "2"}, "DEADLINE_EXCEEDED"),
        ("CRI-26", "ExecSync", {"timeout": "2", "cmd": ["alive"]}, ""),
        ("CRI-26", "ExecSync", {"timeout": "2", "cmd": ["alive"]}, "DEADLINE_EXCEEDED"),
    ],
)
@pytest.mark.parametrize("struck", [True, False])
def test_a_struck_call_may_be_late(
    contract: str, rpc: str, request_: dict[str, Any], error: str, *, struck: bool
) -> None:
    """CRI-13, CRI-26: a call that is held up on purpose, be it until that is healed, is not the runtime's."""
    s, _, _, c1 = running()
    if struck:
        s.record("fault", what=f"{rpc} hang")
    request = {"container_id": c1.id, **request_}
    call_id = s.begin(rpc, request)
    s.wait(130)
    if struck:
        s.record("fault", what=f"healed: {rpc} hang")
    late = {"code": error, "message": "late"}
    failed: dict[str, Any] = {"error": late} if error else {"response": {}}
    s.record("reply", rpc=rpc, id=call_id, **failed)

    assert bool(s.judge(contract).breaks) is not struck


def test_what_ended_before_the_node_went_may_have_ended_well() -> None:
    """CRI-16: only what had not ended when the kubelet went down went with the node."""
    for first, breaks in (("exit", False), ("kubelet", True)):
        s, _, _, c1 = running()
        if first == "exit":
            s.exited(c1, 0, seen=False)
        s.record("kubelet", op="killed")
        if first == "kubelet":
            s.exited(c1, 0, seen=False)
        s.record("runtime", op="rebooted")

        assert bool(s.judge("CRI-16").breaks) is breaks


@pytest.mark.parametrize("contract", ["CRI-09", "CRI-17"])
@pytest.mark.parametrize("removal", ["", "RemoveContainer", "RemovePodSandbox"])
def test_what_a_failed_removal_named_may_be_gone(contract: str, removal: str) -> None:
    """CRI-09, CRI-17: a removal that fails late may have taken place; without one all is listed."""
    s, web, sandbox, c1 = running()
    s.exited(c1, 0)
    s.call("StopPodSandbox", {"pod_sandbox_id": sandbox.id}, {})
    if removal:
        request = {"container_id": c1.id, "pod_sandbox_id": sandbox.id}
        refuse(s, removal, request, "DEADLINE_EXCEEDED", takes=120)
    asked = {"label_selector": {"io.kubernetes.pod.uid": web.uid}} if contract == "CRI-09" else {}
    s.wait(1).call("ListContainers", {"filter": asked}, {"containers": []})

    assert bool(s.judge(contract).breaks) is not bool(removal)
