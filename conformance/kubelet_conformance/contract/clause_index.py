"""Finds the clauses to judge at each record, once for all traces of equal channels, gates and version."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from kubelet_conformance.contract.applicability import Version, is_on, missing, versions_of
from kubelet_conformance.contract.definition import (
    OBSERVERS,
    Clause,
    Contract,
    JudgeFunction,
    Listener,
    Observer,
)
from kubelet_conformance.contract.verdicts import UNTESTED, Outcome, Verdict
from kubelet_conformance.trace.format.errors import BodyError
from kubelet_conformance.trace.format.header import Channels, Header
from kubelet_conformance.trace.format.manifests import Trait
from kubelet_conformance.trace.world.moment import Moment

_INDEXES_KEPT = 32
_Sort: TypeAlias = tuple[tuple[str, ...], frozenset[Trait] | None]
"""The keys of a moment, and the traits of its pod."""
_Asked: TypeAlias = Sequence[tuple[JudgeFunction, Any]]
"""What to call at a moment, and its listeners: observers, judges, and the observers that come last."""


class JudgePlan:
    """The judges and observers to call at moments of one kind, in the order of their definition.

    Their conditions are evaluated first, each once; then those whose conditions hold are called.
    """

    __slots__ = ("_listeners", "_where_held", "always", "conditions")

    def __init__(self, keys: tuple[str, ...], listeners: Iterable[Listener], *, has_pod: bool) -> None:
        self._listeners = [(one, one.conditions(keys, has_pod=has_pod)) for one in listeners]
        every = dict.fromkeys(condition for _, conditions in self._listeners for condition in conditions)
        self.conditions = [(1 << place, condition) for place, condition in enumerate(every)]
        self._where_held: dict[int, _Asked] = {}
        self.always: _Asked | None = None if every else self._chosen(0)
        """All functions, where there are no conditions."""

    def asked(self, moment: Moment, failed: Callable[[Listener, Moment], None]) -> _Asked:
        """Those whose conditions hold now; `failed` is called for each whose conditions raise."""
        held = 0
        for bit, condition in self.conditions:
            try:
                if condition(moment):
                    held |= bit
            except BodyError:
                raise
            except Exception:  # noqa: BLE001 - as where a judge itself fails
                for one, conditions in self._listeners:
                    if condition in conditions:
                        failed(one, moment)
        asked = self._where_held.get(held)
        if asked is None:
            asked = self._where_held[held] = self._chosen(held)
        return asked

    def _chosen(self, held: int) -> _Asked:
        holds = {condition for bit, condition in self.conditions if held & bit}
        chosen = [one for one, conditions in self._listeners if holds.issuperset(conditions)]
        return [(one.call, one) for one in sorted(chosen, key=_turn)]


def _turn(listener: Listener) -> int:
    if isinstance(listener, Observer):
        return 2 if listener.last else 0
    return 1


class _JudgePlans(dict[_Sort, JudgePlan]):
    """The judges for each kind of moment, computed on first use."""

    def __init__(self, make: Callable[[_Sort], JudgePlan]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, sort: _Sort) -> JudgePlan:
        made = self[sort] = self._make(sort)
        return made


class ClauseIndex:
    """The judges of those contracts that such traces can exercise, and the records they wait for."""

    def __init__(
        self,
        contracts: Iterable[Contract],
        versions: tuple[Version | None, ...],
        gates: dict[str, bool],
        channels: Channels,
        exempt: tuple[str, ...] = (),
    ) -> None:
        self.outcomes: dict[str, Outcome] = {}
        """The outcome of each contract that such traces do not exercise, by id; must not be changed."""
        self.applicable: list[Contract] = []
        self._listeners: dict[str, list[Listener]] = defaultdict(list)
        self.plans: _JudgePlans = _JudgePlans(self._plan)
        """The judges to call at a moment with these keys, about a pod that has these traits."""
        self._add(
            one
            for one in OBSERVERS
            if one.gate is None or any(is_on(one.gate, gates, version) for version in versions)
        )
        for contract in contracts:
            reasons = (_why_not(contract, version, gates, channels) for version in versions)
            reason = next(filter(None, reasons), None)
            if contract.id in exempt and contract.row.addressee == "runtime":
                reason = "the scenario makes the runtime break it"
            if reason is not None:
                self.outcomes[contract.id] = Outcome(Verdict.NOT_APPLICABLE, reason=reason)
            else:
                self.outcomes[contract.id] = UNTESTED
                self.applicable.append(contract)
                self._add(contract.clauses)
        self.awaited = frozenset(self._listeners)
        """The keys of all these records."""

    def _add(self, listeners: Iterable[Listener]) -> None:
        for one in listeners:
            for key in one.on.keys:
                self._listeners[key].append(one)

    def _plan(self, sort: _Sort) -> JudgePlan:
        keys, traits = sort
        waiting = dict.fromkeys([one for key in keys for one in self._listeners.get(key, ())])
        concerned = [one for one in waiting if not isinstance(one, Clause) or one.contract.concerns(traits)]
        return JudgePlan(keys, concerned, has_pod=traits is not None)


def clause_index_for(contracts: Iterable[Contract], header: Header, version: Version | None) -> ClauseIndex:
    """The index for traces with such a header, judged for this version of Kubernetes.

    Contracts that such a trace cannot exercise, for its channels, its feature gates or the version, and those
    that its scenario makes the runtime break, are not applicable from the start. Where kubelets of two
    versions take turns, contracts apply that apply to both.
    """
    gates = frozenset(header.feature_gates.items())
    versions = tuple(versions_of(header, version).values()) or (version,)
    return _clause_index(tuple(contracts), versions, gates, header.channels, header.exempt)


@lru_cache(maxsize=_INDEXES_KEPT)
def _clause_index(
    contracts: tuple[Contract, ...],
    versions: tuple[Version | None, ...],
    gates: frozenset[tuple[str, bool]],
    channels: Channels,
    exempt: tuple[str, ...],
) -> ClauseIndex:
    return ClauseIndex(contracts, versions, dict(gates), channels, exempt)


def _why_not(
    contract: Contract, version: Version | None, gates: dict[str, bool], channels: Channels
) -> str | None:
    gate = contract.gate
    if gate is not None and not is_on(gate, gates, version):
        return f"feature gate {gate} is off"
    return contract.versions.why_not(version) or missing(contract.needs, channels)
