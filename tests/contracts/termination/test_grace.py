"""StopContainer timeouts: each contract is kept by a right trace and broken by a wrong one."""

import pytest
from running import BROKEN, KEPT, POST_START, PRE_STOP, hook, probe, running, with_sidecar
from trace_builder import ContainerHandle, PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


@pytest.mark.parametrize(
    ("kubernetes", "grace", "timeout", "verdict"),
    [
        ("1.32", 5, 5, KEPT),
        ("1.32", 5, 30, BROKEN),
        ("1.32", 1, 2, KEPT),
        ("1.32", 1, 1, BROKEN),
        ("1.26", 1, 1, KEPT),
        ("1.26", 1, 2, BROKEN),
    ],
)
def test_deletion_gives_its_grace(kubernetes: str, grace: int, timeout: int, verdict: Verdict) -> None:
    """TERM-03: the timeout is the deletion's grace, at least 2 s but in 1.22 to 1.26."""
    s, web, _, c1 = running(kubernetes)
    s.delete(web, grace)
    s.wait(0.1).stop(c1, timeout)

    assert s.judge("TERM-03").verdict is verdict


@pytest.mark.parametrize(("timeout", "verdict"), [(23, KEPT), (30, BROKEN), (17, BROKEN)])
def test_hook_is_taken_off_the_grace(timeout: int, verdict: Verdict) -> None:
    """TERM-05: 7 s of a preStop hook leave 23 of 30."""
    s, web, _, c1 = running(lifecycle=PRE_STOP)
    s.delete(web, 30)
    hook(s, c1, "drain", takes=7)
    s.stop(c1, timeout)

    assert s.judge("TERM-05").verdict is verdict


@pytest.mark.parametrize(("timeout", "verdict"), [(24, KEPT), (23, KEPT), (25, BROKEN)])
def test_what_comes_after_a_hook_is_no_wait(timeout: int, verdict: Verdict) -> None:
    """TERM-05: 6.95 s of a hook are 6 whole seconds, though the stop comes a moment later."""
    s, web, _, c1 = running(lifecycle=PRE_STOP)
    s.delete(web, 30)
    hook(s, c1, "drain", takes=6.95)
    s.wait(0.1).stop(c1, timeout)

    assert s.judge("TERM-05").verdict is verdict


@pytest.mark.parametrize(("between", "timeout", "verdict"), [(0, 10, KEPT), (0, 7, BROKEN), (3, 10, BROKEN)])
def test_shorter_grace_comes_too_late_for_the_turn(between: float, timeout: int, verdict: Verdict) -> None:
    """TERM-05: a kill that began with the first of two graces gives a sidecar what is left of that one."""
    s = TraceBuilder()
    web, _, sc, c1 = with_sidecar(s)
    s.delete(web, 10)
    s.delete(web, 1)
    s.wait(between).stop(c1, 10)
    s.stop(sc, timeout)

    assert s.judge("TERM-05").verdict is verdict


@pytest.mark.parametrize(("timeout", "verdict"), [(30, KEPT), (20, BROKEN)])
def test_nobody_waits_for_what_was_stopped_alone(timeout: int, verdict: Verdict) -> None:
    """TERM-03, TERM-05: what was stopped while another one went on is no part of the kill of the pod."""
    s = TraceBuilder()
    hooked = {"lifecycle": {"postStart": {"httpGet": {"port": 80}}}}
    apps = [{"name": "c1", "image": "img:1", **hooked}, {"name": "c2", "image": "img:1"}]
    web, sandbox, sc, c1 = with_sidecar(s, containers=apps, restartPolicy="Never")
    s.stop(c1, 30)
    c2 = s.run_container(web, sandbox, "c2")
    s.wait(10).exited(c2, 1)
    s.stop(sc, timeout)

    assert s.judge("TERM-03").verdict is verdict
    assert not s.judge("TERM-05").breaks


@pytest.mark.parametrize(
    ("deadline", "timeout", "broken"), [(10, 27, ""), (10, 30, "TERM-05"), (1000, 27, "TERM-03")]
)
def test_turn_at_the_deadline_is_taken_off_the_grace(deadline: int, timeout: int, broken: str) -> None:
    """TERM-03, TERM-05: a pod that has run as long as it may goes whole: its sidecar waits its turn."""
    s = TraceBuilder(started="2026-01-01T12:00:00Z")
    hooked = {"lifecycle": {"postStart": {"httpGet": {"port": 80}}}}
    web, _, sc, c1 = with_sidecar(s, sidecar=hooked, activeDeadlineSeconds=deadline)
    s.status(web, startTime="2026-01-01T12:00:00Z")
    s.wait(11).stop(c1, 30, takes=3)
    s.stop(sc, timeout)

    assert [one for one in ("TERM-03", "TERM-05") if s.judge(one).breaks] == [broken] * bool(broken)


@pytest.mark.parametrize(("timeout", "verdict"), [(30, KEPT), (20, BROKEN)])
def test_nobody_waits_for_an_earlier_instance(timeout: int, verdict: Verdict) -> None:
    """TERM-03: a sidecar that was stopped and made again at one moment waits for no other."""
    s = TraceBuilder()
    web = s.pod(initContainers=[{"name": "sc", "image": "img:1", "restartPolicy": "Always"}])
    sandbox = s.run_sandbox(web)
    first = s.run_container(web, sandbox, "sc")
    s.stop(first, 30)
    second = s.run_container(web, sandbox, "sc", 1)
    s.wait(3).sandbox_died(sandbox)
    s.stop(second, timeout)

    assert s.judge("TERM-03").verdict is verdict
    assert not s.judge("TERM-05").breaks


@detects("TERM-05", again=(True, False))
def test_nobody_waits_for_a_hook_before_its_start(s: TraceBuilder, *, again: bool) -> None:
    """TERM-05: a sidecar that was made after a hook of another had begun did not wait for that hook."""
    web, _, sc, c1 = with_sidecar(s, app={"lifecycle": PRE_STOP})
    s.delete(web, 30)
    hook(s, c1, "drain", takes=7)
    if again:
        s.stop(c1, 23)
        s.stop(sc, 23)
        sc = s.run_container(web, s.run_sandbox(web, 1), "sc", 1)
    s.stop(sc, 30)


@pytest.mark.parametrize("hooked", [False, True])
@detects("TERM-05", timeout=(28, 30))
def test_turn_is_taken_off_the_grace(s: TraceBuilder, timeout: int, *, hooked: bool) -> None:
    """TERM-05: a sidecar that waited 2 s for its turn, be it for a hook of another, has 28 of 30 left."""
    web, _, sc, c1 = with_sidecar(s, app={"lifecycle": PRE_STOP} if hooked else {})
    s.delete(web, 30)
    if hooked:
        hook(s, c1, "drain", takes=2)
    s.stop(c1, 28 if hooked else 30, takes=0.001 if hooked else 2)
    s.stop(sc, timeout)


@pytest.mark.parametrize(
    ("kubernetes", "after", "timeout", "verdict"),
    [
        ("1.32", 5, 2, KEPT),
        ("1.32", 5, 5, BROKEN),
        ("1.26", 5, 5, KEPT),
        ("1.26", 5, 2, BROKEN),
        ("1.32", 2, 2, BROKEN),
        ("1.32", 30, 2, BROKEN),
    ],
)
def test_hook_that_outlasts_the_grace(kubernetes: str, after: float, timeout: int, verdict: Verdict) -> None:
    """TERM-06: the hook is left when the grace of 5 s is over, neither before nor much later."""
    s, web, _, c1 = running(kubernetes, lifecycle=PRE_STOP)
    s.delete(web, 5)
    s.begin("ExecSync", {"container_id": c1.id, "cmd": ["drain"]})
    s.wait(after).stop(c1, timeout)

    assert s.judge("TERM-06").verdict is verdict


@pytest.mark.parametrize(("timeout", "verdict"), [(5, KEPT), (30, BROKEN), (60, BROKEN)])
def test_grace_only_shrinks(timeout: int, verdict: Verdict) -> None:
    """WORK-07: of 60, 5 and 30 s the 5 hold."""
    s, web, _, c1 = running()
    for grace in (60, 5, 30):
        s.delete(web, grace)
        s.wait(1)
    s.stop(c1, timeout)

    assert s.judge("WORK-07").verdict is verdict


@pytest.mark.parametrize(("timeout", "verdict"), [(30, KEPT), (10, KEPT), (60, BROKEN)])
def test_kill_that_began_with_the_longer_grace(timeout: int, verdict: Verdict) -> None:
    """WORK-07: of two graces asked for in one moment the kill may still begin with the first."""
    s, web, _, c1 = running()
    s.delete(web, 30)
    s.delete(web, 10)
    s.stop(c1, timeout)

    assert s.judge("WORK-07").verdict is verdict


@pytest.mark.parametrize(
    ("kubernetes", "timeout", "verdict"),
    [("1.26", 9, KEPT), ("1.26", 2, BROKEN), ("1.32", 2, KEPT), ("1.32", 9, BROKEN)],
)
@pytest.mark.parametrize("reported_late", [False, True])
def test_forced_deletion(*, kubernetes: str, timeout: int, verdict: Verdict, reported_late: bool) -> None:
    """WORK-08: the pod's own grace up to 1.26, the least from 1.31; also if the removal is seen late."""
    s, web, _, c1 = running(kubernetes, grace=9)
    if not reported_late:
        s.deleted(web)
    stop = s.begin("StopContainer", {"container_id": c1.id, "timeout": str(timeout)})
    if reported_late:
        s.wait(0.05).deleted(web)
    s.wait(1).end("StopContainer", stop)

    assert s.judge("WORK-08").verdict is verdict


@detects("TERM-03", timeout=(30, 5))
def test_kill_of_one_is_no_turn(s: TraceBuilder, timeout: int) -> None:
    """TERM-03: a sidecar has not waited for a container whose failed postStart hook ended the pod."""
    _, _, sc, c1 = with_sidecar(s, app={"lifecycle": POST_START}, restartPolicy="Never")
    hook(s, c1, "warm", code=1)
    s.stop(c1, 30, takes=25)
    s.wait(1).stop(sc, timeout)


@pytest.mark.parametrize(("dead", "breaks"), [(True, False), (False, True)])
def test_kill_of_a_dead_sandbox_that_met_the_end(*, dead: bool, breaks: bool) -> None:
    """WORK-08: a pod whose sandbox dies when it is deleted by force may be stopped with its own grace."""
    s, web, sandbox, c1 = running()
    if dead:
        s.sandbox_died(sandbox)
    s.delete(web, 0)
    s.unset(web)
    s.stop(c1, 30)

    assert (s.judge("WORK-08").verdict is BROKEN) is breaks


@pytest.mark.parametrize("fault", ["the watch is gone", "the API server is away"])
@pytest.mark.parametrize(
    ("missed", "timeout", "verdict"), [(True, 30, KEPT), (True, 20, BROKEN), (False, 30, BROKEN)]
)
def test_forced_deletion_that_was_missed(fault: str, *, missed: bool, timeout: int, verdict: Verdict) -> None:
    """TERM-03, WORK-08: without a watch the kubelet learns that the pod is gone, and not with which grace."""
    s, web, _, c1 = running()
    if missed:
        s.record("fault", what=fault)
    s.delete(web, 0)
    s.unset(web)
    s.wait(8).stop(c1, timeout)

    assert s.judge("TERM-03").verdict is verdict
    assert (s.judge("WORK-08").verdict is BROKEN) is not missed


@detects("WORK-08", if_right=Verdict.NOT_EXERCISED, begin=running, later=(0.05, 2))
def test_deletion_that_is_forced_at_once(
    s: TraceBuilder, web: PodHandle, c1: ContainerHandle, later: float
) -> None:
    """WORK-08: a kill may have begun with the grace that was asked for a moment before."""
    s.delete(web, 60)
    s.delete(web, 0)
    s.unset(web)
    s.wait(later).stop(c1, 60)


@detects("TERM-03", timeout=(5, 30))
def test_probes_may_run_at_the_same_time(s: TraceBuilder, timeout: int) -> None:
    """TERM-03: a probe has failed, whichever other one has begun meanwhile."""
    alive, ready = ({"exec": {"command": [word]}} for word in ("alive", "ready"))
    own = {"livenessProbe": alive | {"terminationGracePeriodSeconds": 5}, "readinessProbe": ready}
    web = s.pod(containers=[{"name": "c1", "image": "img:1", **own}])
    c1 = s.run_container(web, s.run_sandbox(web))
    asked = {"container_id": c1.id, "timeout": "1"}
    probed, other = (s.begin("ExecSync", {**asked, "cmd": [word]}) for word in ("alive", "ready"))
    s.end("ExecSync", probed, {"exit_code": 1})
    s.end("ExecSync", other)
    s.stop(c1, timeout)


@pytest.mark.parametrize(("policy", "breaks"), [("Never", False), ("Always", True)])
def test_probe_that_ends_the_pod_stops_all_of_it(policy: str, *, breaks: bool) -> None:
    """TERM-05: under Never the only container takes its sidecar along, which waits for its turn meanwhile."""
    s = TraceBuilder()
    probed = {"livenessProbe": {"exec": {"command": ["alive"]}}}
    _, sandbox, sc, c1 = with_sidecar(s, app=probed, restartPolicy=policy)
    probe(s, c1, 1)
    s.stop(c1, 30, takes=3)
    if policy == "Always":
        s.sandbox_died(sandbox)
    s.stop(sc, 27)

    assert bool(s.judge("TERM-03").breaks) is breaks
    assert not s.judge("TERM-05").breaks
