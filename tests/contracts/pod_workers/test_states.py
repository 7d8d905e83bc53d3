"""WORK contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from pod_status import ended, runs
from running import BROKEN, KEPT, running
from trace_builder import FULL_CHANNELS, ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


@pytest.mark.parametrize(("waits", "verdict"), [(1, KEPT), (40, BROKEN)])
@pytest.mark.parametrize("cause", ["deleted", "removed", "ended"])
def test_every_cause_stops_the_pod(cause: str, waits: float, verdict: Verdict) -> None:
    """WORK-05: a deletion, a removal and a terminal phase in the API each lead to a stop."""
    s, web, _, c1 = running(source="file" if cause == "removed" else "api")
    if cause == "deleted":
        s.delete(web)
    elif cause == "removed":
        s.unset(web)
    else:
        web.manifest["status"] = {"phase": "Failed"}
        web.manifest["metadata"]["labels"] = {"seen": "failed"}
        s.set(web)
    s.wait(waits).stop(c1)

    assert s.judge("WORK-05").verdict is verdict


@detects("WORK-13", begin=running, early=(False, True))
def test_records_stay_until_the_stop(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, early: bool
) -> None:
    """WORK-13: the newest record is not removed before the pod was stopped."""
    s.delete(web)
    s.stop(c1)
    if not early:
        s.stop_sandbox(sandbox)
    s.remove(c1)


@detects("WORK-13", begin=lambda: running(policy="Never"), reported=(3, 137))
def test_final_status_has_the_exit_codes(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, reported: int
) -> None:
    """WORK-13: the final status tells the code that the runtime gave."""
    s.exited(c1, 3)
    s.stop_sandbox(sandbox)
    ended = {"terminated": {"exitCode": reported}}
    c1_status = {"name": "c1", "state": ended, "containerID": f"fake://{c1.id}"}
    s.status(web, "Failed", containerStatuses=[c1_status])


@pytest.mark.parametrize(("phase", "breaks"), [("Failed", False), ("Running", True)])
def test_phase_of_a_client_is_repeated_before_the_end(phase: str, *, breaks: bool) -> None:
    """WORK-13: a status that has the phase which a client has set is not the last."""
    s, web, _, c1 = running(policy="Never")
    web.manifest["status"] = {"phase": phase}
    s.set(web)
    s.exited(c1, 0, seen=False)
    s.status(web, "Failed", containerStatuses=[runs(c1)])
    s.wait(10).stop_here()

    assert bool(s.judge("WORK-13").breaks) is breaks


def orphaned(kubernetes: str) -> tuple[TraceBuilder, str]:
    """A container that runs though nobody ever wanted its pod; returns its id."""
    s = TraceBuilder(kubernetes)
    metadata = {"name": "lost", "namespace": "default", "uid": "uid-lost"}
    labels = {"io.kubernetes.pod.uid": "uid-lost"}
    sandbox = {"id": "s-lost", "metadata": metadata, "state": "SANDBOX_READY", "labels": labels}
    container = {
        "id": "c-lost",
        "pod_sandbox_id": "s-lost",
        "metadata": {"name": "c1"},
        "state": "CONTAINER_RUNNING",
        "labels": labels,
    }
    for _ in range(2):
        s.wait(0.5).call("ListPodSandbox", {}, {"items": [sandbox]})
        s.call("ListContainers", {}, {"containers": [container]})
    return s, "c-lost"


@pytest.mark.parametrize(
    ("kubernetes", "timeout", "waits", "verdict"),
    [
        ("1.26", 1, 2, KEPT),
        ("1.32", 2, 2, KEPT),
        ("1.26", 30, 2, BROKEN),
        ("1.32", 30, 2, BROKEN),
        ("1.32", 2, 60, BROKEN),
    ],
)
def test_unknown_pod_is_killed(kubernetes: str, timeout: int, waits: float, verdict: Verdict) -> None:
    """WORK-24: what no source knows is stopped soon and with the least grace."""
    s, container_id = orphaned(kubernetes)
    s.wait(waits).call("StopContainer", {"container_id": container_id, "timeout": str(timeout)}, {})

    assert s.judge("WORK-24").verdict is verdict


def test_unknown_pod_gets_no_hook() -> None:
    """WORK-24: no hook runs in such a pod."""
    s, container_id = orphaned("1.32")
    s.call("ExecSync", {"container_id": container_id, "cmd": ["drain"]}, {})
    s.call("StopContainer", {"container_id": container_id, "timeout": "2"}, {})

    assert s.judge("WORK-24").verdict is BROKEN


@pytest.mark.parametrize(("version", "verdict"), [("1.32", BROKEN), ("1.26", KEPT)])
def test_ended_pod_is_not_stopped_again(version: str, verdict: Verdict) -> None:
    """WORK-14: no container of an ended pod is stopped (1.26 may do that once, by a stale view)."""
    s, web, sandbox, c1 = running(version, policy="Never")
    s.exited(c1)
    s.stop_sandbox(sandbox)
    s.status(web, "Succeeded")
    s.wait(3).stop(c1, 2)
    s.wait(5).stop_here()

    assert s.judge("WORK-14").verdict is verdict


def test_replacement_under_way_may_end() -> None:
    """WORK-04: a sandbox that was being replaced when its pod was to go may still be made, once."""
    s, web, sandbox, c1 = running()
    s.sandbox_died(sandbox)
    stop = s.begin("StopContainer", {"container_id": c1.id, "timeout": "30"})
    s.wait(5).delete(web)
    s.wait(15).exited(c1, seen=False)
    s.end("StopContainer", stop)
    s.stop_sandbox(sandbox)
    again = s.run_sandbox(web, 1)
    new = s.run_container(web, again, "c1", 1)
    s.stop(new)
    s.stop_sandbox(again)
    s.wait(1).deleted(web)
    kept = s.judge("WORK-04").verdict
    s.run_sandbox(web, 2)

    assert kept is KEPT
    assert s.judge("WORK-04").verdict is BROKEN


@pytest.mark.parametrize(
    ("api", "waits", "then", "breaks"),
    [
        ("served", 0.1, None, False),
        ("served", 0.3, None, True),
        ("full", 0.1, ended(0), False),
        ("full", 0.1, ended(1), True),
        ("full", 0.1, None, True),
        ("full", 0.9, ended(0), False),
        ("full", 1.3, ended(0), True),
    ],
)
def test_status_may_be_older_than_the_exit(
    api: str, waits: float, then: dict[str, Any] | None, *, breaks: bool
) -> None:
    """WORK-13: a status just after the exit may be from before the kill; a written one is followed."""
    s = TraceBuilder("1.26", channels=FULL_CHANNELS | {"api": api})
    web = s.pod(restartPolicy="Never")
    sandbox = s.run_sandbox(web)
    c1 = s.run_container(web, sandbox)
    s.exited(c1, 0, seen=False)
    s.wait(waits)
    s.status(web, "Failed", containerStatuses=[runs(c1)])
    if then is not None:
        s.wait(1).status(web, "Failed", containerStatuses=[then | {"containerID": f"fake://{c1.id}"}])
    s.wait(10).stop_here()

    assert bool(s.judge("WORK-13").breaks) is breaks
