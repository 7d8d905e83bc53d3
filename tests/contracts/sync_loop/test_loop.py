"""LOOP contracts: each is kept by a right trace and broken by a wrong one."""

from __future__ import annotations

from typing import Any

import pytest
from outside_world import event, file_pod, heal, killed, outage, start_static, started, tell_status
from running import BROKEN, KEPT, running, two_running
from trace_builder import TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict


def healthy() -> TraceBuilder:
    """A kubelet that has just started on a runtime in good health."""
    s = TraceBuilder()
    tell_status(s)
    return s


@pytest.mark.parametrize(("early", "verdict"), [(False, KEPT), (True, BROKEN)])
def test_unhealthy_runtime_stops_the_loop(*, early: bool, verdict: Verdict) -> None:
    """LOOP-03: a pod that comes while the runtime is not ready waits for it."""
    s = healthy()
    tell_status(s.wait(5), runtime=False)
    web = s.wait(3).pod()
    if early:
        s.wait(1).run_sandbox(web)
    tell_status(s.wait(2))
    s.wait(2).run_sandbox(web)

    assert s.judge("LOOP-03").verdict is verdict


@pytest.mark.parametrize(("early", "verdict"), [(False, KEPT), (True, BROKEN)])
def test_unhealthy_runtime_stops_kills(*, early: bool, verdict: Verdict) -> None:
    """LOOP-03: a deletion waits for the runtime too."""
    s, web, _, c1 = running()
    tell_status(s, runtime=False)
    s.wait(3).delete(web)
    if not early:
        tell_status(s.wait(2))
    s.wait(1).stop(c1)

    assert s.judge("LOOP-03").verdict is verdict


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


@pytest.mark.parametrize(("host", "verdict"), [(False, KEPT), (True, BROKEN)])
def test_only_others_are_reported(*, host: bool, verdict: Verdict) -> None:
    """LOOP-04: NetworkNotReady is for pods that need the pod network."""
    s = TraceBuilder()
    event(s, s.pod(hostNetwork=host), "NetworkNotReady", kind="Warning")

    assert s.judge("LOOP-04").verdict is verdict


@pytest.mark.parametrize(("reported", "verdict"), [(True, KEPT), (False, BROKEN)])
def test_nothing_happens_before_the_first_status(*, reported: bool, verdict: Verdict) -> None:
    """LOOP-05: no sandbox before the runtime has said that it is ready."""
    s = TraceBuilder()
    web = s.pod()
    tell_status(s, runtime=reported)
    s.run_sandbox(web)
    s.stop_here()

    assert s.judge("LOOP-05").verdict is verdict


@pytest.mark.parametrize(("gap", "verdict"), [(5, KEPT), (12, BROKEN)])
def test_status_is_polled(gap: int, verdict: Verdict) -> None:
    """LOOP-05: Status is asked for every 5 s."""
    s = healthy()
    for _ in range(3):
        tell_status(s.wait(gap))
    s.stop_here()

    assert s.judge("LOOP-05").verdict is verdict


@pytest.mark.parametrize(("early", "verdict"), [(False, KEPT), (True, BROKEN)])
def test_silent_source_keeps_its_pods(*, early: bool, verdict: Verdict) -> None:
    """LOOP-08: while the API server is silent no pod of its is killed."""
    s, _, _, c1 = running()
    killed(s)
    outage(s.wait(1))
    started(s.wait(1))
    s.wait(5)
    if early:
        s.stop(c1)
    heal(s.wait(10))

    assert s.judge("LOOP-08").verdict is verdict


@pytest.mark.parametrize(("state", "verdict"), [("terminated", KEPT), ("running", BROKEN)])
def test_exit_wakes_the_worker(state: str, verdict: Verdict) -> None:
    """LOOP-09: the next status tells of an exit."""
    s, web, _, c1 = running()
    s.exited(c1, 1)
    one: dict[str, Any] = {"name": "c1", "state": {state: {}}, "containerID": f"x://{c1.id}"}
    s.wait(1).status(web, containerStatuses=[one])

    assert s.judge("LOOP-09").verdict is verdict


@pytest.mark.parametrize(("waits", "verdict"), [(1, KEPT), (30, BROKEN)])
def test_silent_source_holds_up_no_other(waits: int, verdict: Verdict) -> None:
    """LOOP-01: a manifest is read while the API server is silent."""
    s = healthy()
    outage(s.wait(1))
    own = file_pod(s)
    s.wait(waits)
    start_static(s, own)

    assert s.judge("LOOP-01").verdict is verdict


@pytest.mark.parametrize(("again", "verdict"), [(True, KEPT), (False, BROKEN)])
def test_exit_is_seen_without_the_api(*, again: bool, verdict: Verdict) -> None:
    """LOOP-01: a container is run again while the API server is silent."""
    s, web, sandbox, c1, _ = two_running()
    outage(s)
    s.wait(1).exited(c1, 1)
    if again:
        s.run_container(web, sandbox, "c1", 1)
    tell_status(s.wait(30))

    assert s.judge("LOOP-01").verdict is verdict


@pytest.mark.parametrize(("servers", "verdict"), [(3, KEPT), (4, BROKEN)])
def test_resolver_limits_hold(servers: int, verdict: Verdict) -> None:
    """LOOP-21: three name servers and no more."""
    s = TraceBuilder()
    web = s.pod()
    dns = {"servers": [f"10.0.0.{number}" for number in range(servers)]}
    s.run_sandbox(web, config=s.sandbox_config(web, dns_config=dns))

    assert s.judge("LOOP-21").verdict is verdict


def test_too_many_search_domains() -> None:
    """LOOP-21: the search list has its limit too."""
    s = TraceBuilder()
    web = s.pod()
    dns = {"searches": [f"d{number}.example" for number in range(40)]}
    s.run_sandbox(web, config=s.sandbox_config(web, dns_config=dns))

    assert s.judge("LOOP-21").verdict is BROKEN
