"""Which judges wait for what: the same for all traces of one make, so it is worked out once for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TypeAlias

from kubelet_conformance.contract.frame import KEPT, Clause, Contract, Findings, JudgeFunction, broken
from kubelet_conformance.contract.needs import missing
from kubelet_conformance.contract.releases import is_on
from kubelet_conformance.contract.verdicts import UNTESTED, Outcome, Verdict
from kubelet_conformance.contract.versions import Version
from kubelet_conformance.contract.words import Implication, Predicate
from kubelet_conformance.trace.errors import BodyError
from kubelet_conformance.trace.header import Channels, Header
from kubelet_conformance.trace.manifests import Trait
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.views import Entity

_ROSTERS_KEPT = 32


class Seat:
    """One judge of a contract."""

    __slots__ = ("clause", "contract", "judge")

    def __init__(self, contract: Contract, clause: Clause, judge: JudgeFunction) -> None:
        self.contract = contract
        self.clause = clause
        self.judge = judge

    def conditions(self, keys: tuple[str, ...]) -> tuple[Predicate, ...]:
        """What is left to ask of a moment that has these keys, before the judge is called."""
        return () if self.clause.on is None else self.clause.on.conditions(keys)


_Asked: TypeAlias = "tuple[JudgeFunction, Seat]"
"""A judge, ready to be called."""
_Waiting: TypeAlias = "tuple[tuple[Predicate, ...], Seat]"
"""A judge, with its conditions."""
_Sort: TypeAlias = "tuple[tuple[str, ...], frozenset[Trait] | None]"
"""The keys of a moment, and the traits of its pod."""


class Plan:
    """The judges to ask at moments of one sort, in order of writing.

    Their conditions are asked first, each once, and then the judges whose conditions hold.
    """

    __slots__ = ("_waiting", "_where_held", "always", "conditions")

    def __init__(self, waiting: list[_Waiting]) -> None:
        self._waiting = waiting
        every = dict.fromkeys(condition for conditions, _ in waiting for condition in conditions)
        self.conditions = [(1 << place, condition) for place, condition in enumerate(every)]
        self._where_held: dict[int, list[_Asked]] = {}
        self.always = [] if every else self._chosen(0)
        """All of them, where there are no conditions."""

    def asked(self, moment: Moment, crashed: Callable[[Seat, Moment], None]) -> list[_Asked]:
        """Those whose conditions hold now; `crashed` is told whose conditions cannot be asked."""
        held = 0
        for bit, condition in self.conditions:
            try:
                if condition(moment):
                    held |= bit
            except BodyError:
                raise
            except Exception:  # noqa: BLE001 - as where a judge itself fails
                for conditions, one in self._waiting:
                    if condition in conditions:
                        crashed(one, moment)
        asked = self._where_held.get(held)
        if asked is None:
            asked = self._where_held[held] = self._chosen(held)
        return asked

    def _chosen(self, held: int) -> list[_Asked]:
        holds = {condition for bit, condition in self.conditions if held & bit}
        return [(one.judge, one) for conditions, one in self._waiting if holds.issuperset(conditions)]


class _Plans(dict[_Sort, Plan]):
    """The plan for each sort of moments, made on first use."""

    def __init__(self, waiting_for: Callable[[_Sort], list[_Waiting]]) -> None:
        super().__init__()
        self._waiting_for = waiting_for

    def __missing__(self, sort: _Sort) -> Plan:
        made = self[sort] = Plan(self._waiting_for(sort))
        return made


class Roster:
    """The judges of those contracts that such traces can exercise, and the records they wait for."""

    def __init__(
        self,
        contracts: Iterable[Contract],
        version: Version | None,
        gates: dict[str, bool],
        channels: Channels,
    ) -> None:
        self.outcomes: dict[str, Outcome] = {}
        """What comes of each contract that is put to no test, by id; nobody may change it."""
        self._seats: dict[str, list[Seat]] = defaultdict(list)
        self._waiting_anywhere: dict[tuple[str, ...], list[_Waiting]] = {}
        """Who waits for a moment with these keys, whatever its pod has."""
        self.plans: _Plans = _Plans(self._waiting_for)
        """Whom to ask at a moment with these keys, about a pod that has these traits."""
        self._formula_count = 0
        for contract in contracts:
            reason = _why_not(contract, version, gates, channels)
            if reason is not None:
                self.outcomes[contract.id] = Outcome(Verdict.NOT_APPLICABLE, reason=reason)
            else:
                self.outcomes[contract.id] = UNTESTED
                self._enlist(contract)
        self.awaited = frozenset(self._seats)
        """The keys of all these records."""

    def _enlist(self, contract: Contract) -> None:
        for clause in contract.clauses:
            if clause.implication is not None:
                self._formula_count += 1
                judge = partial(_follow, clause.implication, clause.each, self._formula_count)
                self._seat(clause.implication.keys, Seat(contract, clause, judge))
            elif clause.on is not None and clause.judge is not None:
                self._seat(clause.on.keys, Seat(contract, clause, clause.judge))

    def _seat(self, keys: frozenset[str], seat: Seat) -> None:
        for key in keys:
            self._seats[key].append(seat)

    def _waiting_for(self, sort: _Sort) -> list[_Waiting]:
        """Who waits for such a moment, each with its conditions."""
        keys, traits = sort
        if keys not in self._waiting_anywhere:
            seats = dict.fromkeys([one for key in keys for one in self._seats.get(key, ())])
            self._waiting_anywhere[keys] = [(one.conditions(keys), one) for one in seats]
        waiting: list[_Waiting] = []
        noted: set[tuple[tuple[Predicate, ...], JudgeFunction]] = set()
        for conditions, one in self._waiting_anywhere[keys]:
            if not one.contract.concerns(traits):
                continue
            if one.clause.remembers:
                # Contracts may share a function that takes notes: once a moment is enough.
                if (conditions, one.judge) in noted:
                    continue
                noted.add((conditions, one.judge))
            waiting.append((conditions, one))
        return waiting


def roster_for(contracts: Iterable[Contract], header: Header, version: Version | None) -> Roster:
    """The roster for traces with such a header, judged for this version of Kubernetes.

    Contracts that such a trace cannot exercise, for its channels, its feature gates or the version, are not
    applicable from the start.
    """
    return _roster(tuple(contracts), version, frozenset(header.feature_gates.items()), header.channels)


@lru_cache(maxsize=_ROSTERS_KEPT)
def _roster(
    contracts: tuple[Contract, ...],
    version: Version | None,
    gates: frozenset[tuple[str, bool]],
    channels: Channels,
) -> Roster:
    return Roster(contracts, version, dict(gates), channels)


def _why_not(
    contract: Contract, version: Version | None, gates: dict[str, bool], channels: Channels
) -> str | None:
    gate = contract.gate
    if gate is not None and not is_on(gate, gates, version):
        return f"feature gate {gate} is off"
    return contract.versions.why_not(version) or missing(contract.needs, channels)


def _follow(implication: Implication, each: str, number: int, moment: Moment) -> Findings:
    """One step of a formula, for the entity it follows."""
    entity: Entity | None = getattr(moment, each)
    if entity is None or not entity.born:
        return None
    state = entity.monitors.get(number)
    if state is None:
        state = entity.monitors[number] = implication.begin()
    kept = implication.step(moment, state)
    if kept is None:
        return None
    return KEPT if kept else broken(str(implication))
