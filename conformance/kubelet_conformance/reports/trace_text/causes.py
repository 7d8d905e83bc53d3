"""What one wrong decision broke: contracts in groups, the likeliest cause of each group first.

A wrong step of a kubelet breaks what forbids it, and then what forbids its consequences. So contracts that
are broken in the same scenario are one group. Its likeliest cause is broken by the first wrong step, and in
the largest share of the scenarios that exercise it: a rule of many scenarios that breaks in a few is mostly
a consequence. Where that does not decide, it is what most of these scenarios declare to exercise.

Where the runtime is wrong, a right kubelet breaks contracts too. What the runtime broke before, about the
same pod, is then the likeliest cause, and what may follow from it comes last.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial

from kubelet_conformance.reports.safe import a_few
from kubelet_conformance.reports.trace_text.expectations import offending
from kubelet_conformance.run_record.model import ContractResult, Run


@dataclass(slots=True)
class Group:
    """Contracts that one wrong decision may have broken, the likeliest cause first.

    Attributes:
        places: where they are broken: scenarios, or traces.
        begin: the first of them, by the order of the record, and the first wrong record there.
    """

    contracts: list[ContractResult]
    places: set[str] = field(default_factory=set[str])
    begin: tuple[int, int] = (0, 0)

    @property
    def words(self) -> str:
        """What the group is, as sentences; empty where it is one contract."""
        cause, *others = (each.id for each in self.contracts)
        if not others:
            return ""
        of_runtime = self.contracts[0].binds_runtime
        what = "one mistake of the container runtime" if of_runtime else "one decision"
        many = f"{len(self.contracts)} contracts may be broken by {what}"
        following = [each.id for each in self.contracts if each.follows_from]
        own = [each for each in others if each not in following]
        then = f"then come {a_few(own, 'others')}" if own else ""
        follow = f"what the kubelet does on it breaks {a_few(following, 'others')}" if following else ""
        return f"{many}. The likeliest cause is {'; '.join(filter(None, [cause, then, follow]))}."


def groups_of(contracts: Iterable[ContractResult], run: Run) -> list[Group]:
    """These contracts, which are broken, in groups: those that are broken in most scenarios first."""
    places = _Places(list(contracts), run)
    groups = places.joined()
    for group in groups:
        causes = {name for each in group.contracts for name in each.follows_from}
        group.contracts.sort(key=partial(places.rank, causes), reverse=True)
    return sorted(groups, key=lambda group: (-len(group.places), group.begin))


class _Places:
    """The first wrong record of each contract, by place."""

    def __init__(self, contracts: list[ContractResult], run: Run) -> None:
        self._contracts = contracts
        self._exercised = Counter(name for played in run.scenarios for name in played.exercised)
        self._declared = {played.name: played.witnesses for played in run.scenarios}
        self._order = {each.path: number for number, each in enumerate(run.traces)}
        self._first: dict[str, dict[str, int]] = {}
        """By place and contract."""
        self._begin: dict[str, tuple[int, int]] = {}
        for result in contracts:
            for proof in result.evidence:
                if not proof.deviation:
                    # What no scenario explains, such as an hour of a node, has many causes.
                    place = proof.scenario or f"{proof.trace} #{offending(proof)}"
                    self._add(place, result.id, (self._order.get(proof.trace, 0), offending(proof)))

    def _add(self, place: str, name: str, where: tuple[int, int]) -> None:
        first = self._first.setdefault(place, {})
        first[name] = min(where[1], first.get(name, where[1]))
        self._begin[place] = min(where, self._begin.get(place, where))

    def joined(self) -> list[Group]:
        """The contracts in groups: what is broken at the same place is in the same."""
        group_of = {each.id: Group([each]) for each in self._contracts}
        for place, first in self._first.items():
            group, *others = {id(group_of[name]): group_of[name] for name in first}.values()
            for other in others:
                group.contracts += other.contracts
                group.places |= other.places
                group_of |= dict.fromkeys((each.id for each in other.contracts), group)
            group.places.add(place)
        groups = list({id(each): each for each in group_of.values()}.values())
        for group in groups:
            group.begin = min((self._begin[place] for place in group.places), default=group.begin)
        return groups

    def rank(self, causes: AbstractSet[str], contract: ContractResult) -> tuple[int, float, int, float]:
        """What others follow from comes first, what follows from others last; else the likeliest cause."""
        return (contract.id in causes) - bool(contract.follows_from), *self.likelihood(contract)

    def likelihood(self, contract: ContractResult) -> tuple[float, int, float]:
        """How likely it is the cause of those beside it: first in how many of the scenarios that exercise it.

        One more counts as exercising it: a single scenario says little.
        """
        name = contract.id
        firsts = sum(first.get(name) == min(first.values()) for first in self._first.values())
        exercised = self._exercised[name] or sum(name in first for first in self._first.values())
        declared = sum(name in self._declared.get(place, ()) for place in self._first)
        return firsts / (exercised + 1), declared, contract.breaks / max(contract.activations, 1)
