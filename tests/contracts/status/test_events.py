"""EVENTS contracts: each is kept by a right trace and broken by a wrong one."""

import pytest
from outside_world import event, killed, started
from running import BROKEN, KEPT, running
from trace_builder import TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


@pytest.mark.parametrize(
    ("name", "path", "verdict"),
    [
        ("c1", "spec.containers", KEPT),
        ("i1", "spec.initContainers", KEPT),
        ("i1", "spec.containers", BROKEN),
        ("", "", BROKEN),
    ],
)
def test_container_events_name_their_container(name: str, path: str, verdict: Verdict) -> None:
    """EVENTS-02: the field path says which container."""
    s = TraceBuilder()
    event(s, s.pod(initContainers=[{"name": "i1", "image": "img:1"}]), "Created", name, path=path)

    assert s.judge("EVENTS-02").verdict is verdict


@pytest.mark.parametrize(("reason", "verdict"), [("Started", KEPT), ("", BROKEN)])
def test_every_event_has_a_reason(reason: str, verdict: Verdict) -> None:
    """EVENTS-01: an event without a reason breaks it."""
    s = TraceBuilder()
    event(s, s.pod(), reason, "c1")

    assert s.judge("EVENTS-01").verdict is verdict


@pytest.mark.parametrize(("count", "verdict"), [(19, KEPT), (20, BROKEN)])
def test_events_do_not_flood(count: int, verdict: Verdict) -> None:
    """EVENTS-01: the same event comes twenty times in a moment."""
    s = TraceBuilder()
    pod = s.pod()
    for _ in range(count):
        event(s, pod, "Pulled", "c1")

    assert s.judge("EVENTS-01").verdict is verdict


@pytest.mark.parametrize(
    "contract",
    [
        *("CONFIG-14", "EVENTS-01", "IMAGE-20", "IMAGE-21", "IMAGE-22", "SANDBOX-16"),
        *("SYNC-10", "SYNC-18", "TERM-27", "WORK-06"),
    ],
)
def test_what_a_scenario_waits_for_decides(contract: str) -> None:
    """What a scenario expects of these came true, or did not."""
    for met, verdict in ((True, KEPT), (False, BROKEN)):
        s = TraceBuilder(kubernetes="1.35")
        s.record("expect", contract=contract, awaited="it is so", met=met)

        assert s.judge(contract).verdict is verdict


@pytest.mark.parametrize(
    ("order", "verdict"), [(("Created", "Started"), KEPT), (("Started", "Created"), BROKEN)]
)
def test_events_come_in_order(order: tuple[str, ...], verdict: Verdict) -> None:
    """EVENTS-06: Created before Started."""
    s, web, _, _ = running()
    for reason in order:
        event(s, web, reason, "c1")

    # The trace's start at 0 s has had no event, which is another break where the order is right.
    broken = s.judge("EVENTS-06").broken_clauses
    assert (("start", None) in broken) is (verdict is BROKEN)


@pytest.mark.parametrize(("first", "broken"), [("Unhealthy", False), ("Created", True)])
def test_unhealthy_comes_before_killing(first: str, *, broken: bool) -> None:
    """EVENTS-06: a kill for a probe comes after an Unhealthy."""
    s, web, _, _ = running()
    event(s, web, first, "c1")
    event(s, web, "Killing", "c1", message="Container c1 failed liveness probe, will be restarted")

    assert (("kill", None) in s.judge("EVENTS-06").broken_clauses) is broken


@pytest.mark.parametrize("wrong", ["", "silent"])
@pytest.mark.parametrize("before", [True, False])
def test_each_kill_is_reported(*, before: bool, wrong: str) -> None:
    """TERM-09: Killing comes with each kill, just before or after."""
    s, web, _, c1 = running()
    if before and not wrong:
        event(s, web, "Killing", "c1")
    s.stop(c1)
    if not before and not wrong:
        event(s, web, "Killing", "c1")

    assert s.judge("TERM-09").verdict is (BROKEN if wrong else KEPT)


@detects("START-03", reported=(True, False))
def test_failed_start_is_reported(s: TraceBuilder, *, reported: bool) -> None:
    """START-03: a container that cannot be made has its event."""
    web = s.pod()
    s.create(web, s.run_sandbox(web), error="INTERNAL")
    if reported:
        event(s, web, "Failed", "c1", kind="Warning")


@detects("EVENTS-02", if_right=Verdict.NOT_EXERCISED, gone=(True, False))
def test_what_nobody_wants_has_no_lists(s: TraceBuilder, *, gone: bool) -> None:
    """EVENTS-02: of a pod that was deleted while the kubelet was down, records tell containers alone."""
    web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
    s.run_container(web, s.run_sandbox(web), "i1")
    killed(s)
    if gone:
        s.unset(web)
    started(s.wait(1))
    event(s, web, "Killing", "i1")


@detects("EVENTS-02", if_right=Verdict.NOT_EXERCISED, stopped=(True, False))
def test_what_is_killed_again_has_no_lists(s: TraceBuilder, *, stopped: bool) -> None:
    """EVENTS-02: a pod that was stopped when its source no longer had it may be known from records alone."""
    web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
    i1 = s.run_container(web, s.run_sandbox(web), "i1")
    s.unset(web)
    if stopped:
        s.stop(i1)
    event(s, web, "Killing", "i1")
