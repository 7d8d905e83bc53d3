"""What contracts ask while the runtime is away, and of what was under way: the case, and what still bites."""

from typing import Any

import pytest
from outside_world import started, tell_status
from running import BROKEN, KEPT, running
from runtime_reads import container_record, list_containers, refuse
from trace_builder import ContainerHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

INITS = [{"name": "i1", "image": "img:1"}]


def away(s: TraceBuilder) -> None:
    """The runtime goes away: calls that find nobody leave no trace."""
    s.record("fault", what="the runtime is away")


def back(s: TraceBuilder) -> None:
    """It can be reached again."""
    s.record("fault", what="healed: the runtime is back")


def absence(s: TraceBuilder, seconds: float = 10) -> None:
    """The runtime is away for some time; a while after its return the kubelet asks for its Status."""
    away(s)
    back(s.wait(seconds))
    tell_status(s.wait(3))


@pytest.mark.parametrize(
    ("gone", "after", "verdict"), [(True, 15, KEPT), (True, 40, BROKEN), (False, 15, BROKEN)]
)
def test_status_waits_for_the_runtime(*, gone: bool, after: float, verdict: Verdict) -> None:
    """LOOP-09: an exit is reported when the kubelet has come to it."""
    s, web, _, c1 = running()
    tell_status(s)
    s.exited(c1, 1)
    if gone:
        absence(s)
    terminated: dict[str, Any] = {"terminated": {"exitCode": 1}}
    s.wait(after).status(web, containerStatuses=[{"name": "c1", "state": terminated}])

    assert s.judge("LOOP-09").verdict is verdict


@pytest.mark.parametrize(
    ("gone", "after", "verdict"), [(True, 5, KEPT), (True, 12, BROKEN), (False, 5, BROKEN)]
)
def test_polls_that_find_nobody_leave_no_trace(*, gone: bool, after: float, verdict: Verdict) -> None:
    """LOOP-05: the next poll is due as soon after the runtime's return as after any answer."""
    s = TraceBuilder()
    tell_status(s)
    if gone:
        away(s)
    s.wait(15)
    if gone:
        back(s)
    tell_status(s.wait(after))
    s.stop_here()

    assert s.judge("LOOP-05").verdict is verdict


def test_next_kubelet_finds_no_runtime() -> None:
    """LOOP-05: a kubelet that starts while the runtime is away polls once it is back."""
    s = TraceBuilder()
    tell_status(s)
    away(s)
    s.record("kubelet", op="killed")
    started(s.wait(20))
    back(s.wait(20))
    tell_status(s.wait(5))
    s.stop_here()

    assert s.judge("LOOP-05").breaks == 0


@pytest.mark.parametrize(("after", "breaks"), [(0, 0), (60, 1)])
def test_inspection_may_have_found_nobody(after: float, breaks: int) -> None:
    """IMAGE-06: until the kubelet has caught up, ImageInspectError needs no failure on record."""
    s = TraceBuilder()
    web = s.pod()
    s.run_sandbox(web)
    absence(s)
    waiting = {"reason": "ImageInspectError"}
    s.wait(after).status(web, "Pending", containerStatuses=[{"name": "c1", "state": {"waiting": waiting}}])

    assert s.judge("IMAGE-06").breaks == breaks


@pytest.mark.parametrize(("ready", "breaks"), [(False, 0), (True, 1)])
def test_runtime_lists_when_it_is_ready(*, ready: bool, breaks: int) -> None:
    """CRI-09: a runtime that has come back may refuse to list until it says that it is ready."""
    s = TraceBuilder()
    away(s)
    back(s.wait(5))
    if ready:
        tell_status(s)
    refuse(s, "ListContainers", {}, "UNKNOWN")

    assert s.judge("CRI-09").breaks == breaks


def removed_meanwhile(*, overlaps: bool) -> tuple[TraceBuilder, ContainerHandle]:
    """A list holds a container whose removal is answered before the list is, or before it begins."""
    s, _, sandbox, c1 = running()
    list_containers(s, container_record(c1))
    s.stop(c1)
    s.stop_sandbox(sandbox)
    dead = container_record(c1, "CONTAINER_EXITED")
    if overlaps:
        removal = s.begin("RemoveContainer", {"container_id": c1.id})
        listing = s.begin("ListContainers", {})
        s.wait(0.01).end("RemoveContainer", removal)
        s.wait(0.01).end("ListContainers", listing, {"containers": [dead]})
    else:
        s.remove(c1)
        list_containers(s.wait(1), dead)
    list_containers(s.wait(1))
    return s, c1


@pytest.mark.parametrize(("overlaps", "breaks"), [(True, 0), (False, 1)])
def test_list_may_hold_what_goes_meanwhile(*, overlaps: bool, breaks: int) -> None:
    """CRI-09: what is removed while a list is under way may be in it, and brings nothing back."""
    s, c1 = removed_meanwhile(overlaps=overlaps)

    assert s.judge("CRI-09").breaks == breaks
    assert s.judge("CRI-17").breaks == 0 or not overlaps
    assert c1.id not in s.world().containers


@pytest.mark.parametrize(("record", "breaks"), [("CONTAINER_RUNNING", 0), ("CONTAINER_CREATED", 1)])
@pytest.mark.parametrize("effect", [True, False])
def test_lost_start_may_have_taken_place(record: str, breaks: int, *, effect: bool) -> None:
    """SYNC-05: an init container whose start lost only its answer need not be tried again once it is seen."""
    s = TraceBuilder()
    web = s.pod(initContainers=INITS)
    sandbox = s.run_sandbox(web)
    i1 = s.create(web, sandbox, "i1")
    start = s.begin("StartContainer", {"container_id": i1.id})
    lost = {"code": "UNAVAILABLE", "message": "the connection broke"}
    s.record("reply", rpc="StartContainer", id=start, error=lost, effect=effect)
    absence(s)
    s.container_status(i1, state=record)
    s.run_container(web, sandbox)

    assert s.judge("SYNC-05").breaks == (breaks if effect else 1)


@pytest.mark.parametrize(("code", "verdict"), [(255, 0), (0, 1)])
def test_lost_init_container_did_not_succeed(code: int, verdict: int) -> None:
    """INIT-10: one that the runtime lost is stopped, reported as ended with 255, and run again."""
    s = TraceBuilder()
    web = s.pod(initContainers=INITS)
    sandbox = s.run_sandbox(web)
    i1 = s.run_container(web, sandbox, "i1")
    absence(s)
    s.container_status(i1, state="CONTAINER_UNKNOWN")
    s.call("StopContainer", {"container_id": i1.id, "timeout": "30"}, {})
    s.container_status(i1, state="CONTAINER_EXITED", exit_code=code, finished_at=str(i1.created_at + 10**9))
    s.run_container(web, sandbox, "i1", 1)

    assert s.judge("INIT-10").breaks == verdict


@pytest.mark.parametrize(("alive", "verdict"), [(1, 0), (0, 1)])
def test_another_probe_hides_no_failure(alive: int, verdict: int) -> None:
    """CONFIG-02: a failed liveness probe is a reason for a stop though a readiness probe ran since."""
    probes: dict[str, Any] = {
        "livenessProbe": {"exec": {"command": ["alive"]}, "failureThreshold": 1},
        "readinessProbe": {"exec": {"command": ["ready"]}},
    }
    s, _, _, c1 = running(**probes)
    s.pod("other")
    for command, code in (("alive", alive), ("ready", 0)):
        s.call("ExecSync", {"container_id": c1.id, "cmd": [command], "timeout": "1"}, {"exit_code": code})
    s.wait(1).stop(c1)

    assert s.judge("CONFIG-02").breaks == verdict


@pytest.mark.parametrize("contract", ["START-01", "WORK-17"])
@pytest.mark.parametrize(("gone", "breaks"), [(True, 0), (False, 1)])
def test_start_may_have_found_nobody(contract: str, *, gone: bool, breaks: int) -> None:
    """START-01, WORK-17: a container whose start may have found nobody is made again."""
    s = TraceBuilder()
    web = s.pod()
    sandbox = s.run_sandbox(web)
    s.create(web, sandbox)
    if gone:
        absence(s, 0.5)
    s.run_container(web, sandbox, "c1", 1)

    assert s.judge(contract).breaks == breaks


@pytest.mark.parametrize(("after", "breaks"), [(0, 0), (60, 1)])
def test_step_may_have_found_nobody(after: float, breaks: int) -> None:
    """START-02: until the kubelet has caught up, RunContainerError needs no failure on record."""
    s = TraceBuilder()
    web = s.pod()
    s.create(web, s.run_sandbox(web))
    absence(s)
    waiting = {"reason": "RunContainerError"}
    s.wait(after).status(web, "Pending", containerStatuses=[{"name": "c1", "state": {"waiting": waiting}}])

    assert s.judge("START-02").breaks == breaks


@pytest.mark.parametrize(
    ("contract", "removed", "reason", "breaks"),
    [
        ("TERM-30", True, "ContainerStatusUnknown", 0),
        ("TERM-30", False, "ContainerStatusUnknown", 1),
        ("CSTAT-15", True, "ContainerStatusUnknown", 0),
        ("CSTAT-15", True, "Completed", 1),
    ],
)
def test_older_record_may_be_left_over(contract: str, *, removed: bool, reason: str, breaks: int) -> None:
    """TERM-30, CSTAT-15: an ended pod may be left with the record of a start that failed, shown as lost."""
    s = TraceBuilder()
    web = s.pod(initContainers=INITS, restartPolicy="Never")
    sandbox = s.run_sandbox(web)
    first = s.create(web, sandbox, "i1")
    s.start(first, error="UNAVAILABLE")
    s.container_status(first, state="CONTAINER_CREATED")
    second = s.run_container(web, sandbox, "i1", 1)
    s.wait(1).exited(second)
    ended: dict[str, Any] = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    reported = {"name": "i1", "containerID": f"containerd://{second.id}", "restartCount": 1, "state": ended}
    s.status(web, "Succeeded", initContainerStatuses=[reported])
    s.delete(web)
    if removed:
        s.remove(second)
    lost: dict[str, Any] = {"terminated": {"exitCode": 137, "reason": reason}}
    reported = {"name": "i1", "containerID": f"containerd://{first.id}", "restartCount": 0, "state": lost}
    ready = {"type": "Ready", "status": "False"}
    s.wait(1).status(web, "Succeeded", conditions=[ready], initContainerStatuses=[reported])

    assert s.judge(contract).breaks == breaks
