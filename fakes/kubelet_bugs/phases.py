"""Bugs in the phase of pods."""

from __future__ import annotations

from typing import Any

from lightkube.models.core_v1 import ContainerStatus, Pod, PodStatus
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.parts import Parts
from kubelet_reference.phase import pod_phase
from kubelet_reference.pod_status import PhaseOf, StatusDecisions, lasting_phase
from kubelet_reference.status_manager import StatusManager
from kubelet_reference.versions import Behaviour


def _waits(status: ContainerStatus) -> bool:
    return status.state is not None and status.state.waiting is not None


def _debugging_counts(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """The phase that ephemeral containers have a part in, like any others."""
    spec = pods.spec(pod)
    every: Any = [*spec.containers, *(spec.ephemeralContainers or ())]
    found = [*(status.containerStatuses or ()), *(status.ephemeralContainerStatuses or ())]
    pod, status = replace(pod, spec=replace(spec, containers=every)), replace(status, containerStatuses=found)
    return pod_phase(pod, status, behaviour, terminating=terminating)


def _crash_loop_is_pending(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """The phase, Pending for as long as an app container waits, whether it ever ran or not."""
    if any(_waits(one) for one in status.containerStatuses or ()):
        return pods.PENDING
    return pod_phase(pod, status, behaviour, terminating=terminating)


def _first_failure_fails(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """The phase, Failed from the first failure of a pod that runs once."""
    ends = [one.state.terminated for one in status.containerStatuses or () if one.state]
    if pods.restart_policy(pod) == pods.NEVER and any(end and end.exitCode for end in ends):
        return pods.FAILED
    return pod_phase(pod, status, behaviour, terminating=terminating)


def _init_must_have_a_record(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """The phase, Pending for as long as an init container waits, though it was through before."""
    if any(_waits(one) for one in status.initContainerStatuses or ()):
        return pods.PENDING
    return pod_phase(pod, status, behaviour, terminating=terminating)


def _failure_is_final(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """The phase, Failed once all containers have ended and one of them badly, whatever the policy."""
    found = pod_phase(pod, status, behaviour, terminating=terminating)
    ends = [one.state.terminated for one in status.containerStatuses or () if one.state]
    all_ended = bool(ends) and all(ends) and pods.restart_policy(pod) == pods.ON_FAILURE
    return pods.FAILED if all_ended and any(end and end.exitCode for end in ends) else found


def _failed_init_fails(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """The phase, Failed as soon as an init container has failed."""
    ends = [one.state.terminated for one in status.initContainerStatuses or () if one.state]
    if any(end and end.exitCode for end in ends):
        return pods.FAILED
    return pod_phase(pod, status, behaviour, terminating=terminating)


def _never_pending_again(phase: str, *earlier: str | None) -> str:
    """A pod that was Running once is not Pending any more."""
    phase = lasting_phase(phase, *earlier)
    return pods.RUNNING if phase == pods.PENDING and pods.RUNNING in earlier else phase


def _parts(phase: PhaseOf) -> Parts:
    """The parts of a kubelet with this notion of phases."""
    return Parts(status=StatusDecisions(pod_phase=phase))


class _ContainersDecide(StatusManager):
    """Tells why a pod is ended, and the phase that its containers amount to."""

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        if status.reason and status.containerStatuses:
            status = replace(status, phase=pod_phase(pod, status, self._behaviour))
        super().set_pod_status(pod, status)


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-PHASE-01",
        "A pod has failed when somebody's debugging of it has.",
        lambda: _parts(_debugging_counts),
        ("COND-02", "COND-03", "PHASE-01", "PHASE-06"),
    ),
    Bug(
        "MUT-PHASE-03",
        "A pod in a crash loop is Pending.",
        lambda: _parts(_crash_loop_is_pending),
        ("PHASE-03",),
    ),
    Bug(
        "MUT-PHASE-07",
        "A failure that is to be tried again is final.",
        lambda: _parts(_failure_is_final),
        ("PHASE-07",),
    ),
    Bug(
        "MUT-PHASE-09",
        "A pod has failed with its init container, which is tried again.",
        lambda: _parts(_failed_init_fails),
        ("PHASE-09",),
    ),
    Bug(
        "MUT-PHASE-12",
        "A pod that was Running is not Pending while its init containers run again.",
        lambda: Parts(status=StatusDecisions(lasting_phase=_never_pending_again)),
        ("PHASE-12",),
    ),
    Bug(
        "MUT-PHASE-08",
        "A pod that runs once has failed with the first of its containers.",
        lambda: _parts(_first_failure_fails),
        ("PHASE-08",),
    ),
    Bug(
        "MUT-PHASE-10",
        "A pod is Pending as soon as the record of an init container that succeeded is gone.",
        lambda: _parts(_init_must_have_a_record),
        ("PHASE-10",),
    ),
    Bug(
        "MUT-PHASE-13",
        "A pod that is ended at its deadline has the phase of its containers.",
        lambda: Parts(status_manager=_ContainersDecide),
        ("PHASE-13",),
    ),
)
