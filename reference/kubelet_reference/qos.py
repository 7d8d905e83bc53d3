"""The quality of service class of a pod, which follows from its resources."""

from __future__ import annotations

from decimal import Decimal
from typing import cast

from lightkube.models.core_v1 import Pod, ResourceRequirements
from lightkube.utils.quantity import parse_quantity

from kubelet_reference import pods

_KINDS = ("cpu", "memory")


def qos_class(pod: Pod) -> str:
    """Guaranteed, Burstable or BestEffort: the class that the API server gave the pod, or else computed.

    Without any request or limit for CPU or memory a pod is BestEffort. It is Guaranteed if every container
    has limits for both and requests what its limits are; a request that is left out is the limit.
    """
    if pod.status is not None and pod.status.qosClass:
        return pod.status.qosClass
    asked = [_asked(one.resources) for one in (*pods.init_containers(pod), *pods.containers(pod))]
    if not any(requests or limits for requests, limits in asked):
        return "BestEffort"
    same = all(len(limits) == len(_KINDS) and limits | requests == limits for requests, limits in asked)
    return "Guaranteed" if same else "Burstable"


def _asked(resources: ResourceRequirements | None) -> tuple[dict[str, Decimal], dict[str, Decimal]]:
    if resources is None:
        return {}, {}
    asked = cast("list[dict[str, object] | None]", [resources.requests, resources.limits])  # pyright: ignore[reportUnknownMemberType]
    requests, limits = map(_amounts, asked)
    return requests, limits


def _amounts(quantities: dict[str, object] | None) -> dict[str, Decimal]:
    """CPU and memory as numbers; amounts of 0 ask for nothing."""
    named = quantities or {}
    found = {kind: parse_quantity(str(named[kind])) for kind in _KINDS if kind in named}
    return {kind: amount for kind, amount in found.items() if amount}
