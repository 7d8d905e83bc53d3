"""What the kubelet reads at the runtime: a relist, or the sync of a pod, waits for each answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kubelet_conformance.contract.words import call, done, failed
from kubelet_conformance.contracts.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.timing import TOGETHER
from kubelet_conformance.trace.records import Call, Reply
from kubelet_conformance.trace.under_way import LISTS

if TYPE_CHECKING:
    from kubelet_conformance.contract.words import Pattern
    from kubelet_conformance.trace.moment import Moment

__all__ = ("READS", "Reads", "take_in_reads")

_INSPECTIONS = frozenset({"PodSandboxStatus", "ContainerStatus"})
_IMAGES = "ImageStatus"
"""This one tells nothing of a pod. It keeps a worker waiting, and nobody can tell whose."""
_READING = sorted(LISTS | _INSPECTIONS | {_IMAGES})
READS: Pattern = call(*_READING).either(done(*_READING), failed(*_READING), LIFE_ENDS)
"""What a contract that asks for these notes has to see: `remember(on=READS)(take_in_reads)`."""


class Reads:
    """Calls that read and wait for their answers, and when one last went wrong.

    Nobody can tell whose sync they are of: one relist follows another, and each reads one pod after another.
    """

    def __init__(self) -> None:
        self.open: dict[str, float] = {}
        """When each of those began that wait, by the id of the call."""
        self.bad_t = -math.inf
        """When one last told nothing of what there is, or told it late."""
        self.held_up_t = -math.inf
        """When a relist last had its answer late, or got none."""


def take_in_reads(m: Moment) -> None:
    """Keep the notes up to date; a kubelet that ends waits for no answer."""
    reads, record = m.node.note(Reads), m.record
    if type(record) is Call:
        reads.open[record.id] = m.t
    elif type(record) is Reply:
        began = reads.open.pop(record.call.id, m.t)
        if record.error is not None or m.t - record.call.t > TOGETHER:
            _take_in_trouble(reads, record, began)
    else:
        reads.open.clear()


def _take_in_trouble(reads: Reads, reply: Reply, began: float) -> None:
    """An answer is an error or comes late; that no life of the kubelet waits for any more holds up none."""
    rpc, error = reply.call.rpc, reply.error
    is_answer = error is None or rpc == _IMAGES or (error.code == "NOT_FOUND" and rpc in _INSPECTIONS)
    if not is_answer or reply.t - began > TOGETHER:
        reads.bad_t = reply.t
    if rpc != _IMAGES:
        reads.held_up_t = reply.t
