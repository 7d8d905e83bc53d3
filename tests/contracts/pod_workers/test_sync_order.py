"""SYNC contracts on failing steps: each is kept by a right trace and broken by a wrong one."""

import pytest
from trace_builder import PodHandle, TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict

WAITED = "Unable to attach or mount volumes: timed out"


def reported(s: TraceBuilder, web: PodHandle, reason: str, message: str = "") -> None:
    """A warning about the pod."""
    s.record("event", uid=web.uid, type="Warning", reason=reason, message=message)


@detects("SYNC-10")
def test_volumes_are_waited_for_again(s: TraceBuilder, *, right: bool) -> None:
    """SYNC-10 breaks when a pod is given up after a wait that timed out."""
    web = s.pod()
    reported(s, web, "FailedMount", WAITED)
    if right:
        s.wait(130)
        reported(s, web, "FailedMount", WAITED)
        s.wait(20).run_sandbox(web)


@pytest.mark.parametrize("missing", ["", "/volumes", "/plugins"])
@detects("SYNC-11")
def test_folders_come_first(s: TraceBuilder, missing: str, *, right: bool) -> None:
    """SYNC-11 breaks when a container is made before its pod's data folders are there."""
    web = s.pod()
    for below in ("", "/volumes", "/plugins", "/containers"):
        if right or below != missing:
            s.record("disk", op="folder", path=f"/var/lib/kubelet/pods/{web.uid}{below}")
    s.run_container(web, s.run_sandbox(web))


@detects("SYNC-23", if_right=Verdict.NOT_EXERCISED, code=(0, 1))
def test_what_succeeded_is_not_tried_again(s: TraceBuilder, code: int) -> None:
    """SYNC-23: a container that was stopped for a change, and succeeded so, is not due under OnFailure."""
    web = s.pod(restartPolicy="OnFailure")
    sandbox = s.run_sandbox(web)
    s.exited(s.run_container(web, sandbox), code=code)
    s.create(web, sandbox, error="UNKNOWN")
    s.wait(70).call("ListContainers", {}, {})
