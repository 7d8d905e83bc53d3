"""What must hold between the resources of containers."""

from collections.abc import Mapping
from typing import cast

from lightkube.models.core_v1 import Pod, ResourceClaim, ResourceRequirements

from kubelet_reference.api import pods
from kubelet_reference.api.quantities import parse_quantity
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import Rule, containers, is_qualified_name, unique

_PLAIN_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES = "hugepages-"
_KNOWN = "cpu, memory, ephemeral-storage, hugepages-SIZE or a name with a domain"
_NO_OVERCOMMIT = "it cannot be overcommitted"


def of_containers(pod: Pod, place: FieldPath) -> None:
    """What a container asks for and is limited to fits together, and its claims are the pod's."""
    for one, where in containers(pod, place):
        if one.resources is not None:
            at = where.field("resources")
            _requirements(one.resources, at)
            _claims(pod, one.resources.claims or (), at.field("claims"))


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


def _claims(pod: Pod, found: list[ResourceClaim] | tuple[()], place: FieldPath) -> None:
    """A claim is one of the pod's."""
    known = {one.name for one in pods.spec(pod).resourceClaims or ()}
    for i, one in enumerate(found):
        if one.name not in known:
            place.item(i).field("name").expected("the name of a resource claim of the pod", one.name)


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
