"""RESTART contracts: each is kept by a right trace and broken by a wrong one."""

from typing import Any

import pytest
from outside_world import file_pod, outage, remove_file, start_static
from trace_builder import ContainerHandle, PodHandle, SandboxHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

PROBE = {"exec": {"command": ["x", "1", "0"]}}


def running(
    s: TraceBuilder, policy: str = "Always", **more: Any
) -> tuple[PodHandle, SandboxHandle, ContainerHandle]:
    """A pod whose only container c1 runs."""
    web = s.pod(containers=[{"name": "c1", "image": "img:1", **more}], restartPolicy=policy)
    sandbox = s.run_sandbox(web)
    return web, sandbox, s.run_container(web, sandbox)


def new_image(s: TraceBuilder, web: PodHandle, image: str = "img:2") -> None:
    """The pod's first container gets another image."""
    web.manifest["spec"]["containers"][0]["image"] = image
    s.set(web)


@detects("RESTART-02", changed=(True, False))
def test_stop_for_a_change_that_was_taken_back(s: TraceBuilder, *, changed: bool) -> None:
    """RESTART-02: a container that was stopped for a new image may be wanted with its old one by then."""
    web, sandbox, c1 = running(s)
    old = web.manifest["spec"]["containers"][0]["image"]
    if changed:
        new_image(s, web)
    s.stop(c1)
    web.manifest["spec"]["containers"][0]["image"] = old
    s.set(web)
    s.wait(10).run_container(web, sandbox, attempt=1)


@detects("RESTART-02", went=(True, False))
def test_stop_of_a_pod_whose_file_came_back(s: TraceBuilder, *, went: bool) -> None:
    """RESTART-02: a static pod that was to go, and is wanted again before its sandbox was stopped."""
    web = file_pod(s)
    sandbox, c1 = start_static(s, web)
    if went:
        remove_file(s, web)
    s.stop(c1)
    if went:
        file_pod(s)
    s.wait(5).run_container(web, sandbox, attempt=1)


@pytest.mark.parametrize("replaced", [False, True])
@detects("RESTART-04")
def test_unknown_container_is_stopped_first(s: TraceBuilder, *, right: bool, replaced: bool) -> None:
    """RESTART-04 breaks when an unknown instance is left, and when another is made beside it."""
    web, sandbox, c1 = running(s)
    s.container_status(c1, state="CONTAINER_UNKNOWN")
    if right:
        s.stop(c1)
    if right or replaced:
        s.run_container(web, sandbox, attempt=1)


@pytest.mark.parametrize("lost_too", [False, True])
@detects("RESTART-04")
def test_unknown_container_may_go_with_its_failed_pod(
    s: TraceBuilder, *, right: bool, lost_too: bool
) -> None:
    """RESTART-04 leaves an unknown container to the end of a Never pod in which nothing else runs."""
    both = [{"name": name, "image": "img:1"} for name in ("c1", "c2")]
    web = s.pod(containers=both, restartPolicy="Never")
    sandbox = s.run_sandbox(web)
    c1, c2 = (s.run_container(web, sandbox, name) for name in ("c1", "c2"))
    s.container_status(c1, state="CONTAINER_UNKNOWN")
    if lost_too:
        s.container_status(c2, state="CONTAINER_UNKNOWN")
    elif right:
        s.exited(c2, 0)
    if right or not lost_too:
        s.stop_sandbox(sandbox)


@pytest.mark.parametrize(("policy", "code"), [("Never", 0), ("Never", 1), ("OnFailure", 0)])
@detects("RESTART-05")
def test_policy_leaves_the_container(s: TraceBuilder, policy: str, code: int, *, right: bool) -> None:
    """RESTART-05 breaks when a container that is to be left is made again."""
    web, sandbox, c1 = running(s, policy)
    s.wait(1).exited(c1, code)
    if not right:
        s.wait(1).run_container(web, sandbox, attempt=1)
    s.stop_sandbox(sandbox)


@pytest.mark.parametrize("wrong", ["ignored", "not replaced", "beside"])
@pytest.mark.parametrize("policy", ["Always", "Never"])
@detects("RESTART-07")
def test_changed_container_is_replaced(s: TraceBuilder, policy: str, wrong: str, *, right: bool) -> None:
    """RESTART-07 breaks when a new image is ignored, ends the container, or runs beside the old one."""
    web, sandbox, c1 = running(s, policy)
    s.wait(5)
    new_image(s, web)
    if right or wrong == "not replaced":
        s.stop(c1)
    if right or wrong == "beside":
        s.run_container(web, sandbox, attempt=1)


@detects("RESTART-09", if_right=Verdict.NOT_EXERCISED, pull=("Never", None))
def test_restart_may_find_no_image(s: TraceBuilder, pull: str | None) -> None:
    """RESTART-09: with pull policy Never an image that was changed meanwhile may not be there."""
    web, _, c1 = running(s, "Always", livenessProbe=PROBE, **({"imagePullPolicy": pull} if pull else {}))
    s.wait(9).stop(c1)
    web.manifest["spec"]["containers"][0]["image"] = "img:2"
    s.set(web)
    s.wait(100).stop_here()


@detects("RESTART-17", if_right=Verdict.NOT_EXERCISED, changed=(True, False))
def test_sibling_with_a_new_image_is_stopped_for_it(s: TraceBuilder, *, changed: bool) -> None:
    """RESTART-17: a sync may find both the crash of one container and the new image of another."""
    web = s.pod(containers=[{"name": "c1", "image": "img:1"}, {"name": "c2", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    c1, c2 = s.run_container(web, sandbox, "c1"), s.run_container(web, sandbox, "c2")
    if changed:
        web.manifest["spec"]["containers"][1]["image"] = "img:2"
        s.set(web)
    s.wait(5).exited(c1, 1)
    s.stop(c2)


@pytest.mark.parametrize("contract_id", ["RESTART-07", "RESTART-11"])
@pytest.mark.parametrize("failed", [True, False])
def test_failed_hook_is_answered_with_a_back_off(contract_id: str, *, failed: bool) -> None:
    """RESTART-07, RESTART-11: what is stopped for its postStart hook is not made again at once."""
    s = TraceBuilder()
    hook = {"postStart": {"exec": {"command": ["warm"]}}}
    web, _, c1 = running(s, lifecycle=hook)
    s.call("ExecSync", {"container_id": c1.id, "cmd": ["warm"]}, {"exit_code": int(failed)})
    new_image(s, web)
    s.stop(c1)
    s.wait(60).stop_here()

    assert bool(s.judge(contract_id).breaks) is not failed


@detects("RESTART-05", if_right=Verdict.NOT_EXERCISED, changed=(True, False))
def test_end_that_is_not_read_counts_for_nothing(s: TraceBuilder, *, changed: bool) -> None:
    """RESTART-05: what ended just before it was to be stopped for its new image is made again by that."""
    web, sandbox, c1 = running(s, "Never")
    s.wait(5).exited(c1, 0, seen=False)
    if changed:
        new_image(s, web)
    s.run_container(web, sandbox, attempt=1)


@detects("RESTART-05", if_right=Verdict.NOT_EXERCISED, killed=(True, False))
def test_end_during_a_kill_counts_for_nothing(s: TraceBuilder, *, killed: bool) -> None:
    """RESTART-05: what ends by itself while it is killed for its probe is made again by that."""
    web, sandbox, c1 = running(s, "OnFailure", startupProbe={"httpGet": {"path": "/", "port": 80}})
    s.wait(5).exited(c1, 0)
    if killed:
        s.call("StopContainer", {"container_id": c1.id, "timeout": "30"}, {})
    s.run_container(web, sandbox, attempt=1)


@pytest.mark.parametrize("after", [8, 1])
def test_deadline_stops_siblings(after: int) -> None:
    """RESTART-17: when the pod's time is over, the siblings of one that crashed are stopped, too."""
    s = TraceBuilder(started="2026-01-01T00:00:00Z")
    names = [{"name": "c1", "image": "img:1"}, {"name": "c2", "image": "img:1"}]
    web = s.pod(containers=names, activeDeadlineSeconds=10)
    sandbox = s.run_sandbox(web)
    c1, c2 = s.run_container(web, sandbox, "c1"), s.run_container(web, sandbox, "c2")
    s.status(web, startTime="2026-01-01T00:00:00Z")
    s.wait(3).exited(c1, 1)
    s.wait(after).stop(c2)
    s.wait(1).stop_here()

    assert (s.judge("RESTART-17").verdict is Verdict.BROKEN) is (after == 1)


@detects("RESTART-06", if_right=Verdict.NOT_EXERCISED, is_away=(True, False))
def test_deletion_that_nobody_could_tell(s: TraceBuilder, *, is_away: Any) -> None:
    """RESTART-06: a pod that was deleted while the API server was away goes on until the kubelet hears."""
    web, sandbox, c1 = running(s)
    if is_away:
        outage(s)
    s.unset(web)
    s.wait(5).exited(c1, 1)
    s.run_container(web, sandbox, attempt=1)
    s.stop_sandbox(sandbox)
