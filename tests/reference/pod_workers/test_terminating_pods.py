"""Stopping containers and pods: order, hooks, grace, and what failures change."""

from typing import Any

import pytest
from on_loop import run_by
from runtime_world import RuntimeWorld, a_container, a_pod, in_runtime_world

from kubelet_reference.api.sync_result import Failure


def _hook(*command: str) -> dict[str, Any]:
    return {"exec": {"command": list(command)}}


@pytest.mark.parametrize(("version", "seconds"), [("1.26", 10), ("1.32", 8)])
@run_by(in_runtime_world, takes=("version",))
async def test_hook_is_taken_off_the_grace(w: RuntimeWorld, seconds: int) -> None:
    """The preStop hook runs first; its time is off the timeout, since 1.28 (TERM-05, TERM-11, HOOK-05)."""
    pod = a_pod(a_container("c1", lifecycle={"preStop": _hook("x", "0", "2")}))
    await w.sync(pod)
    w.forget()

    await w.kill(pod, 10)

    assert w.done == ["ExecSync c1#0 x 0 2", f"StopContainer c1#0 {seconds}", "StopPodSandbox"]
    assert w.calls("ExecSync")[0].request.timeout == 0
    assert w.calls("ExecSync")[0].timeout is None


@run_by(in_runtime_world)
async def test_hook_that_outlasts_the_grace(w: RuntimeWorld) -> None:
    """It is left at the end of the grace, and the container has two seconds (TERM-06)."""
    pod = a_pod(a_container("c1", lifecycle={"preStop": _hook("x", "1", "60")}))
    await w.sync(pod)
    w.forget()
    began = w.clock.monotonic()

    await w.kill(pod, 5)

    assert w.done[1] == "StopContainer c1#0 2"
    assert w.calls("StopContainer")[0].t - began == 5
    assert w.events("FailedPreStopHook") == []


@run_by(in_runtime_world)
async def test_failed_hook_changes_nothing(w: RuntimeWorld) -> None:
    """A failed preStop hook is reported without its output, and the stop follows (HOOK-06, EVENTS-04)."""
    pod = a_pod(a_container("c1", lifecycle={"preStop": _hook("x", "1", "0")}))
    await w.sync(pod)
    w.forget()

    result = await w.kill(pod, 10)

    assert result.error is None
    assert w.done[1] == "StopContainer c1#0 10"
    assert w.events("FailedPreStopHook") == ["PreStopHook failed"]


@run_by(in_runtime_world)
async def test_failures_do_not_spare_the_rest(w: RuntimeWorld) -> None:
    """A failed container and a failed sandbox are both reported (SANDBOX-19, SANDBOX-26)."""
    pod = a_pod()
    await w.sync(pod)
    w.runtime.faults.add("StopContainer", times=1)
    w.runtime.faults.add("StopPodSandbox", times=1)

    result = await w.kill(pod)

    assert [one.reason for one in result.failures] == [Failure.KILL_CONTAINER, Failure.KILL_SANDBOX]
    assert result.error == (
        '[failed to "KillContainer" for "c1" with KillContainerError: '
        '"rpc error: code = Unknown desc = injected", '
        'failed to "KillPodSandbox" for "u1" with KillPodSandboxError: '
        '"rpc error: code = Unknown desc = injected"]'
    )


@run_by(in_runtime_world)
async def test_orphan(w: RuntimeWorld) -> None:
    """A pod that only the runtime knows has no hooks and hardly any grace (WORK-24)."""
    pod = a_pod(a_container("c1", lifecycle={"preStop": _hook("x", "0", "2")}))
    await w.sync(pod)
    w.forget()
    (listed,) = await w.side.reader.list_running_pods()

    result = await w.manager.kill_pod(None, listed, 1)

    assert result.error is None
    assert w.done == ["StopContainer c1#0 2", "StopPodSandbox"]
    assert w.events("Killing") == ["Stopping container c1"]
