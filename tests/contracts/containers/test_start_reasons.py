"""SYNC contracts on why containers wait: each is kept by a right trace and broken by a wrong one."""

from typing import Any

from trace_builder import TraceBuilder
from twice import detects

from kubelet_conformance.contract.verdicts import Verdict


def waits(reason: str) -> list[dict[str, Any]]:
    """The status of a container that waits for this reason."""
    return [{"name": "c1", "state": {"waiting": {"reason": reason}}}]


@detects("SYNC-15")
def test_reason_is_reported(s: TraceBuilder, *, right: bool) -> None:
    """SYNC-15 breaks when no status tells why a container could not be made."""
    web = s.pod()
    s.create(web, s.run_sandbox(web), error="UNKNOWN")
    reason = "CreateContainerError" if right else "ContainerCreating"
    s.wait(1).status(web, "Pending", containerStatuses=waits(reason))


def test_reason_of_a_former_image_is_reported_until_the_next_try() -> None:
    """SYNC-16: a pull of the image before failed in this life, and nothing was tried since the change."""

    def tell(s: TraceBuilder, *, right: bool) -> None:
        web = s.pod(containers=[{"name": "c1", "image": "img:2"}])
        sandbox = s.run_sandbox(web)
        s.wait(1).status(web, "Pending", containerStatuses=waits("CreateContainerError"))
        s.record("kubelet", op="killed")
        s.wait(1).record("kubelet", op="started")
        request = {"image": {"image": "img:2"}, "sandbox_config": sandbox.config}
        if right:
            s.call("PullImage", request, error="NOT_FOUND")
        s.call("PullImage", request | {"image": {"image": "img:1"}}, {"image_ref": "sha256:img:1"})
        web.manifest["spec"]["containers"][0]["image"] = "img:1"
        s.wait(1).set(web)
        s.wait(1).status(web, "Pending", containerStatuses=waits("ImagePullBackOff"))

    right, wrong = TraceBuilder(), TraceBuilder()
    tell(right, right=True)
    tell(wrong, right=False)
    assert right.judge("SYNC-16").verdict is not Verdict.BROKEN
    assert wrong.judge("SYNC-16").verdict is Verdict.BROKEN
