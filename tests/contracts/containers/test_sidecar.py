"""SIDECAR contracts on start and restart: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from running import POST_START, hook, with_sidecar
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

PROBE = {"exec": {"command": ["x", "0", "0"]}}


def pod(
    s: TraceBuilder, *, policy: str = "Never", init: bool = False, **more: Any
) -> tuple[PodHandle, SandboxHandle]:
    """A pod with sidecar sc, perhaps init container i1 after it, and c1; and its sandbox."""
    inits = [{"name": "sc", "image": "img:1", "restartPolicy": "Always", **more}]
    if init:
        inits.append({"name": "i1", "image": "img:1"})
    web = s.pod(initContainers=inits, restartPolicy=policy)
    return web, s.run_sandbox(web)


def served(s: TraceBuilder, **more: Any) -> tuple[PodHandle, SandboxHandle, ContainerHandle, ContainerHandle]:
    """The same when sc and c1 run: the pod, its sandbox, sc and c1."""
    web, sandbox = pod(s, **more)
    sc = s.run_container(web, sandbox, "sc")
    return web, sandbox, sc, s.run_container(web, sandbox, "c1")


def execute(s: TraceBuilder, one: ContainerHandle, code: int = 0, *, hook: bool = False) -> None:
    """ExecSync of the probe, or of the postStart hook, with its exit code."""
    command = ["x", "0", "1"] if hook else ["x", "0", "0"]
    request = {"container_id": one.id, "cmd": command, **({} if hook else {"timeout": "1"})}
    s.call("ExecSync", request, {"exit_code": code} if code else {})


@detects("SIDECAR-02")
def test_next_container_waits_until_the_sidecar_was_read(s: TraceBuilder, *, right: bool) -> None:
    """SIDECAR-02 breaks when the next container is made in the sync that starts the sidecar."""
    web, sandbox = pod(s)
    sc = s.create(web, sandbox, "sc")
    s.start(sc)
    if right:
        s.container_status(sc, state="CONTAINER_RUNNING")
    s.run_container(web, sandbox, "c1")


@detects("SIDECAR-02", through=(True, False))
def test_sidecar_that_cannot_start_is_skipped(s: TraceBuilder, *, through: bool) -> None:
    """SIDECAR-02: behind an init container that is through, the app container waits for no new sidecar."""
    web, sandbox = pod(s, init=True, policy="Always")
    s.exited(s.run_container(web, sandbox, "sc"), 1)
    i1 = s.run_container(web, sandbox, "i1")
    if through:
        s.exited(i1)
    s.start(s.create(web, sandbox, "sc", attempt=1), error="FAILED_PRECONDITION")
    s.run_container(web, sandbox, "c1")


@detects("SIDECAR-02", left=(True, False))
def test_container_that_never_began_lets_the_next_be_made(s: TraceBuilder, *, left: bool) -> None:
    """SIDECAR-02: with an app container that was made in the old sandbox, the pod is initialized."""
    web, sandbox = pod(s, policy="Always")
    s.run_container(web, sandbox, "sc")
    if left:
        s.start(s.create(web, sandbox), error="FAILED_PRECONDITION")
    s.sandbox_died(sandbox)
    s.run_container(web, s.run_sandbox(web, attempt=1), "c1")


@pytest.mark.parametrize("late", [False, True])
@detects("SIDECAR-02")
def test_next_container_follows_the_sidecar(s: TraceBuilder, *, right: bool, late: bool) -> None:
    """SIDECAR-02 breaks when nothing follows a running sidecar, and when it comes late."""
    web, sandbox = pod(s, init=True)
    s.run_container(web, sandbox, "sc")
    if right or late:
        s.wait(1 if right else 60).run_container(web, sandbox, "i1")


@pytest.mark.parametrize("wrong", ["left", "app stopped"])
@detects("SIDECAR-06")
def test_killed_sidecar_comes_back_alone(s: TraceBuilder, wrong: str, *, right: bool) -> None:
    """SIDECAR-06 breaks when a killed sidecar is left, and when the app container is stopped with it."""
    web, sandbox, sc, c1 = served(s, livenessProbe=PROBE)
    s.wait(9).stop(sc)
    if right:
        s.run_container(web, sandbox, "sc", attempt=1)
    elif wrong == "app stopped":
        s.stop(c1)


@pytest.mark.parametrize("own", ["livenessProbe", "lifecycle"])
@pytest.mark.parametrize("code", [0, 1])
def test_app_may_go_for_itself(code: int, own: str) -> None:
    """SIDECAR-06: an app container that is stopped for its own probe or postStart hook is no part of that."""
    s = TraceBuilder()
    app = {"livenessProbe": PROBE} if own == "livenessProbe" else {"lifecycle": POST_START}
    _, _, sc, c1 = with_sidecar(s, sidecar={"livenessProbe": PROBE}, app=app)
    if own == "livenessProbe":
        execute(s.wait(9), c1, code)
    else:
        hook(s, c1, "warm", code=code)
    s.stop(sc)
    s.stop(c1)

    assert bool(s.judge("SIDECAR-06").breaks) is (code == 0)


@detects("SIDECAR-07")
def test_end_of_a_sidecar_is_read_before_its_restart(s: TraceBuilder, *, right: bool) -> None:
    """SIDECAR-07 breaks when a sidecar is made again before the kubelet can know that it ended."""
    web, sandbox, sc, _ = served(s)
    s.wait(5).exited(sc, 0, seen=right)
    s.run_container(web, sandbox, "sc", attempt=1)


@detects("SIDECAR-07", if_right=Verdict.NOT_EXERCISED, reason=("ErrImageNeverPull", "BackOff"))
def test_sidecar_whose_image_may_not_be_pulled(s: TraceBuilder, *, reason: str) -> None:
    """SIDECAR-07: one whose absent image may not be pulled does not come back."""
    web, _, sc, _ = served(s)
    s.wait(5).exited(sc, 1)
    s.record("event", uid=web.uid, type="Warning", reason=reason, message="", count=1, container="sc")
    s.wait(60)


@detects("SIDECAR-23", stopped=(True, False))
def test_replacement_goes_on_with_what_it_stopped(s: TraceBuilder, *, stopped: bool) -> None:
    """SIDECAR-23: the sync that stops the app containers for a new sandbox runs that, too."""
    web, sandbox, _, c1 = served(s, policy="OnFailure")
    s.sandbox_died(sandbox)
    if stopped:
        s.stop(c1, code=0)
    else:
        s.exited(c1, 0)
    s.container_status(c1, state="CONTAINER_EXITED")
    s.run_sandbox(web, attempt=1)
