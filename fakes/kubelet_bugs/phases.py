"""Bugs in the phase of pods."""

from __future__ import annotations

from typing import Any

from lightkube.models.core_v1 import ContainerStatus, Pod, PodStatus
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.phase import pod_phase
from kubelet_reference.pod_status import lasting_phase
from kubelet_reference.status_manager import StatusManager
from kubelet_reference.versions import Behaviour


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
            status = structs.replace(status, phase=pod_phase(pod, status, self._behaviour))
        super().set_pod_status(pod, status)
