"""What must hold between the resources of containers and pods."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from lightkube.models.core_v1 import Container, Pod, ResourceClaim, ResourceRequirements

from kubelet_reference.api import pods
from kubelet_reference.api.quantities import parse_quantity
from kubelet_reference.config.field_errors import FieldPath
from kubelet_reference.config.validation.rules import Rule, containers, is_qualified_name, unique

_COMPUTE = frozenset({"cpu", "memory"})
_PLAIN_RESOURCES = _COMPUTE | {"ephemeral-storage"}
_HUGE_PAGES = "hugepages-"
_NO_OVERCOMMIT = "it cannot be overcommitted"
_REQUESTED = "requests."
"""With this before it, what a container asks for is a resource of a quota; a name cannot begin so."""


@dataclass(frozen=True, slots=True)
class _Kinds:
    """Which resources there are, in words and by name."""

    words: str
    have: Callable[[str], bool]


def _is_pod_resource(name: str) -> bool:
    return name in _COMPUTE or name.startswith(_HUGE_PAGES)


def _is_container_resource(name: str) -> bool:
    if name in _PLAIN_RESOURCES or name.startswith(_HUGE_PAGES):
        return True
    return "/" in name and is_qualified_name(name) and (_is_native(name) or not name.startswith(_REQUESTED))


def _is_native(name: str) -> bool:
    """Whether Kubernetes itself gives it out: then it can be overcommitted, unless it is huge pages."""
    return not name.startswith(_HUGE_PAGES) and ("/" not in name or "kubernetes.io/" in name)


_OF_PODS = _Kinds("cpu, memory or hugepages-SIZE", _is_pod_resource)
_OF_CONTAINERS = _Kinds(
    "cpu, memory, ephemeral-storage, hugepages-SIZE or a name with a domain", _is_container_resource
)


def of_containers(pod: Pod, place: FieldPath) -> None:
    """What a container asks for and is limited to fits together, and its claims are the pod's."""
    for one, where in containers(pod, place):
        if one.resources is not None:
            at = where.field("resources")
            _requirements(one.resources, at, _OF_CONTAINERS)
            _claims(pod, one.resources.claims or (), at.field("claims"))


def of_pods(pod: Pod, place: FieldPath) -> None:
    """What a pod asks for as a whole is cpu, memory or huge pages, and holds what its containers ask for."""
    found = pods.spec(pod).resources
    if found is None:
        return
    at = place.field("resources")
    if found.claims:
        at.field("claims").wrong("only allowed in containers")
    _requirements(found, at, _OF_PODS)
    limits = _limits(found)
    for name, amount in _requests(found).items():
        total = _total(pod, name)
        if total > parse_quantity(amount):
            at.field("requests").field(name).wrong(f"the containers ask for more than {amount}")
    for i, one in enumerate(pods.containers(pod)):
        for name, amount in _limits(one.resources).items():
            if name in limits and parse_quantity(amount) > parse_quantity(limits[name]):
                own = place.field("containers").item(i).field("resources").field("limits").field(name)
                own.expected(f"at most the pod's limit {limits[name]}", amount)


def overhead(pod: Pod, place: FieldPath) -> None:
    """The pod's overhead follows the same rules."""
    found = cast("Mapping[str, str]", pods.spec(pod).overhead or {})  # pyright: ignore[reportUnknownMemberType]
    _amounts(found, place.field("overhead"), _OF_CONTAINERS)
    _huge_pages_have_company(found, place.field("overhead"))


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


def _requirements(found: ResourceRequirements, place: FieldPath, kinds: _Kinds) -> None:
    limits, requests = _limits(found), _requests(found)
    _amounts(limits, place.field("limits"), kinds)
    _amounts(requests, place.field("requests"), kinds)
    _huge_pages_have_company({**limits, **requests}, place)
    for name, amount in requests.items():
        at = place.field("requests").field(name)
        if name not in limits:
            if not _is_native(name):
                place.field("limits").field(name).wrong(f"missing: {_NO_OVERCOMMIT}")
        elif parse_quantity(amount) > parse_quantity(limits[name]):
            at.expected(f"at most the limit {limits[name]}", amount)
        elif not _is_native(name) and parse_quantity(amount) != parse_quantity(limits[name]):
            at.expected(f"the limit {limits[name]}: {_NO_OVERCOMMIT}", amount)


def _amounts(found: Mapping[str, str], place: FieldPath, kinds: _Kinds) -> None:
    """Each name is known; huge pages come whole, and what has a domain in whole numbers."""
    for name, amount in found.items():
        if not kinds.have(name):
            place.field(name).wrong(f"expected {kinds.words}")
        elif name.startswith(_HUGE_PAGES):
            if not _are_pages(name.removeprefix(_HUGE_PAGES), amount):
                place.field(name).expected("a multiple of the size of a page", amount)
        elif not _is_native(name) and parse_quantity(amount) % 1:
            place.field(name).expected("a whole number", amount)


def _are_pages(size: str, amount: str) -> bool:
    try:
        page = parse_quantity(size)
    except ValueError:
        return False
    return page > 0 and not page % 1 and not parse_quantity(amount) % page


def _huge_pages_have_company(found: Mapping[str, str], place: FieldPath) -> None:
    if any(name.startswith(_HUGE_PAGES) for name in found) and not _COMPUTE & found.keys():
        place.wrong("huge pages need cpu or memory beside them")


def _claims(pod: Pod, found: list[ResourceClaim] | tuple[()], place: FieldPath) -> None:
    """A claim is one of the pod's and is named once, as a whole or by its requests."""
    known = {one.name for one in pods.spec(pod).resourceClaims or ()}
    seen: set[tuple[str, str]] = set()
    for i, one in enumerate(found):
        request = one.request or ""
        if one.name not in known:
            place.item(i).field("name").expected("the name of a resource claim of the pod", one.name)
        if any(name == one.name and (request in {"", other} or not other) for name, other in seen):
            place.item(i).field("name").wrong("this claim is named before")
        seen.add((one.name, request))


def _total(pod: Pod, name: str) -> Fraction:
    """What the containers ask for at most at one time: sidecars, with an init container or all apps."""
    sidecars = largest = parse_quantity("0")
    for one in pods.init_containers(pod):
        if pods.is_sidecar(one):
            sidecars += _requested(one, name)
        else:
            largest = max(largest, sidecars + _requested(one, name))
    return max(largest, sidecars + sum(_requested(one, name) for one in pods.containers(pod)))


def _requested(one: Container, name: str) -> Fraction:
    return parse_quantity(_requests(one.resources).get(name, "0"))


def _limits(found: ResourceRequirements | None) -> Mapping[str, str]:
    return cast("Mapping[str, str]", (found and found.limits) or {})  # pyright: ignore[reportUnknownMemberType]


def _requests(found: ResourceRequirements | None) -> Mapping[str, str]:
    return cast("Mapping[str, str]", (found and found.requests) or {})  # pyright: ignore[reportUnknownMemberType]


RESOURCE_RULES: tuple[Rule, ...] = (of_containers, of_pods, overhead, resize_policies)
