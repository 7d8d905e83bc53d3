"""Whether a container that does not run is to be started again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_reference import pods
from kubelet_reference.records import ContainerState

if TYPE_CHECKING:
    from lightkube.models.core_v1 import Pod

    from kubelet_reference.pods import AnyContainer
    from kubelet_reference.records import ContainerRecord

__all__ = ("restarts_on_failure", "should_restart")


def restarts_on_failure(pod: Pod) -> bool:
    """Whether a container that failed is started again: every policy but Never."""
    return pods.restart_policy(pod) != pods.NEVER


def should_restart(pod: Pod, _container: AnyContainer, record: ContainerRecord | None) -> bool:
    """Whether the container, whose newest record this is, has to be started (RESTART-01..06).

    A pod under deletion starts nothing. A container without a record, or one that never came to run
    (CREATED, UNKNOWN), is started under every policy; one that exited is started as its pod's policy says.
    """
    if pods.deletion_asked(pod):
        return False
    if record is None or record.state in {ContainerState.CREATED, ContainerState.UNKNOWN}:
        return True
    if record.is_running:
        return False
    policy = pods.restart_policy(pod)
    return policy == pods.ALWAYS or (policy == pods.ON_FAILURE and record.exit_code != 0)
