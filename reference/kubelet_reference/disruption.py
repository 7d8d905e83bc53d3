"""The status of a pod that the kubelet ends on its own account: evicted, preempted, or shut down."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lightkube.models.core_v1 import PodCondition, PodStatus
from msgspec.structs import replace

from kubelet_reference import conditions, pods
from kubelet_reference.versions import Behaviour

StatusChange: TypeAlias = "Callable[[PodStatus], PodStatus]"
BY_KUBELET = "TerminationByKubelet"


def ended_by_kubelet(
    reason: str, message: str, behaviour: Behaviour, *, spares_success: bool = False
) -> StatusChange:
    """Makes a status Failed for that reason, marked as a disruption (COND-08).

    With `spares_success` a pod that has succeeded stays Succeeded (SHUT-02).
    """
    mark = PodCondition(type=conditions.DISRUPTION_TARGET, status="True", reason=BY_KUBELET, message=message)

    def change(status: PodStatus) -> PodStatus:
        found = list(status.conditions or ())
        if behaviour.marks_disruptions:
            found = conditions.put(found, mark)
        spared = spares_success and status.phase == pods.SUCCEEDED
        phase = pods.SUCCEEDED if spared else pods.FAILED
        return replace(status, phase=phase, reason=reason, message=message, conditions=found)

    return change
