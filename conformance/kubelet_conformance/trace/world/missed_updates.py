"""Pods whose updates the kubelet did not receive in time; until it does, their contracts are not judged.

Container events may be lost or late, and changes at the API server too. That is known only where a fault
record says so, and so never of a real node.
"""

import math
from collections.abc import Callable

from kubelet_conformance.trace.format.records import Fault, PodChange
from kubelet_conformance.trace.world.kubelet_view import EVENTS_GATE, kubelet_view
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Node, Pod

EVENT_DELAY_SECONDS = 10.0
"""How much later it may do what follows from its own actions: a pod without a new event counts as known only
every 5 s, and one action may follow from another.
"""
_EVENT_FAULT = "a container event is "
"""The prefix of a fault text that says that an event is lost, late or held back."""
_RELIST = 300.0
"""How often such a kubelet lists everything, and finds what it received no event of (evented.go)."""
_RELIST_TAKES = 1.0
"""How long it may read pods in the relist that it makes when its stream breaks, before anything is missed."""
_TRIES = 5
"""How often its stream may break before it is given up."""
_SYNC = 30.0
"""After that, or after a late event, the pod's worker needs this time to sync the pod."""


_WATCH_LATE, _WATCH_GONE = "the watch is late", "the watch is gone"
_LONGEST_RETRY = 60.0
"""An API server that was unreachable is asked again after this time at most (reflector.go)."""
FOLLOWED_AGAIN = 2.0
"""How soon a broken watch is followed again, by a list after 410: 0.8 s, with jitter (reflector.go)."""
_ACTED = 5.0
"""After news from the API server a worker may continue with the earlier state for this long."""


class _MissedUpdates:
    """Until when the kubelet may have outdated knowledge of which pods, by UID."""

    def __init__(self) -> None:
        self.watch_late: list[float] = []
        """By how much the watch is late; the latest value comes last."""
        self.changes: dict[str, float] = {}
        """Until when the kubelet may not have acted on a change of these pods."""
        self.gone_until = -math.inf
        """Until when there is no watch."""
        self.missed = set[str]()
        """The pods that may have changed more than once between two updates, by UID."""
        self.until: dict[str, float] = {}
        self.stream_down_until = -math.inf
        """Until when that is so of every pod: the stream is broken."""
        self.breaks, self.broken_t = 0, -math.inf
        """How often it broke since the kubelet started, and when last."""
        self.url_is_doubtful = False
        """The newest answer of the manifest URL brought no change of its pods: it may be unusable."""
        self.url_is_unread = False
        """The kubelet may have read nothing but such answers since it started."""
        self.withheld = set[str]()
        """The pods of which an event was ever lost or late, by UID."""


def events_are_withheld(moment: Moment) -> None:
    """An event is lost, or so late that something newer may supersede it."""
    record = moment.record
    if isinstance(record, Fault) and record.what.startswith(_EVENT_FAULT):
        known, late = moment.node.note(_MissedUpdates), float(record.values.get("seconds", 0))
        known.withheld.add(record.uid)
        until = moment.t + max(late, _RELIST) + _SYNC
        known.until[record.uid] = max(known.until.get(record.uid, 0), until)


def watch_changes(moment: Moment) -> None:
    """The watch is late, is so no longer, or ends."""
    known, record = moment.node.note(_MissedUpdates), moment.record
    if not isinstance(record, Fault):
        return
    if record.what == _WATCH_LATE:
        known.watch_late.append(float(record.values.get("seconds", 0)))
    elif record.is_healed and record.subject == _WATCH_LATE and known.watch_late:
        known.watch_late.pop()
        if not known.watch_late:
            known.changes = {uid: min(t, moment.t + _ACTED) for uid, t in known.changes.items()}
    elif record.what == _WATCH_GONE:
        known.gone_until = moment.t + FOLLOWED_AGAIN
        lost = [uid for uid, t in known.changes.items() if t >= moment.t]
        known.missed.update(lost)
        known.changes.update(dict.fromkeys(lost, known.gone_until + _ACTED))


def url_answers(moment: Moment) -> None:
    """The manifest URL gives another answer; the changes of pods that it brings are recorded next."""
    known = moment.node.note(_MissedUpdates)
    known.url_is_unread = known.url_is_unread and known.url_is_doubtful
    known.url_is_doubtful = True


def change_is_missed(moment: Moment) -> None:
    """A client changes a pod while its source cannot be read, or the watch is late."""
    known, record = moment.node.note(_MissedUpdates), moment.record
    if not isinstance(record, PodChange) or record.source == "file":
        return
    if record.source == "http":
        known.url_is_doubtful = False
        if known.url_is_unread and record.op == "remove" and moment.pod is not None:
            known.missed.add(moment.pod.uid)
        return
    uid = moment.manifest.metadata.uid if moment.manifest is not None else record.uid
    # Everything is listed after that.
    if known.gone_until >= moment.t or kubelet_view(moment).api_was_away(moment.t - _LONGEST_RETRY):
        known.missed.add(uid)
    received_t = max(moment.t + known.watch_late[-1] if known.watch_late else -math.inf, known.gone_until)
    if received_t >= moment.t:
        known.changes[uid] = max(known.changes.get(uid, -math.inf), received_t + _ACTED)


def relisted(moment: Moment) -> None:
    """A kubelet that starts lists everything at once, and knows nothing of what it cannot use."""
    _put_off(moment, _SYNC, min)
    known = moment.node.note(_MissedUpdates)
    known.breaks, known.stream_down_until = 0, min(known.stream_down_until, moment.t + _SYNC)
    known.url_is_unread = known.url_is_doubtful


def stream_breaks(moment: Moment) -> None:
    """The event stream broke: changes are not sent until it is opened again or given up."""
    known = moment.node.note(_MissedUpdates)
    known.breaks, known.broken_t = known.breaks + 1, moment.t
    known.stream_down_until = math.inf if known.breaks < _TRIES else moment.t + _SYNC
    _put_off(moment, _SYNC, min)


def stream_opens(moment: Moment) -> None:
    """Everything was listed before; what changed since that list is found by the next one (evented.go)."""
    known = moment.node.note(_MissedUpdates)
    if known.breaks:
        is_list_old = moment.t - known.broken_t > _RELIST_TAKES
        known.stream_down_until = moment.t + (_RELIST if is_list_old else 0.0) + _SYNC


def relist_fails(moment: Moment) -> None:
    """What is not known yet may be found only by the relist after the next.

    Before a first relist has succeeded nothing is done for any pod (kubelet.go syncLoop, PLEG-08).
    """
    _put_off(moment, _RELIST + _SYNC, max)
    if moment.node.relisted_t is None and moment.header.feature_gates.get(EVENTS_GATE):
        known = moment.node.note(_MissedUpdates)
        known.stream_down_until = max(known.stream_down_until, moment.t + _RELIST + _SYNC)


def _put_off(moment: Moment, seconds: float, choose: Callable[[float, float], float]) -> None:
    until = moment.node.note(_MissedUpdates).until
    for uid, t in until.items():
        if t >= moment.t:
            until[uid] = choose(t, moment.t + seconds)


def is_outdated(node: Node, pod: Pod | None, t: float) -> bool:
    """Whether the kubelet may have outdated knowledge of the pod."""
    if pod is None:
        return False
    known = node.note(_MissedUpdates)
    if known.stream_down_until >= t:
        return True
    if not known.until and not known.changes:
        return False
    return max(known.until.get(pod.uid, -math.inf), known.changes.get(pod.uid, -math.inf)) >= t


def is_missed(node: Node, pod: Pod) -> bool:
    """Whether the kubelet may have received only the last of several changes: a list shows nothing else.

    So a pod that is deleted by force just goes, and its grace period is not known.
    """
    return pod.uid in node.note(_MissedUpdates).missed


def is_watch_late(node: Node, t: float) -> bool:
    """Whether the kubelet may not have received what was written to the API server, even by itself."""
    known = node.note(_MissedUpdates)
    return bool(known.watch_late) or known.gone_until >= t


def is_withheld(node: Node, uid: str) -> bool:
    """Whether a fault ever delayed or dropped the runtime's events of the pod with this UID."""
    return uid in node.note(_MissedUpdates).withheld
