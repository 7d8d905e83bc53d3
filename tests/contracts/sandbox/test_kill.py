"""SANDBOX contracts on how a pod is killed: each is kept by a right trace and broken by a wrong one."""

import pytest
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def dying(s: TraceBuilder) -> tuple[PodHandle, SandboxHandle, ContainerHandle]:
    """A pod whose container c1 runs, and which is being deleted."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(5).delete(web)
    s.wait(0.1)
    return web, sandbox, c1


@pytest.mark.parametrize("wrong", ["not stopped", "still stopping", "had exited unseen"])
@detects("SANDBOX-18")
def test_containers_are_stopped_first(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SANDBOX-18 breaks when the sandbox is stopped before its containers were."""
    _, sandbox, c1 = dying(s)
    if right:
        s.stop(c1)
    elif wrong == "still stopping":
        s.begin("StopContainer", {"container_id": c1.id, "timeout": "30"})
    elif wrong == "had exited unseen":
        s.exited(c1, seen=False)
    s.stop_sandbox(sandbox)


@pytest.mark.parametrize("wrong", ["never", "late", "after the record", "after the phase"])
@detects("SANDBOX-18")
def test_sandbox_follows_its_last_container(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SANDBOX-18 breaks when the sandbox is not stopped at once, before anything is removed or reported."""
    web, sandbox, c1 = dying(s)
    s.stop(c1)
    if not right and wrong == "late":
        s.wait(9)
    if not right and wrong == "after the record":
        s.remove(c1)
    if not right and wrong == "after the phase":
        s.status(web, "Succeeded")
    if right or wrong != "never":
        s.stop_sandbox(sandbox)


@detects("SANDBOX-18")
def test_no_record_is_removed_before_the_kill(s: TraceBuilder, *, right: bool) -> None:
    """SANDBOX-18 breaks when a record of a pod being deleted is removed before its sandbox was stopped."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.exited(c1, code=1)
    s.delete(web)
    if right:
        s.stop_sandbox(sandbox)
    s.remove(c1)


@detects("SANDBOX-18", if_right=Verdict.NOT_EXERCISED, stays=(0.0, 9.0))
def test_static_pod_that_came_back_for_a_moment(s: TraceBuilder, stays: float) -> None:
    """SANDBOX-18: the kubelet may not have seen its file, and collect what is left of the one before."""
    web = s.pod(source="file")
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.unset(web)
    s.record("kubelet", op="killed")
    s.exited(c1, 255, seen=False)
    s.sandbox_died(sandbox)
    s.record("kubelet", op="started")
    s.wait(60).set(web)
    s.wait(stays).unset(web)
    s.remove(c1)


@pytest.mark.parametrize("wrong", ["never", "reported", "replaced"])
@detects("SANDBOX-19")
def test_failed_sandbox_stop_is_retried(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SANDBOX-19 breaks when the kill is given up, or the pod reported as over or run anew before it is."""
    web, sandbox, c1 = dying(s)
    s.stop(c1)
    s.stop_sandbox(sandbox, error="INTERNAL")
    if not right and wrong == "reported":
        s.status(web, "Failed")
    if not right and wrong == "replaced":
        s.run_sandbox(web, attempt=1)
    if right or wrong != "never":
        s.wait(14).stop_sandbox(sandbox)


def test_unknown_sandbox_needs_no_retry() -> None:
    """SANDBOX-19 owes nothing after NotFound."""
    s = TraceBuilder()
    _, sandbox, c1 = dying(s)
    s.stop(c1)
    s.stop_sandbox(sandbox, error="NOT_FOUND")

    assert s.judge("SANDBOX-19").verdict is Verdict.NOT_EXERCISED


@pytest.mark.parametrize("wrong", ["sandbox stands", "not repeated"])
@detects("SANDBOX-26")
def test_kill_goes_on_after_a_failed_stop(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SANDBOX-26 breaks when a failed StopContainer ends the kill, or counts for nothing."""
    _, sandbox, c1 = dying(s)
    s.stop(c1, error="INTERNAL")
    if right or wrong != "sandbox stands":
        s.stop_sandbox(sandbox)
        s.exited(c1, code=137)
    if right:
        s.wait(12).stop_sandbox(sandbox)


@detects("SANDBOX-26", later=(3, 0))
def test_stop_that_failed_alone_is_no_kill(s: TraceBuilder, later: int) -> None:
    """SANDBOX-26: a stop that failed long before the sandbox was stopped was no part of that kill."""
    _, sandbox, c1 = dying(s)
    s.stop(c1, error="INTERNAL")
    s.exited(c1, code=137)
    s.wait(later).stop_sandbox(sandbox)
    s.wait(60)


@detects("SANDBOX-26", dies_first=(False, True))
def test_stop_before_the_sandbox_died_is_no_kill(s: TraceBuilder, *, dies_first: bool) -> None:
    """SANDBOX-26: a container that was being stopped when its sandbox died was stopped alone."""
    web = s.pod()
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.wait(1)
    if dies_first:
        s.sandbox_died(sandbox)
    stop = s.wait(1).begin("StopContainer", {"container_id": c1.id, "timeout": "30"})
    if not dies_first:
        s.wait(1).sandbox_died(sandbox)
    s.exited(c1, code=137)
    s.wait(1).end("StopContainer", stop, error="INTERNAL")
    s.stop_sandbox(sandbox)
    s.wait(60)
