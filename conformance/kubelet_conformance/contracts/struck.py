"""Calls that somebody lets fail, hang or wait: what comes of them is nobody's own doing."""

from __future__ import annotations

import math
from collections import Counter

from kubelet_conformance.contract.frame import observer
from kubelet_conformance.contract.words import Pattern, done, failed, kubelet, late, listed_all
from kubelet_conformance.contracts.situations import FAULT
from kubelet_conformance.contracts.timing import STATUS_STALE
from kubelet_conformance.trace.bodies import StatusReply
from kubelet_conformance.trace.looking import LATE_SECONDS
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.records import Fault, Reply
from kubelet_conformance.trace.views import Container

STRIKES: Pattern = FAULT
"""What a contract that asks `is_struck` has to see: `remember(on=STRIKES)(take_in_strikes)`."""
_OF_THE_LOOP = ("ListPodSandbox", "ListContainers", "Status")
_HOLDING_UP = (*_OF_THE_LOOP, "ImageStatus", "PodSandboxStatus", "ContainerStatus")
"""Lists and Status hold up the loop, what else is read the sync of some pod: nobody can tell which."""
DELAYS: Pattern = FAULT.either(
    *(late(*_HOLDING_UP), failed(*_OF_THE_LOOP)),
    *(done("Status"), listed_all("ListPodSandbox", "ListContainers"), kubelet("started")),
)
"""What a contract that asks `heard_by` has to see: `remember(on=DELAYS)(take_in_delays)`."""
_FIRST_RETRY, _LONGEST_RETRY = 2.0, 60.0
"""The API server is asked again after 0.8 s, and after twice as long each time, 30 s at most; all of these
may be doubled (reflector.go). So one wait is no longer than twice those before it together, and the first.
"""
_LONGEST_NAP = 5.0
"""A loop that cannot begin looks again after 0.1 s, then after twice as long each time, up to this."""
_API_SERVER = "the API server"
_HEALED = "healed: "


class _Struck:
    """What stands, by RPC, with how often, and up to which record the last of it stood."""

    def __init__(self) -> None:
        self.seq = 0
        self.standing: dict[str, Counter[str]] = {}
        self.until_seq: dict[str, int] = {}


@observer(on=STRIKES)
def take_in_strikes(m: Moment) -> None:
    """Keep what `is_struck` tells up to date; done once a moment for all."""
    known = m.node.note(_Struck)
    if not isinstance(m.record, Fault) or known.seq == m.seq:
        return
    known.seq = m.seq
    what = m.record.what.removeprefix(_HEALED)
    rpc = what.partition(" ")[0]
    standing = known.standing.setdefault(rpc, Counter())
    if what == m.record.what:
        standing[what] += 1
    elif what in standing:
        known.standing[rpc] = standing - Counter((what,))
        known.until_seq[rpc] = m.seq


def is_struck(m: Moment) -> bool:
    """Whether calls like this one were tampered with after it had begun, or when it did."""
    known, rpc = m.node.note(_Struck), m.call.rpc
    return bool(known.standing.get(rpc)) or m.call.seq < known.until_seq.get(rpc, 0)


def was_seen_started(container: Container) -> bool:
    """The runtime has told that it was started, whatever is answered to the call that did so."""
    told = container.record.state if container.record is not None else "CONTAINER_CREATED"
    return container.seen_running or told not in {"CONTAINER_CREATED", "CONTAINER_UNKNOWN"}


class _Delays:
    """When the kubelet last could not go on, or could not hear of its pods."""

    def __init__(self) -> None:
        self.away = False
        self.away_t = 0.0
        self.last_t = 0.0
        self.started_t = 0.0
        self.relisted = True
        """The kubelet has seen what runs, since it was started."""
        self.good_t: float | None = None
        """When the runtime last said that it is ready, in this life of the kubelet."""
        self.bad_t: float | None = None
        """Since when it has not said so; None while it does."""
        self.sandboxes_t = -math.inf
        """When it last saw all sandboxes; a relist goes on with the containers."""

    def down_since(self, t: float) -> float | None:
        """Since when the runtime counts as down; None while it does not."""
        if self.bad_t is not None:
            return self.bad_t
        stale_t = math.inf if self.good_t is None else self.good_t + STATUS_STALE
        return stale_t if t > stale_t else None


@observer(on=DELAYS)
def take_in_delays(m: Moment) -> None:
    """Keep what `heard_by` tells up to date."""
    known, record = m.node.note(_Delays), m.record
    if type(record) is Reply:
        if m.t - record.call.t > LATE_SECONDS or (
            record.error is not None and record.call.rpc in _OF_THE_LOOP
        ):
            known.last_t = max(known.last_t, m.t)
        if m.keys[0] == "done:Status":
            _is_told_how_it_is(known, m)
        elif not known.relisted:
            _lists(known, m)
    elif isinstance(record, Fault):
        if record.what.removeprefix(_HEALED).startswith(_API_SERVER):
            _goes_or_comes(known, m, away=not record.what.startswith(_HEALED))
    else:
        known.started_t = known.last_t = max(known.last_t, m.t)
        known.relisted, known.sandboxes_t = False, -math.inf
        known.good_t = known.bad_t = None


def _is_told_how_it_is(known: _Delays, m: Moment) -> None:
    """Where the runtime was not ready the loop goes on as soon as it looks again (kubelet.go syncLoop)."""
    bad_t = known.down_since(m.t)
    if not m.response(StatusReply).says.get("RuntimeReady"):
        known.bad_t = m.t if bad_t is None else bad_t
        known.last_t = max(known.last_t, m.t)
        return
    if known.good_t is None and bad_t is None:
        bad_t = known.started_t  # Nor does it begin before it is told for the first time.
    known.good_t, known.bad_t = m.t, None
    if bad_t is not None:
        known.last_t = max(known.last_t, m.t + min(m.t - bad_t, _LONGEST_NAP))


def _lists(known: _Delays, m: Moment) -> None:
    """With the first relist that succeeds the loop begins, as soon as it looks again (kubelet.go)."""
    if "all:ListPodSandbox" in m.keys:
        known.sandboxes_t = m.t
    elif "all:ListContainers" in m.keys and m.call.t - known.sandboxes_t <= LATE_SECONDS:
        known.relisted = True
        known.last_t = max(known.last_t, m.t + min(m.t - known.started_t, _LONGEST_NAP))


def _goes_or_comes(known: _Delays, m: Moment, *, away: bool) -> None:
    """The API server is away, or back: then the kubelet may wait for its next try."""
    if away and not known.away and m.t > known.last_t:
        known.away_t = m.t
    known.away = away
    wait = 0.0 if away else min(2 * (m.t - known.away_t) + _FIRST_RETRY, _LONGEST_RETRY)
    known.last_t = max(known.last_t, m.t + wait)


def heard_by(m: Moment, t: float) -> float:
    """By when, but for a reaction, the kubelet has heard of what was wanted at `t`.

    The loop takes no news while it waits for a list of what runs, to keep house, nor before the runtime says
    that it is ready, nor before it has seen what runs. A kubelet that starts, or whose API server was away,
    hears it then; infinity before.
    """
    known = m.node.note(_Delays)
    is_waiting = known.away or not known.relisted or known.down_since(m.t) is not None
    return math.inf if is_waiting else max(t, known.last_t)
