"""The ports that probes and hooks name, and how a host stands before one."""

from kubelet_reference.api.go_text import quoted
from kubelet_reference.api.pods import AnyContainer


class PortError(Exception):
    """The spec names a port that the container does not have."""


def port_number(container: AnyContainer, port: int | str) -> int:
    """The port's number; a name is looked up in the container itself (HOOK-08, PROBE-20)."""
    if isinstance(port, int):
        return port
    for one in container.ports or ():
        if one.name == port:
            return one.containerPort
    raise PortError(f"couldn't find port {quoted(port)} in container {container.name}")


def bracketed(host: str) -> str:
    """The host as it stands before a colon and a port."""
    return f"[{host}]" if ":" in host else host
