"""The bridge that pods are plugged into, and the addresses that they get.

The bridge is made here and not by its plugin: then nothing has to be forwarded, so the machine's forwarding
stays as it is, and pods have no route but the one to each other and to this machine.
"""

import ipaddress
import json
from collections.abc import Iterable

from kubelet_conformance.targets.containerd.host_commands import said_by
from kubelet_conformance.targets.containerd.requirements import CannotRunError

Subnet = ipaddress.IPv4Network
_CANDIDATES = Subnet("10.231.0.0/16")
_PREFIX = 24


def routed() -> tuple[Subnet, ...]:
    """The IPv4 networks that the machine has a route to, those of its own addresses among them."""
    routes = json.loads(said_by("ip", "-json", "-4", "route", "show", "table", "all") or "[]")
    places = (route["dst"] for route in routes if route["dst"] != "default")
    return tuple(Subnet(place, strict=False) for place in places)


def choose_subnet(taken: Iterable[Subnet]) -> Subnet:
    """The first subnet that touches none of these; raises `CannotRunError` if there is none."""
    used = tuple(taken)
    subnets = _CANDIDATES.subnets(new_prefix=_PREFIX)
    free = (each for each in subnets if not any(map(each.overlaps, used)))
    try:
        return next(free)
    except StopIteration:
        raise CannotRunError(f"no subnet of {_CANDIDATES} is free: all are routed on this machine") from None


def make_bridge(name: str, subnet: Subnet) -> None:
    """Make a bridge that has the first address of the subnet.

    It is given a link address, or else it would take that of a port, and another one when that port goes.
    """
    address = ":".join(f"{byte:02x}" for byte in (0x02, 0x4B, *subnet.network_address.packed))
    said_by("ip", "link", "add", "name", name, "address", address, "type", "bridge")
    said_by("ip", "address", "add", f"{next(subnet.hosts())}/{subnet.prefixlen}", "dev", name)
    said_by("ip", "link", "set", "dev", name, "up")


def network_list(name: str, subnet: Subnet, leases: str) -> str:
    """The CNI configuration of a pod's network: an interface on the bridge, an address of the subnet."""
    addresses = {"type": "host-local", "dataDir": leases, "ranges": [[{"subnet": str(subnet)}]]}
    bridge = {"type": "bridge", "bridge": name, "isGateway": False, "ipMasq": False, "ipam": addresses}
    return json.dumps({"cniVersion": "1.0.0", "name": name, "plugins": [bridge]}, indent=2)
