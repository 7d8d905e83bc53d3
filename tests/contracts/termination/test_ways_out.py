"""Kills whose cause or order a trace shows only in part: in turn, alone, begun before the news of an end."""

from typing import Any

import pytest
from outside_world import killed, started, tell_status
from running import PRE_STOP, hook, probe, running
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

ALIVE = {"exec": {"command": ["alive"]}, "failureThreshold": 1, "periodSeconds": 5}


def served(**sidecar: Any) -> tuple[TraceBuilder, PodHandle, SandboxHandle, dict[str, ContainerHandle]]:
    """A pod that runs to its end, with sidecars s1 and s2 beside c1, and 10 s of grace."""
    s = TraceBuilder()
    inits = [{"name": name, "image": "img:1", "restartPolicy": "Always", **sidecar} for name in ("s1", "s2")]
    web = s.pod(initContainers=inits, restartPolicy="Never", terminationGracePeriodSeconds=10)
    sandbox = s.run_sandbox(web)
    made = {name: s.run_container(web, sandbox, name) for name in ("s1", "s2", "c1")}
    s.wait(10)
    return s, web, sandbox, made


@pytest.mark.parametrize(
    ("waits", "hooked", "breaks"), [(9, True, False), (9, False, True), (40, True, True)]
)
def test_hook_of_the_one_whose_turn_has_come(waits: float, *, hooked: bool, breaks: bool) -> None:
    """SIDECAR-12: its preStop hook began with the kill, and may take all of the grace."""
    s, web, _, c = served(lifecycle=PRE_STOP if hooked else {})
    s.delete(web, 10)
    s.stop(c["c1"], 10)
    s.wait(waits).stop(c["s2"], 2)
    s.stop(c["s1"], 2)

    assert bool(s.judge("SIDECAR-12").breaks) is breaks


@pytest.mark.parametrize("stopped", [True, False])
def test_grace_that_an_app_container_has_used_up(*, stopped: bool) -> None:
    """SIDECAR-12: where the kubelet ends a pod, the kill begins with the stops, not with the ends."""
    s, _, _, c = served()
    if stopped:
        s.stop(c["c1"], 10, takes=5)
    else:
        s.exited(c["c1"])
    s.container_status(c["c1"], state="CONTAINER_EXITED")
    s.begin("StopContainer", {"container_id": c["s2"].id, "timeout": "5"})
    s.wait(3).stop(c["s1"], 2)

    assert bool(s.judge("SIDECAR-12").breaks) is not stopped


@pytest.mark.parametrize("contract", ["PROBE-07", "PROBE-09"])
@pytest.mark.parametrize("way", ["stopping", "hook", "turn", ""])
def test_probe_of_one_that_is_killed_already(contract: str, way: str) -> None:
    """PROBE-07, PROBE-09: a probe that fails then leads to nothing."""
    name = "livenessProbe" if contract == "PROBE-07" else "startupProbe"
    s, _, _, c = served(lifecycle=PRE_STOP, **{name: ALIVE})
    if way:
        s.exited(c["c1"])
    if way == "stopping":
        s.begin("StopContainer", {"container_id": c["s2"].id, "timeout": "10"})
    elif way == "hook":
        s.begin("ExecSync", {"container_id": c["s2"].id, "cmd": ["drain"]})
    probe(s.wait(1), c["s2"], 1)
    s.wait(30).stop_here()

    assert bool(s.judge(contract).breaks) is (way == "")


@detects("PROBE-15", begin=lambda: running(readinessProbe=ALIVE), over=(True, False))
def test_readiness_of_a_pod_whose_time_is_over(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, *, over: bool
) -> None:
    """PROBE-15: nobody probes a pod that has come to its end, and what has no result counts as ready."""
    s.call("ExecSync", {"container_id": c1.id, "cmd": ["alive"], "timeout": "1"}, error="DEADLINE_EXCEEDED")
    shown: dict[str, Any] = {"name": "c1", "containerID": f"fake://{c1.id}", "ready": True}
    shown["state"] = {"running": {}}
    ready = {"type": "Ready", "status": "False", "reason": "PodFailed" if over else "ContainersNotReady"}
    s.wait(1).status(web, containerStatuses=[shown], conditions=[ready])
    s.stop(c1)


@detects("PROBE-05", begin=lambda: running(livenessProbe=ALIVE), retries=(2, 0))
def test_period_counts_from_the_first_try(s: TraceBuilder, c1: ContainerHandle, retries: int) -> None:
    """PROBE-05: what gives no result is tried again in the same tick, which may take its time."""
    request = {"container_id": c1.id, "cmd": ["alive"], "timeout": "1"}
    for _ in range(retries):
        s.call("ExecSync", request, error="INTERNAL", takes=1.5)
    probe(s, c1, 0)
    probe(s.wait(2), c1, 0)
    s.exited(c1)


@detects("SANDBOX-07", begin=lambda: running(policy="OnFailure"), stopped=(True, False))
def test_success_that_nobody_had_read(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, stopped: bool
) -> None:
    """SANDBOX-07: what is stopped after its end was not known to have succeeded, and runs again."""
    s.sandbox_died(sandbox)
    s.exited(c1)
    if stopped:
        s.call("StopContainer", {"container_id": c1.id, "timeout": "30"})
    s.stop_sandbox(sandbox)
    s.run_container(web, s.run_sandbox(web, 1), "c1", 1)


@pytest.mark.parametrize("contract", ["TERM-05", "SIDECAR-14"])
@pytest.mark.parametrize("failed", [True, False])
def test_start_that_ended_with_a_stop(contract: str, *, failed: bool) -> None:
    """TERM-05, SIDECAR-14: one that is stopped for its postStart hook kept nobody waiting for his turn."""
    s, web, _, c = served(lifecycle={"postStart": {"exec": {"command": ["warm"]}}})
    s.exited(c["c1"])
    warm = s.begin("ExecSync", {"container_id": c["s2"].id, "cmd": ["warm"]})
    s.delete(web, 10)
    s.end("ExecSync", warm, {"exit_code": int(failed)})
    s.stop(c["s2"], 10, takes=6)
    s.stop(c["s1"], 10)

    assert bool(s.judge(contract).breaks) is not failed


@pytest.mark.parametrize("contract", ["TERM-03", "WORK-08"])
@pytest.mark.parametrize("down", [True, False])
def test_loop_that_naps_when_its_runtime_is_back(contract: str, *, down: bool) -> None:
    """TERM-03, WORK-08: it looks again after 5 s, and may hear of a probe first, then of the deletion."""
    s, web, _, c1 = running(startupProbe=ALIVE)
    tell_status(s, runtime=not down)
    probe(s, c1, 1)
    s.wait(20).delete(web, 0)
    s.deleted(web)
    tell_status(s.wait(5))
    s.wait(9).stop(c1, 30)

    assert bool(s.judge(contract).breaks) is not down


@pytest.mark.parametrize("own", [True, False])
def test_sidecar_is_probed_to_its_end(*, own: bool) -> None:
    """TERM-14: only of app containers the liveness is probed no more (SIDECAR-25)."""
    s, web, _, c = served(livenessProbe=ALIVE)
    web.manifest["spec"]["containers"][0]["livenessProbe"] = ALIVE
    s.set(web)
    s.delete(web, 10)
    one = c["c1" if own else "s2"]
    stop = s.begin("StopContainer", {"container_id": one.id, "timeout": "10"})
    probe(s.wait(1), one, 0)
    s.exited(one, 137, seen=False)
    s.end("StopContainer", stop)

    assert bool(s.judge("TERM-14").breaks) is own


@detects("TERM-01", hooked=(True, False))
def test_stop_that_ends_a_start(s: TraceBuilder, *, hooked: bool) -> None:
    """TERM-01: the stop of one container for its hook is no kill of all that ran then."""
    warm = {"postStart": {"exec": {"command": ["warm"]}}}
    names = [{"name": "c1", "image": "img:1"}, {"name": "c2", "image": "img:1", "lifecycle": warm}]
    web = s.pod(containers=names)
    sandbox = s.run_sandbox(web)
    s.wait(1).delete(web)
    c1, c2 = (s.run_container(web, sandbox, name) for name in ("c1", "c2"))
    s.exited(c1, 1, seen=False)
    if hooked:
        hook(s, c2, "warm", code=1)
    s.stop(c2)
    s.container_status(c1, state="CONTAINER_EXITED")
    s.stop_sandbox(sandbox)


@pytest.mark.parametrize("first", [True, False])
def test_startup_that_is_found_before_readiness(*, first: bool) -> None:
    """PROBE-25: the first status of a kubelet knows no probes; what the startup probe finds is all news."""
    s, web, _, c1 = running(readinessProbe=ALIVE, startupProbe={"tcpSocket": {"port": 8080}})
    s.status(web, containerStatuses=[{"name": "c1", "state": {"waiting": {}}}])
    killed(s)
    started(s.wait(1))
    shown: dict[str, Any] = {"name": "c1", "state": {"running": {}}, "containerID": f"fake://{c1.id}"}
    s.status(web, containerStatuses=[shown | {"ready": first, "started": True}])
    s.wait(1).status(web, containerStatuses=[shown | {"ready": True, "started": False}])

    assert bool(s.judge("PROBE-25").breaks) is not first
