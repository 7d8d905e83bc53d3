"""Which kinds are served under which path, and in which form."""

from __future__ import annotations

from dataclasses import dataclass

from kubelet_fakes.api.errors import ApiStatusError
from kubelet_fakes.api.objects import FrozenDict, FrozenList
from kubelet_fakes.api.resources import Resource, resources
from kubelet_fakes.api_server.events import from_events_v1, to_events_v1

_ALSO_AS = {
    "events": ("events.k8s.io/v1",),
    "resourceclaims": ("resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2"),
    "resourceslices": ("resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2"),
    "deviceclasses": ("resource.k8s.io/v1beta1", "resource.k8s.io/v1beta2"),
}
"""Further versions of a kind; all of them are one store."""


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind in one version."""

    resource: Resource
    api_version: str

    def shown(self, stored: FrozenDict) -> FrozenDict:
        """A stored object, or a list of them, in this version."""
        if self.api_version == self.resource.api_version:
            return stored
        if "items" in stored:
            items = FrozenList([self.shown(each) for each in stored["items"]])
            return FrozenDict({**stored, "apiVersion": self.api_version, "items": items})
        if self.resource.name == "events":
            return to_events_v1(stored)
        return FrozenDict({**stored, "apiVersion": self.api_version})

    def stored(self, body: dict[str, object]) -> dict[str, object]:
        """What a client sent in this version, as it is stored."""
        if self.api_version == self.resource.api_version or not body:
            return body
        return from_events_v1(body) if self.resource.name == "events" else body


def _served() -> dict[tuple[str, str], ServedKind]:
    return {
        (version, each.name): ServedKind(each, version)
        for each in resources()
        for version in (each.api_version, *_ALSO_AS.get(each.name, ()))
    }


_SERVED = _served()


def served_kind(api_version: str, plural: str) -> ServedKind:
    """The kind of that plural; raises `ApiStatusError` 404 where this version has none."""
    found = _SERVED.get((api_version, plural))
    if found is None:
        raise ApiStatusError(404, "NotFound", "the server could not find the requested resource")
    return found


def kinds_by_version() -> dict[str, list[ServedKind]]:
    """All kinds, by the group and version that serves them."""
    found: dict[str, list[ServedKind]] = {}
    for (version, _), kind in _SERVED.items():
        found.setdefault(version, []).append(kind)
    return found
