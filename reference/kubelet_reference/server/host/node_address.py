"""The address of this node, by which others reach it."""

import ipaddress
import socket
from urllib.parse import urlsplit

_ELSEWHERE = ("192.0.2.1", 9)
"""An address for documentation, which leads out of this machine by the default route; nothing is sent."""


def node_address(server: str) -> str:
    """The address from which a server is reached; for one on this machine, that of the default route."""
    parts = urlsplit(server)
    towards = _towards(parts.hostname or "", parts.port or 443)
    if towards and not ipaddress.ip_address(towards).is_loopback:
        return towards
    return _towards(*_ELSEWHERE) or towards or "127.0.0.1"


def _towards(host: str, port: int) -> str:
    """The address of this machine on the way to a host, "" where there is no way."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            found: str = probe.getsockname()[0]
    except OSError:
        return ""
    return found
