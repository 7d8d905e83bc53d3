"""What must hold between the resources of containers."""

from collections.abc import Mapping
from typing import cast

from lightkube.models.core_v1 import Pod, ResourceRequirements

from kubelet_reference.api import pods
from kubelet_reference.api.quantities import parse_quantity
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import Rule, containers, is_qualified_name, none_of, unique

_PLAIN_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES = "hugepages-"
_KNOWN = "cpu, memory, ephemeral-storage, hugepages-SIZE or a name with a domain"
_NO_OVERCOMMIT = "it cannot be overcommitted"


def of_containers(pod: Pod, place: FieldPath) -> None:
    """What a container asks for and is limited to fits together, and it claims nothing of the pod's."""
    for one, where in containers(pod, place):
        if one.resources is not None:
            at = where.field("resources")
            _requirements(one.resources, at)
            none_of(one.resources, ("claims",), at)


def _requirements(found: ResourceRequirements, place: FieldPath) -> None:
    limits = cast("Mapping[str, str]", found.limits or {})  # pyright: ignore[reportUnknownMemberType]
    requests = cast("Mapping[str, str]", found.requests or {})  # pyright: ignore[reportUnknownMemberType]
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name in amounts:
            if not _is_resource(name):
                place.field(kind).field(name).wrong(f"expected {_KNOWN}")
    for name, amount in requests.items():
        at = place.field("requests").field(name)
        if name not in limits:
            if not _is_native(name):
                place.field("limits").field(name).wrong(f"missing: {_NO_OVERCOMMIT}")
        elif parse_quantity(amount) > parse_quantity(limits[name]):
            at.expected(f"at most the limit {limits[name]}", amount)
        elif not _is_native(name) and parse_quantity(amount) != parse_quantity(limits[name]):
            at.expected(f"the limit {limits[name]}: {_NO_OVERCOMMIT}", amount)


def _is_resource(name: str) -> bool:
    return (
        name in _PLAIN_RESOURCES or name.startswith(_HUGE_PAGES) or ("/" in name and is_qualified_name(name))
    )


def _is_native(name: str) -> bool:
    """Whether Kubernetes itself gives it out: then it can be overcommitted, unless it is huge pages."""
    return not name.startswith(_HUGE_PAGES) and ("/" not in name or "kubernetes.io/" in name)


def resize_policies(pod: Pod, place: FieldPath) -> None:
    """What a resize does is said once for each resource; a pod that never restarts does so for none."""
    for one, where in containers(pod, place):
        at = where.field("resizePolicy")
        found = one.resizePolicy or ()
        unique((at.item(i).field("resourceName"), each.resourceName) for i, each in enumerate(found))
        for i, each in enumerate(found):
            if pods.restart_policy(pod) == pods.NEVER and each.restartPolicy != "NotRequired":
                at.item(i).field("restartPolicy").expected(
                    "NotRequired in a pod that never restarts", each.restartPolicy
                )


RESOURCE_RULES: tuple[Rule, ...] = (of_containers, resize_policies)
