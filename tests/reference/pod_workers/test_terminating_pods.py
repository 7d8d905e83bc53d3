"""Stopping containers and pods: order, hooks, grace, and what failures change."""

from typing import Any

from on_loop import run_by
from runtime_world import RuntimeWorld, a_container, a_pod, in_runtime_world

from kubelet_reference.api.results import ProbeOutcome
from kubelet_reference.api.sync_result import Failure


def _hook(*command: str) -> dict[str, Any]:
    return {"exec": {"command": list(command)}}


@run_by(in_runtime_world)
async def test_order_of_a_kill(w: RuntimeWorld) -> None:
    """All containers are stopped at one time, and the sandbox when the last one has (TERM-01, TERM-02)."""
    pod = a_pod(a_container("c1", "run", "stopdelay=3"), a_container("c2", "run", "stopdelay=1"))
    await w.sync(pod)
    w.forget()
    began = w.clock.monotonic()

    result = await w.kill(pod, 10)

    stops = w.calls("StopContainer")
    assert result.error is None
    assert [call.t - began for call in stops] == [0, 0]
    assert [call.request.timeout for call in stops] == [10, 10]
    assert [call.t - began for call in w.calls("StopPodSandbox")] == [3]
    assert sorted(w.events("Killing")) == ["Stopping container c1", "Stopping container c2"]


@run_by(in_runtime_world)
async def test_hook_is_taken_off_the_grace(w: RuntimeWorld) -> None:
    """The preStop hook runs first, and its time is off the timeout (TERM-05, HOOK-05)."""
    pod = a_pod(a_container("c1", lifecycle={"preStop": _hook("x", "0", "2")}))
    await w.sync(pod)
    w.forget()

    await w.kill(pod, 10)

    assert w.done == ["ExecSync c1#0 x 0 2", "StopContainer c1#0 8", "StopPodSandbox"]
    assert w.calls("ExecSync")[0].request.timeout == 0
    assert w.calls("ExecSync")[0].timeout is None


@run_by(in_runtime_world, version="1.26")
async def test_whole_grace_after_the_hook_in_old_kubelets(w: RuntimeWorld) -> None:
    """Up to 1.27 a pod's termination gave the whole grace once more (TERM-11)."""
    pod = a_pod(a_container("c1", lifecycle={"preStop": _hook("x", "0", "2")}))
    await w.sync(pod)
    w.forget()

    await w.kill(pod, 10)

    assert w.done[1] == "StopContainer c1#0 10"


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
async def test_no_hook_without_grace(w: RuntimeWorld) -> None:
    """With a grace of 0 there is no time for a hook (TERM-07)."""
    pod = a_pod(a_container("c1", lifecycle={"preStop": _hook("x", "0", "2")}))
    await w.sync(pod)
    w.forget()

    await w.kill(pod, 0)

    assert w.done == ["StopContainer c1#0 2", "StopPodSandbox"]


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
async def test_not_found_is_stopped(w: RuntimeWorld) -> None:
    """What the runtime does not know any more counts as stopped (TERM-10)."""
    pod = a_pod()
    await w.sync(pod)
    w.runtime.faults.add("StopContainer", code="NOT_FOUND")
    w.runtime.faults.add("StopPodSandbox", code="NOT_FOUND")

    assert (await w.kill(pod)).error is None


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
async def test_running_ones_only(w: RuntimeWorld) -> None:
    """Containers that have exited are not stopped, nor do they get a hook (TERM-08)."""
    hook = {"preStop": _hook("x", "0", "2")}
    pod = a_pod(a_container("c1", lifecycle=hook), a_container("c2"))
    await w.sync(pod)
    await w.exits(pod, "c1", 1)
    w.forget()

    await w.kill(pod)

    assert w.done == ["StopContainer c2#0 30", "StopPodSandbox"]


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


@run_by(in_runtime_world)
async def test_stale_record(w: RuntimeWorld) -> None:
    """A container that the spec does not name cannot be stopped by it: the kill fails (TERM-13)."""
    await w.sync(a_pod(a_container("old")))
    w.forget()

    result = await w.kill(a_pod(a_container("new")))

    assert w.done == ["StopPodSandbox"]
    assert [(one.target, one.reason) for one in result.failures] == [("old", Failure.KILL_CONTAINER)]


@run_by(in_runtime_world)
async def test_probes_own_grace(w: RuntimeWorld) -> None:
    """After a failed probe its own grace period holds (TERM-03)."""
    probe = {"exec": {"command": ["x", "1", "0"]}, "terminationGracePeriodSeconds": 5}
    pod = a_pod(a_container("c1", livenessProbe=probe), a_container("c2"))
    await w.sync(pod)
    w.probes[(await w.newest(pod, "c1")).id] = ProbeOutcome.FAILURE
    w.forget()

    await w.sync(pod)

    assert w.done[0] == "StopContainer c1#0 5"
