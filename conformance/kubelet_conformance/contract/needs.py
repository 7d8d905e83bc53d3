"""The channels of a trace that a contract cannot do without."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kubelet_conformance.trace.header import Channels


class Need(NamedTuple):
    """A channel and how complete it must be."""

    channel: str
    enough: tuple[str, ...]


CRI = Need("cri", ("full",))
PODS = Need("pods", ("sent", "sampled"))
STATUS = Need("api", ("full", "sampled", "told"))
"""Statuses as the kubelet generated them, perhaps not all."""
STORED_STATUS = Need("api", ("full", "sampled"))
"""Statuses as the API server has them, perhaps not all."""
EVERY_STATUS = Need("api", ("full",))
EVENTS = Need("events", ("full", "limited"))
"""Events that were sent, perhaps late and merged."""
EVERY_EVENT = Need("events", ("full",))


def missing(needs: Iterable[Need], channels: Channels) -> str | None:
    """What the trace lacks for these needs, in words; None when nothing."""
    for need in needs:
        have = str(getattr(channels, need.channel))
        if have not in need.enough:
            return f"channel {need.channel} is {have}, {' or '.join(need.enough)} is needed"
    return None
