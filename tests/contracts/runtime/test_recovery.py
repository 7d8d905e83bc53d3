"""CRI contracts on what a runtime owes when things go wrong: kept by a right one, broken by a wrong one."""

from typing import Any

import pytest
from running import running
from runtime_reads import refuse
from trace_builder import SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


@detects("CRI-09", if_right=Verdict.NOT_EXERCISED, code=("UNAVAILABLE", "UNKNOWN"))
def test_lists_do_not_fail(s: TraceBuilder, *, code: Any) -> None:
    """CRI-09: a list is never refused; that the runtime is away is no refusal."""
    refuse(s, "ListContainers", {}, code)


def _run_sandbox(s: TraceBuilder, request: dict[str, Any], code: str, takes: float) -> None:
    refuse(s, "RunPodSandbox", request, code, takes=takes)


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (("DEADLINE_EXCEEDED",), "not exercised"),
        (("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED"), "broken"),
        (("DEADLINE_EXCEEDED", "UNKNOWN"), "broken"),
        (("UNKNOWN", "UNKNOWN"), "not exercised"),
    ],
)
def test_left_work_is_not_undone(codes: tuple[str, ...], words: str) -> None:
    """CRI-32: a sandbox that was given up on is there later, and its name is not kept from others."""
    s = TraceBuilder()
    pod = s.pod()
    for code in codes:
        _run_sandbox(s, {"config": s.sandbox_config(pod)}, code, 240)

    assert s.judge("CRI-32").verdict.words == words


def test_left_work_is_found() -> None:
    """CRI-32: the sandbox that was given up on is read later."""
    s = TraceBuilder()
    pod = s.pod()
    _run_sandbox(s, {"config": s.sandbox_config(pod)}, "DEADLINE_EXCEEDED", 240)
    s.wait(60)
    sandbox = SandboxHandle("late", s.sandbox_config(pod), 1_767_268_800_000_000_000)
    s.sandbox_status(sandbox)

    assert s.judge("CRI-32").verdict.words == "kept"


def test_start_that_was_made_to_fail_is_not_the_runtimes() -> None:
    """CRI-12: while somebody lets starts fail, what becomes of the container is no runtime's doing."""
    s, pod, sandbox, _ = running()
    c2 = s.create(pod, sandbox, "c2")
    s.record("fault", what="StartContainer#1 before UNKNOWN")
    refuse(s, "StartContainer", {"container_id": c2.id}, "UNKNOWN")
    s.container_status(c2, state="CONTAINER_CREATED")

    assert s.judge("CRI-12").verdict.words == "kept"
