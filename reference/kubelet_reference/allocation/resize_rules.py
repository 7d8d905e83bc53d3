"""Resize in place: what running containers are to get or to lose, and in which order (RESIZE-03, RESIZE-04).

They are compared in the kernel's units: what was allocated to them, and what the runtime says they have.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from lightkube.models.core_v1 import Pod
from msgspec.structs import replace

from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ActuatedResources, ContainerRecord
from kubelet_reference.api.resources import CPU, MEMORY, container_resources

_ANY_MEMORY = 1
"""The node's memory, which only counts for the OOM score, and that is not changed."""
_RESTART = "RestartContainer"


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """One resource of one running container that is to be another; `new` has the other one as it is."""

    name: str
    record: ContainerRecord
    resource: str
    old: ActuatedResources
    new: ActuatedResources

    @property
    def grows(self) -> bool:
        """Whether the container gets more; no limit is more than any."""
        if self.resource == MEMORY:
            return _more(self.new.memory_limit, self.old.memory_limit)
        if self.new.cpu_quota != self.old.cpu_quota:
            return _more(self.new.cpu_quota, self.old.cpu_quota)
        return self.new.cpu_shares > self.old.cpu_shares


def _more(new: int, old: int) -> bool:
    return bool(old) and (not new or new > old)


def desired_resources(pod: Pod, container: AnyContainer) -> ActuatedResources:
    """What the container's spec comes to."""
    wanted = container_resources(pod, container, _ANY_MEMORY)
    return ActuatedResources(wanted.cpu_shares, wanted.cpu_quota, wanted.memory_limit_in_bytes)


def resource_changes(
    pod: Pod, container: AnyContainer, record: ContainerRecord
) -> tuple[ResourceChange, ...]:
    """The resources of a running container that differ from its spec; none where the runtime reports none."""
    have, want = record.actuated, desired_resources(pod, container)
    if have is None:
        return ()
    found: list[ResourceChange] = []
    if have.memory_limit != want.memory_limit:
        new = replace(have, memory_limit=want.memory_limit)
        found.append(ResourceChange(container.name, record, MEMORY, have, new))
    if (have.cpu_shares, have.cpu_quota) != (want.cpu_shares, want.cpu_quota):
        new = replace(have, cpu_shares=want.cpu_shares, cpu_quota=want.cpu_quota)
        found.append(ResourceChange(container.name, record, CPU, have, new))
    return tuple(found)


def needs_restart(container: AnyContainer, changes: Iterable[ResourceChange]) -> bool:
    """Whether a resource changes that the container cannot be given while it runs (RESIZE-03)."""
    policies = getattr(container, "resizePolicy", None) or ()
    restarts = {one.resourceName for one in policies if one.restartPolicy == _RESTART}
    return any(change.resource in restarts for change in changes)


def in_order(changes: Iterable[ResourceChange]) -> tuple[ResourceChange, ...]:
    """Memory before CPU, and of each what shrinks before what grows (RESIZE-04)."""
    return tuple(sorted(changes, key=_turn))


def _turn(change: ResourceChange) -> tuple[bool, bool]:
    return change.resource != MEMORY, change.grows
