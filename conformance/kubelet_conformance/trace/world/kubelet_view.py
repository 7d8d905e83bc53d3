"""What the kubelet can reach, and by when it is informed: the API server, the runtime, and its disk.

A kubelet is not at fault for what it cannot know or cannot do. The runtime reports its own state by Status;
that of the API server and the disk is known from fault records only, and so never of a real node.
"""

import math
import re
from collections import Counter
from fnmatch import fnmatchcase

from kubelet_conformance.trace.format.bodies import StatusReply
from kubelet_conformance.trace.format.records import Disk, Fault, Reply
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.resolve import LATE_SECONDS

EVENTS_GATE = "EventedPLEG"
"""The feature gate of a kubelet that uses container events."""
STATUS_STALE = 30.0
"""A runtime that gave no good Status for this long counts as down (runtime.go)."""
_LISTS = ("ListPodSandbox", "ListContainers")
_OF_THE_LOOP = (*_LISTS, "Status")
_HOLDING_UP = (*_OF_THE_LOOP, "ImageStatus", "PodSandboxStatus", "ContainerStatus")
"""Lists and Status delay the loop, other reads the sync of some pod: it is not known which."""
OBSERVED: frozenset[str] = frozenset(
    {
        "fault",
        "disk",
        "kubelet:started",
        *(f"{how}:{rpc}" for rpc in _HOLDING_UP for how in ("done", "failed")),
    }
)
"""The keys of the records that the view observes."""
_READ = frozenset(f"done:{rpc}" for rpc in _HOLDING_UP if rpc != "Status")
_FIRST_RETRY, _LONGEST_RETRY = 2.0, 60.0
"""The API server is asked again after 0.8 s, and after twice as long each time, 30 s at most; all of these
may be doubled (reflector.go). So one wait is no longer than twice those before it together, and the first.
"""
_RESENT_SECONDS, _ROUND_SECONDS = 2.0, 11.0
"""A request that failed for a server that is away is sent again after a second, and a status that was refused
with the next round of the status manager, 10 s after the last.
"""
_LONGEST_NAP = 5.0
"""A loop that cannot begin checks again after 0.1 s, then after twice as long each time, up to this."""
_API_SERVER = "the API server"
_AWAY, _BACK = "the API server is away", "the API server is back"
_NODE_GONE = "the node's object is missing"
_ASKS_FOR_THE_NODE = "the API server: list nodes "
_DELAY = re.compile(r" delay=(\S+)")
_DISK_FAILS, _DISK_WORKS = "the disk fails at", "the disk works"


class KubeletView:
    """The kubelet's view, as known by now."""

    def __init__(self) -> None:
        self.seq = 0
        self.api_away_t: float | None = None
        """Since when the API server cannot be reached; None while it can."""
        self.api_back_t = -math.inf
        """When it last came back."""
        self.node_gone = False
        """The node's own object is missing at the API server."""
        self.node_unknown = False
        """Requests for the node fail: a kubelet that starts does not learn what there is of it."""
        self.disk_fails = False
        """Some path of the disk cannot be used."""
        self.missing = ""
        """The path of the manifests, as long as it is missing."""
        self.made_t: float | None = None
        """When it was created again."""
        self.good_t: float | None = None
        """When the runtime last said that it is ready, in this kubelet instance."""
        self.bad_t: float | None = None
        """Since when it says that it is not; None while it is ready, -inf as long as that is not known."""
        self.network_bad_t: float | None = None
        """Since when it says that its network is not ready."""
        self._started_t = 0.0
        self.relisted = True
        """The kubelet has listed what runs, since it was started."""
        self._relisted_t = -math.inf
        """When it was first seen to list what runs."""
        self._sandboxes_t = -math.inf
        """When it last saw all sandboxes; a relist goes on with the containers."""
        self._list_failed_t = -math.inf
        """When a list last failed."""
        self._held_up_until = 0.0
        """Until when it last could not continue, or could not be informed of its pods."""
        self._api_faults = 0
        """How many faults there are for which the API server is unreachable, late or answers by errors."""
        self._api_failed_t = 0.0
        self._sent_again_by = -math.inf
        """By when what it refused or did not answer was sent again, as it was."""
        self._api_mended_t = -math.inf
        """By when all is answered again: a request that is late remains so when the fault is healed."""
        self._faults: dict[str, Counter[str]] = {}
        """What is injected into calls to the runtime, by RPC, and how often."""
        self._faults_seq: dict[str, int] = {}
        """Up to which record the last of it was, by RPC."""

    def down_since(self, t: float) -> float | None:
        """Since when a kubelet that depends on Status does not work; None while it does."""
        if self.bad_t is not None:
            return self.bad_t
        stale_t = math.inf if self.good_t is None else self.good_t + STATUS_STALE
        return stale_t if t > stale_t else None

    def is_cut_off(self, t: float) -> bool:
        """The API server is unreachable, or the runtime down: no new pod or update is handled."""
        return self.api_away_t is not None or self.down_since(t) is not None

    def list_failed_since(self, t: float) -> bool:
        """A list of what runs has failed since then."""
        return self._list_failed_t >= t

    def api_was_away(self, t: float) -> bool:
        """The API server was unreachable at `t` or since: writes may have been deferred."""
        return self.api_away_t is not None or self.api_back_t >= t

    def api_was_faulty(self, t: float) -> bool:
        """Requests to the API server were unanswered, late or answered by errors at `t` or since.

        A status that comes then may have been made up before `t`.
        """
        return self._api_faults > 0 or self._api_mended_t >= t

    def made_since(self, t: float) -> float:
        """Since when a status that was written at `t` may have been made.

        One that failed to reach the API server is sent again each second (client-go rest/with_retry.go), and
        one that was refused with the next round (status_manager.go), with what was known at first.
        """
        return min(t, self._api_failed_t) if self._api_faults or t <= self._sent_again_by else t

    def informed_by(self, t: float, now: float) -> float:
        """By when, without its reaction time, the kubelet is informed of what was desired at `t`.

        The loop takes no updates while it waits for a list of what runs (housekeeping), nor before the
        runtime says that it is ready, nor before it has listed what runs. A kubelet that starts, or whose API
        server was unreachable, is informed then; infinity before.
        """
        is_waiting = self._api_faults > 0 or not self.relisted or self.down_since(now) is not None
        return math.inf if is_waiting else max(t, self._held_up_until)

    @property
    def lacks_node(self) -> bool:
        """The kubelet may not have its node's object."""
        return self.node_gone or self.node_unknown

    def has_injected_fault(self, m: Moment) -> bool:
        """Whether a fault was injected into calls like this one since it began."""
        rpc = m.call.rpc
        return any(
            (injected or m.call.seq < self._faults_seq.get(call, 0)) and fnmatchcase(rpc, call)
            for call, injected in self._faults.items()
        )

    def observe(self, m: Moment) -> None:
        """Observe one record with a key of OBSERVED."""
        record = m.record
        if type(record) is Reply:
            self._reply(m, record)
        elif isinstance(record, Fault):
            self._fault(m, record)
        elif isinstance(record, Disk):
            if record.op == "missing":
                self.missing, self.made_t = record.path, None
            elif record.op == "made" and record.path == self.missing:
                self.missing, self.made_t = "", record.t
        else:
            self._started_t = m.t
            self._hold_up(m.t)
            self.relisted, self._sandboxes_t = False, -math.inf
            self.good_t = self.bad_t = self.network_bad_t = None

    def _hold_up(self, until: float) -> None:
        self._held_up_until = max(self._held_up_until, until)

    def _reply(self, m: Moment, reply: Reply) -> None:
        rpc = reply.call.rpc
        if m.t - reply.call.t > LATE_SECONDS or (reply.error is not None and rpc in _OF_THE_LOOP):
            self._hold_up(m.t)
        if reply.error is not None and rpc in _LISTS:
            self._list_fails(m)
        if m.keys[0] == "done:Status":
            self._status(m)
        elif not self.relisted:
            self._list(m)

    def _status(self, m: Moment) -> None:
        """Once the runtime is ready again the loop continues at its next check (kubelet.go syncLoop)."""
        says, down_t = m.response(StatusReply).says, self.down_since(m.t)
        if says.get("NetworkReady"):
            self.network_bad_t = None
        elif self.network_bad_t is None:
            self.network_bad_t = m.t
        if not says.get("RuntimeReady"):
            self.bad_t = m.t if down_t is None else down_t
            self._hold_up(m.t)
            return
        if self.good_t is None and down_t is None:
            down_t = self._started_t  # Nor does it begin before the runtime is first reported ready.
        self.good_t, self.bad_t = m.t, None
        if down_t is not None:
            self._hold_up(m.t + min(m.t - down_t, _LONGEST_NAP))

    def _list(self, m: Moment) -> None:
        """After the first relist that succeeds the loop begins at its next check (kubelet.go)."""
        if receives_events(m) and m.t - self._list_failed_t <= LATE_SECONDS:
            return
        if "all:ListPodSandbox" in m.keys:
            self._sandboxes_t = m.t
        elif "all:ListContainers" in m.keys and m.call.t - self._sandboxes_t <= LATE_SECONDS:
            self.relisted, self._relisted_t = True, m.t
            self._hold_up(m.t + min(m.t - self._started_t, _LONGEST_NAP))

    def _list_fails(self, m: Moment) -> None:
        """Where events replace relists, the next one comes minutes after a first one that failed.

        A kubelet that starts lists for its garbage collection at the same time: which list was the relist's
        cannot be seen.
        """
        self._list_failed_t = m.t
        if receives_events(m) and m.t - self._relisted_t <= LATE_SECONDS:
            self.relisted = False

    def _fault(self, m: Moment, fault: Fault) -> None:
        what, healed, rpc = fault.subject, fault.is_healed, fault.call
        if what.startswith(_API_SERVER):
            self._api_server(m, what, healed=healed)
        elif _DISK_FAILS in what or (healed and what.startswith(_DISK_WORKS)):
            self.disk_fails = _DISK_FAILS in what
        elif "node's object" in what:
            self.node_gone = what == _NODE_GONE
        injected = self._faults.setdefault(rpc, Counter())
        if not healed:
            injected[what] += 1
        elif what in injected:
            self._faults[rpc] = injected - Counter((what,))
            self._faults_seq[rpc] = m.seq

    def _api_server(self, m: Moment, what: str, *, healed: bool) -> None:
        """The API server is unreachable, back, or returns errors: the kubelet may wait for its next retry."""
        if what == _AWAY and not healed:
            self.api_away_t = m.t
        elif what == _BACK and healed:
            self.api_away_t, self.api_back_t = None, m.t
        elif what.startswith(_ASKS_FOR_THE_NODE):
            self.node_unknown = not healed
        if healed:
            late = _DELAY.search(what)
            self._api_mended_t = max(self._api_mended_t, m.t + (float(late[1]) if late else 0.0))
            self._sent_again_by = self._api_mended_t + (_RESENT_SECONDS if what == _BACK else _ROUND_SECONDS)
        elif not self._api_faults and m.t > self._held_up_until:
            self._api_failed_t = m.t
        self._api_faults = max(0, self._api_faults + (-1 if healed else 1))
        wait = min(2 * (m.t - self._api_failed_t) + _FIRST_RETRY, _LONGEST_RETRY) if healed else 0.0
        self._hold_up(m.t + wait)


def receives_events(m: Moment) -> bool:
    """The kubelet receives container events, and need not list its runtime for changes (EventedPLEG)."""
    return m.header.feature_gates.get(EVENTS_GATE, False)


def kubelet_view(m: Moment) -> KubeletView:
    """What is known by now, the moment's own record included; updates the view from that record."""
    view, key, seq = m.node.note(KubeletView), m.keys[0], m.seq
    if not view.seq and not m.header.from_start:
        view.bad_t = -math.inf
    if view.seq != seq and key in OBSERVED:
        view.seq = seq
        # Most replies to a read come in time, and show nothing of the kubelet.
        if key not in _READ or not view.relisted or m.t - m.call.t > LATE_SECONDS:
            view.observe(m)
    return view


def informed_by(m: Moment, t: float) -> float:
    """By when the kubelet is informed of what was desired at `t`: `KubeletView.informed_by` now."""
    return kubelet_view(m).informed_by(t, m.t)


def has_injected_fault(m: Moment) -> bool:
    """Whether a fault was injected into calls like the moment's since it began."""
    return kubelet_view(m).has_injected_fault(m)
