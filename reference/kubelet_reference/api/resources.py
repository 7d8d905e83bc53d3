"""CPU and memory: what containers ask for, the class of service of their pod, and the kernel's units."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, cast

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod, ResourceRequirements

from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.quantities import parse_quantity

CPU, MEMORY = "cpu", "memory"
_KINDS = (CPU, MEMORY)


def qos_class(pod: Pod) -> str:
    """Guaranteed, Burstable or BestEffort: the class that the API server gave the pod, or else computed.

    Without any request or limit for CPU or memory a pod is BestEffort. It is Guaranteed if every container
    has limits for both and requests what its limits are; a request that is left out is the limit.
    """
    if pod.status is not None and pod.status.qosClass:
        return pod.status.qosClass
    containers = (*pods.init_containers(pod), *pods.containers(pod))
    asked = [(_amounts(one.resources, "requests"), _amounts(one.resources, "limits")) for one in containers]
    if not any(requests or limits for requests, limits in asked):
        return "BestEffort"
    same = all(len(limits) == len(_KINDS) and limits | requests == limits for requests, limits in asked)
    return "Guaranteed" if same else "Burstable"


def _amounts(wanted: ResourceRequirements | None, which: str) -> dict[str, Fraction]:
    """CPU and memory as numbers; amounts of 0 ask for nothing."""
    named = _quantities(wanted, which)
    found = {kind: parse_quantity(str(named[kind])) for kind in _KINDS if kind in named}
    return {kind: amount for kind, amount in found.items() if amount}


PERIOD: Final = 100_000
"""Microseconds over which the kernel counts CPU time."""
MIN_SHARES, SHARES_PER_CPU, MIN_QUOTA = 2, 1024, 1000
OOM_GUARANTEED, OOM_BEST_EFFORT = -997, 1000
HUGE_PAGES = ("2MB", "1GB")


def amount(quantities: Mapping[str, str] | None, resource: str) -> float:
    """How much of a resource is named, in cores or bytes; 0 if none."""
    text = (quantities or {}).get(resource)
    return float(parse_quantity(str(text))) if text is not None else 0.0


def requests(container: AnyContainer) -> dict[str, str]:
    """What the container asks for; where only a limit is set, the limit."""
    wanted = container.resources
    return {**_quantities(wanted, "limits"), **_quantities(wanted, "requests")}


def limits(container: AnyContainer) -> dict[str, str]:
    """What the container may use at most."""
    return _quantities(container.resources, "limits")


def container_resources(pod: Pod, container: AnyContainer, node_memory: int) -> cri.LinuxContainerResources:
    """The cgroup settings of a container on a node with that much memory, in bytes."""
    wanted, most = requests(container), limits(container)
    return cri.LinuxContainerResources(
        cpu_period=PERIOD,
        cpu_quota=_quota(amount(most, CPU)),
        cpu_shares=_shares(amount(wanted, CPU)),
        memory_limit_in_bytes=int(amount(most, MEMORY)),
        oom_score_adj=_oom_score(pod, amount(wanted, MEMORY), node_memory),
        hugepage_limits=[cri.HugepageLimit(page_size=size) for size in HUGE_PAGES],
    )


def sandbox_resources(pod: Pod) -> cri.LinuxContainerResources:
    """What the app containers of a pod are given together."""
    every = pods.containers(pod)
    return cri.LinuxContainerResources(
        cpu_period=PERIOD,
        cpu_quota=_quota(sum(amount(limits(one), CPU) for one in every)),
        cpu_shares=_shares(sum(amount(requests(one), CPU) for one in every)),
        memory_limit_in_bytes=int(sum(amount(limits(one), MEMORY) for one in every)),
    )


def _quantities(wanted: ResourceRequirements | None, which: str) -> dict[str, str]:
    return cast("dict[str, str] | None", getattr(wanted, which, None)) or {}


def _shares(cores: float) -> int:
    return max(MIN_SHARES, int(cores * SHARES_PER_CPU))


def _quota(cores: float) -> int:
    return max(MIN_QUOTA, math.ceil(cores * PERIOD)) if cores else 0


def _oom_score(pod: Pod, memory: float, node_memory: int) -> int:
    """The more of the node's memory a burstable container asked for, the later it is killed."""
    match qos_class(pod):
        case "Guaranteed":
            return OOM_GUARANTEED
        case "BestEffort":
            return OOM_BEST_EFFORT
        case _:
            score = 1000 - int(1000 * memory / node_memory)
            return min(max(score, 1000 + OOM_GUARANTEED), OOM_BEST_EFFORT - 1)
