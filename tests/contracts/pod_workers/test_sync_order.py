"""SYNC contracts on failing steps: each is kept by a right story and broken by a wrong one."""

from __future__ import annotations

import pytest
from story import PodHandle, Story
from twice import detects

WAITED = "Unable to attach or mount volumes: timed out"


def told(s: Story, web: PodHandle, reason: str, message: str = "") -> None:
    """A warning about the pod."""
    s.record("event", uid=web.uid, type="Warning", reason=reason, message=message)


@detects("SYNC-10")
def test_volumes_are_waited_for_again(s: Story, *, right: bool) -> None:
    """SYNC-10 breaks when a pod is given up after a wait in vain."""
    web = s.pod()
    told(s, web, "FailedMount", WAITED)
    if right:
        s.wait(130)
        told(s, web, "FailedMount", WAITED)
        s.wait(20).run_sandbox(web)


@pytest.mark.parametrize("missing", ["", "/volumes", "/plugins"])
@detects("SYNC-11")
def test_folders_come_first(s: Story, missing: str, *, right: bool) -> None:
    """SYNC-11 breaks when a container is made before its pod's data folders are there."""
    web = s.pod()
    for below in ("", "/volumes", "/plugins", "/containers"):
        if right or below != missing:
            s.record("disk", op="folder", path=f"/var/lib/kubelet/pods/{web.uid}{below}")
    s.run_container(web, s.run_sandbox(web))


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
