"""SYNC contracts on failing steps: each is kept by a right story and broken by a wrong one."""

from __future__ import annotations

import pytest
from story import PodHandle, Story
from twice import assert_bites

WAITED = "Unable to attach or mount volumes: timed out"
INIT = [{"name": "i1", "image": "img:1"}]


def told(s: Story, web: PodHandle, reason: str, message: str = "") -> None:
    """A warning about the pod."""
    s.record("event", uid=web.uid, type="Warning", reason=reason, message=message)


@pytest.mark.parametrize("reason", ["NetworkNotReady", "FailedMount"])
def test_failed_step_ends_the_sync(reason: str) -> None:
    """SYNC-02 breaks when a sync that has told of a failed step goes on to run the sandbox."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        told(s, web, reason, WAITED)
        if right:
            s.wait(11)
        s.run_sandbox(web)

    assert_bites("SYNC-02", tell)


def test_pod_does_not_run_without_its_volumes() -> None:
    """SYNC-10 breaks when the sandbox is run in the sync that has waited for volumes in vain."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        told(s, web, "FailedMount", "MountVolume.SetUp failed")
        s.wait(123)
        told(s, web, "FailedMount", WAITED)
        if right:
            s.wait(11)
        s.run_sandbox(web)

    assert_bites("SYNC-10", tell)


def test_volumes_are_waited_for_again() -> None:
    """SYNC-10 breaks when a pod is given up after a wait in vain."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        told(s, web, "FailedMount", WAITED)
        if right:
            s.wait(130)
            told(s, web, "FailedMount", WAITED)
            s.wait(20).run_sandbox(web)

    assert_bites("SYNC-10", tell)


@pytest.mark.parametrize("missing", ["", "/volumes", "/plugins"])
def test_folders_come_first(missing: str) -> None:
    """SYNC-11 breaks when a container is made before its pod's data folders are there."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        for below in ("", "/volumes", "/plugins", "/containers"):
            if right or below != missing:
                s.record("disk", op="folder", path=f"/var/lib/kubelet/pods/{web.uid}{below}")
        s.run_container(web, s.run_sandbox(web))

    assert_bites("SYNC-11", tell)


@pytest.mark.parametrize("contract_id", ["SYNC-14", "SYNC-19"])
def test_failure_for_a_deleted_pod_is_not_told(contract_id: str) -> None:
    """SYNC-14 and SYNC-19 break when an event tells of a sandbox that failed for a deleted pod."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        call_id = s.begin("RunPodSandbox", {"config": s.sandbox_config(web)})
        s.wait(1).delete(web)
        s.wait(4).end("RunPodSandbox", call_id, error="UNKNOWN")
        if not right:
            told(s, web, "FailedCreatePodSandBox")
        s.status(web, "Failed")
        s.deleted(web)

    assert_bites(contract_id, tell)


def test_deleted_pod_gets_no_other_sandbox() -> None:
    """SYNC-19 breaks when another sandbox is tried for a pod that is to go."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        call_id = s.begin("RunPodSandbox", {"config": s.sandbox_config(web)})
        s.wait(1).delete(web)
        s.wait(4).end("RunPodSandbox", call_id, error="UNKNOWN")
        if not right:
            s.wait(10).run_sandbox(web)
        s.status(web, "Failed")
        s.deleted(web)

    assert_bites("SYNC-19", tell)


def test_empty_sandbox_status_is_an_error() -> None:
    """SYNC-21 breaks when a container is made though nothing was told of its sandbox."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        sandbox = s.run_sandbox(web, read=False)
        s.call("PodSandboxStatus", {"pod_sandbox_id": sandbox.id}, {})
        if right:
            s.wait(11).sandbox_status(sandbox)
        s.run_container(web, sandbox)

    assert_bites("SYNC-21", tell)


def test_failed_start_is_tried_again_soon() -> None:
    """SYNC-23 breaks when a container that could not be made waits for the next regular sync."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        sandbox = s.run_sandbox(web)
        s.create(web, sandbox, error="UNKNOWN")
        s.wait(11 if right else 70).run_container(web, sandbox)

    assert_bites("SYNC-23", tell)


@pytest.mark.parametrize(("code", "breaks"), [(0, False), (1, True)])
def test_what_succeeded_is_not_tried_again(code: int, *, breaks: bool) -> None:
    """SYNC-23: a container that was stopped for a change, and succeeded so, is not due under OnFailure."""
    s = Story()
    web = s.pod(restartPolicy="OnFailure")
    sandbox = s.run_sandbox(web)
    s.exited(s.run_container(web, sandbox), code=code)
    s.create(web, sandbox, error="UNKNOWN")
    s.wait(70).call("ListContainers", {}, {})

    assert bool(s.judge("SYNC-23").breaks) is breaks


def test_failed_ephemeral_container_keeps_no_other_up() -> None:
    """SYNC-23 breaks when the next ephemeral container waits for one that cannot be made."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod(ephemeralContainers=[{"name": "d1", "image": "img:1"}, {"name": "d2", "image": "img:1"}])
        sandbox = s.run_sandbox(web)
        s.wait(5).create(web, sandbox, "d1", error="UNKNOWN")
        if right:
            s.run_container(web, sandbox, "d2")
        s.wait(11).run_container(web, sandbox, "d1")

    assert_bites("SYNC-23", tell)
