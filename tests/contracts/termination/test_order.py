"""TERM contracts on the order of a termination: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from running import BROKEN, KEPT, POST_START, running, two_running
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


@detects("TERM-01", begin=running, restarts=(True, False))
def test_nobody_waits_for_what_a_former_kubelet_asked(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, restarts: bool
) -> None:
    """TERM-01: no answer comes to a kubelet that has gone, though the next one begins in that very moment."""
    s.delete(web)
    s.begin("StopContainer", {"container_id": c1.id, "timeout": "30"})
    if restarts:
        s.record("kubelet", op="killed")
        s.record("kubelet", op="started")
    s.stop(c1)
    s.stop_sandbox(sandbox)


@pytest.mark.parametrize("rpc", ["StopContainer", "StopPodSandbox"])
@detects("TERM-10", begin=running, goes_on=(True, False))
def test_not_found_is_success(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, rpc: str, goes_on: bool
) -> None:
    """TERM-10: what the runtime does not know is stopped: no second try, and the pod goes."""
    s.delete(web)
    s.stop(c1, error="NOT_FOUND" if rpc == "StopContainer" else None)
    if rpc == "StopPodSandbox":
        s.stop_sandbox(sandbox, error="NOT_FOUND")
    if not goes_on:
        s.wait(12).stop(c1)
    if goes_on and rpc == "StopContainer":
        s.stop_sandbox(sandbox)
    if goes_on:
        s.wait(1).deleted(web)


@detects("TERM-21", stops=(True, False))
def test_failed_init_container_ends_a_pod(s: TraceBuilder, *, stops: Any) -> None:
    """TERM-21: the sandbox of a pod whose init container failed for good is stopped, too."""
    web = s.pod(restartPolicy="Never", initContainers=[{"name": "i1", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    s.exited(s.run_container(web, sandbox, "i1"), 1)
    if stops:
        s.stop_sandbox(sandbox)


@detects(
    "TERM-01",
    if_right=Verdict.NOT_EXERCISED,
    begin=lambda: running(policy="OnFailure", lifecycle=POST_START),
    fails=(True, False),
)
def test_container_whose_hook_failed_is_stopped_alone(
    s: TraceBuilder, c1: ContainerHandle, *, fails: bool
) -> None:
    """TERM-01: its sandbox stays, though with its end the pod has come to its own."""
    call = s.begin("ExecSync", {"container_id": c1.id, "cmd": ["warm"]})
    s.exited(c1, seen=False)
    s.end("ExecSync", call, {"exit_code": int(fails)})
    s.stop(c1)
    s.wait(60).call("Version", {}, {})


@pytest.mark.parametrize("first", ["died", "stopped"])
def test_garbage_collection_tells_of_no_failed_stop(first: str) -> None:
    """TERM-25: a sandbox that no longer ran may be stopped once more before it is removed, without a word."""
    s, web, sandbox, c1 = running()
    s.delete(web)
    if first == "died":
        s.sandbox_died(sandbox)
    else:
        s.stop(c1)
        s.stop_sandbox(sandbox)
    s.wait(1).stop_sandbox(sandbox, error="INTERNAL")
    s.wait(60).call("ListContainers", {}, {})

    assert s.judge("TERM-25").verdict is Verdict.NOT_EXERCISED


@pytest.mark.parametrize("wrong", ["", "restart", "cut", "sandbox"])
def test_exit_in_the_grace_is_final(wrong: str) -> None:
    """TERM-29: one container's exit neither restarts it nor shortens the grace of the other."""
    s, web, sandbox, c1, c2 = two_running()
    s.delete(web)
    calls = [s.begin("StopContainer", {"container_id": c.id, "timeout": "30"}) for c in (c1, c2)]
    s.exited(c1, seen=False)
    s.end("StopContainer", calls[0])
    if wrong == "restart":
        s.create(web, sandbox, "c1", 1)
    elif wrong == "cut":
        s.stop(c2, 2)
    elif wrong == "sandbox":
        s.stop_sandbox(sandbox)
    s.wait(9).exited(c2, seen=False)
    s.end("StopContainer", calls[1])

    assert s.judge("TERM-29").verdict is (BROKEN if wrong else KEPT)


def test_kill_for_a_change_ends_no_pod() -> None:
    """TERM-21: a container that was stopped for a new image may be made again, whatever its exit code."""
    s, _, sandbox, c1 = running(policy="OnFailure")
    s.stop(c1, code=0)
    s.wait(60).stop_sandbox(sandbox)

    assert s.judge("TERM-21").verdict is Verdict.NOT_EXERCISED


@detects("TERM-01", begin=lambda: two_running(policy="Never"), read=(True, False))
def test_what_was_read_as_ended_needs_no_stop(
    s: TraceBuilder, sandbox: SandboxHandle, c1: ContainerHandle, c2: ContainerHandle, *, read: bool
) -> None:
    """TERM-01: a kill of one container for its probe does not oblige to stop what was read as ended later."""
    s.exited(c1, seen=False)
    s.exited(c2, seen=False)
    s.wait(5).stop(c1)
    if read:
        s.container_status(c2, state="CONTAINER_EXITED")
    s.wait(1).stop_sandbox(sandbox)


@detects("TERM-01", begin=two_running, goes_on=(True, False))
def test_sync_that_goes_on_kills_no_pod(
    s: TraceBuilder,
    web: PodHandle,
    sandbox: SandboxHandle,
    c1: ContainerHandle,
    c2: ContainerHandle,
    *,
    goes_on: bool,
) -> None:
    """TERM-01: a stop just after the deletion that a creation follows was for a change, and of one only."""
    s.delete(web)
    s.exited(c2, seen=False)
    s.stop(c1)
    again = s.run_container(web, sandbox, c1.name, attempt=1) if goes_on else None
    s.container_status(c2, state="CONTAINER_EXITED")
    if again is not None:
        s.stop(again)
    s.stop_sandbox(sandbox)


@pytest.mark.parametrize(("fails", "waits", "breaks"), [(True, 2, False), (True, 6, True), (False, 2, True)])
def test_failed_hook_delays_the_kill_of_its_pod(*, fails: bool, waits: float, breaks: bool) -> None:
    """TERM-01: a sync stops the container whose hook failed, and the pod is killed after the next relist."""
    s, web, sandbox, c1 = running(lifecycle=POST_START)
    call = s.begin("ExecSync", {"container_id": c1.id, "cmd": ["warm"]})
    s.delete(web)
    s.end("ExecSync", call, {"exit_code": int(fails)})
    s.stop(c1)
    s.wait(waits).stop_sandbox(sandbox)

    assert bool(s.judge("TERM-01").breaks) is breaks


@detects(
    "TERM-02",
    if_right=Verdict.NOT_EXERCISED,
    begin=lambda: two_running(lifecycle=POST_START),
    fails=(True, False),
)
def test_failed_hook_stops_its_container_alone(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, c2: ContainerHandle, *, fails: bool
) -> None:
    """TERM-02: the others are stopped with the pod, once the sync has stopped that one for its hook."""
    call = s.begin("ExecSync", {"container_id": c1.id, "cmd": ["warm"]})
    s.delete(web)
    s.end("ExecSync", call, {"exit_code": int(fails)})
    s.stop(c1)
    s.wait(2).stop(c2)


@detects("TERM-02", if_right=Verdict.NOT_EXERCISED, begin=two_running, named=(False, True))
def test_container_without_a_spec_is_not_stopped_by_itself(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, *, named: bool
) -> None:
    """TERM-02: a container that the spec names no more goes with the sandbox; one that it names goes now."""
    if not named:
        del web.manifest["spec"]["containers"][1]
        s.set(web)
    s.wait(1).delete(web)
    s.stop(c1)
    s.wait(5).stop_here()


@pytest.mark.parametrize(("finalizers", "breaks"), [(["example.com/hold"], False), ([], True)])
def test_finalizers_hold_the_object(finalizers: list[str], *, breaks: bool) -> None:
    """TERM-22: the object of a finished pod goes when the last of its finalizers is removed."""
    s, web, sandbox, c1 = running(policy="Never")
    web.manifest["metadata"]["finalizers"] = finalizers
    s.set(web)
    s.exited(c1, 0)
    s.stop_sandbox(sandbox)
    s.status(web, "Succeeded")
    s.delete(web)
    s.wait(30).deleted(web)

    assert bool(s.judge("TERM-22").breaks) is breaks


@pytest.mark.parametrize(("finalizers", "breaks"), [(["example.com/hold"], False), ([], True)])
def test_finalizers_hold_a_pod_that_was_killed(finalizers: list[str], *, breaks: bool) -> None:
    """WORK-12: the object of a pod that was killed goes when the last of its finalizers is removed."""
    s, web, sandbox, c1 = running()
    web.manifest["metadata"]["finalizers"] = finalizers
    s.set(web)
    s.delete(web, 5)
    s.stop(c1)
    s.stop_sandbox(sandbox)
    s.wait(60).deleted(web)

    assert bool(s.judge("WORK-12").breaks) is breaks
