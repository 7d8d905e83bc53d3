"""Bugs in the conditions of pods."""

from __future__ import annotations

from lightkube.models.core_v1 import Pod, PodCondition, PodStatus
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import conditions, pods
from kubelet_reference.conditions import pod_conditions
from kubelet_reference.parts import Parts
from kubelet_reference.pod_status import StatusDecisions
from kubelet_reference.status_manager import StatusManager
from kubelet_reference.versions import Behaviour


def _unscheduled(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """The conditions without the scheduler's, which others are left to set."""
    found = pod_conditions(pod, status, behaviour, sandbox_usable=sandbox_usable)
    return [one for one in found if one.type != conditions.POD_SCHEDULED]


def _missing_gate_is_open(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """The conditions of a pod that has only the gates about which somebody has said something."""
    told = {one.type for one in status.conditions or ()}
    gates = [one for one in pods.spec(pod).readinessGates or () if one.conditionType in told]
    ungated = replace(pod, spec=replace(pods.spec(pod), readinessGates=gates))
    return pod_conditions(ungated, status, behaviour, sandbox_usable=sandbox_usable)


def _own_words(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """Ready with words of its own, not those of ContainersReady."""
    found = pod_conditions(pod, status, behaviour, sandbox_usable=sandbox_usable)
    return [
        replace(one, reason="PodNotReady", message=None)
        if one.type == conditions.READY and one.reason == "ContainersNotReady"
        else one
        for one in found
    ]


def _sandbox_for_ever(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """The conditions of a pod that keeps the sandbox which it has had once."""
    known = conditions.condition(status.conditions, conditions.READY_TO_START)
    usable = sandbox_usable or bool(status.podIP) or known is not None
    return pod_conditions(pod, status, behaviour, sandbox_usable=usable)


class _OnlyItsOwn(StatusManager):
    """Writes its own conditions in the place of all that are there."""

    def _merged(self, uid: str, stored: PodStatus, new: PodStatus) -> PodStatus:
        result = super()._merged(uid, stored, new)
        own = [one for one in result.conditions or () if conditions.is_owned(one.type)]
        return replace(result, conditions=own)


class _LateSandbox(StatusManager):
    """Leaves it to the next sync to tell that there is a sandbox."""

    def set_sandbox_ready(self, pod: Pod) -> None:
        del pod


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-COND-01",
        "The condition PodScheduled is left to others.",
        lambda: Parts(status=StatusDecisions(pod_conditions=_unscheduled)),
        ("COND-01",),
    ),
    Bug(
        "MUT-COND-04",
        "A readiness gate that nobody has said anything about is open.",
        lambda: Parts(status=StatusDecisions(pod_conditions=_missing_gate_is_open)),
        ("COND-04",),
    ),
    Bug(
        "MUT-COND-05",
        "Ready gives another reason than ContainersReady.",
        lambda: Parts(status=StatusDecisions(pod_conditions=_own_words)),
        ("COND-05",),
    ),
    Bug(
        "MUT-COND-06",
        "A pod that has had a sandbox is said to have one for ever.",
        lambda: Parts(status=StatusDecisions(pod_conditions=_sandbox_for_ever)),
        ("COND-06",),
    ),
    Bug(
        "MUT-COND-07",
        "That a sandbox is ready is told once the first image has been pulled.",
        lambda: Parts(status_manager=_LateSandbox),
        ("COND-07",),
        kubernetes="1.36",
    ),
    Bug(
        "MUT-STATUS-06",
        "Conditions that others have set are overwritten.",
        lambda: Parts(status_manager=_OnlyItsOwn),
        ("STATUS-06",),
    ),
)
