"""The ports that probes and hooks name, and how a host stands before one."""

from kubelet_reference.api.go_text import quoted
from kubelet_reference.api.pods import AnyContainer

PORT_MAX = 65_535


class PortError(Exception):
    """The spec names a port that the container does not have."""


def port_number(container: AnyContainer, port: int | str) -> int:
    """The port's number; a name is looked up in the container itself (HOOK-08, PROBE-20)."""
    number = int(port) if isinstance(port, int) or port.isdecimal() else _named(container, port)
    if not 0 < number <= PORT_MAX:
        raise PortError(f"invalid port number: {number}")
    return number


def _named(container: AnyContainer, name: str) -> int:
    for one in container.ports or ():
        if one.name == name:
            return one.containerPort
    raise PortError(f"couldn't find port {quoted(name)} in container {container.name}")


def bracketed(host: str) -> str:
    """The host as it stands before a colon and a port."""
    return f"[{host}]" if ":" in host else host
