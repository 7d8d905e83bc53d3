"""LOOP contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from outside_world import event, outage, tell_status
from running import BROKEN, KEPT, running, two_running
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def healthy() -> TraceBuilder:
    """A kubelet that has just started on a runtime in good health."""
    s = TraceBuilder()
    tell_status(s)
    return s


@detects("LOOP-03", begin=running, early=(False, True))
def test_unhealthy_runtime_stops_kills(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, *, early: bool
) -> None:
    """LOOP-03: a deletion waits for the runtime too."""
    tell_status(s, runtime=False)
    s.wait(3).delete(web)
    if not early:
        tell_status(s.wait(2))
    s.wait(1).stop(c1)


def test_loop_goes_on_after_recovery() -> None:
    """LOOP-03: a kubelet that stays asleep after the recovery breaks it."""
    s = healthy()
    tell_status(s.wait(5), runtime=False)
    s.wait(3).pod()
    tell_status(s.wait(2))
    tell_status(s.wait(60))

    assert s.judge("LOOP-03").verdict is BROKEN


def test_silent_runtime_stops_the_loop() -> None:
    """LOOP-03: a runtime without a good Status for 30 s counts as down."""
    s = healthy()
    for _ in range(7):
        s.wait(5).call("Status", {}, error="UNAVAILABLE")
    web = s.wait(2).pod()
    s.wait(1).run_sandbox(web)

    assert s.judge("LOOP-03").verdict is BROKEN


@detects("LOOP-04", host=(False, True))
def test_only_others_are_reported(s: TraceBuilder, *, host: bool) -> None:
    """LOOP-04: NetworkNotReady is for pods that need the pod network."""
    event(s, s.pod(hostNetwork=host), "NetworkNotReady", kind="Warning")


@detects("LOOP-05", reported=(True, False))
def test_nothing_happens_before_the_first_status(s: TraceBuilder, *, reported: bool) -> None:
    """LOOP-05: no sandbox before the runtime has said that it is ready."""
    web = s.pod()
    tell_status(s, runtime=reported)
    s.run_sandbox(web)
    s.stop_here()


@pytest.mark.parametrize(
    ("kubernetes", "gap", "verdict"), [("1.32", 7.1, BROKEN), ("1.26", 9.9, KEPT), ("1.26", 10.1, BROKEN)]
)
def test_container_manager_lists_twice_up_to_1_26(kubernetes: str, gap: float, verdict: Verdict) -> None:
    """LOOP-05: the first poll waits for one list after the other of an older container manager."""
    s = TraceBuilder(kubernetes)
    tell_status(s)
    s.call("ListContainers", {}, {}, takes=3)
    tell_status(s.wait(gap))
    s.stop_here()

    assert s.judge("LOOP-05").verdict is verdict


@detects("LOOP-05", gap=(6.9, 7.1))
def test_first_poll_starts_what_needs_a_runtime(s: TraceBuilder, gap: float) -> None:
    """LOOP-05: after the first good answer the kubelet has as long as its lists take, and 5 s more."""
    tell_status(s)
    s.call("ListContainers", {}, {}, takes=3)
    tell_status(s.wait(gap))
    s.stop_here()


@detects("LOOP-05", pause=(0.1, 0.01))
def test_polls_have_a_pause(s: TraceBuilder, pause: float) -> None:
    """LOOP-05: Status is asked ten times in a second at first, and not a hundred times."""
    for _ in range(40):
        tell_status(s.wait(pause))
    s.stop_here()


@detects("LOOP-09", begin=running, state=("terminated", "running"))
def test_exit_wakes_the_worker(s: TraceBuilder, web: PodHandle, c1: ContainerHandle, state: str) -> None:
    """LOOP-09: the next status tells of an exit."""
    s.exited(c1, 1)
    one: dict[str, Any] = {"name": "c1", "state": {state: {}}, "containerID": f"x://{c1.id}"}
    s.wait(1).status(web, containerStatuses=[one])


@detects("LOOP-01", begin=two_running, again=(True, False))
def test_exit_is_seen_without_the_api(
    s: TraceBuilder, web: PodHandle, sandbox: SandboxHandle, c1: ContainerHandle, *, again: bool
) -> None:
    """LOOP-01: a container is run again while the API server is silent."""
    outage(s)
    s.wait(1).exited(c1, 1)
    if again:
        s.run_container(web, sandbox, "c1", 1)
    tell_status(s.wait(30))


@pytest.mark.parametrize(("which", "limit", "more"), [("servers", 3, 1), ("searches", 32, 8)])
@detects("LOOP-21")
def test_resolver_limits_hold(s: TraceBuilder, which: str, limit: int, more: int, *, right: bool) -> None:
    """LOOP-21: three name servers, 32 search domains, and no more."""
    web = s.pod()
    dns = {which: [f"10.0.0.{number}" for number in range(limit if right else limit + more)]}
    s.run_sandbox(web, config=s.sandbox_config(web, dns_config=dns))
