"""Bugs in the conditions of pods."""

from __future__ import annotations

from lightkube.models.core_v1 import Pod, PodCondition, PodStatus
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference import conditions, pods
from kubelet_reference.conditions import pod_conditions
from kubelet_reference.status_manager import StatusManager
from kubelet_reference.versions import Behaviour


@bug("MUT-COND-01", breaks="COND-01", part="pod_conditions")
def unscheduled(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """The condition PodScheduled is left to others."""
    found = pod_conditions(pod, status, behaviour, sandbox_usable=sandbox_usable)
    return [one for one in found if one.type != conditions.POD_SCHEDULED]


@bug("MUT-COND-04", breaks="COND-04", part="pod_conditions")
def missing_gate_is_open(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """A readiness gate that nobody has said anything about is open."""
    told = {one.type for one in status.conditions or ()}
    gates = [one for one in pods.spec(pod).readinessGates or () if one.conditionType in told]
    ungated = structs.replace(pod, spec=structs.replace(pods.spec(pod), readinessGates=gates))
    return pod_conditions(ungated, status, behaviour, sandbox_usable=sandbox_usable)


@bug("MUT-COND-05", breaks="COND-05", part="pod_conditions")
def own_words(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """Ready gives another reason than ContainersReady."""
    found = pod_conditions(pod, status, behaviour, sandbox_usable=sandbox_usable)
    return [
        structs.replace(one, reason="PodNotReady", message=None)
        if one.type == conditions.READY and one.reason == "ContainersNotReady"
        else one
        for one in found
    ]


@bug("MUT-COND-06", breaks="COND-06", part="pod_conditions")
def sandbox_for_ever(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """A pod that has had a sandbox is said to have one for ever."""
    known = conditions.condition(status.conditions, conditions.READY_TO_START)
    usable = sandbox_usable or bool(status.podIP) or known is not None
    return pod_conditions(pod, status, behaviour, sandbox_usable=usable)


@bug("MUT-STATUS-06", breaks="STATUS-06")
class OnlyItsOwn(StatusManager):
    """Conditions that others have set are overwritten."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        result = super()._merged(uid, stored, new)
        own = [one for one in result.conditions or () if conditions.is_owned(one.type)]
        return structs.replace(result, conditions=own)


@bug("MUT-COND-07", breaks="COND-07", kubernetes="1.36")
class LateSandbox(StatusManager):
    """That a sandbox is ready is told once the first image has been pulled."""

    def set_sandbox_ready(self, pod: Pod) -> None:
        del pod
