"""What the kubelet can reach: the runtime and its network as Status tells, the API server as faults tell."""

from __future__ import annotations

from kubelet_conformance.contract.frame import observer
from kubelet_conformance.contract.words import Pattern, done, failed, kubelet
from kubelet_conformance.contracts.situations import FAULT
from kubelet_conformance.contracts.timing import STATUS_STALE
from kubelet_conformance.trace.bodies import StatusReply
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.records import Disk, Fault

_OF_PODS = "/pods/"
"""Stands in the path of every file that a kubelet keeps for a pod."""
_CGROUPS = "/sys/fs/cgroup/"
"""Below it every pod has a folder, which no source has written."""


def _is_a_manifest(m: Moment) -> bool:
    return isinstance(m.record, Disk) and not any(part in m.record.path for part in (_OF_PODS, _CGROUPS))


DISK = Pattern(frozenset({"disk"}))
"""A manifest folder or another path changes."""
MANIFEST = DISK.where(_is_a_manifest)
OUTSIDE: Pattern = FAULT.either(done("Status"), failed("Status"), kubelet("started"), DISK)
"""What a contract that asks `outside` has to see besides what it judges: `remember(on=OUTSIDE)(take_in)`."""
_AWAY = "the API server is away"
_NODE_GONE = "the node's object is missing"
_HEALED = "healed:"
_DISK_FAILS, _DISK_WORKS = "the disk fails at", "healed: the disk works"


def _api_is_back(m: Moment) -> bool:
    return isinstance(m.record, Fault) and m.record.what.startswith(_HEALED) and "API server" in m.record.what


API_BACK: Pattern = FAULT.where(_api_is_back)


class Outside:
    """What is known by now."""

    def __init__(self) -> None:
        self.seq = 0
        self.api_away_t: float | None = None
        """Since when the API server cannot be reached; None while it can."""
        self.node_gone = False
        """The node's own object is not there."""
        self.disk_fails = False
        """Some path of the disk cannot be used."""
        self.good_t: float | None = None
        """When the runtime last said that it is ready, in this life of the kubelet."""
        self.bad_t: float | None = None
        """Since when it says that it is not; None while it is ready."""
        self.network_bad_t: float | None = None
        """Since when it says that its network is not ready."""
        self.missing = ""
        """The path of the manifests, as long as it is missing."""
        self.made_t: float | None = None
        """When it was made, having been missing."""

    def down_since(self, t: float) -> float | None:
        """Since when a kubelet that goes by Status does not work; None while it does."""
        if self.bad_t is not None:
            return self.bad_t
        if self.good_t is not None and t - self.good_t > STATUS_STALE:
            return self.good_t + STATUS_STALE
        return None


def outside(m: Moment) -> Outside:
    """What is known by now, the moment's own record included."""
    known = m.node.note(Outside)
    if known.seq == m.seq or OUTSIDE.keys.isdisjoint(m.keys):
        return known
    known.seq = m.seq
    if m.keys[0] == "done:Status":
        _told(known, m)
    elif m.keys[0] == "kubelet:started":
        known.good_t = known.bad_t = known.network_bad_t = None
    elif isinstance(m.record, Fault):
        if _api_is_back(m):
            known.api_away_t = None
        elif m.record.what == _AWAY:
            known.api_away_t = m.t
        elif _DISK_FAILS in m.record.what or m.record.what.startswith(_DISK_WORKS):
            known.disk_fails = _DISK_FAILS in m.record.what
        elif "node's object" in m.record.what:
            known.node_gone = m.record.what == _NODE_GONE
    elif isinstance(m.record, Disk):
        _seen_on_disk(known, m.record)
    return known


@observer(on=OUTSIDE)
def take_in(m: Moment) -> None:
    """Keep what `outside` tells up to date; done once a moment for all."""
    outside(m)


def _seen_on_disk(known: Outside, record: Disk) -> None:
    if record.op == "missing":
        known.missing, known.made_t = record.path, None
    elif record.op == "made" and record.path == known.missing:
        known.missing, known.made_t = "", record.t


def _told(known: Outside, m: Moment) -> None:
    conditions = m.response(StatusReply).says
    if conditions.get("RuntimeReady"):
        known.good_t, known.bad_t = m.t, None
    elif known.bad_t is None:
        known.bad_t = m.t
    if conditions.get("NetworkReady"):
        known.network_bad_t = None
    elif known.network_bad_t is None:
        known.network_bad_t = m.t
