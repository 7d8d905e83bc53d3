"""Bugs in the phase and the conditions of pods."""

from typing import Any

from lightkube.models.core_v1 import ContainerStatus, Pod, PodCondition, PodStatus
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.api import pods
from kubelet_reference.status import conditions
from kubelet_reference.status.conditions import pod_conditions
from kubelet_reference.status.phase import pod_phase
from kubelet_reference.status.pod_status import lasting_phase
from kubelet_reference.status.status_manager import StatusManager
from kubelet_reference.util.versions import Behaviour


def _waits(status: ContainerStatus) -> bool:
    return status.state is not None and status.state.waiting is not None


@bug("MUT-PHASE-01", breaks=("COND-02", "COND-03", "PHASE-01", "PHASE-06"), part="pod_phase")
def debugging_counts(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """A pod has failed when somebody's debugging of it has."""
    spec = pods.spec(pod)
    every: Any = [*spec.containers, *(spec.ephemeralContainers or ())]
    found = [*(status.containerStatuses or ()), *(status.ephemeralContainerStatuses or ())]
    pod, status = (
        structs.replace(pod, spec=structs.replace(spec, containers=every)),
        structs.replace(status, containerStatuses=found),
    )
    return pod_phase(pod, status, behaviour, terminating=terminating)


@bug("MUT-PHASE-03", breaks="PHASE-03", part="pod_phase")
def crash_loop_is_pending(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """A pod in a crash loop is Pending."""
    if any(_waits(one) for one in status.containerStatuses or ()):
        return pods.PENDING
    return pod_phase(pod, status, behaviour, terminating=terminating)


@bug("MUT-PHASE-08", breaks="PHASE-08", part="pod_phase")
def first_failure_fails(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """A pod that runs once has failed with the first of its containers."""
    ends = [one.state.terminated for one in status.containerStatuses or () if one.state]
    if pods.restart_policy(pod) == pods.NEVER and any(end and end.exitCode for end in ends):
        return pods.FAILED
    return pod_phase(pod, status, behaviour, terminating=terminating)


@bug("MUT-PHASE-10", breaks="PHASE-10", part="pod_phase")
def init_must_have_a_record(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """A pod is Pending as soon as the record of an init container that succeeded is gone."""
    if any(_waits(one) for one in status.initContainerStatuses or ()):
        return pods.PENDING
    return pod_phase(pod, status, behaviour, terminating=terminating)


@bug("MUT-PHASE-07", breaks="PHASE-07", part="pod_phase")
def failure_is_final(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """A failure that is to be tried again is final."""
    found = pod_phase(pod, status, behaviour, terminating=terminating)
    ends = [one.state.terminated for one in status.containerStatuses or () if one.state]
    all_ended = bool(ends) and all(ends) and pods.restart_policy(pod) == pods.ON_FAILURE
    return pods.FAILED if all_ended and any(end and end.exitCode for end in ends) else found


@bug("MUT-PHASE-09", breaks="PHASE-09", part="pod_phase")
def failed_init_fails(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """A pod has failed with its init container, which is tried again."""
    ends = [one.state.terminated for one in status.initContainerStatuses or () if one.state]
    if any(end and end.exitCode for end in ends):
        return pods.FAILED
    return pod_phase(pod, status, behaviour, terminating=terminating)


@bug("MUT-PHASE-12", breaks="PHASE-12", part="lasting_phase")
def never_pending_again(phase: str, *earlier: str | None) -> str:
    """A pod that was Running is not Pending while its init containers run again."""
    phase = lasting_phase(phase, *earlier)
    return pods.RUNNING if phase == pods.PENDING and pods.RUNNING in earlier else phase


@bug("MUT-PHASE-13", breaks="PHASE-13")
class ContainersDecide(StatusManager):
    """A pod that is ended at its deadline has the phase of its containers."""

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        if status.reason and status.containerStatuses:
            status = structs.replace(status, phase=pod_phase(pod, status, self.behaviour, terminating=False))
        super().set_pod_status(pod, status)


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
    """A readiness gate without a condition counts as open."""
    stated = {one.type for one in status.conditions or ()}
    gates = [one for one in pods.spec(pod).readinessGates or () if one.conditionType in stated]
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
    """A ready sandbox is reported only once the first image has been pulled."""

    def set_sandbox_ready(self, pod: Pod) -> None:
        del pod
