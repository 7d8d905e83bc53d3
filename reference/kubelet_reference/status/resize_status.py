"""What a pod's status reports of its resources, and of a resize (RESIZE-06, COND-09)."""

import math
from fractions import Fraction

from lightkube.models.core_v1 import ContainerStatus, Pod, PodCondition, PodStatus, ResourceRequirements
from msgspec.structs import replace

from kubelet_reference.allocation.allocation_manager import Refusal
from kubelet_reference.allocation.resize_rules import resource_changes
from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.quantities import milli, whole
from kubelet_reference.api.records import ActuatedResources, ContainerRecord, PodRecords
from kubelet_reference.api.resources import CPU, MEMORY, PERIOD, SHARES_PER_CPU, limits, requests
from kubelet_reference.status.conditions import RESIZE_IN_PROGRESS, RESIZE_PENDING
from kubelet_reference.util.versions import Behaviour

IN_PROGRESS = "InProgress"


def with_resize(
    status: PodStatus, pod: Pod, records: PodRecords, refused: Refusal | None, behaviour: Behaviour
) -> PodStatus:
    """The status with what its containers have, and how a resize stands.

    `pod` has the resources that were allocated; `refused` is why others were not.
    """
    spec = {one.name: one for one in pods.containers(pod)}
    statuses = [_with_resources(one, spec[one.name], records) for one in status.containerStatuses or ()]
    status = replace(status, containerStatuses=statuses)
    under_way = any(_is_under_way(pod, one, records.newest(one.name)) for one in spec.values())
    if not behaviour.tells_resize_by_condition:
        return replace(status, resize=refused.reason if refused else IN_PROGRESS if under_way else None)
    found: list[PodCondition] = []
    if refused is not None:
        found.append(
            PodCondition(type=RESIZE_PENDING, status="True", reason=refused.reason, message=refused.message)
        )
    if under_way:
        found.append(PodCondition(type=RESIZE_IN_PROGRESS, status="True"))
    return replace(status, conditions=[*(status.conditions or ()), *found])


def _is_under_way(pod: Pod, container: AnyContainer, record: ContainerRecord | None) -> bool:
    if record is None or not record.is_running or pods.is_static(pod):
        return False
    return bool(resource_changes(pod, container, record))


def _with_resources(status: ContainerStatus, container: AnyContainer, records: PodRecords) -> ContainerStatus:
    record = records.newest(container.name)
    actuated = record.actuated if record is not None and record.is_running else None
    return replace(
        status,
        allocatedResources=requests(container) or None,
        resources=actual_resources(container, actuated),
    )


def actual_resources(container: AnyContainer, actuated: ActuatedResources | None) -> ResourceRequirements:
    """The resources that the runtime reports for the container; those allocated where it reports none."""
    asked, most = requests(container), dict(limits(container))
    if actuated is not None:
        if CPU in most and actuated.cpu_quota:
            most[CPU] = _cpu(most[CPU], Fraction(actuated.cpu_quota, PERIOD))
        if MEMORY in most and actuated.memory_limit:
            most[MEMORY] = _memory(most[MEMORY], actuated.memory_limit)
        if CPU in asked and actuated.cpu_shares:
            asked[CPU] = _cpu(asked[CPU], Fraction(actuated.cpu_shares, SHARES_PER_CPU))
    return ResourceRequirements(requests=asked or None, limits=most or None)


def _cpu(allocated: str, cores: Fraction) -> str:
    """The cores as they were written where there are that many, else in thousandths, rounded up."""
    actual = math.ceil(cores * 1000)
    return allocated if milli(allocated) == actual else f"{actual}m"


def _memory(allocated: str, actual: int) -> str:
    """The bytes as they were written where there are that many."""
    return allocated if whole(allocated) == actual else _bytes(actual)


def _bytes(amount: int) -> str:
    """A number of bytes, in the largest binary unit that it is a multiple of."""
    for unit in ("", "Ki", "Mi"):
        if amount % 1024:
            return f"{amount}{unit}"
        amount //= 1024
    return f"{amount}Gi"
