"""RESTARTKUBELET contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from running import BROKEN, KEPT, running
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def goes_down(s: TraceBuilder) -> None:
    """The kubelet is killed."""
    s.record("kubelet", op="killed")
    s.wait(2)


def comes_up(s: TraceBuilder) -> None:
    """The kubelet starts again."""
    s.record("kubelet", op="started")
    s.wait(1)


def restarted(**pod: Any) -> tuple[TraceBuilder, PodHandle, SandboxHandle, ContainerHandle]:
    """A pod that ran before the kubelet's restart."""
    s, web, sandbox, c1 = running(**pod)
    goes_down(s)
    comes_up(s)
    return s, web, sandbox, c1


@pytest.mark.parametrize("wrong", ["", "stop", "sandbox", "container"])
def test_healthy_containers_are_left_alone(wrong: str) -> None:
    """RESTARTKUBELET-01: what runs is neither stopped nor made again."""
    s, web, sandbox, c1 = restarted()
    if wrong == "stop":
        s.stop(c1)
    elif wrong == "sandbox":
        s.run_sandbox(web, attempt=1)
    elif wrong == "container":
        s.create(web, sandbox, "c1", 1)
    s.wait(10).stop_here()

    assert s.judge("RESTARTKUBELET-01").verdict is (BROKEN if wrong else KEPT)


@detects(
    "RESTARTKUBELET-04",
    if_right=Verdict.NOT_EXERCISED,
    begin=lambda: running(policy="OnFailure"),
    stopped=(True, False),
)
def test_what_the_new_kubelet_stops_has_not_ended_meanwhile(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, stopped: bool
) -> None:
    """RESTARTKUBELET-04: a container that is stopped at the moment of the start is made again."""
    goes_down(s)
    if not stopped:
        s.exited(c1, 0, seen=False)
    comes_up(s)
    if stopped:
        s.stop(c1, takes=0, code=0)
    s.create(web, sandbox, "c1", 1)


@pytest.mark.parametrize(
    ("gone", "timeout", "waits", "verdict"),
    [
        (False, 4, 1, KEPT),
        (False, 30, 1, BROKEN),
        (False, 4, 60, BROKEN),
        (True, 2, 1, KEPT),
        (True, 30, 1, BROKEN),
    ],
)
def test_pod_deleted_meanwhile(*, gone: bool, timeout: int, waits: float, verdict: Verdict) -> None:
    """RESTARTKUBELET-06: a pod deleted meanwhile is stopped with its grace, or with the least if gone."""
    s, web, _, c1 = running()
    goes_down(s)
    if gone:
        s.deleted(web)
    else:
        s.delete(web, 4)
    comes_up(s)
    s.wait(waits).stop(c1, timeout)

    assert s.judge("RESTARTKUBELET-06").verdict is verdict


@detects(
    "RESTARTKUBELET-07",
    if_right=Verdict.NOT_EXERCISED,
    begin=lambda: running(source="file"),
    back=(True, False),
)
def test_manifest_that_is_back(s: TraceBuilder, web: PodHandle, *, back: bool) -> None:
    """RESTARTKUBELET-07: a static pod whose manifest is back at the kubelet's start goes on."""
    goes_down(s)
    s.unset(web)
    comes_up(s)
    if back:
        s.set(web)
    s.wait(60).stop_here()


@detects("RESTARTKUBELET-06", if_right=Verdict.NOT_EXERCISED, begin=running, how=("exits", "runs on"))
def test_what_ends_by_itself_needs_no_stop(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, how: str
) -> None:
    """RESTARTKUBELET-06: a container that ends before the kubelet's first housekeeping is not stopped."""
    goes_down(s)
    s.unset(web)
    comes_up(s)
    if how == "exits":
        s.exited(c1)
    s.wait(60).stop_here()


@detects("RESTARTKUBELET-11", begin=running, reported=("10.88.0.1", "10.88.0.2"))
def test_address_of_an_older_sandbox(s: TraceBuilder, web: PodHandle, reported: str) -> None:
    """RESTARTKUBELET-11: what the status before reported of another sandbox need not be kept."""
    s.status(web, podIP=reported, startTime="2026-01-01T00:00:00Z")
    goes_down(s)
    comes_up(s)
    s.status(web, podIP="10.88.0.3", startTime="2026-01-01T00:00:00Z")


@detects("RESTARTKUBELET-11", if_right=Verdict.NOT_EXERCISED, begin=running, shows=(False, True))
def test_status_of_a_refused_pod(s: TraceBuilder, web: PodHandle, *, shows: bool) -> None:
    """RESTARTKUBELET-11: a pod that is refused has no address, and its status no containers."""
    containers: dict[str, Any] = {"containerStatuses": [{"name": "c1", "state": {"waiting": {}}}]}
    s.status(web, podIP="10.88.0.2", startTime="2026-01-01T00:00:00Z", **containers)
    goes_down(s)
    comes_up(s)
    s.status(web, startTime="2026-01-01T00:00:00Z", **(containers if shows else {}))


@pytest.mark.parametrize(
    ("source", "stops", "verdict"), [("file", True, KEPT), ("api", True, KEPT), ("api", False, BROKEN)]
)
def test_address_of_a_stopped_pod(source: str, *, stops: bool, verdict: Verdict) -> None:
    """RESTARTKUBELET-11: the runtime tells a kubelet that starts no address of a stopped sandbox."""
    s, web, sandbox, _ = running(source=source)
    s.status(web, podIP="10.88.0.2", startTime="2026-01-01T00:00:00Z")
    if stops:
        s.stop_sandbox(sandbox)
    goes_down(s)
    comes_up(s)
    s.status(web, podIP="", startTime="2026-01-01T00:00:00Z")

    assert s.judge("RESTARTKUBELET-11").verdict is verdict


def test_pod_removed_after_a_reboot_is_not_replaced() -> None:
    """RESTARTKUBELET-13: a pod that is to go before its sandbox is replaced gets none."""
    s, web, sandbox, _ = running()
    goes_down(s)
    s.sandbox_died(sandbox)
    comes_up(s)
    s.unset(web)
    s.wait(100).stop_here()

    assert s.judge("RESTARTKUBELET-13").verdict is Verdict.NOT_EXERCISED


@pytest.mark.parametrize(("deadline", "breaks"), [(15, False), (600, True)])
def test_deadline_after_a_restart(deadline: int, *, breaks: bool) -> None:
    """RESTARTKUBELET-01: a pod whose time is over is stopped, however healthy it is."""
    s = TraceBuilder(started="2026-01-01T00:00:00Z")
    web = s.pod(activeDeadlineSeconds=deadline)
    c1 = s.run_container(web, s.run_sandbox(web))
    s.status(web, startTime="2026-01-01T00:00:00Z")
    goes_down(s)
    comes_up(s)
    s.wait(20).stop(c1)
    s.wait(10).stop_here()

    assert (s.judge("RESTARTKUBELET-01").verdict is BROKEN) is breaks


@pytest.mark.parametrize(("source", "breaks"), [("file", False), ("api", True)])
@pytest.mark.parametrize("contract", ["RESTARTKUBELET-05", "SYNC-08"])
def test_end_of_a_static_pod_is_forgotten(contract: str, source: str, *, breaks: bool) -> None:
    """RESTARTKUBELET-05, SYNC-08: a kubelet does not find the end that the one before gave a static pod."""
    s, web, sandbox, c1 = running(source=source)
    s.stop(c1)
    s.stop_sandbox(sandbox)
    s.status(web, "Failed", reason="DeadlineExceeded")
    goes_down(s)
    comes_up(s)
    s.run_sandbox(web, 1)

    assert (s.judge(contract).verdict is BROKEN) is breaks


@pytest.mark.parametrize("again", [False, True])
def test_ended_pod_is_left_alone(*, again: bool) -> None:
    """RESTARTKUBELET-05: the sandbox of a pod that had ended is not stopped a second time."""
    s, web, sandbox, c1 = running(policy="Never")
    s.exited(c1, 0)
    s.stop_sandbox(sandbox)
    s.sandbox_status(sandbox, state="SANDBOX_NOTREADY")
    s.status(web, "Succeeded")
    goes_down(s)
    comes_up(s)
    if again:
        s.stop_sandbox(sandbox)
    s.wait(60).stop_here()

    assert s.judge("RESTARTKUBELET-05").verdict is (BROKEN if again else KEPT)
