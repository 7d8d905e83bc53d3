"""Cluster IPs of services, which the API server gives and nothing routes.

Source: the allocation of cluster IPs of the registry of services.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Any

from kubelet_fakes.api.errors import FieldError
from kubelet_fakes.api.objects import FrozenDict, at
from kubelet_fakes.api.validation import INVALID

_RANGE = ipaddress.ip_network("10.96.0.0/16")
_WITHOUT = "None"
"""What a headless service has instead of an address."""
_EXTERNAL = "ExternalName"

Json = dict[str, Any]


def give_cluster_ip(service: Json, others: Iterable[FrozenDict]) -> None:
    """Give a new service the lowest free address, in place, unless it names one or wants none."""
    spec: Json = service["spec"]
    if spec.get("type") == _EXTERNAL:
        return
    if not spec.get("clusterIP"):
        taken = {at(other, "spec", "clusterIP") for other in others}
        spec["clusterIP"] = next(each for each in map(str, _RANGE.hosts()) if each not in taken)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    family = "IPv6" if ":" in spec["clusterIP"] else "IPv4"
    spec.setdefault("ipFamilies", [family])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("internalTrafficPolicy", "Cluster")


def check_cluster_ip(service: FrozenDict, others: Iterable[FrozenDict]) -> Iterator[FieldError]:
    """What is wrong with the address that a new service names: an address is one service's alone."""
    address = at(service, "spec", "clusterIP")
    if not address or address == _WITHOUT:
        return
    if any(at(other, "spec", "clusterIP") == address for other in others):
        yield FieldError("spec.clusterIPs", INVALID, f'["{address}"]: failed to allocate IP {address}: taken')


def check_same_cluster_ip(old: FrozenDict, new: FrozenDict) -> Iterator[FieldError]:
    """What is wrong with an update: an address stays, unless the service becomes an external name."""
    before, after = (at(each, "spec", "clusterIP") for each in (old, new))
    if before and after != before and at(new, "spec", "type") != _EXTERNAL:
        yield FieldError("spec.clusterIPs[0]", INVALID, f'"{after or ""}": may not change once set')


def keep_cluster_ip(service: Json, old: FrozenDict) -> None:
    """Give an updated service the address it had, in place, where the update names none."""
    spec: Json = service["spec"]
    if spec.get("type") != _EXTERNAL:
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
            if not spec.get(field) and at(old, "spec", field) is not None:
                spec[field] = old["spec"][field]
