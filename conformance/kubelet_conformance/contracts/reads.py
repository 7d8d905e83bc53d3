"""What the kubelet reads at the runtime: a relist, or the sync of a pod, waits for each answer."""

from __future__ import annotations

import math

from kubelet_conformance.contract.frame import observer
from kubelet_conformance.contract.words import Pattern, failed, kubelet, late, listed_all
from kubelet_conformance.trace.looking import LATE_SECONDS
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.records import Call, Reply
from kubelet_conformance.trace.under_way import LISTS

_INSPECTIONS = frozenset({"PodSandboxStatus", "ContainerStatus"})
_IMAGES = "ImageStatus"
"""This one tells nothing of a pod. It keeps a worker waiting, and nobody can tell whose."""
_READING = LISTS | _INSPECTIONS | {_IMAGES}
READS: Pattern = failed(*sorted(_READING)).either(late(*sorted(_READING)), kubelet("killed", "stopped"))


class Reads:
    """When a call that reads last went wrong.

    Nobody can tell whose sync it was of: one relist follows another, and each reads one pod after another.
    """

    def __init__(self) -> None:
        self.bad_t = -math.inf
        """When one last told nothing of what there is, or told it late."""
        self.held_up_t = -math.inf
        """When a relist last had its answer late, or got none."""
        self.ended_seq = 0
        """Where the last life of the kubelet ended, which waits for no answer any more."""


class WholeList:
    """When all containers were last listed, and in which record."""

    def __init__(self) -> None:
        self.t = -math.inf
        self.seq = 0


@observer(on=listed_all("ListContainers"))
def take_whole_list(m: Moment) -> None:
    """All containers are listed."""
    last = m.node.note(WholeList)
    last.t, last.seq = m.t, m.seq


def being_read(m: Moment) -> list[Call]:
    """The calls that read and wait for their answers."""
    return [one for one in m.world.calls_open.values() if one.rpc in _READING]


@observer(on=READS)
def take_in_reads(m: Moment) -> None:
    """Keep the notes up to date."""
    reads, record = m.node.note(Reads), m.record
    if type(record) is Reply:
        _take_in_trouble(reads, record)
    else:
        reads.ended_seq = m.seq


def _take_in_trouble(reads: Reads, reply: Reply) -> None:
    """An answer is an error or comes late; that no life of the kubelet waits for any more holds up none."""
    call, rpc, error = reply.call, reply.call.rpc, reply.error
    is_answer = error is None or rpc == _IMAGES or (error.code == "NOT_FOUND" and rpc in _INSPECTIONS)
    is_late = reply.t - call.t > LATE_SECONDS and call.seq > reads.ended_seq
    if not is_answer or is_late:
        reads.bad_t = reply.t
    if rpc != _IMAGES:
        reads.held_up_t = reply.t
