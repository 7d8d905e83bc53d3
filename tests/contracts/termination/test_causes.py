"""TERM contracts on difficult ends: each is kept and broken by a trace."""

from typing import Any

import pytest
from running import BROKEN, KEPT, hook, running, two_running
from trace_builder import PodHandle, TraceBuilder

from kubelet_conformance.contract.verdicts import Verdict

DRAIN = '{"exec":{"command":["drain"]}}'


@pytest.mark.parametrize(
    ("runs_hook", "timeout", "verdict"), [(True, 7, KEPT), (True, 2, BROKEN), (False, 10, BROKEN)]
)
def test_grace_and_hook_are_read_back(*, runs_hook: bool, timeout: int, verdict: Verdict) -> None:
    """TERM-12: a lost container is stopped with the hook and the grace of its annotations."""
    s = TraceBuilder()
    web = s.pod(terminationGracePeriodSeconds=10)
    config: dict[str, Any] = s.container_config(web, "c1")
    config["annotations"]["io.kubernetes.container.preStopHandler"] = DRAIN
    sandbox = s.run_sandbox(web)
    c1 = s.create(web, sandbox, config=config)
    s.start(c1)
    s.wait(1).record("kubelet", op="killed")
    s.unset(web)
    s.record("runtime", op="unknown", container_id=c1.id, sandbox_id=sandbox.id)
    s.wait(1).record("kubelet", op="started")
    s.container_status(c1, state="CONTAINER_UNKNOWN")
    if runs_hook:
        hook(s, c1, "drain", takes=3)
    s.stop(c1, timeout)

    assert s.judge("TERM-12").verdict is verdict


@pytest.mark.parametrize(
    ("how", "verdict"), [("fails", KEPT), ("is stopped", BROKEN), ("is passed over", BROKEN)]
)
def test_stranger_to_the_spec_is_not_stopped(how: str, verdict: Verdict) -> None:
    """TERM-13: a container that the spec does not name makes the kill of its pod fail."""
    s, web, sandbox, c1 = running(source="file")
    web.manifest["spec"]["containers"] = [{"name": "c2", "image": "img:1"}]
    s.set(web)
    s.wait(5).unset(web)
    if how == "is stopped":
        s.stop(c1)
    s.stop_sandbox(sandbox)
    if how == "fails":
        s.record("event", uid=web.uid, type="Warning", reason="FailedKillPod", message="", count=1)

    assert s.judge("TERM-13").verdict is verdict


_SANDBOX = 'failed to "KillPodSandbox" for "u1": "rpc error: code = Internal desc = injected"'
_CONTAINER = 'failed to "KillContainer" for "c1": "rpc error: code = Internal desc = injected"'


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        (_SANDBOX, KEPT),
        ("error killing pod", BROKEN),
        (f"error killing pod: [{_SANDBOX}, {_CONTAINER}]", KEPT),
        (f"error killing pod: {_SANDBOX}, {_CONTAINER}", BROKEN),
        (f"error killing pod: [{_SANDBOX}]", BROKEN),
    ],
)
def test_failed_kill_is_reported_with_its_error(message: str, verdict: Verdict) -> None:
    """TERM-25: the event says with which error the runtime has refused the stop."""
    s, web, sandbox, *_ = running()
    s.stop_sandbox(sandbox, error="INTERNAL")
    s.record("event", uid=web.uid, type="Warning", reason="FailedKillPod", message=message, count=1)

    assert s.judge("TERM-25").verdict is verdict


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}, KEPT),
        ({"terminated": {"exitCode": 0, "reason": "Completed"}}, BROKEN),
        ({"waiting": {"reason": "ContainerCreating"}}, BROKEN),
    ],
)
def test_lost_container_has_ended_somehow(state: dict[str, Any], verdict: Verdict) -> None:
    """TERM-17: what was lost while its pod ended is reported as ended for an unknown reason."""
    s, web, sandbox, c1 = running()
    s.delete(web)
    s.record("runtime", op="removed", container_id=c1.id, sandbox_id=sandbox.id, name="c1")
    s.stop_sandbox(sandbox)
    s.status(web, "Failed", containerStatuses=[{"name": "c1", "restartCount": 0, "state": state}])
    _deletes(s, web)

    assert s.judge("TERM-17").verdict is verdict


_ENDED = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}


@pytest.mark.parametrize(
    ("code", "state", "verdict"),
    [
        (0, _ENDED, KEPT),
        (0, {"waiting": {"reason": "PodInitializing"}}, BROKEN),
        (1, {"waiting": {"reason": "PodInitializing"}}, KEPT),
        (1, _ENDED, BROKEN),
    ],
)
def test_what_never_started_ends_with_its_pod(code: int, state: dict[str, Any], verdict: Verdict) -> None:
    """TERM-17: an app container that never started has ended if the init containers were done."""
    s = TraceBuilder()
    web = s.pod(initContainers=[{"name": "i1", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    i1 = s.run_container(web, sandbox, "i1")
    s.wait(1).exited(i1, code)
    s.wait(20).delete(web)
    s.stop_sandbox(sandbox)
    s.status(web, "Failed", containerStatuses=[{"name": "c1", "restartCount": 0, "state": state}])
    _deletes(s, web)

    assert s.judge("TERM-17").verdict is verdict


def _deletes(s: TraceBuilder, pod: PodHandle) -> None:
    fields = {"resource": "pods", "uid": pod.uid, "precondition": pod.uid, "grace": 0, "code": 200}
    s.record("api", verb="delete", **fields)


@pytest.mark.parametrize(("timeout", "waits", "verdict"), [(30, 4, KEPT), (12, 4, BROKEN), (30, 300, BROKEN)])
def test_new_kubelet_ends_what_is_ending(timeout: int, waits: float, verdict: Verdict) -> None:
    """TERM-23: a kubelet that starts stops a pod that is being deleted, with its whole grace."""
    s, web, _, c1 = running()
    s.delete(web)
    s.begin("StopContainer", {"container_id": c1.id, "timeout": "30"})
    s.wait(10).record("kubelet", op="killed")
    s.wait(1).record("kubelet", op="started")
    s.wait(waits).stop(c1, timeout)

    assert s.judge("TERM-23").verdict is verdict


@pytest.mark.parametrize(("how", "verdict"), [("ends", KEPT), ("is cut", BROKEN), ("is passed by", BROKEN)])
def test_pull_is_awaited(how: str, verdict: Verdict) -> None:
    """TERM-26: the pull of a pod that is to go is awaited, and only then is something stopped."""
    s, web, sandbox, c1, _ = two_running()
    pull = s.begin("PullImage", {"image": {"image": "img:2"}, "sandbox_config": sandbox.config})
    s.wait(1).delete(web)
    if how == "is passed by":
        s.wait(1).stop(c1)
    s.wait(5).end("PullImage", pull, {"image_ref": "img"}, error="CANCELLED" if how == "is cut" else None)
    s.wait(0.1).stop(c1)

    assert s.judge("TERM-26").verdict is verdict
