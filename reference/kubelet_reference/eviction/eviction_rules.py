"""Node-pressure evictions, the decisions: when there is too little of something, and which pod has to go.

A threshold is a signal, such as `memory.available`, and how little of it is too little. A hard one counts at
once, a soft one when it has been met for its grace period. Which pod goes: one that uses more than it asked
for before one that does not, of these the one with the least priority, and of these the one that is furthest
above what it asked for.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.pods import priority
from kubelet_reference.api.quantities import parse_quantity, whole
from kubelet_reference.api.resources import limits, requests
from kubelet_reference.util.ports import Amount, PodUsage
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

IMMEDIATE_SECONDS = 1
"""The grace of a pod that has to go at once (EVICT-03)."""
MEMORY, DISK = "memory", "ephemeral-storage"
_RESOURCES = {
    "memory.available": MEMORY,
    "nodefs.available": DISK,
    "imagefs.available": DISK,
    "containerfs.available": DISK,
    "nodefs.inodesFree": "inodes",
    "imagefs.inodesFree": "inodes",
    "pid.available": "pids",
}
"""What runs out, by signal, in the order in which it is dealt with."""
_CONDITIONS = {
    MEMORY: "MemoryPressure",
    DISK: "DiskPressure",
    "inodes": "DiskPressure",
    "pids": "PIDPressure",
}


@dataclass(frozen=True, slots=True)
class Threshold:
    """Too little of a signal: less than `limit`, a share of the whole if that ends with %.

    `grace_seconds` is how long a soft one may be met before anything happens; None for a hard one.
    """

    signal: str
    limit: str
    grace_seconds: float | None = None


def thresholds(settings: Settings) -> tuple[Threshold, ...]:
    """The thresholds of the node: what runs out first comes first, and what is hard."""
    graces = settings.eviction_soft_grace_period
    found = [Threshold(signal, limit) for signal, limit in settings.eviction_hard.items()]
    found += [Threshold(signal, limit, graces[signal]) for signal, limit in settings.eviction_soft.items()]
    order = list(_RESOURCES)
    return tuple(sorted(found, key=lambda one: (order.index(one.signal), one.grace_seconds is not None)))


def is_met(threshold: Threshold, amount: Amount | None) -> bool:
    """Whether there is too little; what cannot be read is taken to be enough."""
    if amount is None:
        return False
    if threshold.limit.endswith("%"):
        share = Fraction(threshold.limit.removesuffix("%")) / 100
        return amount.available < share * amount.capacity
    return amount.available < parse_quantity(threshold.limit)


def resource_of(signal: str) -> str:
    """The resource that a signal measures."""
    return _RESOURCES[signal]


def condition_of(signal: str) -> str:
    """The node's condition as long as there is too little of it."""
    return _CONDITIONS[resource_of(signal)]


def ranked(candidates: Sequence[Pod], resource: str, usage: Callable[[Pod], PodUsage]) -> list[Pod]:
    """The pods in the order in which they have to go."""

    def place(pod: Pod) -> tuple[bool, int, int]:
        excess = usage(pod).amounts.get(resource, 0) - _requested(pod, resource)
        return excess <= 0, priority(pod), -excess

    return sorted(candidates, key=place)


def _requested(pod: Pod, resource: str) -> int:
    return sum(whole(requests(one).get(resource, "0")) for one in pods.containers(pod))


def kill_grace(threshold: Threshold | None, pod: Pod, settings: Settings, behaviour: Behaviour) -> int | None:
    """How many seconds an evicted pod gets, None for its own grace period (EVICT-03).

    `threshold` is None for a pod that has exceeded its own limits. A hard eviction meant 0 seconds at first,
    which was taken for "not set" up to 1.30. A negative maximum leaves the pod its own (K8S-118172).
    """
    if threshold is None or threshold.grace_seconds is None:
        return IMMEDIATE_SECONDS if behaviour.evicts_at_once else None
    most = settings.eviction_max_pod_grace_period
    if most < 0:
        return None
    return min(most, pods.grace_seconds(pod)) if behaviour.evicts_at_once else most


def exceeded_limits(pod: Pod, usage: PodUsage) -> Iterator[str]:
    """What the pod uses more of than its limits for ephemeral storage allow, in words (EVICT-08)."""
    for volume in pods.spec(pod).volumes or ():
        limit = str(volume.emptyDir.sizeLimit or "") if volume.emptyDir else ""
        if _exceeds(usage.volumes.get(volume.name, 0), limit):
            yield f'Usage of EmptyDir volume "{volume.name}" exceeds the limit "{limit}".'
    whole_pod = [limits(one).get(DISK, "") for one in pods.containers(pod)]
    if all(whole_pod) and usage.amounts.get(DISK, 0) > sum(map(whole, whole_pod)):
        yield f"Pod {DISK} usage exceeds the total limit of containers {sum(map(whole, whole_pod))}."
    for one in pods.containers(pod):
        limit = limits(one).get(DISK, "")
        if _exceeds(usage.containers.get(one.name, 0), limit):
            yield f"Container {one.name} exceeded its local {DISK} limit {limit}."


def _exceeds(used: int, limit: str) -> bool:
    return 0 < whole(limit or "0") < used
