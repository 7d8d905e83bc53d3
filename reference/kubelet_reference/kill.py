"""One container that is to be stopped: a decision, not yet the deed."""

from __future__ import annotations

from dataclasses import dataclass

from kubelet_reference.pods import AnyContainer
from kubelet_reference.records import ContainerRecord
from kubelet_reference.results import KillReason


@dataclass(frozen=True, slots=True)
class Kill:
    """A container to stop; `message` is the text of its Killing event."""

    record: ContainerRecord
    container: AnyContainer
    reason: KillReason
    message: str
