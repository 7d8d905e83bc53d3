"""The judge: one pass over one trace, with every contract that applies to it."""

import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from kubelet_conformance.contract.applicability import Version, hides, versions_of
from kubelet_conformance.contract.clause_index import clause_index_for
from kubelet_conformance.contract.definition import (
    KEPT,
    Answered,
    Broken,
    Clause,
    Contract,
    Finding,
    Kept,
    Listener,
)
from kubelet_conformance.contract.event_loss import EventLoss
from kubelet_conformance.contract.obligations import Ledger, Obligation
from kubelet_conformance.contract.verdicts import Evidence, Outcome, Verdict
from kubelet_conformance.trace.format.errors import BodyError
from kubelet_conformance.trace.format.header import Header
from kubelet_conformance.trace.format.records import Call, Event, Kubelet, Record, Reply
from kubelet_conformance.trace.world.in_flight import runs_hook
from kubelet_conformance.trace.world.kubelet_view import EVENTS_GATE
from kubelet_conformance.trace.world.missed_updates import EVENT_DELAY_SECONDS, is_outdated
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.observe import UPDATE_KEYS, update_world
from kubelet_conformance.trace.world.resolve import key_of, moment_of
from kubelet_conformance.trace.world.views import Entity, Pod
from kubelet_conformance.trace.world.world import World

EVIDENCE_MAX = 10
"""How many breaks of one contract are kept as evidence from one trace, beside one of each clause that was
broken; all are counted.
"""
TEXT_CHARS_MAX = 2000
"""The evidence text of a break is cut at this length: it may quote names of any length."""

Excused: TypeAlias = Callable[[Obligation, float], float]
IsCertain: TypeAlias = Callable[[Clause, int], bool]

_REMOVALS = frozenset({"RemoveContainer", "RemovePodSandbox"})
_KUBELET_GONE = frozenset({"kubelet:ended", "kubelet:killed", "kubelet:stopped"})
_REMOVED = ("pod:remove",)
_REACHABILITY_KEYS = _KUBELET_GONE | {"fault", "done:Status", "call:RunPodSandbox"}
"""The records that may end an obligation, or defer it."""


def _as_removed(moment: Moment) -> Moment:
    """The moment as it is for the static pod that another one replaces: its file goes (file.go)."""
    return Moment(
        moment.world, moment.node, moment.record, moment.seq, moment.t, _REMOVED, pod=moment.replaced
    )


class Judge:
    """Feed it every record of a trace in order, then ask for the outcomes.

    `trace` names the trace in evidence. Contracts that the trace cannot exercise, for its channels or its
    Kubernetes version, are not applicable from the start. A judge that raises makes its own contract an
    `error` and leaves the others alone; a body that does not parse raises BodyError. What is overdue may be
    excused: `excused` returns until when an obligation that is overdue now may still be met. A break that is
    not certain, by its clause and the first record that it is about, is inconclusive.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - a trace, contracts, and how it is judged
        self,
        trace: str,
        header: Header,
        contracts: Iterable[Contract],
        kubernetes: Version | None,
        excused: Excused | None = None,
        is_certain: IsCertain | None = None,
    ) -> None:
        self.trace = trace
        self.kubernetes = kubernetes
        self.on_break: Callable[[Contract, Evidence], None] | None = None
        """Called at once with each break that becomes evidence."""
        self._is_certain = is_certain
        self.world = World(header, kubernetes, versions_of(header, kubernetes))
        self.is_evented = header.feature_gates.get(EVENTS_GATE, False)
        """The kubelet uses container events (EventedPLEG)."""
        self.now = 0.0
        """When the record that is judged was written."""
        channels = header.channels
        self._sees_all = channels.events == "full" and channels.api == "full"
        self._lost = EventLoss() if self._sees_all and header.clock == "wall" else None
        self.ledger = Ledger(UPDATE_KEYS)
        if excused is not None:
            self.ledger = Ledger(UPDATE_KEYS, self._waits, excused)
        elif header.clock == "wall":
            self.ledger = Ledger(UPDATE_KEYS, self._waits)
        self._index = clause_index_for(contracts, header, kubernetes)
        self._plans = self._index.plans
        self.ledger.awaited |= self._index.awaited
        self._kept: dict[Clause, int] = defaultdict(int)
        """How often each clause was kept."""
        self._places: set[tuple[Contract, str]] | None = set() if header.scenarios else None
        """On a node that scenarios share, in which namespaces each contract was kept."""
        self._outcomes: dict[Contract, Outcome] = {}
        """The outcomes of contracts that were broken, or that failed."""

    def _waits(self, entity: Entity) -> bool:
        """Whether an entity waits for the runtime: a pod for its calls, the node for removals of any pod.

        A sync goes on only when a hook has ended, and probes hold up nothing.
        """
        if isinstance(entity, Pod):
            return any(call.rpc != "ExecSync" or runs_hook(call) for call in entity.calls_open.values())
        pods = (*self.world.pods.values(), *self.world.names.values())
        return any(call.rpc in _REMOVALS for pod in pods for call in pod.calls_open.values())

    def _failed(self, listener: Listener, moment: Moment) -> None:
        """A judge raised: its contract is an error; without an observer no contract can be judged."""
        reason = f"the judge failed at seq {moment.seq}: {traceback.format_exc(limit=-3).strip()}"
        contracts = [listener.contract] if isinstance(listener, Clause) else self._index.applicable
        for contract in contracts:
            outcome = self._outcome(contract)
            outcome.reason = outcome.reason or reason

    def _outcome(self, contract: Contract) -> Outcome:
        """The contract's own outcome, in place of the shared one that most contracts have."""
        return self._outcomes.setdefault(contract, Outcome(Verdict.NOT_EXERCISED))

    def feed(self, record: Record) -> None:
        """Judge one record, then update the world from it."""
        ledger, world, self.now = self.ledger, self.world, record.t
        if ledger.next_due < record.t:
            ledger.pass_time(record.t, record.seq)
        # isinstance() is slow where it says no: these are msgspec's structs.
        if type(record) is Call:
            world.calls_open[record.id] = record
        elif type(record) is Reply:
            world.calls_open.pop(record.call.id, None)
        key = key_of(record)
        if self._lost is not None and type(record) is Event:
            self._lost.count(record)
        if key not in ledger.awaited:
            return
        moment = moment_of(world, record, key)
        node, pod, keys = moment.node, moment.pod, moment.keys
        if not node.awaited.isdisjoint(keys):
            ledger.observe(moment, node)
        if pod is not None and not pod.awaited.isdisjoint(keys):
            ledger.observe(moment, pod)
        if moment.replaced is not None:
            ledger.observe(_as_removed(moment), moment.replaced)
        self._judge(moment)
        update_world(moment)
        if key in _REACHABILITY_KEYS:
            self._update_reachability(key)

    def _update_reachability(self, key: str) -> None:
        """The kubelet may be gone, or cut off from its runtime; or its node is not the one assumed."""
        world, ledger = self.world, self.ledger
        if world.node.cut_off_until != ledger.held_until:
            ledger.hold(world.node.cut_off_until)
        if key in _KUBELET_GONE or (world.node_is_another and key == "call:RunPodSandbox"):
            ledger.drop_all([world.node, *world.pods.values(), *world.names.values()])

    def _judge(self, moment: Moment) -> None:
        keys, pod = moment.keys, moment.pod
        # A new manifest may bring what the pod has not had so far.
        traits = pod.traits if pod is not None and moment.manifest is None else None
        plan = self._plans[keys, traits]
        asked = plan.asked(moment, self._failed) if plan.always is None else plan.always
        for call, listener in asked:
            try:
                findings = call(moment)
                if findings is None:  # As an observer always returns.
                    continue
                if findings is KEPT:
                    self._met(listener, pod)
                # isinstance() is slow where it says no: these are msgspec's structs.
                elif type(findings) is Answered or type(findings) is Broken or type(findings) is Kept:
                    self._enter(listener, findings, moment)
                else:
                    for finding in findings:
                        if finding is KEPT:
                            self._met(listener, pod)
                        else:
                            self._enter(listener, finding, moment)
            except BodyError:
                raise
            except Exception:  # noqa: BLE001 - a judge's own fault must not end the judging
                self._failed(listener, moment)

    def _enter(self, clause: Clause, finding: Finding, moment: Moment) -> None:
        """Record one finding."""
        if type(finding) is Answered:
            self._owe(clause, finding, moment)
        elif type(finding) is Broken:
            blamed = moment.record.scenario if type(moment.record) is Kubelet else None
            self._break(clause, (*finding.because, moment.seq), finding.text, moment.pod, blamed=blamed)
        else:
            self._met(clause, moment.pod)

    def _owe(self, clause: Clause, due: Answered, moment: Moment) -> None:
        if self._is_uninformed(clause.contract, moment.pod):
            return
        is_lossy = self._lost is not None and self._lost.may_begin(moment)
        if (not self._sees_all or is_lossy) and self._may_miss(due, is_lossy=is_lossy):
            due = replace(due, within=None, not_before=None)
        met, not_met = partial(self._met, clause, moment.pod), partial(self._not_met, clause)
        obligation = Obligation(due, moment, met, not_met)
        if obligation.deadline is not None and self.is_evented and clause.contract.gate != EVENTS_GATE:
            obligation.deadline += EVENT_DELAY_SECONDS
        of_pod = None if due.whole_node else moment.pod
        self.ledger.owe(obligation, of_pod or moment.node)

    def _may_miss(self, due: Answered, *, is_lossy: bool) -> bool:
        """Whether the trace may lack what would show that the obligation was met, or excused."""
        excuses = due.unless.keys if due.unless is not None else frozenset[str]()
        channels = self.world.header.channels
        return hides(replace(channels, events="limited") if is_lossy else channels, due.by.keys, excuses)

    def _met(self, clause: Clause, pod: Pod | None) -> None:
        self._kept[clause] += 1
        if self._places is not None and pod is not None:
            self._places.add((clause.contract, pod.namespace))

    def _not_met(
        self, clause: Clause, obligation: Obligation, seq: int, text: str, due: float | None
    ) -> None:
        seqs = (*obligation.due.because, obligation.seq, seq)
        self._break(clause, seqs, text, obligation.pod, since=obligation.seq, due=due)

    def _break(  # noqa: PLR0913 - what evidence has
        self,
        clause: Clause,
        seqs: tuple[int, ...],
        text: str,
        pod: Pod | None,
        *,
        since: int | None = None,
        due: float | None = None,
        blamed: str | None = None,
    ) -> None:
        if self._is_uninformed(clause.contract, pod):
            return
        outcome = self._outcome(clause.contract)
        scenario = blamed or self.world.header.scenario_of(pod.namespace if pod is not None else "")
        begun = min(seqs) if since is None else since
        if self._is_certain is not None and not self._is_certain(clause, begun):
            outcome.inconclusive += 1
            return
        outcome.breaks += 1
        place = clause.name, scenario
        if len(outcome.evidence) < EVIDENCE_MAX or place not in outcome.broken_clauses:
            seq = tuple(sorted(set(seqs)))
            about = f"{pod.namespace}/{pod.name}" if pod is not None else ""
            evidence = Evidence(
                self.trace, scenario, clause.name, seq, text[:TEXT_CHARS_MAX], pod=about, due=due, t=self.now
            )
            outcome.evidence.append(evidence)
            if self.on_break is not None:
                self.on_break(clause.contract, evidence)
        outcome.broken_clauses.add(place)

    def _is_uninformed(self, contract: Contract, pod: Pod | None) -> bool:
        """Whether the kubelet could not know: it uses events about the pod, and these were withheld."""
        return contract.gate != EVENTS_GATE and is_outdated(self.world.node, pod, self.now)

    def outcomes(self) -> dict[str, Outcome]:
        """The outcome of every contract, by id. An open obligation is pending: not exercised."""
        kept: dict[Contract, list[Clause]] = defaultdict(list)
        for clause in self._kept:
            kept[clause.contract].append(clause)
        concerned = dict.fromkeys((*self._outcomes, *kept))
        found = {contract.id: self._judged(contract, kept[contract]) for contract in concerned}
        places = self._places or set[tuple[Contract, str]]()
        scenarios = {each: self.world.header.scenario_of(each) for each in {each for _, each in places}}
        for contract, namespace in places:
            scenario = scenarios[namespace]
            if scenario is not None:
                found[contract.id].kept_in.add(scenario)
        return {**self._index.outcomes, **found}

    def _judged(self, contract: Contract, kept: list[Clause]) -> Outcome:
        outcome = self._outcome(contract)
        outcome.activations = outcome.breaks + sum(self._kept[clause] for clause in kept)
        outcome.kept_clauses = {(clause.name, self.world.header.scenario) for clause in kept}
        if outcome.reason:
            outcome.verdict = Verdict.ERROR
        elif outcome.breaks:
            outcome.verdict = Verdict.BROKEN
        elif outcome.activations:
            outcome.verdict = Verdict.KEPT
        return outcome
