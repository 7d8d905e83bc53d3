"""What a sync that was under way goes on with, though the pod is to go, or has another reason to end."""

from typing import Any

import pytest
from outside_world import file_pod, start_static, static_config
from running import KEPT, POST_START, PRE_STOP, hook, running, two_running
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

OTHER = [{"name": "c1", "image": "img:2"}]
ZERO = "2026-01-01T00:00:00Z"


def starting() -> tuple[TraceBuilder, PodHandle, SandboxHandle, ContainerHandle]:
    """The first of two containers has been started, and its postStart hook is due."""
    s = TraceBuilder()
    first = {"name": "c1", "image": "img:1", "lifecycle": POST_START}
    web = s.pod(containers=[first, {"name": "c2", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    c1 = s.create(web, sandbox)
    s.start(c1)
    return s, web, sandbox, c1


@pytest.mark.parametrize("dead", [True, False])
def test_replacement_that_takes_its_time(*, dead: bool) -> None:
    """WORK-04, WORK-12: a sandbox is replaced once the kill before that has ended, at the very moment."""
    s, web, sandbox, c1 = running()
    if dead:
        s.sandbox_died(sandbox)
    s.delete(web, 10)
    s.stop(c1, takes=30)
    s.stop_sandbox(sandbox)
    again = s.run_sandbox(web, 1)
    new = s.run_container(web, again, "c1", 1)
    s.wait(30).stop(new)
    s.stop_sandbox(again)
    s.wait(1).deleted(web)

    assert bool(s.judge("WORK-04").breaks) is not dead
    assert s.judge("WORK-12").verdict is KEPT


@pytest.mark.parametrize("code", [1, 0])
def test_sync_goes_on_after_a_failed_hook(code: int) -> None:
    """WORK-04: the kill of a container whose postStart hook fails does not end the sync; another does."""
    s, web, sandbox, c1 = starting()
    warm = s.begin("ExecSync", {"container_id": c1.id, "cmd": ["warm"]})
    s.wait(1).delete(web)
    s.wait(20).end("ExecSync", warm, {"exit_code": code})
    s.stop(c1)
    s.run_container(web, sandbox, "c2")
    s.stop_sandbox(sandbox)
    s.wait(1).deleted(web)

    assert bool(s.judge("WORK-04").breaks) is not code


@pytest.mark.parametrize("goes_on", [True, False])
def test_kill_of_one_for_its_hook(*, goes_on: bool) -> None:
    """TERM-01, SANDBOX-18: after it comes what is left of the sync, and not the end of the sandbox."""
    s, web, sandbox, c1 = starting()
    s.delete(web)
    hook(s, c1, "warm", code=1)
    s.stop(c1)
    if goes_on:
        c2 = s.run_container(web, sandbox, "c2")
        s.wait(10).stop(c2)
    s.wait(0 if goes_on else 10).stop_sandbox(sandbox)
    s.wait(1).deleted(web)

    assert bool(s.judge("TERM-01").breaks) is not goes_on
    assert bool(s.judge("SANDBOX-18").breaks) is not goes_on


@pytest.mark.parametrize("kind", ["init", "app"])
def test_record_that_goes_slowly(kind: str) -> None:
    """WORK-04: a sync removes the old record of an init container before it makes that again."""
    s = TraceBuilder()
    web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    old = s.run_container(web, sandbox, "i1" if kind == "init" else "c1")
    s.exited(old, 1)
    removal = s.begin("RemoveContainer", {"container_id": old.id})
    s.wait(1).delete(web)
    s.wait(20).end("RemoveContainer", removal, {})
    s.create(web, sandbox, "i1", 1)
    s.stop_sandbox(sandbox)

    assert bool(s.judge("WORK-04").breaks) is (kind == "app")


@pytest.mark.parametrize("changed", [True, False])
@pytest.mark.parametrize("hooked", [True, False])
def test_kill_for_a_change_that_began_before(*, changed: bool, hooked: bool) -> None:
    """WORK-04, RESTART-06, TERM-02, WORK-05: a preStop hook is where the kill of a changed one begins."""
    s, web, sandbox, c1, c2 = two_running(lifecycle=PRE_STOP if hooked else {})
    if changed:
        web.manifest["spec"]["containers"][0]["image"] = "img:2"
        s.set(web)
    s.delete(web)
    if hooked:
        hook(s, c1, "drain", takes=20)
    s.stop(c1, 10, takes=10)
    again = s.run_container(web, sandbox, "c1", 1)
    kills = [s.begin("StopContainer", {"container_id": one.id, "timeout": "30"}) for one in (again, c2)]
    for kill in kills:
        s.end("StopContainer", kill)
    s.stop_sandbox(sandbox)
    s.wait(1).deleted(web)

    for each in ("WORK-04", "RESTART-06", "TERM-02", "WORK-05"):
        assert bool(s.judge(each).breaks) is not changed


@pytest.mark.parametrize("reported_late", [True, False])
@detects("WORK-08", if_right=Verdict.NOT_EXERCISED, begin=running, changed=(True, False))
def test_change_that_met_a_forced_deletion(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, *, changed: bool, reported_late: bool
) -> None:
    """WORK-08: what is stopped for a change has the pod's own grace."""
    if changed:
        web.manifest["spec"]["containers"] = OTHER
        s.set(web)
    if not reported_late:
        s.deleted(web)
    stop = s.begin("StopContainer", {"container_id": c1.id, "timeout": "30"})
    if reported_late:
        s.wait(0.05).deleted(web)
    s.wait(1).end("StopContainer", stop)


@detects("WORK-10", if_right=Verdict.NOT_EXERCISED, begin=running, collected=(True, False))
def test_stop_by_garbage_collection(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, collected: bool
) -> None:
    """WORK-10: the stop of a sandbox that was stopped before is no kill, and comes with its period."""
    s.delete(web)
    s.stop(c1)
    if collected:
        s.stop_sandbox(sandbox)
        s.wait(1).deleted(web)
    s.wait(30).stop_sandbox(sandbox, error="UNAVAILABLE")


@pytest.mark.parametrize("down", [True, False])
@pytest.mark.parametrize("contract", ["WORK-16", "HOOK-03"])
def test_crash_loop_beside_a_sidecar(contract: str, *, down: bool) -> None:
    """WORK-16, HOOK-03: the last app container waits for its sidecars, which have a back-off of their own."""
    s = TraceBuilder()
    sidecar = {"name": "sc", "image": "img:1", "restartPolicy": "Always"}
    apps = [{"name": "c1", "image": "img:1", "lifecycle": POST_START}]
    web = s.pod(initContainers=[sidecar], containers=apps)
    sandbox = s.run_sandbox(web)
    sc = s.run_container(web, sandbox, "sc")
    c1 = s.run_container(web, sandbox)
    s.wait(1).exited(c1, 1)
    again = s.run_container(web, sandbox, "c1", 1)
    if down:
        s.wait(1).exited(sc, 1)
    if contract == "WORK-16":
        s.wait(1).exited(again, 1)
    else:
        hook(s, again, "warm", code=1)
        s.record("event", uid=web.uid, type="Warning", reason="FailedPostStartHook", message="failed")
        s.stop(again)

    assert bool(s.judge(contract).breaks) is not down


@pytest.mark.parametrize("first", [True, False])
def test_hooks_with_one_command(*, first: bool) -> None:
    """HOOK-04: where both hooks have the same command the second run is preStop, in a container that runs."""
    both = {each: {"exec": {"command": ["x"]}} for each in ("postStart", "preStop")}
    s, web, _, c1 = running(lifecycle=both)
    if not first:
        hook(s, c1, "x")
        s.delete(web)
    s.begin("ExecSync", {"container_id": c1.id, "cmd": ["x"]})
    shown: dict[str, Any] = {"name": "c1", "state": {"running": {}}, "containerID": f"fake://{c1.id}"}
    s.wait(1).status(web, containerStatuses=[shown])

    assert bool(s.judge("HOOK-04").breaks) is first


@pytest.mark.parametrize("uid", ["its own", "another"])
def test_hook_that_outlasts_its_pod(uid: str) -> None:
    """HOOK-06: the event is about a pod of which nothing is left."""
    s, web, sandbox, c1 = running(lifecycle=PRE_STOP)
    s.delete(web, 5)
    drain = s.begin("ExecSync", {"container_id": c1.id, "cmd": ["drain"]})
    s.wait(5).stop(c1, 2)
    s.stop_sandbox(sandbox)
    s.remove(c1)
    s.wait(1).deleted(web)
    s.call("RemovePodSandbox", {"pod_sandbox_id": sandbox.id}, {})
    s.wait(20).end("ExecSync", drain, error="NOT_FOUND")
    reported = web.uid if uid == "its own" else "another"
    s.record("event", uid=reported, type="Warning", reason="FailedPreStopHook", message="failed")

    assert bool(s.judge("HOOK-06").breaks) is (uid == "another")


@detects(
    "RESTARTKUBELET-04",
    if_right=Verdict.NOT_EXERCISED,
    begin=lambda: TraceBuilder(started=ZERO),
    limit=(11, 3600),
)
def test_deadline_that_passed_while_the_kubelet_was_down(s: TraceBuilder, limit: int) -> None:
    """RESTARTKUBELET-04: a pod whose time is over is not run again."""
    job = s.pod(activeDeadlineSeconds=limit)
    sandbox = s.run_sandbox(job)
    c1 = s.run_container(job, sandbox)
    s.status(job, startTime=ZERO)
    s.wait(10).record("kubelet", op="killed")
    s.wait(5).exited(c1, 1, seen=False)
    s.record("kubelet", op="started")
    s.wait(1).stop_sandbox(sandbox)


@detects("DEADLINE-01", if_right=Verdict.NOT_EXERCISED, begin=lambda: TraceBuilder(started=ZERO), t=(5, 25))
def test_kill_lasts_beyond_the_deadline(s: TraceBuilder, t: int) -> None:
    """DEADLINE-01: a worker that is at a kill when the pod's time is over ends the pod after that."""
    job = s.pod(activeDeadlineSeconds=10)
    c1 = s.run_container(job, s.run_sandbox(job))
    s.status(job, startTime=ZERO)
    s.wait(t).stop(c1, takes=30)


@detects("STATIC-02", lasts=(True, False))
def test_edit_meets_a_replacement(s: TraceBuilder, *, lasts: bool) -> None:
    """STATIC-02: a sandbox of the version before is made where the kill for that had begun with the edit."""
    web = file_pod(s)
    sandbox, c1 = start_static(s, web)
    s.wait(10).sandbox_died(sandbox)
    again = file_pod(s, containers=OTHER)
    s.stop(c1, takes=20)
    s.wait(0 if lasts else 20).stop_sandbox(sandbox)
    former = s.run_sandbox(web, 1, config=static_config(s, web))
    new = s.run_container(web, former, "c1", 1)
    s.wait(1).stop(new)
    s.stop_sandbox(former)
    start_static(s.wait(3), again)


@pytest.mark.parametrize("answered", [True, False])
def test_sandbox_goes_while_it_is_stopped(*, answered: bool) -> None:
    """WORK-01, SYNC-03: the answer about a sandbox that somebody else has removed meanwhile is one, too."""
    s, web, sandbox, c1 = running()
    s.exited(c1)
    stopping = s.begin("StopPodSandbox", {"pod_sandbox_id": sandbox.id})
    s.wait(1).record("runtime", op="removed", sandbox_id=sandbox.id)
    if answered:
        s.end("StopPodSandbox", stopping, {})
    s.run_container(web, s.run_sandbox(web), "c1")

    assert bool(s.judge("SYNC-03").breaks) is not answered
    assert bool(s.judge("WORK-01").breaks) is not answered
