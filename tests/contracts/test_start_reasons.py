"""SYNC contracts on why containers wait: each is kept by a right story and broken by a wrong one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twice import assert_bites

if TYPE_CHECKING:
    from story import Story


def waits(reason: str) -> list[dict[str, Any]]:
    """The status of a container that waits for this reason."""
    return [{"name": "c1", "state": {"waiting": {"reason": reason}}}]


READY = [{"type": "Ready", "status": "False"}]


def test_reason_goes_with_success() -> None:
    """SYNC-15 breaks when a container that was started since still waits for an older failure."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        sandbox = s.run_sandbox(web)
        s.create(web, sandbox, error="UNKNOWN")
        s.wait(1).status(web, "Pending", containerStatuses=waits("CreateContainerError"))
        c1 = s.wait(10).run_container(web, sandbox)
        s.wait(20).exited(c1, 1)
        reason = "CrashLoopBackOff" if right else "CreateContainerError"
        s.status(web, containerStatuses=waits(reason), conditions=READY)

    assert_bites("SYNC-15", tell)


def test_reason_is_told() -> None:
    """SYNC-15 breaks when no status tells why a container could not be made."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        s.create(web, s.run_sandbox(web), error="UNKNOWN")
        reason = "CreateContainerError" if right else "ContainerCreating"
        s.wait(1).status(web, "Pending", containerStatuses=waits(reason))

    assert_bites("SYNC-15", tell)


def test_reason_does_not_outlive_the_kubelet() -> None:
    """SYNC-16 breaks when a kubelet knows of a failure that was before its time."""

    def tell(s: Story, *, right: bool) -> None:
        web = s.pod()
        s.create(web, s.run_sandbox(web), error="UNKNOWN")
        s.wait(1).status(web, "Pending", containerStatuses=waits("CreateContainerError"))
        s.record("kubelet", op="killed")
        s.wait(1).record("kubelet", op="started")
        reason = "ContainerCreating" if right else "CreateContainerError"
        s.wait(1).status(web, "Pending", containerStatuses=waits(reason))

    assert_bites("SYNC-16", tell)
