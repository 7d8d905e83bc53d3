"""Reads the timeline of a trace."""

from collections.abc import Collection, Sequence
from pathlib import Path

from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.timeline.lanes import Lanes
from kubelet_conformance.reports.timeline.lives import Lives, run_change
from kubelet_conformance.reports.timeline.model import Finding, Item, LaneKind, Quiet, Timeline, What
from kubelet_conformance.reports.trace_text.expectations import offending
from kubelet_conformance.reports.trace_text.lines import asked, described, replied
from kubelet_conformance.run_record.model import Proof
from kubelet_conformance.trace.format.errors import BodyError, TraceError
from kubelet_conformance.trace.format.reader import Reader
from kubelet_conformance.trace.format.records import (
    ApiWrite,
    Body,
    Call,
    Deleted,
    End,
    Event,
    Expect,
    Fault,
    Kubelet,
    PodChange,
    Probe,
    Record,
    Reply,
    RuntimeEvent,
    Stall,
    Status,
    Unknown,
)
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.observe import moments

_CALLS = {
    "RunPodSandbox": (What.START, "run"),
    "CreateContainer": (What.START, "create"),
    "StartContainer": (What.START, "start"),
    "StopContainer": (What.STOP, "stop"),
    "StopPodSandbox": (What.STOP, "stop"),
    "RemoveContainer": (What.REMOVE, "remove"),
    "RemovePodSandbox": (What.REMOVE, "remove"),
    "RemoveImage": (What.REMOVE, "remove"),
    "ExecSync": (What.EXEC, "exec"),
    "PullImage": (What.PULL, "pull"),
    "UpdateContainerResources": (What.CALL, "update"),
    "UpdatePodSandboxResources": (What.CALL, "update"),
    "ReopenContainerLog": (What.CALL, "reopen"),
}
"""The calls that are more than a read."""
_EVENTS: dict[type, What] = {
    ApiWrite: What.WRITE,
    Deleted: What.WRITE,
    Event: What.EVENT,
    Expect: What.WAIT,
    Fault: What.FAULT,
    Kubelet: What.KUBELET,
    PodChange: What.POD,
    Probe: What.PROBE,
    RuntimeEvent: What.EXIT,
    Stall: What.FAULT,
    Status: What.STATUS,
}
"""The records in which something happens; further ones are shown only as evidence."""
_ACCEPTED = range(200, 300)
_LABEL_CHARS = 24


def timeline_of(path: Path, proofs: Sequence[tuple[str, Proof]] = (), *, bodies: bool = False) -> Timeline:
    """The timeline of a trace file, with these breaks (contract and proof) marked in it.

    What can be read of a trace that is damaged is there, with the problem.
    """
    found = Timeline()
    reading = Reading(found, {seq for _, proof in proofs for seq in proof.seq}, bodies=bodies)
    try:
        with Reader(str(path)) as reader:
            for moment in moments(reader, reading.passes):
                reading.take(moment)
        reading.finish()
    except (TraceError, BodyError) as error:
        found.problem = str(error)
    for contract, proof in proofs:
        _mark(found, contract, proof)
    return found


def _mark(timeline: Timeline, contract: str, proof: Proof) -> None:
    """Add a break to the timeline, and say at its records what they are evidence against."""
    items = timeline.having(proof.seq)
    if not items:
        return
    for each in items:
        each.breaks = tuple(dict.fromkeys((*each.breaks, contract)))
    wrong = offending(proof)
    # Records before the wrong one may show why something was owed; it was owed from there on.
    at = next((each for each in items if wrong in {each.seq, each.end_seq}), items[-1])
    by = at.t + proof.due if proof.due is not None else None
    timeline.findings.append(Finding(contract, proof.text, proof.seq, at, by))


class Reading:
    """A timeline so far, and what is needed to go on.

    Args:
        timeline: where it is written to.
        wanted: records that are shown even if they bring no news.
        bodies: whether requests, replies and manifests are kept.
    """

    def __init__(self, timeline: Timeline, wanted: Collection[int], *, bodies: bool) -> None:
        self._timeline = timeline
        self._wanted = wanted
        self._bodies = bodies
        self._lanes = Lanes(timeline.lanes)
        self._lives = Lives(timeline.lives)
        self._open: dict[str, Item] = {}
        """Calls that have no reply yet, by id."""
        self._said: dict[tuple[str, ...], str] = {}
        """What was last said of each kind that repeats itself."""
        self._replied: dict[tuple[str, bytes], bytes] = {}
        """What was last replied to each request."""
        self._is_quiet = False

    def passes(self, record: Record) -> bool:
        """Count the next record, and say whether there is no need to take it in.

        So are the begin of a read, and a reply that is marked as the same as the last one.
        """
        self._timeline.end, self._timeline.records = record.t, self._timeline.records + 1
        if type(record) is Call:
            return record.rpc not in _CALLS and record.seq not in self._wanted
        if type(record) is not Reply or not record.same or record.call.rpc in _CALLS:
            return False
        if self._is_wanted(record):
            return False
        self._pass(record)
        return True

    def take(self, moment: Moment) -> None:
        """Take in a record that is not passed."""
        record = moment.record
        if isinstance(record, Call):
            self._begin(moment, record)
        elif isinstance(record, Reply):
            self._end(moment, record)
        elif not isinstance(record, Unknown | End) or record.seq in self._wanted:
            self._event(moment, record)

    def _begin(self, moment: Moment, call: Call) -> None:
        what, label = _CALLS.get(call.rpc, (What.READ, "read"))
        item = self._item(moment, self._lanes.of(moment), what, label, asked(moment))
        item.is_call = True
        self._keep(item, "request", call.request)
        self._open[call.id] = item

    def finish(self) -> None:
        """Add the calls that were not answered."""
        for item in self._open.values():
            item.text = f"{item.text} (no reply)"
            self._add(item)

    def _end(self, moment: Moment, reply: Reply) -> None:
        item = self._open.pop(reply.call.id, None)
        if self._is_old(reply) and (item is None or item.what is What.EXEC) and not self._is_wanted(reply):
            self._pass(reply)
            return
        if item is None:
            item = self._read(moment, reply)
        self._add(item)
        item.end, item.end_seq, item.failed = reply.t, reply.seq, reply.error is not None
        item.text = f"{item.text} → {replied(moment)}"
        self._keep(item, "response", reply.response)
        self._lasts(moment, reply)

    def _read(self, moment: Moment, reply: Reply) -> Item:
        """A read that brings news: it is known as such only when it is answered."""
        lane = self._lanes.of_node(LaneKind.KUBELET)
        item = self._item(moment, lane, What.READ, "read", asked(moment))
        self._keep(item, "request", reply.call.request)
        return item

    def _item(self, moment: Moment, lane: int, what: What, label: str, text: str) -> Item:
        return Item(moment.seq, moment.t, lane, what, label, text, self._lanes.pod_of(moment, lane))

    def _is_old(self, reply: Reply) -> bool:
        """Whether it says what the last reply to this request said; not every recorder marks these."""
        if reply.same or reply.response is None:
            return reply.same
        key, said = (reply.call.rpc, bytes(reply.call.request.raw)), bytes(reply.response.raw)
        before, self._replied[key] = self._replied.get(key), said
        return before == said

    def _is_wanted(self, reply: Reply) -> bool:
        return reply.seq in self._wanted or reply.call.seq in self._wanted

    def _event(self, moment: Moment, record: Record) -> None:
        what = _EVENTS.get(type(record))
        is_wanted = record.seq in self._wanted
        if not is_wanted and (what is None or self._repeats(moment, record)):
            self._pass(record)
            return
        lane = self._lanes.of(moment)
        item = self._item(moment, lane, what or What.READ, _label(record), described(moment))
        item.failed = _fails(record)
        self._keep(item, record.kind, _body(record))
        self._add(item)
        self._lasts(moment, record)

    def _repeats(self, moment: Moment, record: Record) -> bool:
        """Whether it is of a kind that comes again and again, and says what the last one said."""
        key: tuple[str, ...]
        match record:
            case Probe():
                key, said = (record.uid, record.handler, record.url, str(record.port)), record.outcome
            case Event():
                key, said = (record.uid, record.container or "", record.reason), record.type
            case Status():
                key, said = (record.uid,), described(moment)
            case ApiWrite():
                # A status that was stored has a record of its own.
                return record.subresource == "status" and not _fails(record)
            case _:
                return False
        before, self._said[record.kind, *key] = self._said.get((record.kind, *key)), said
        return before == said

    def _keep(self, item: Item, name: str, body: Body | None) -> None:
        if self._bodies and body is not None:
            item.bodies[name] = body

    def _add(self, item: Item) -> None:
        self._timeline.items.append(item)
        self._is_quiet = False

    def _pass(self, record: Record) -> None:
        """Count a record without news."""
        quiet = self._timeline.quiet
        if self._is_quiet:
            quiet[-1].end = record.t
            quiet[-1].records += 1
        else:
            quiet.append(Quiet(record.seq, record.t, record.t))
            self._is_quiet = True

    def _lasts(self, moment: Moment, record: Record) -> None:
        """Begin and end the spans of attempts and faults."""
        where = record.t, record.seq
        change = run_change(moment)
        if isinstance(record, Fault):
            self._fault(record, where)
        elif change is not None and change.attempt is None:
            self._lives.end(change.id, where)
        elif change is not None:
            self._lives.begin(change.id, self._lanes.of(moment), f"#{change.attempt}", where)

    def _fault(self, fault: Fault, where: tuple[float, int]) -> None:
        if fault.is_healed:
            self._lives.end(fault.subject, where)
        else:
            lane = self._lanes.of_node(LaneKind.SCENARIO)
            self._lives.begin(fault.subject, lane, safe(fault.subject, _LABEL_CHARS), where)


def _label(record: Record) -> str:
    """One word for an event."""
    match record:
        case Event():
            label = record.reason
        case RuntimeEvent():
            label = record.op if record.exit_code is None else f"exit {record.exit_code}"
        case Kubelet():
            label = record.op
        case PodChange():
            label = "wanted" if record.op == "set" else "removed"
        case Fault():
            label = record.what
        case ApiWrite():
            label = record.verb
        case Expect():
            label = "came" if record.met else "timed out"
        case _:
            label = record.kind
    return safe(label, _LABEL_CHARS)


def _fails(record: Record) -> bool:
    match record:
        case ApiWrite():
            return record.code is not None and record.code not in _ACCEPTED
        case Expect():
            return not record.met
        case Event():
            return record.type == "Warning"
        case _:
            return False


def _body(record: Record) -> Body | None:
    match record:
        case PodChange():
            raw = record.pod
        case Status():
            raw = record.status
        case ApiWrite():
            raw = record.body
        case _:
            return None
    return Body(raw) if memoryview(raw).nbytes else None
