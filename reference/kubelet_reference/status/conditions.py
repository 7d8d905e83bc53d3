"""The conditions that a kubelet sets on a pod (COND-*), in the order it writes them."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TypeAlias

from lightkube.models.core_v1 import ContainerStatus, Pod, PodCondition, PodStatus
from msgspec.structs import replace

from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.status.phase import begins_anew, may_begin_anew, was_up
from kubelet_reference.util.versions import Behaviour

READY_TO_START = "PodReadyToStartContainers"
INITIALIZED = "Initialized"
READY = "Ready"
CONTAINERS_READY = "ContainersReady"
POD_SCHEDULED = "PodScheduled"
ALL_RESTARTING = "AllContainersRestarting"
RESIZE_PENDING = "PodResizePending"
RESIZE_IN_PROGRESS = "PodResizeInProgress"
DISRUPTION_TARGET = "DisruptionTarget"
"""Shared with others: the kubelet sets it with the end of a pod that it disrupts (COND-08)."""
_OWNED = frozenset(
    {
        *(READY_TO_START, INITIALIZED, READY, CONTAINERS_READY, POD_SCHEDULED),
        *(RESIZE_PENDING, RESIZE_IN_PROGRESS, ALL_RESTARTING),
    }
)
_DATED = _OWNED | {DISRUPTION_TARGET}

POD_COMPLETED, POD_FAILED = "PodCompleted", "PodFailed"
_WHY_ENDED = {pods.SUCCEEDED: POD_COMPLETED, pods.FAILED: POD_FAILED}
ALL_RESTART_STARTED = "RestartAllContainersStarted"
NOT_INITIALIZED = "ContainersNotInitialized"


def is_owned(kind: str) -> bool:
    """Whether conditions of this type are the kubelet's own (STATUS-06)."""
    return kind in _OWNED


def condition(conditions: Iterable[PodCondition] | None, kind: str) -> PodCondition | None:
    """The condition of that type, if it is there."""
    for one in conditions or ():
        if one.type == kind:
            return one
    return None


def put(conditions: Sequence[PodCondition], new: PodCondition) -> list[PodCondition]:
    """The conditions with `new` in the place of the one of its type, or else at the end."""
    if condition(conditions, new.type) is None:
        return [*conditions, new]
    return [new if one.type == new.type else one for one in conditions]


def pod_conditions(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """The conditions that follow from a generated status: its phase and its container statuses."""
    containers = containers_ready(pod, status)
    found = [
        _initialized(pod, status, behaviour),
        _ready(pod, status, containers),
        containers,
        PodCondition(type=POD_SCHEDULED, status="True"),
    ]
    if may_begin_anew(pod, behaviour):
        found.append(_restarting(pod, status, behaviour))
    if behaviour.reports_ready_to_start_containers:
        usable = PodCondition(type=READY_TO_START, status="True" if sandbox_usable else "False")
        return [usable, *found]
    return found


def _restarting(pod: Pod, status: PodStatus, behaviour: Behaviour) -> PodCondition:
    """Whether a rule makes all containers of the pod begin anew (COND-10)."""
    if status.phase in _WHY_ENDED:
        return _false(ALL_RESTARTING, _WHY_ENDED[status.phase])
    if begins_anew(pod, status, behaviour):
        return PodCondition(type=ALL_RESTARTING, status="True", reason=ALL_RESTART_STARTED)
    return PodCondition(type=ALL_RESTARTING, status="False")


def _initialized(pod: Pod, status: PodStatus, behaviour: Behaviour) -> PodCondition:
    """Whether every init container is done, and every sidecar started (COND-02)."""
    if status.phase == pods.SUCCEEDED:
        return PodCondition(type=INITIALIZED, status="True", reason=POD_COMPLETED)
    incomplete = _lacking(pods.init_containers(pod), status.initContainerStatuses, _is_initialized)
    app_was_up = any(was_up(one) for one in status.containerStatuses or ())
    if not incomplete or (app_was_up and behaviour.app_proves_initialized):
        return PodCondition(type=INITIALIZED, status="True")
    return _false(INITIALIZED, NOT_INITIALIZED, f"containers with incomplete status: [{incomplete}]")


def _is_initialized(container: AnyContainer, status: ContainerStatus) -> bool:
    return bool(status.started) if pods.is_sidecar(container) else status.ready


def lasting_initialized(
    found: Sequence[PodCondition], before: Iterable[PodCondition] | None, behaviour: Behaviour
) -> list[PodCondition]:
    """The conditions, where a pod that was initialized stays so whatever its containers do (COND-02)."""
    now, then = condition(found, INITIALIZED), condition(before, INITIALIZED)
    lasts = behaviour.restarts_all_containers and then is not None and then.status == "True"
    if lasts and now is not None and now.reason == NOT_INITIALIZED:
        return put(found, PodCondition(type=INITIALIZED, status="True"))
    return list(found)


def containers_ready(pod: Pod, status: PodStatus) -> PodCondition:
    """Whether every app container and sidecar is ready; a pod that has ended is not (COND-03)."""
    if status.phase == pods.SUCCEEDED:
        return _false(CONTAINERS_READY, POD_COMPLETED)
    if status.phase == pods.FAILED:
        return _false(CONTAINERS_READY, POD_FAILED)
    statuses = [*(status.initContainerStatuses or ()), *(status.containerStatuses or ())]
    unready = _lacking([*pods.sidecars(pod), *pods.containers(pod)], statuses, lambda _, one: one.ready)
    if not unready:
        return PodCondition(type=CONTAINERS_READY, status="True")
    return _false(CONTAINERS_READY, "ContainersNotReady", f"containers with unready status: [{unready}]")


def ready(pod: Pod, status: PodStatus) -> PodCondition:
    """ContainersReady, and with it every readiness gate of the pod (COND-04, COND-05)."""
    return _ready(pod, status, containers_ready(pod, status))


def _ready(pod: Pod, status: PodStatus, containers: PodCondition) -> PodCondition:
    """The same, where ContainersReady is known."""
    containers = replace(containers, type=READY)
    if containers.status != "True":
        return containers
    gates = [gate.conditionType for gate in pods.spec(pod).readinessGates or ()]
    closed = [text for gate in gates if (text := _closed(gate, status.conditions))]
    return _false(READY, "ReadinessGatesNotReady", ", ".join(closed)) if closed else containers


def _closed(gate: str, conditions: list[PodCondition] | None) -> str:
    """What is wrong with the condition that a readiness gate names; "" if it is True."""
    found = condition(conditions, gate)
    if found is None:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    if found.status == "True":
        return ""
    return f'the status of pod readiness gate "{gate}" is not "True", but {found.status}'


def with_transition_times(
    conditions: Iterable[PodCondition], before: Iterable[PodCondition] | None, now: datetime
) -> list[PodCondition]:
    """The kubelet's conditions dated `now`, or as before where their status is the same (STATUS-09)."""
    known = {one.type: one for one in before or ()}
    return [_dated(one, known.get(one.type), now) for one in conditions]


def _dated(one: PodCondition, before: PodCondition | None, now: datetime) -> PodCondition:
    if one.type not in _DATED:
        return one
    if before is None or before.status != one.status:
        return replace(one, lastTransitionTime=now)
    return replace(one, lastTransitionTime=before.lastTransitionTime)


def _lacking(
    containers: Iterable[AnyContainer],
    statuses: Iterable[ContainerStatus] | None,
    holds: Callable[[AnyContainer, ContainerStatus], bool],
) -> str:
    """The names of the containers that have no status, or for whose status `holds` does not."""
    found = {status.name: status for status in statuses or ()}
    return " ".join(
        one.name for one in containers if one.name not in found or not holds(one, found[one.name])
    )


def _false(kind: str, reason: str, message: str = "") -> PodCondition:
    return PodCondition(type=kind, status="False", reason=reason, message=message or None)


StatusChange: TypeAlias = Callable[[PodStatus], PodStatus]
BY_KUBELET = "TerminationByKubelet"


def ended_by_kubelet(
    reason: str, message: str, behaviour: Behaviour, *, spares_success: bool = False
) -> StatusChange:
    """Makes a status Failed for that reason, marked as a disruption (COND-08).

    With `spares_success` a pod that has succeeded stays Succeeded (SHUT-02).
    """
    mark = PodCondition(type=DISRUPTION_TARGET, status="True", reason=BY_KUBELET, message=message)

    def change(status: PodStatus) -> PodStatus:
        found = list(status.conditions or ())
        if behaviour.marks_disruptions:
            found = put(found, mark)
        spared = spares_success and status.phase == pods.SUCCEEDED
        phase = pods.SUCCEEDED if spared else pods.FAILED
        return replace(status, phase=phase, reason=reason, message=message, conditions=found)

    return change
