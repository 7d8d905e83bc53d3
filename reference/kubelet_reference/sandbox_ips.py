"""The IPs of a pod, from what the runtime says of its sandboxes."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from kubelet_reference.records import SandboxRecord


def ips_of(sandbox: SandboxRecord) -> tuple[str, ...]:
    """The sandbox's IPs; none at all where one of them is no address (SANDBOX-21)."""
    told = sandbox.ips or ()
    return told if all(_is_address(ip) for ip in told) else ()


def ips_of_newest(sandboxes: Sequence[SandboxRecord]) -> tuple[str, ...]:
    """The IPs of the newest sandbox if it is ready, else none; newest first."""
    return ips_of(sandboxes[0]) if sandboxes and sandboxes[0].ready else ()


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
