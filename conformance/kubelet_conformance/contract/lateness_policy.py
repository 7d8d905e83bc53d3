"""Lateness policy: a kubelet whose calls are delayed or fail may be late, until they work again for a while.

Scenarios are made so that the upper bounds of contracts hold in them. Where faults are injected at any time,
as in generated histories, each call that is late or fails may delay the kubelet's next action by as long as a
retry takes. So an overdue obligation counts as broken only if no such delay happened for that long. What must
never happen is judged as usual.
"""

import math
from fnmatch import fnmatchcase

from kubelet_conformance.contract.obligations import Obligation
from kubelet_conformance.trace.format.records import ApiWrite, Call, Fault, Record, Reply

_RETRY_SECONDS = 35.0
"""A worker comes back to a pod at most 15 s after an error, a watch that ended within a few seconds."""
_FIRST_WATCH, _LONGEST_WATCH = 2.0, 60.0
"""An API server that was unreachable is asked again after 0.8 s, and after twice as long each time, 30 s at
most; all of these may be doubled (reflector.go).
"""
_PROMPT_SECONDS = 0.5
"""A call that takes longer was delayed (s)."""
_RELIST_SECONDS = 300.0
"""A kubelet that uses container events finds changes without an event at the next relist (PLEG-14)."""
_LISTS = frozenset({"ListPodSandbox", "ListContainers"})
_INSPECTIONS = frozenset({"PodSandboxStatus", "ContainerStatus"})
_STREAM = "GetContainerEvents"
_EVENT_FAULT, _WATCH = "a container event is", "the watch is late"
_TAKES_ITS_TIME = frozenset({"StopContainer", "StopPodSandbox", "ExecSync", "GetContainerEvents"})
"""Calls that may take long by themselves, and delay only their pod; unless a fault holds them up."""
_SERVER_ERRORS = 500
_API_SERVER = "the API server"


class LatenessPolicy:
    """Observes every record before it is judged, and returns until when the kubelet is excused."""

    def __init__(self) -> None:
        self._last = -math.inf
        self._open: dict[str, float] = {}
        """When the calls began that have no reply yet and should be prompt."""
        self._faulty: list[str] = []
        """The RPCs, of those that may take long, that a fault is injected into."""
        self._outages = 0
        self._away_t = 0.0
        """Since when the API server is unreachable, or last was."""
        self._watched_by = -math.inf
        """By when the watch is restored after that."""
        self._late_watches = 0
        self._evented = False
        self._found_at = -math.inf
        """When the relist comes that finds changes without a container event."""
        self._now = 0.0

    def observe(self, record: Record) -> None:
        """Observe a record, before the judge does."""
        now = self._now = record.t
        # isinstance() is slow where it says no: these are msgspec's structs.
        if type(record) is Call:
            if record.rpc == _STREAM:
                self._evented = True
            elif record.rpc not in _TAKES_ITS_TIME or record.rpc in self._faulty:
                self._open[record.id] = now
        elif type(record) is Reply:
            began = self._open.pop(record.call.id, now)
            if record.error is not None and record.error.code != "NOT_FOUND":
                self._last = now
                if self._comes_with_a_relist(record):
                    self._found_at = now + _RELIST_SECONDS
            elif now - began > _PROMPT_SECONDS:
                self._last = now
        else:
            self._observe_other(record)

    def _observe_other(self, record: Record) -> None:
        """Observe a record that is no call and no reply."""
        if isinstance(record, ApiWrite):
            if record.code is not None and (record.code >= _SERVER_ERRORS or record.code == 0):
                self._last = record.t
        elif isinstance(record, Fault):
            self._last = record.t
            self._take_fault(record)
        elif record.kind == "kubelet":
            self._begin_anew()

    def _begin_anew(self) -> None:
        """The kubelet ends: open calls no longer count; those that hung have delayed it until now."""
        if self._is_held_up():
            self._last = self._now
        self._open.clear()

    def _take_fault(self, record: Fault) -> None:
        """Observe a fault that is injected or healed."""
        what, more = record.subject, -1 if record.is_healed else 1
        if what.startswith(_API_SERVER):
            self._api_server(more)
        elif what == _WATCH:
            self._late_watches += more
        elif what.startswith(_EVENT_FAULT):
            self._event_withheld(record)
        else:
            for rpc in _TAKES_ITS_TIME:
                if fnmatchcase(rpc, record.call):
                    self._take_faulty_call(rpc, more)

    def _take_faulty_call(self, rpc: str, more: int) -> None:
        """Observe a fault of this RPC. One that may take long by itself is held up only while this lasts."""
        if more > 0:
            self._faulty.append(rpc)
        elif rpc in self._faulty:
            self._faulty.remove(rpc)

    def _api_server(self, more: int) -> None:
        """The API server becomes unreachable, or is back: the kubelet may still wait for its next retry."""
        was_away, self._outages = self._outages > 0, max(0, self._outages + more)
        if not was_away:
            self._away_t = self._now
        elif not self._outages:
            wait = min(2 * (self._now - self._away_t) + _FIRST_WATCH, _LONGEST_WATCH)
            self._watched_by = self._now + wait

    def _comes_with_a_relist(self, failed: Reply) -> bool:
        """Whether what this event reports is known only after a relist, as nothing repeats it before."""
        rpc, is_awaited = failed.call.rpc, self._found_at >= failed.t
        return self._evented and (rpc in _INSPECTIONS or (rpc in _LISTS and is_awaited))

    def _event_withheld(self, record: Fault) -> None:
        """The kubelet receives the event later, or finds the change with a relist."""
        seconds = record.values.get("seconds")
        self._found_at = max(self._found_at, record.t + (float(seconds) if seconds else _RELIST_SECONDS))

    def _is_held_up(self) -> bool:
        """Whether some call should have been answered by now."""
        return any(self._now - t > _PROMPT_SECONDS for t in self._open.values())

    def until(self, obligation: Obligation, now: float) -> float:
        """Until when, in seconds since the start, this may still be answered, whatever its deadline."""
        held_up = self._outages > 0 or self._late_watches > 0 or self._is_held_up()
        last = now if held_up else max(self._last, min(self._found_at, now))
        return max(last + _RETRY_SECONDS, self._watched_by) + (obligation.due.within or 0.0)
