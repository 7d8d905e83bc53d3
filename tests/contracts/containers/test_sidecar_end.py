"""SIDECAR contracts on the end of a pod and on its status."""

from typing import Any

import pytest
from outside_world import create_mirror, file_pod, remove_file, static_config
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

RUNNING: dict[str, Any] = {"running": {}}
WAITING: dict[str, Any] = {"waiting": {"reason": "PodInitializing"}}


def served(
    s: TraceBuilder, *, policy: str = "Never", **more: Any
) -> tuple[PodHandle, SandboxHandle, dict[str, ContainerHandle]]:
    """A pod whose sidecars s1 and s2 and app container c1 run; its sandbox, and the three by name."""
    inits = [{"name": name, "image": "img:1", "restartPolicy": "Always", **more} for name in ("s1", "s2")]
    web = s.pod(initContainers=inits, restartPolicy=policy, terminationGracePeriodSeconds=10)
    sandbox = s.run_sandbox(web)
    return web, sandbox, {name: s.run_container(web, sandbox, name) for name in ("s1", "s2", "c1")}


def reported(name: str, state: dict[str, Any], *, up: bool = False) -> dict[str, Any]:
    """A container status; `up` is for ready and started."""
    return {"name": name, "state": state, "ready": up, "started": up, "restartCount": 0}


def write(
    s: TraceBuilder, phase: str, sidecar: dict[str, Any], app: dict[str, Any], **conditions: bool
) -> None:
    """The status of a pod with one sidecar and one app container."""
    web = s.pod(
        initContainers=[{"name": "sc", "image": "img:1", "restartPolicy": "Always"}], restartPolicy="Never"
    )
    listed = [{"type": kind, "status": str(value)} for kind, value in conditions.items()]
    s.status(web, phase, initContainerStatuses=[sidecar], containerStatuses=[app], conditions=listed)


@detects("SIDECAR-12", ends_before=(True, False))
def test_sidecar_waits_for_the_next_one_alone(s: TraceBuilder, *, ends_before: bool) -> None:
    """SIDECAR-12: where the next sidecar does not run when the kill begins, those after it hold up nobody."""
    names = ("s1", "s2", "s3")
    inits = [{"name": name, "image": "img:1", "restartPolicy": "Always"} for name in names]
    web = s.pod(initContainers=inits, terminationGracePeriodSeconds=10)
    sandbox = s.run_sandbox(web)
    c = {name: s.run_container(web, sandbox, name) for name in (*names, "c1")}
    s.wait(1)
    if ends_before:
        s.exited(c["s2"], 1)
    s.wait(1).delete(web, 10)
    s.stop(c["c1"], 10)
    s.wait(1)
    if not ends_before:
        s.exited(c["s2"], 1)
    for name in ("s1", "s3"):
        s.stop(c[name], 10)


@pytest.mark.parametrize("last", ["s2", "s1"])
@detects("SIDECAR-12")
def test_every_sidecar_has_its_turn(s: TraceBuilder, last: str, *, right: bool) -> None:
    """SIDECAR-12 breaks when a sidecar whose turn has come is not stopped."""
    web, sandbox, c = served(s)
    s.delete(web, 10)
    order = ("c1", "s2", "s1")
    for name in order if right else order[: order.index(last)]:
        s.stop(c[name], 10)
    s.wait(1).stop_sandbox(sandbox)


@pytest.mark.parametrize(("takes", "timeout"), [(4, 6), (9.5, 2)])
@detects("SIDECAR-14")
def test_waiting_uses_up_the_grace(s: TraceBuilder, takes: float, timeout: int, *, right: bool) -> None:
    """SIDECAR-14 breaks when a sidecar gets the whole grace after it has waited."""
    web, _, c = served(s)
    s.delete(web, 10)
    s.stop(c["c1"], 10, takes=takes)
    s.stop(c["s2"], timeout if right else 10)


@detects("SIDECAR-14", if_right=Verdict.NOT_EXERCISED, replaced=(True, False))
def test_sidecar_waits_for_nobody_that_was_stopped_before_it_was_made(
    s: TraceBuilder, *, replaced: bool
) -> None:
    """SIDECAR-14: a sync may make a sidecar in a new sandbox though the pod is to go since a moment ago."""
    web, sandbox, c = served(s)
    s.delete(web, 10)
    s.stop(c["c1"], 30)
    last = c["s2"]
    if replaced:
        s.exited(last, 1)
        s.sandbox_died(sandbox)
        last = s.run_container(web, s.run_sandbox(web, 1), "s2", 1)
    s.wait(8).stop(last, 10)


@detects("SIDECAR-14", if_right=Verdict.NOT_EXERCISED, before=(True, False))
def test_pod_that_has_ended_has_its_own_grace(s: TraceBuilder, *, before: bool) -> None:
    """SIDECAR-14: a sync may stop a pod that is through, and not know of its deletion yet."""
    web, _, c = served(s)
    if before:
        s.exited(c["c1"], 1)
    s.delete(web, 2)
    if not before:
        s.stop(c["c1"], 2)
    s.stop(c["s2"], 10)


@detects("SIDECAR-16", if_right=Verdict.NOT_EXERCISED, what=("mirror", "file"))
def test_end_of_a_mirror_ends_no_sidecar(s: TraceBuilder, what: str) -> None:
    """SIDECAR-16: a static pod goes with its file, and not with its mirror."""
    sidecar = {"name": "s1", "image": "img:1", "restartPolicy": "Always"}
    web = file_pod(s, initContainers=[sidecar])
    create_mirror(s, web)
    sandbox = s.run_sandbox(web, config=static_config(s, web))
    s.run_container(web, sandbox, "s1")
    c1 = s.run_container(web, sandbox)
    s.wait(5).exited(c1, 1)
    if what == "file":
        remove_file(s, web)
    else:
        s.record("deleted", uid="mirror")
    s.wait(60).stop_here()


@pytest.mark.parametrize("condition", ["ContainersReady", "Initialized"])
@detects("SIDECAR-17")
def test_sidecars_count_for_readiness(s: TraceBuilder, condition: str, *, right: bool) -> None:
    """SIDECAR-17 breaks when ContainersReady or Initialized is True without the sidecar."""
    write(s, "Pending", reported("sc", RUNNING), reported("c1", WAITING), **{condition: not right})


@pytest.mark.parametrize("ran", [False, True])
@detects("SIDECAR-19")
def test_sidecars_keep_a_pod_pending_only_before_it_ran(s: TraceBuilder, *, right: bool, ran: bool) -> None:
    """SIDECAR-19 breaks when a pod is Running before its sidecars, or Pending after its app ran."""
    phase = "Running" if ran == right else "Pending"
    write(
        s,
        phase,
        reported("sc", RUNNING),
        reported("c1", RUNNING, up=True) if ran else reported("c1", WAITING),
    )


def test_app_that_the_runtime_lost_has_run() -> None:
    """SIDECAR-19: an unknown app container keeps its pod Running while its sidecars start again."""
    s = TraceBuilder()
    web, sandbox, c = served(s, policy="Always")
    s.record("runtime", op="unknown", container_id=c["c1"].id, sandbox_id=sandbox.id)
    lost = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}
    sidecars = [reported(name, WAITING) for name in ("s1", "s2")]
    s.status(web, "Running", initContainerStatuses=sidecars, containerStatuses=[reported("c1", lost)])

    assert not s.judge("SIDECAR-19").breaks


def test_sidecar_may_be_restarted_before_the_kill_begins() -> None:
    """SIDECAR-24: the worker does not know of the deletion yet; an old stop was none for its sake."""
    s = TraceBuilder()
    web, sandbox, c = served(s, policy="Always")
    s.stop(c["c1"], 10)
    s.run_container(web, sandbox, "c1", attempt=1)
    s.wait(20).delete(web, 10)
    s.exited(c["s2"], 1)
    s.run_container(web, sandbox, "s2", attempt=1)
    s.wait(1).stop_sandbox(sandbox)

    assert s.judge("SIDECAR-24").verdict is Verdict.NOT_EXERCISED
