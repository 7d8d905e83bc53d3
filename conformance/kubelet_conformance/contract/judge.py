"""One pass over one trace, with every contract that applies to it."""

from __future__ import annotations

import traceback
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from kubelet_conformance.contract.frame import Answered, Broken, Kept
from kubelet_conformance.contract.needs import missing
from kubelet_conformance.contract.owed import Ledger, Obligation
from kubelet_conformance.contract.verdicts import Evidence, Outcome, Verdict
from kubelet_conformance.trace.errors import BodyError
from kubelet_conformance.trace.learning import TEACHING_RPCS, learn
from kubelet_conformance.trace.looking import keys_of, look
from kubelet_conformance.trace.records import Call, Reply, Unknown
from kubelet_conformance.trace.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubelet_conformance.contract.frame import Clause, Contract, Findings
    from kubelet_conformance.contract.versions import Version
    from kubelet_conformance.trace.header import Header
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.records import Record
    from kubelet_conformance.trace.views import Entity

__all__ = ("EVIDENCE_MAX", "Judge")

EVIDENCE_MAX = 10
"""How many breaks of one contract are kept as evidence from one trace; all are counted."""


class _Tally:
    """What one contract has come to so far."""

    def __init__(self, judge: Judge, contract: Contract) -> None:
        self.contract = contract
        self._judge = judge
        self.outcome = Outcome(Verdict.NOT_EXERCISED)
        self.failed = ""

    def take(self, clause: Clause, findings: Findings, moment: Moment) -> None:
        if findings is None:
            return
        if isinstance(findings, (Kept, Broken, Answered)):
            findings = (findings,)
        for finding in findings:
            if isinstance(finding, Kept):
                self.kept(clause)
            elif isinstance(finding, Broken):
                self.broken(clause, (*finding.because, moment.seq), finding.text)
            else:
                self._owe(clause, finding, moment)

    def _owe(self, clause: Clause, due: Answered, moment: Moment) -> None:
        obligation = Obligation(due, moment, partial(self.kept, clause), partial(self._not_answered, clause))
        entity: Entity = moment.node if due.whole_node or moment.pod is None else moment.pod
        self._judge.ledger.owe(obligation, entity)

    def _not_answered(self, clause: Clause, obligation: Obligation, seq: int, text: str) -> None:
        self.broken(clause, (obligation.seq, seq), text)

    def kept(self, clause: Clause) -> None:
        self.outcome.activations += 1
        self.outcome.kept_clauses.add((clause.name, self._judge.world.header.scenario))

    def broken(self, clause: Clause, seqs: tuple[int, ...], text: str) -> None:
        outcome = self.outcome
        outcome.activations += 1
        outcome.breaks += 1
        if len(outcome.evidence) < EVIDENCE_MAX:
            scenario = self._judge.world.header.scenario
            seq = tuple(sorted(set(seqs)))
            outcome.evidence.append(Evidence(self._judge.trace, scenario, clause.name, seq, text))

    def crashed(self, seq: int) -> None:
        if not self.failed:
            self.failed = f"the judge failed at seq {seq}: {traceback.format_exc(limit=-3).strip()}"

    def verdict(self) -> Outcome:
        outcome = self.outcome
        if self.failed:
            outcome.verdict, outcome.reason = Verdict.ERROR, self.failed
        elif outcome.breaks:
            outcome.verdict = Verdict.BROKEN
        elif outcome.activations:
            outcome.verdict = Verdict.KEPT
        return outcome


class Judge:
    """Feed it every record of a trace in order, then ask for the outcomes.

    `trace` names the trace in evidence. Contracts that the trace cannot exercise, for its channels or its
    Kubernetes version, are not applicable from the start. A judge that raises makes its own contract an
    `error` and leaves the others alone; a body that does not parse raises BodyError.
    """

    def __init__(
        self, trace: str, header: Header, contracts: Iterable[Contract], kubernetes: Version | None
    ) -> None:
        self.trace = trace
        self.world = World(header, kubernetes)
        self.ledger = Ledger()
        self._outcomes: dict[str, Outcome] = {}
        self._tallies: list[_Tally] = []
        self._judges: dict[str, list[tuple[_Tally, Clause, frozenset[str]]]] = defaultdict(list)
        self._formulas: dict[str, list[tuple[_Tally, Clause, frozenset[str], int]]] = defaultdict(list)
        self._formula_count = 0
        for contract in contracts:
            reason = self._why_not(contract)
            if reason is not None:
                self._outcomes[contract.id] = Outcome(Verdict.NOT_APPLICABLE, reason=reason)
            else:
                self._enlist(contract)

    def _why_not(self, contract: Contract) -> str | None:
        header = self.world.header
        if contract.gate is not None and not header.feature_gates.get(contract.gate, False):
            return f"feature gate {contract.gate} is off"
        return contract.versions.why_not(self.world.kubernetes) or missing(contract.needs, header.channels)

    def _enlist(self, contract: Contract) -> None:
        tally = _Tally(self, contract)
        self._tallies.append(tally)
        for clause in contract.clauses:
            if clause.implication is not None:
                self._formula_count += 1
                keys = clause.implication.keys
                for key in keys:
                    self._formulas[key].append((tally, clause, keys, self._formula_count))
            elif clause.on is not None:
                for key in clause.on.keys:
                    self._judges[key].append((tally, clause, clause.on.keys))

    def feed(self, record: Record) -> None:
        """Judge one record, then learn from it."""
        self.ledger.pass_time(record.t, record.seq)
        if isinstance(record, Unknown):
            return
        keys = keys_of(record)
        if isinstance(record, (Call, Reply)):
            call = record if isinstance(record, Call) else record.call
            key = keys[0]
            if call.rpc not in TEACHING_RPCS and key not in self._judges and key not in self._formulas:
                return
        moment = look(self.world, record, keys)
        self._judge(moment)
        learn(moment)
        if moment.keys[0] in {"kubelet:killed", "kubelet:stopped"}:
            self.ledger.drop_all()

    def _judge(self, moment: Moment) -> None:
        self.ledger.look(moment, self.world.node)
        if moment.pod is not None:
            self.ledger.look(moment, moment.pod)
        for place, key in enumerate(moment.keys):
            earlier = moment.keys[:place]
            for tally, clause, keys in self._judges.get(key, ()):
                if keys.isdisjoint(earlier):
                    self._ask(tally, clause, moment)
            for tally, clause, keys, number in self._formulas.get(key, ()):
                if keys.isdisjoint(earlier):
                    self._follow(tally, clause, number, moment)

    def _ask(self, tally: _Tally, clause: Clause, moment: Moment) -> None:
        if clause.on is None or clause.judge is None:
            return
        try:
            if clause.on.matches(moment):
                tally.take(clause, clause.judge(moment), moment)
        except BodyError:
            raise
        except Exception:  # noqa: BLE001 - a judge's own fault must not end the judging
            tally.crashed(moment.seq)

    def _follow(self, tally: _Tally, clause: Clause, number: int, moment: Moment) -> None:
        entity: Entity | None = getattr(moment, clause.each)
        implication = clause.implication
        if implication is None or entity is None or not entity.born:
            return
        state = entity.monitors.get(number)
        if state is None:
            state = entity.monitors[number] = implication.begin()
        try:
            kept = implication.step(moment, state)
        except BodyError:
            raise
        except Exception:  # noqa: BLE001 - as above
            tally.crashed(moment.seq)
            return
        if kept:
            tally.kept(clause)
        elif kept is False:
            tally.broken(clause, (moment.seq,), str(implication))

    def outcomes(self) -> dict[str, Outcome]:
        """The outcome of every contract, by id. What is still owed is pending: not exercised."""
        for tally in self._tallies:
            self._outcomes[tally.contract.id] = tally.verdict()
        return self._outcomes
