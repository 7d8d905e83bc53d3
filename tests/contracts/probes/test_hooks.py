"""HOOK contracts: each is kept by a right trace and broken by a wrong one."""

import pytest
from running import BROKEN, KEPT, POST_START, PRE_STOP, hook, running
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def starting(*names: str) -> tuple[TraceBuilder, PodHandle, SandboxHandle, ContainerHandle]:
    """A pod whose first container has just been started and has a postStart hook."""
    s = TraceBuilder()
    others = [{"name": name, "image": "img:1"} for name in names]
    web = s.pod(containers=[{"name": "c1", "image": "img:1", "lifecycle": POST_START | PRE_STOP}, *others])
    sandbox = s.run_sandbox(web)
    c1 = s.create(web, sandbox)
    s.start(c1)
    return s, web, sandbox, c1


@pytest.mark.parametrize(("times", "verdict"), [(1, KEPT), (0, BROKEN), (2, BROKEN)])
def test_post_start_runs_once(times: int, verdict: Verdict) -> None:
    """HOOK-01: once after the start, neither left out nor repeated."""
    s, _, _, c1 = starting()
    for _ in range(times):
        hook(s, c1, "warm")

    assert s.judge("HOOK-01").verdict is verdict


@pytest.mark.parametrize(("second", "verdict"), [("drain", KEPT), ("warm", BROKEN)])
def test_post_start_comes_before_pre_stop(second: str, verdict: Verdict) -> None:
    """HOOK-01: the hook for the start does not follow the one for the end."""
    s, _, _, c1 = starting()
    for each in ("warm", "drain") if second == "drain" else ("drain", "warm"):
        hook(s, c1, each)

    assert s.judge("HOOK-01").verdict is verdict


@detects("HOOK-02", begin=starting, timeout=("0", "30"))
def test_hook_has_no_timeout(s: TraceBuilder, c1: ContainerHandle, timeout: str) -> None:
    """HOOK-02: ExecSync for a hook has the timeout 0."""
    s.call("ExecSync", {"container_id": c1.id, "cmd": ["warm"], "timeout": timeout}, {})


@pytest.mark.parametrize(
    ("stops", "again", "reported", "verdict"),
    [(1, 1, 1, KEPT), (0, 0, 1, BROKEN), (1, 0, 1, BROKEN), (1, 1, 0, BROKEN)],
)
def test_failed_post_start_kills(stops: int, again: int, reported: int, verdict: Verdict) -> None:
    """HOOK-03: a container whose postStart hook failed is killed and made again, and an event tells it."""
    s, web, sandbox, c1 = starting()
    hook(s, c1, "warm", code=1)
    if stops:
        hook(s, c1, "drain")
        s.stop(c1)
    if again:
        s.run_container(web, sandbox, "c1", attempt=1)
    if reported:
        s.record("event", uid=web.uid, type="Warning", reason="FailedPostStartHook", message="failed")

    assert s.judge("HOOK-03").verdict is verdict


@pytest.mark.parametrize("policy", ["Never", "IfNotPresent"])
def test_nothing_asks_for_an_image_that_may_not_be_pulled(policy: str) -> None:
    """HOOK-03: with policy Never it is not made again where its new image is not there."""
    s = TraceBuilder()
    c1 = {"name": "c1", "image": "img:1", "imagePullPolicy": policy, "lifecycle": POST_START}
    web = s.pod(containers=[c1])
    made = s.run_container(web, s.run_sandbox(web))
    hook(s, made, "warm", code=1)
    s.stop(made)
    s.record("event", uid=web.uid, type="Warning", reason="FailedPostStartHook", message="failed")
    web.manifest["spec"]["containers"][0]["image"] = "img:2"
    s.set(web)
    s.wait(60)

    assert bool(s.judge("HOOK-03").breaks) is (policy == "IfNotPresent")


@pytest.mark.parametrize(
    ("how", "verdict"),
    [
        ("hook stop", KEPT),
        ("hook refused hook stop", KEPT),
        ("stop", BROKEN),
        ("hook", BROKEN),
        ("hook hook stop", BROKEN),
    ],
)
def test_hook_before_every_stop(how: str, verdict: Verdict) -> None:
    """HOOK-05: the hook comes before the stop, and the stop after the hook; anew where it is refused."""
    s, web, _, c1 = running(lifecycle=PRE_STOP)
    s.delete(web)
    for step in how.split():
        if step == "hook":
            hook(s, c1, "drain")
        elif step == "refused":
            s.stop(c1, error="UNKNOWN", takes=0)
        else:
            s.stop(c1)

    assert s.judge("HOOK-05").verdict is verdict


@pytest.mark.parametrize(
    ("kubernetes", "grace", "breaks"), [("1.26", 0, False), ("1.26", 1, True), ("1.28", 0, True)]
)
def test_pod_without_grace_has_no_hook(kubernetes: str, grace: int, *, breaks: bool) -> None:
    """HOOK-05: before 1.28 the least grace that a removed pod gets is for StopContainer alone."""
    s, web, _, c1 = running(kubernetes, grace=grace, source="file", lifecycle=PRE_STOP)
    s.unset(web)
    s.stop(c1, 1)

    assert bool(s.judge("HOOK-05").breaks) is breaks


@pytest.mark.parametrize(("stops", "reported", "verdict"), [(1, 1, KEPT), (0, 1, BROKEN), (1, 0, BROKEN)])
def test_failed_pre_stop(stops: int, reported: int, verdict: Verdict) -> None:
    """HOOK-06: the stop follows a failed hook, and an event tells it."""
    s, web, _, c1 = running(lifecycle=PRE_STOP)
    s.delete(web)
    hook(s, c1, "drain", code=1)
    if stops:
        s.stop(c1)
    if reported:
        s.record("event", uid=web.uid, type="Warning", reason="FailedPreStopHook", message="failed")

    assert s.judge("HOOK-06").verdict is verdict
