"""PROBE contracts on what results lead to: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from outside_world import killed, started
from pod_status import ended, runs, tell_status
from running import BROKEN, KEPT, running, two_running
from trace_builder import ContainerHandle, PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

ALIVE = {"exec": {"command": ["alive"]}, "periodSeconds": 5, "failureThreshold": 3}
READY = {"exec": {"command": ["ready"]}, "periodSeconds": 5, "failureThreshold": 2}
WARM = {"exec": {"command": ["warm-up"]}, "periodSeconds": 5, "failureThreshold": 2}


def run(s: TraceBuilder, c1: ContainerHandle, command: str, code: int = 0) -> None:
    """An exec probe by its command, 5 s later."""
    s.wait(5).call("ExecSync", {"container_id": c1.id, "cmd": [command], "timeout": "1"}, {"exit_code": code})


def shows(s: TraceBuilder, web: PodHandle, c1: ContainerHandle, **fields: Any) -> None:
    """A status with the container as it is shown, running by default."""
    one: dict[str, Any] = {
        "name": c1.name,
        "state": {"running": {}},
        "containerID": f"x://{c1.id}",
        "started": True,
    }
    s.status(web, containerStatuses=[one | fields])


@detects("PROBE-02", begin=lambda: running(readinessProbe=READY), code=(0, 1))
def test_container_is_not_ready_at_first(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, code: int
) -> None:
    """PROBE-02: ready only after a success."""
    run(s, c1, "ready", code)
    shows(s, web, c1, ready=True)


def test_container_has_not_started_at_first() -> None:
    """PROBE-02: with a startup probe a container is not started before a success."""
    s, web, _, c1 = running(startupProbe=WARM)
    shows(s, web, c1, started=True)

    assert s.judge("PROBE-02").verdict is BROKEN


@pytest.mark.parametrize("contract", ["PROBE-02", "PROBE-03"])
@pytest.mark.parametrize("goes", [True, False])
def test_pod_that_goes_starts_no_more(contract: str, *, goes: bool) -> None:
    """PROBE-02, PROBE-03: what had not started when its pod was deleted counts as started."""
    s, web, _, c1 = running(startupProbe=WARM, readinessProbe=READY)
    run(s, c1, "warm-up", 1)
    if goes:
        s.delete(web)
    run(s, c1, "ready", 1)
    shows(s, web, c1, started=True, ready=False)

    assert bool(s.judge(contract).breaks) is not goes


@pytest.mark.parametrize(("waits", "verdict"), [(1, Verdict.NOT_EXERCISED), (10, BROKEN)])
def test_change_that_is_taken_back_may_be_followed(waits: int, verdict: Verdict) -> None:
    """PROBE-06: a sync that waited for a relist stops a container for an image that is no longer wanted."""
    s, web, _, c1 = running(livenessProbe=ALIVE)
    run(s, c1, "alive", 1)
    for image in ("img:2", "img:1"):
        web.manifest["spec"]["containers"][0]["image"] = image
        s.set(web)
    s.wait(waits).stop(c1)
    s.wait(1).stop_here()

    assert s.judge("PROBE-06").verdict is verdict


@detects("PROBE-06", begin=lambda: running(readinessProbe=READY), failures=(2, 1))
def test_readiness_flips_at_its_threshold(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, failures: int
) -> None:
    """PROBE-06: a container stays ready until its probe has failed often enough."""
    run(s, c1, "ready")
    shows(s, web, c1, ready=True)
    for _ in range(failures):
        run(s, c1, "ready", 1)
    shows(s.wait(1), web, c1, ready=False)


@pytest.mark.parametrize("contract", ["PROBE-11", "CSTAT-10"])
@pytest.mark.parametrize("was_ready", [True, False])
def test_success_that_comes_with_the_end(contract: str, *, was_ready: bool) -> None:
    """PROBE-11, CSTAT-10: the loop may report a success after the sync that reported the end."""
    s, web, _, c1 = running(readinessProbe=READY)
    tell_status(s, web, "Running", [runs(c1, ready=was_ready)])
    s.exited(c1, 1)
    tell_status(s, web, "Running", [ended(1, c1, ready=True)])

    assert bool(s.judge(contract).breaks) is was_ready


@pytest.mark.parametrize(
    ("version", "ready", "verdict"),
    [("1.32", False, KEPT), ("1.32", True, BROKEN), ("1.35", True, KEPT), ("1.35", False, BROKEN)],
)
def test_readiness_after_a_kubelet_restart(version: str, *, ready: bool, verdict: Verdict) -> None:
    """PROBE-25: a restart makes containers unready up to 1.34, and not from 1.35."""
    s, web, _, c1 = running(version, readinessProbe=READY)
    run(s, c1, "ready")
    shows(s, web, c1, ready=True)
    killed(s.wait(10))
    started(s.wait(2))
    shows(s.wait(2), web, c1, ready=ready)

    assert s.judge("PROBE-25").verdict is verdict


@pytest.mark.parametrize("contract", ["PROBE-02", "PROBE-25"])
@pytest.mark.parametrize("first", [True, False])
def test_first_status_of_a_kubelet_knows_no_probes(contract: str, *, first: bool) -> None:
    """PROBE-02, PROBE-25: when a kubelet writes its first status of a pod, its probes have no workers yet."""
    s, web, _, c1 = running(readinessProbe=READY)
    shows(s, web, c1, ready=False)
    killed(s.wait(10))
    started(s.wait(2))
    s.wait(20)
    if not first:
        shows(s, web, c1, ready=False)
    shows(s, web, c1, ready=True)

    assert bool(s.judge(contract).breaks) is not first


@pytest.mark.parametrize(("other_ends", "verdict"), [(True, Verdict.NOT_EXERCISED), (False, BROKEN)])
def test_first_status_may_be_written_for_another(*, other_ends: bool, verdict: Verdict) -> None:
    """PROBE-25: what is ready still has no worker when the first status tells of another container's end."""
    s, web, _, c1, c2 = two_running(readinessProbe=READY)
    run(s, c1, "ready")
    tell_status(s, web, "Running", [runs(c1), runs(c2)])
    killed(s.wait(10))
    started(s.wait(2))
    tell_status(s, web, "Running", [runs(c1), ended(1, c2) if other_ends else runs(c2)])

    assert s.judge("PROBE-25").verdict is verdict


@pytest.mark.parametrize("wrong", ["", "no kill", "restart"])
def test_failed_liveness_under_never(wrong: str) -> None:
    """PROBE-28: under Never it is killed, and that is all."""
    s, web, sandbox, c1 = running(livenessProbe=ALIVE | {"failureThreshold": 1}, policy="Never")
    run(s, c1, "alive", 1)
    if wrong != "no kill":
        s.stop(c1)
    if wrong == "restart":
        s.create(web, sandbox, "c1", 1)

    assert s.judge("PROBE-28").verdict is (BROKEN if wrong else KEPT)


@pytest.mark.parametrize(("reason", "verdict"), [("PodFailed", KEPT), ("ContainersNotReady", BROKEN)])
@pytest.mark.parametrize("contract", ["PROBE-02", "PROBE-06"])
def test_pod_that_the_kubelet_ends(contract: str, reason: str, verdict: Verdict) -> None:
    """PROBE-02, PROBE-06: a pod whose time is over is not probed any more, though its containers run."""
    s, web, _, c1 = running(readinessProbe=READY)
    if contract == "PROBE-06":
        run(s, c1, "ready")
    shows(s, web, c1, ready=contract == "PROBE-06")
    for _ in range(2):
        run(s, c1, "ready", 1)
    s.wait(1)
    shows(s, web, c1, ready=False)
    condition = {"type": "Ready", "status": "False", "reason": reason}
    one: dict[str, Any] = {
        "name": "c1",
        "state": {"running": {}},
        "containerID": f"x://{c1.id}",
        "started": True,
        "ready": True,
    }
    s.status(web, containerStatuses=[one], conditions=[condition])

    assert s.judge(contract).verdict is verdict


def test_dead_sandbox_is_found_by_the_new_kubelet() -> None:
    """PROBE-25: the first sync of a kubelet kills a pod with a dead sandbox, and has it probed later."""
    s, web, sandbox, c1 = running(readinessProbe=READY)
    run(s, c1, "ready")
    shows(s, web, c1, ready=True)
    killed(s.wait(10))
    started(s.wait(2))
    s.sandbox_died(sandbox)
    shows(s.wait(2), web, c1, ready=True)

    assert s.judge("PROBE-25").verdict is Verdict.NOT_EXERCISED
