"""RESTART contracts: each is kept by a right story and broken by a wrong one."""

from __future__ import annotations

from typing import Any

import pytest
from outside_world import file_pod, outage, remove_file, start_static
from story import ContainerHandle, PodHandle, SandboxHandle, Story
from twice import assert_bites

from kubelet_conformance.contract.verdicts import Verdict

PROBE = {"exec": {"command": ["x", "1", "0"]}}


def running(
    s: Story, policy: str = "Always", **more: Any
) -> tuple[PodHandle, SandboxHandle, ContainerHandle]:
    """A pod whose only container c1 runs."""
    web = s.pod(containers=[{"name": "c1", "image": "img:1", **more}], restartPolicy=policy)
    sandbox = s.run_sandbox(web)
    return web, sandbox, s.run_container(web, sandbox)


def new_image(s: Story, web: PodHandle, image: str = "img:2") -> None:
    """The pod's first container gets another image."""
    web.manifest["spec"]["containers"][0]["image"] = image
    s.set(web)


def lost(s: Story, one: ContainerHandle) -> None:
    """The runtime loses the record of a container."""
    s.record("runtime", op="removed", container_id=one.id, sandbox_id=one.sandbox.id, name=one.name)


def test_lost_container_is_started() -> None:
    """RESTART-01 breaks when a container without a record is not made again."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s, "Never")
        lost(s, c1)
        if right:
            s.wait(1).run_container(web, sandbox, attempt=1)

    assert_bites("RESTART-01", tell)


@pytest.mark.parametrize("stopped", [False, True])
def test_running_container_is_left(*, stopped: bool) -> None:
    """RESTART-02 breaks when a running container is made twice, and when it is replaced for no reason."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s)
        if right:
            new_image(s, web)
        if right or stopped:
            s.stop(c1)
        s.run_container(web, sandbox, attempt=1)

    assert_bites("RESTART-02", tell)


@pytest.mark.parametrize("changed", [True, False])
def test_stop_for_a_change_that_was_taken_back(*, changed: bool) -> None:
    """RESTART-02: a container that was stopped for a new image may be wanted with its old one by then."""
    s = Story()
    web, sandbox, c1 = running(s)
    old = web.manifest["spec"]["containers"][0]["image"]
    if changed:
        new_image(s, web)
    s.stop(c1)
    web.manifest["spec"]["containers"][0]["image"] = old
    s.set(web)
    s.wait(10).run_container(web, sandbox, attempt=1)

    assert bool(s.judge("RESTART-02").breaks) is not changed


@pytest.mark.parametrize("went", [True, False])
def test_stop_of_a_pod_whose_file_came_back(*, went: bool) -> None:
    """RESTART-02: a static pod that was to go, and is wanted again before its sandbox was stopped."""
    s = Story()
    web = file_pod(s)
    sandbox, c1 = start_static(s, web)
    if went:
        remove_file(s, web)
    s.stop(c1)
    if went:
        file_pod(s)
    s.wait(5).run_container(web, sandbox, attempt=1)

    assert bool(s.judge("RESTART-02").breaks) is not went


def test_end_is_read_before_a_restart() -> None:
    """RESTART-02 breaks when a container is made again before the kubelet can know that it ended."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s)
        new_image(s, web)
        if right:
            s.stop(c1)
        else:
            s.exited(c1, seen=False)
        s.run_container(web, sandbox, attempt=1)

    assert_bites("RESTART-02", tell)


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_container_that_could_not_start_is_made_again(policy: str) -> None:
    """RESTART-03 breaks when a container whose start failed is stuck."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod(restartPolicy=policy)
        sandbox = s.run_sandbox(web)
        s.start(s.create(web, sandbox), error="INTERNAL")
        if right:
            s.wait(13).run_container(web, sandbox, attempt=1)

    assert_bites("RESTART-03", tell)


@pytest.mark.parametrize("replaced", [False, True])
def test_unknown_container_is_stopped_first(*, replaced: bool) -> None:
    """RESTART-04 breaks when an unknown instance is left, and when another is made beside it."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s)
        s.container_status(c1, state="CONTAINER_UNKNOWN")
        if right:
            s.stop(c1)
        if right or replaced:
            s.run_container(web, sandbox, attempt=1)

    assert_bites("RESTART-04", tell)


@pytest.mark.parametrize("lost_too", [False, True])
def test_unknown_container_may_go_with_its_failed_pod(*, lost_too: bool) -> None:
    """RESTART-04 leaves an unknown container to the end of a Never pod in which nothing else runs."""

    def tell(s: Story, *, right: bool) -> None:
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

    assert_bites("RESTART-04", tell)


@pytest.mark.parametrize(("policy", "code"), [("Always", 0), ("Always", 1), ("OnFailure", 1)])
def test_policy_wants_another_instance(policy: str, code: int) -> None:
    """RESTART-05 breaks when a container that is wanted again is not made again."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s, policy)
        s.wait(1).exited(c1, code)
        if right:
            s.wait(1).run_container(web, sandbox, attempt=1)

    assert_bites("RESTART-05", tell)


@pytest.mark.parametrize(("policy", "code"), [("Never", 0), ("Never", 1), ("OnFailure", 0)])
def test_policy_leaves_the_container(policy: str, code: int) -> None:
    """RESTART-05 breaks when a container that is to be left is made again."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s, policy)
        s.wait(1).exited(c1, code)
        if not right:
            s.wait(1).run_container(web, sandbox, attempt=1)
        s.stop_sandbox(sandbox)

    assert_bites("RESTART-05", tell)


def test_back_off_of_the_third_instance_has_an_end() -> None:
    """RESTART-05 breaks when the third instance has not come 60 s after the second crash."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s)
        s.exited(c1, 1)
        s.exited(s.run_container(web, sandbox, attempt=1), 1)
        s.wait(20 if right else 60).run_container(web, sandbox, attempt=2)

    assert_bites("RESTART-05", tell)


def test_nothing_restarts_in_termination() -> None:
    """RESTART-06 breaks when a container that crashes in the grace period is made again."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s)
        s.delete(web)
        s.wait(5).exited(c1, 1)
        if not right:
            s.run_container(web, sandbox, attempt=1)
        s.stop_sandbox(sandbox)

    assert_bites("RESTART-06", tell)


@pytest.mark.parametrize("wrong", ["ignored", "not replaced", "beside"])
@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_changed_container_is_replaced(policy: str, wrong: str) -> None:
    """RESTART-07 breaks when a new image is ignored, ends the container, or runs beside the old one."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s, policy)
        s.wait(5)
        new_image(s, web)
        if right or wrong == "not replaced":
            s.stop(c1)
        if right or wrong == "beside":
            s.run_container(web, sandbox, attempt=1)

    assert_bites("RESTART-07", tell)


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_failing_probe_restarts(policy: str) -> None:
    """RESTART-09 breaks when a container that was killed for its probe and exited with 0 is left."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s, policy, livenessProbe=PROBE)
        s.wait(9).stop(c1)
        if right:
            s.run_container(web, sandbox, attempt=1)

    assert_bites("RESTART-09", tell)


@pytest.mark.parametrize(("pull", "verdict"), [("Never", Verdict.NOT_EXERCISED), (None, Verdict.BROKEN)])
def test_restart_may_find_no_image(pull: str | None, verdict: Verdict) -> None:
    """RESTART-09: with pull policy Never an image that was changed meanwhile may not be there."""
    s = Story()
    web, _, c1 = running(s, "Always", livenessProbe=PROBE, **({"imagePullPolicy": pull} if pull else {}))
    s.wait(9).stop(c1)
    web.manifest["spec"]["containers"][0]["image"] = "img:2"
    s.set(web)
    s.wait(100).stop_here()

    assert s.judge("RESTART-09").verdict is verdict


def test_failing_probe_under_never_does_not_restart() -> None:
    """RESTART-10 breaks when a container that was killed for its probe is made again under Never."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s, "Never", livenessProbe=PROBE)
        s.wait(9).stop(c1, code=137)
        if not right:
            s.run_container(web, sandbox, attempt=1)
        s.stop_sandbox(sandbox)

    assert_bites("RESTART-10", tell)


@pytest.mark.parametrize("probed", [False, True])
def test_kill_and_restart_are_one_sync(*, probed: bool) -> None:
    """RESTART-11 breaks when the replacement waits for the next relist."""

    def tell(s: Story, *, right: bool) -> None:
        probe: dict[str, Any] = {"livenessProbe": PROBE} if probed else {}
        web, sandbox, c1 = running(s, **probe)
        s.wait(9)
        if not probed:
            new_image(s, web)
        s.stop(c1)
        s.wait(0.1 if right else 1.5).run_container(web, sandbox, attempt=1)

    assert_bites("RESTART-11", tell)


def test_first_kill_has_no_back_off() -> None:
    """RESTART-12 breaks when the first restart after a failing probe waits 10 s."""

    def tell(s: Story, *, right: bool) -> None:
        web, sandbox, c1 = running(s, startupProbe=PROBE)
        s.wait(9).stop(c1)
        s.wait(0.1 if right else 10).run_container(web, sandbox, attempt=1)

    assert_bites("RESTART-12", tell)


def test_siblings_are_untouched() -> None:
    """RESTART-17 breaks when the crash of one container stops the other."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod(containers=[{"name": "c1", "image": "img:1"}, {"name": "c2", "image": "img:1"}])
        sandbox = s.run_sandbox(web)
        c1, c2 = s.run_container(web, sandbox, "c1"), s.run_container(web, sandbox, "c2")
        s.wait(5).exited(c1, 1)
        if not right:
            s.stop(c2)
        s.run_container(web, sandbox, "c1", attempt=1)

    assert_bites("RESTART-17", tell)


@pytest.mark.parametrize("changed", [True, False])
def test_sibling_with_a_new_image_is_stopped_for_it(*, changed: bool) -> None:
    """RESTART-17: a sync may find both the crash of one container and the new image of another."""
    s = Story()
    web = s.pod(containers=[{"name": "c1", "image": "img:1"}, {"name": "c2", "image": "img:1"}])
    sandbox = s.run_sandbox(web)
    c1, c2 = s.run_container(web, sandbox, "c1"), s.run_container(web, sandbox, "c2")
    if changed:
        web.manifest["spec"]["containers"][1]["image"] = "img:2"
        s.set(web)
    s.wait(5).exited(c1, 1)
    s.stop(c2)

    assert bool(s.judge("RESTART-17").breaks) is not changed


@pytest.mark.parametrize("contract_id", ["RESTART-07", "RESTART-11"])
@pytest.mark.parametrize("failed", [True, False])
def test_failed_hook_is_answered_with_a_back_off(contract_id: str, *, failed: bool) -> None:
    """RESTART-07, RESTART-11: what is stopped for its postStart hook is not made again at once."""
    s = Story()
    hook = {"postStart": {"exec": {"command": ["warm"]}}}
    web, _, c1 = running(s, lifecycle=hook)
    s.call("ExecSync", {"container_id": c1.id, "cmd": ["warm"]}, {"exit_code": int(failed)})
    new_image(s, web)
    s.stop(c1)
    s.wait(60).stop_here()

    assert bool(s.judge(contract_id).breaks) is not failed


@pytest.mark.parametrize("changed", [True, False])
def test_end_that_is_not_read_counts_for_nothing(*, changed: bool) -> None:
    """RESTART-05: what ended just before it was to be stopped for its new image is made again by that."""
    s = Story()
    web, sandbox, c1 = running(s, "Never")
    s.wait(5).exited(c1, 0, seen=False)
    if changed:
        new_image(s, web)
    s.run_container(web, sandbox, attempt=1)

    assert bool(s.judge("RESTART-05").breaks) is not changed


@pytest.mark.parametrize("killed", [True, False])
def test_end_during_a_kill_counts_for_nothing(*, killed: bool) -> None:
    """RESTART-05: what ends by itself while it is killed for its probe is made again by that."""
    s = Story()
    web, sandbox, c1 = running(s, "OnFailure", startupProbe={"httpGet": {"path": "/", "port": 80}})
    s.wait(5).exited(c1, 0)
    if killed:
        s.call("StopContainer", {"container_id": c1.id, "timeout": "30"}, {})
    s.run_container(web, sandbox, attempt=1)

    assert bool(s.judge("RESTART-05").breaks) is not killed


@pytest.mark.parametrize("late", [False, True])
def test_pod_without_work_is_killed(*, late: bool) -> None:
    """RESTART-18 breaks when the sandbox of a pod that is through is left, or stopped a minute later."""

    def tell(s: Story, *, right: bool) -> None:
        _, sandbox, c1 = running(s, "OnFailure")
        s.wait(5).exited(c1, 0)
        if right or late:
            s.wait(1 if right else 60).stop_sandbox(sandbox)

    assert_bites("RESTART-18", tell)


@pytest.mark.parametrize("after", [8, 1])
def test_deadline_stops_siblings(after: int) -> None:
    """RESTART-17: when the pod's time is over, the siblings of one that crashed are stopped, too."""
    s = Story(started="2026-01-01T00:00:00Z")
    names = [{"name": "c1", "image": "img:1"}, {"name": "c2", "image": "img:1"}]
    web = s.pod(containers=names, activeDeadlineSeconds=10)
    sandbox = s.run_sandbox(web)
    c1, c2 = s.run_container(web, sandbox, "c1"), s.run_container(web, sandbox, "c2")
    s.status(web, startTime="2026-01-01T00:00:00Z")
    s.wait(3).exited(c1, 1)
    s.wait(after).stop(c2)
    s.wait(1).stop_here()

    assert (s.judge("RESTART-17").verdict is Verdict.BROKEN) is (after == 1)


def test_deletion_that_nobody_could_tell() -> None:
    """RESTART-06: a pod that was deleted while the API server was away goes on until the kubelet hears."""
    for is_away, verdict in ((True, Verdict.NOT_EXERCISED), (False, Verdict.BROKEN)):
        s = Story()
        web, sandbox, c1 = running(s)
        if is_away:
            outage(s)
        s.unset(web)
        s.wait(5).exited(c1, 1)
        s.run_container(web, sandbox, attempt=1)
        s.stop_sandbox(sandbox)

        assert s.judge("RESTART-06").verdict is verdict


@pytest.mark.parametrize(("changed", "breaks"), [(True, False), (False, True)])
@pytest.mark.parametrize("contract", ["RESTART-06", "WORK-04"])
def test_kill_for_a_change_that_met_the_deletion(contract: str, *, changed: bool, breaks: bool) -> None:
    """RESTART-06, WORK-04: the sync of a change that came with the deletion may go on to its end."""
    s = Story()
    web, sandbox, c1 = running(s)
    s.wait(5)
    if changed:
        new_image(s, web)
    s.delete(web)
    s.stop(c1, takes=5)
    s.run_container(web, sandbox, attempt=1)
    s.stop_sandbox(sandbox)

    assert (s.judge(contract).verdict is Verdict.BROKEN) is breaks
