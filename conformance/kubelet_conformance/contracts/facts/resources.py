"""What containers may use, in the kernel's units: by their spec, and as the runtime reports."""

from __future__ import annotations

import math
from typing import NamedTuple

from kubelet_conformance.contract import Container, Moment, Note, Pod, PodSpec
from kubelet_conformance.contract.definition import observer
from kubelet_conformance.contract.patterns import done
from kubelet_conformance.contracts.facts.node_pressure import amount
from kubelet_conformance.trace.format.bodies import LinuxResources, UpdateContainerResourcesRequest
from kubelet_conformance.trace.format.manifests import ContainerSpec

GATE = "InPlacePodVerticalScaling"
CPU, MEMORY = "cpu", "memory"
IMPOSSIBLE_CORES = 10_000.0
"""No node has so many: a request for more is infeasible."""
_PERIOD = 100_000
_MIN_SHARES, _MIN_QUOTA = 2, 1000


class Caps(NamedTuple):
    """What a container may use: shares, microseconds of each 100 ms, bytes; 0 is no limit."""

    shares: int
    quota: int
    memory: int

    def of(self, resource: str) -> tuple[int, ...]:
        """What of it concerns a resource."""
        return (self.memory,) if resource == MEMORY else (self.shares, self.quota)

    def grows_to(self, new: Caps, resource: str) -> bool:
        """More of the resource is there in `new`; no limit is more than any."""
        if resource == MEMORY:
            return _more(new.memory, self.memory)
        return _more(new.quota, self.quota) if new.quota != self.quota else new.shares > self.shares


def _more(new: int, old: int) -> bool:
    return bool(old) and (not new or new > old)


def wants(spec: ContainerSpec) -> Caps:
    """The limits and requests of a container's spec in the kernel's units."""
    limits = spec.resources.limits or {}
    asked = {**limits, **(spec.resources.requests or {})}
    cores, limit = amount(str(asked.get(CPU, 0))), amount(str(limits.get(CPU, 0)))
    return Caps(
        max(_MIN_SHARES, int(cores * 1024)),
        max(_MIN_QUOTA, math.ceil(limit * _PERIOD)) if limit else 0,
        int(amount(str(limits.get(MEMORY, 0)))),
    )


def caps_of(linux: LinuxResources) -> Caps:
    """The limits in a CRI message."""
    return Caps(linux.cpu_shares, linux.cpu_quota, linux.memory_limit_in_bytes)


def reported_caps(container: Container) -> Caps | None:
    """What the runtime last reported of the container's limits; None if it never did."""
    reported = container.record.resources if container.record is not None else None
    return caps_of(reported.linux) if reported is not None and reported.linux is not None else None


class _Given(Note):
    """What UpdateContainerResources gave a container since the runtime last reported its resources."""

    caps: Caps | None = None


def updated(m: Moment) -> Caps:
    """The resources of the container after this UpdateContainerResources, as far as they are known."""
    asked = caps_of(m.request(UpdateContainerResourcesRequest).linux)
    before = has_now(m.container) if m.container is not None else None
    return Caps(*(new or old for new, old in zip(asked, before or Caps(0, 0, 0), strict=True)))


@observer(on=done("UpdateContainerResources"))
def take_update(m: Moment, container: Container) -> None:
    """Record what a successful UpdateContainerResources has given; see `has_now`."""
    if container.born or has_now(container) is not None:
        container.note(_Given).caps = updated(m)


def has_now(container: Container) -> Caps | None:
    """The container's limits: as given last, else as the runtime reported; None if they are not known."""
    return container.note(_Given).caps or reported_caps(container)


def awaits_resize(pod: Pod) -> bool:
    """A container of the pod was given resources that the runtime has not reported yet."""
    every = ((one.note(_Given).caps, reported_caps(one)) for one in pod.every_container())
    return any(given is not None and given != reported for given, reported in every)


def changed(before: Caps, after: Caps) -> list[str]:
    """The resources, of cpu and memory, in which the two differ."""
    return [resource for resource in (CPU, MEMORY) if before.of(resource) != after.of(resource)]


def restarts(spec: ContainerSpec, resources: list[str]) -> bool:
    """The container cannot be given these as it runs, by its resize policy."""
    policies = spec.resize_policy or ()
    return any(p.restart_policy == "RestartContainer" and p.resource_name in resources for p in policies)


def asks_the_impossible(spec: PodSpec) -> bool:
    """No node has the resources that one of the containers requests."""
    return any(wants(one).shares > IMPOSSIBLE_CORES * 1024 for one in spec.containers)


def pending(pod: Pod) -> str:
    """Why the pod's resize is not done, by its status: `Infeasible`, `Deferred`, or nothing."""
    if pod.status is None:
        return ""
    condition = pod.status.condition("PodResizePending")
    if condition is not None and condition.status == "True":
        return condition.reason
    return pod.status.resize if pod.status.resize in {"Infeasible", "Deferred"} else ""
