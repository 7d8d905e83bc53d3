"""One pass over one trace, with every contract that applies to it."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable

from kubelet_conformance.contract.frame import KEPT, Answered, Broken, Clause, Contract, Finding, Kept
from kubelet_conformance.contract.owed import Ledger, Obligation
from kubelet_conformance.contract.patience import Patience
from kubelet_conformance.contract.roster import Seat, roster_for
from kubelet_conformance.contract.verdicts import UNTESTED, Evidence, Outcome, Verdict
from kubelet_conformance.contract.versions import Version
from kubelet_conformance.trace.errors import BodyError
from kubelet_conformance.trace.header import Header
from kubelet_conformance.trace.learning import TEACHING, learn
from kubelet_conformance.trace.looking import key_of, look
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.records import Call, Record, Reply
from kubelet_conformance.trace.untold import EVENTS_GATE, HEARING_SECONDS, is_untold
from kubelet_conformance.trace.views import Entity, Pod
from kubelet_conformance.trace.world import World

EVIDENCE_MAX = 10
"""How many breaks of one contract are kept as evidence from one trace, beside one of each clause that was
broken; all are counted.
"""
TEXT_CHARS_MAX = 2000
"""What a judge says of a break is cut here: it may quote names of any length."""

_REMOVALS = frozenset({"RemoveContainer", "RemovePodSandbox"})
_KUBELET_GONE = frozenset({"kubelet:killed", "kubelet:stopped"})
_REMOVED = ("pod:remove",)
_TURNS = _KUBELET_GONE | {"fault", "done:Status"}
"""The records that may end what is owed, or put it off."""


class _Listener:
    """One judge of a contract at work on the trace, and how often it was kept."""

    __slots__ = ("clause", "kept", "tally")

    def __init__(self, tally: _Tally, clause: Clause) -> None:
        self.tally = tally
        self.clause = clause
        self.kept = 0

    def enter(self, finding: Finding, moment: Moment) -> None:
        """Enter one finding."""
        if type(finding) is Answered:
            self.tally.owe(Obligation(finding, moment, self._answered, self._not_answered), moment)
        elif type(finding) is Broken:
            self.tally.broken(self.clause, (*finding.because, moment.seq), finding.text, moment.pod)
        else:
            self.kept += 1

    def _answered(self) -> None:
        self.kept += 1

    def _not_answered(self, obligation: Obligation, seq: int, text: str) -> None:
        self.tally.broken(self.clause, (obligation.seq, seq), text, obligation.pod)


def _as_removed(moment: Moment) -> Moment:
    """The moment as it is for the static pod whose place another one takes: its file goes (file.go)."""
    return Moment(
        moment.world, moment.node, moment.record, moment.seq, moment.t, _REMOVED, pod=moment.replaced
    )


class _Tally:
    """What one contract has come to so far."""

    def __init__(self, judge: Judge, contract: Contract) -> None:
        self.contract = contract
        self.listeners: list[_Listener] = []
        self._judge = judge
        self._scenario = judge.world.header.scenario
        self._outcome = UNTESTED
        self._failed = ""

    def owe(self, obligation: Obligation, moment: Moment) -> None:
        if self._in_the_dark(moment.pod):
            return
        if obligation.deadline is not None and self._judge.is_evented and self.contract.gate != EVENTS_GATE:
            obligation.deadline += HEARING_SECONDS
        of_pod = None if obligation.due.whole_node else moment.pod
        self._judge.ledger.owe(obligation, of_pod or moment.node)

    def broken(self, clause: Clause, seqs: tuple[int, ...], text: str, pod: Pod | None) -> None:
        if self._in_the_dark(pod):
            return
        outcome = self._own_outcome()
        outcome.breaks += 1
        place = clause.name, self._scenario
        if len(outcome.evidence) < EVIDENCE_MAX or place not in outcome.broken_clauses:
            seq = tuple(sorted(set(seqs)))
            said = text[:TEXT_CHARS_MAX]
            evidence = Evidence(self._judge.trace, self._scenario, clause.name, seq, said)
            outcome.evidence.append(evidence)
            if self._judge.on_break is not None:
                self._judge.on_break(self.contract, evidence)
        outcome.broken_clauses.add(place)

    def _in_the_dark(self, pod: Pod | None) -> bool:
        """Whether the kubelet could not know better: it goes by events about the pod, which were withheld."""
        judge = self._judge
        return self.contract.gate != EVENTS_GATE and is_untold(judge.world.node, pod, judge.now)

    def _own_outcome(self) -> Outcome:
        """The outcome, no longer the one that most contracts share."""
        if self._outcome is UNTESTED:
            self._outcome = Outcome(Verdict.NOT_EXERCISED)
        return self._outcome

    def crashed(self, seq: int) -> None:
        if not self._failed:
            self._failed = f"the judge failed at seq {seq}: {traceback.format_exc(limit=-3).strip()}"

    def verdict(self) -> Outcome:
        kept = sum(one.kept for one in self.listeners)
        if not kept and not self._failed and self._outcome is UNTESTED:
            return UNTESTED
        outcome = self._own_outcome()
        outcome.activations = outcome.breaks + kept
        outcome.kept_clauses = {(one.clause.name, self._scenario) for one in self.listeners if one.kept}
        if self._failed:
            outcome.verdict, outcome.reason = Verdict.ERROR, self._failed
        elif outcome.breaks:
            outcome.verdict = Verdict.BROKEN
        elif outcome.activations:
            outcome.verdict = Verdict.KEPT
        return outcome


class _Listeners(dict[Seat, _Listener]):
    """The judges that have found something, each made on first use: most never do in one trace."""

    def __init__(self, make: Callable[[Seat], _Listener]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, seat: Seat) -> _Listener:
        made = self[seat] = self._make(seat)
        return made


class Judge:
    """Feed it every record of a trace in order, then ask for the outcomes.

    `trace` names the trace in evidence. Contracts that the trace cannot exercise, for its channels or its
    Kubernetes version, are not applicable from the start. A judge that raises makes its own contract an
    `error` and leaves the others alone; a body that does not parse raises BodyError. With `patience`, which
    must hear each record first, what is overdue may be excused.
    """

    def __init__(
        self,
        trace: str,
        header: Header,
        contracts: Iterable[Contract],
        kubernetes: Version | None,
        patience: Patience | None = None,
    ) -> None:
        self.trace = trace
        self.on_break: Callable[[Contract, Evidence], None] | None = None
        """Is told at once of each break that becomes evidence."""
        self.world = World(header, kubernetes)
        self.is_evented = header.feature_gates.get(EVENTS_GATE, False)
        """The kubelet goes by container events."""
        self.now = 0.0
        """When the record that is judged was written."""
        self.ledger = Ledger(TEACHING)
        if patience is not None:
            self.ledger = Ledger(TEACHING, self._waits, patience.until)
        elif header.clock == "wall":
            self.ledger = Ledger(TEACHING, self._waits)
        self._roster = roster_for(contracts, header, kubernetes)
        self._plans = self._roster.plans
        self.ledger.awaited |= self._roster.awaited
        self._tallies: dict[Contract, _Tally] = {}
        self._listeners = _Listeners(self._listener)

    def _waits(self, entity: Entity) -> bool:
        """Whether it waits for the runtime: a pod for any call about it, the node for removals of any pod."""
        if isinstance(entity, Pod):
            return any(call.rpc != "ExecSync" for call in entity.calls_open.values())
        pods = (*self.world.pods.values(), *self.world.names.values())
        return any(call.rpc in _REMOVALS for pod in pods for call in pod.calls_open.values())

    def _listener(self, seat: Seat) -> _Listener:
        """A judge has found something for the first time."""
        tally = self._tallies.get(seat.contract)
        if tally is None:
            tally = self._tallies[seat.contract] = _Tally(self, seat.contract)
        listener = _Listener(tally, seat.clause)
        tally.listeners.append(listener)
        return listener

    def _crashed(self, seat: Seat, moment: Moment) -> None:
        self._listeners[seat].tally.crashed(moment.seq)

    def feed(self, record: Record) -> None:
        """Judge one record, then learn from it."""
        ledger, world, self.now = self.ledger, self.world, record.t
        if ledger.next_due < record.t:
            ledger.pass_time(record.t, record.seq)
        # isinstance() is slow where it says no: these are msgspec's structs.
        if type(record) is Call:
            world.calls_open[record.id] = record
        elif type(record) is Reply:
            world.calls_open.pop(record.call.id, None)
        key = key_of(record)
        if key not in ledger.awaited:
            return
        moment = look(world, record, key)
        node, pod, keys = moment.node, moment.pod, moment.keys
        if not node.awaited.isdisjoint(keys):
            ledger.look(moment, node)
        if pod is not None and not pod.awaited.isdisjoint(keys):
            ledger.look(moment, pod)
        if moment.replaced is not None:
            ledger.look(_as_removed(moment), moment.replaced)
        self._judge(moment)
        learn(moment)
        if key in _TURNS:
            self._turn(key)

    def _turn(self, key: str) -> None:
        """The kubelet may be gone, or cut off from its runtime."""
        world, ledger = self.world, self.ledger
        if world.node.cut_off_until != ledger.held_until:
            ledger.hold(world.node.cut_off_until)
        if key in _KUBELET_GONE:
            ledger.drop_all([world.node, *world.pods.values(), *world.names.values()])

    def _judge(self, moment: Moment) -> None:
        keys, pod = moment.keys, moment.pod
        # A new manifest may bring what the pod has not had so far.
        traits = pod.traits if pod is not None and moment.manifest is None else None
        plan, listeners = self._plans[keys, traits], self._listeners
        for judge, seat in plan.asked(moment, self._crashed) if plan.conditions else plan.always:
            try:
                findings = judge(moment)
                if findings is None:
                    continue
                listener = listeners[seat]
                if findings is KEPT:
                    listener.kept += 1
                # isinstance() is slow where it says no: these are msgspec's structs.
                elif type(findings) is Answered or type(findings) is Broken or type(findings) is Kept:
                    listener.enter(findings, moment)
                else:
                    for finding in findings:
                        if finding is KEPT:
                            listener.kept += 1
                        else:
                            listener.enter(finding, moment)
            except BodyError:
                raise
            except Exception:  # noqa: BLE001 - a judge's own fault must not end the judging
                self._crashed(seat, moment)

    def outcomes(self) -> dict[str, Outcome]:
        """The outcome of every contract, by id. What is still owed is pending: not exercised."""
        found = {contract.id: tally.verdict() for contract, tally in self._tallies.items()}
        return {**self._roster.outcomes, **found}
