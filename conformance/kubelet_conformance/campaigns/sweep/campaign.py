"""Plays a sweep in a process for each processor, and gathers what broke, in the order of the plan."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from kubelet_conformance.campaigns.sweep.kinds import Blow
from kubelet_conformance.campaigns.sweep.plan import Plan
from kubelet_conformance.campaigns.sweep.play import (
    Function,
    Swept,
    Undisturbed,
    play,
    play_name,
    trace_name,
    undisturbed,
)
from kubelet_conformance.contract.checking import Check, Trace
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.run_record.model import LeftOut
from kubelet_conformance.run_record.worker_pool import Ahead, processors
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage
from kubelet_conformance.trace.format.errors import BadInputError

T = TypeVar("T")
_PLAYS_A_SECOND = 15
"""So many plays take a processor a second."""


class NoCallsError(BadInputError):
    """A scenario has no call at which a fault may come."""


@dataclass(slots=True)
class Sweep:
    """Plays scenarios with faults.

    Attributes:
        choice: the kubelet and the runtime.
        contracts: what every play is judged by.
        scenarios: the scenarios, by name.
        plan: which of the plays.
        check: takes the verdicts.
        traces: the folder for the traces of plays in which something broke.
        every: all plays there are, whichever are played.
        failed: the scenarios that fail without a fault.
        found: the plays in which something broke.
        played: how many were played.
    """

    choice: Choice
    contracts: Sequence[Contract]
    scenarios: Mapping[str, Function]
    plan: Plan
    check: Check
    traces: Path
    every: list[tuple[Undisturbed, Blow]] = field(default_factory=list[tuple[Undisturbed, Blow]])
    failed: list[Undisturbed] = field(default_factory=list[Undisturbed])
    found: list[Swept] = field(default_factory=list[Swept])
    played: int = 0
    _records: int = 0

    def prepare(self, begin: Callable[[str], None]) -> None:
        """Play each scenario as it is, which shows at which calls faults may come."""
        stage, version = open_stage(self.choice), self.choice.kubernetes
        names = self.plan.scenarios(self.scenarios)
        work = {
            name: partial(undisturbed, self.scenarios[name], name, stage, version)
            for name in self.scenarios
            if name in set(names)
        }
        bases = list(_results(work, begin))
        self.failed = [base for base in bases if base.failed]
        for base in bases:
            if not base.points and not base.failed:
                raise NoCallsError(f"{base.scenario} makes no call at which a fault may come")
        self.every = self.plan.all_plays(base for base in bases if not base.failed)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The plays that are not applicable: none."""
        return ()

    @property
    def plays(self) -> list[tuple[Undisturbed, Blow]]:
        """What is to be played."""
        return self.plan.plays(self.every)

    def seconds(self, plays: int) -> float:
        """About how long so many plays take."""
        return plays / _PLAYS_A_SECOND / processors()

    def run(self, begin: Callable[[str], None]) -> None:
        """Play what the plan says; raises OSError if a trace cannot be kept."""
        try:
            self._run(begin)
        finally:
            # What broke nothing leaves no trace, and counts all the same.
            total = Trace(f"{self.played - len(self.found)} plays", None, None, None, None, self._records)
            self.check.traces.append(total)

    def _run(self, begin: Callable[[str], None]) -> None:
        stage, version = open_stage(self.choice), self.choice.kubernetes
        work = {
            play_name(base.scenario, blow): partial(
                play,
                self.scenarios[base.scenario],
                base,
                blow,
                stage,
                self.contracts,
                version,
                self.traces,
            )
            for base, blow in self.plays
        }
        for swept in _results(work, begin):
            self.played += 1
            if swept.judged is not None:
                self.check.add(swept.judged)
            if swept.breaks:
                self.found.append(swept)
                (self.traces / trace_name(swept.name)).write_bytes(swept.trace)
            elif swept.judged is not None:
                self._records += self.check.traces.pop().records


def _results(work: Mapping[str, Callable[[], T]], begin: Callable[[str], None]) -> Iterator[T]:
    """What comes of each, in order; played ahead on all processors."""
    ahead = Ahead(lambda key: work[key](), work, min(processors(), len(work)))
    try:
        for key in work:
            begin(key)
            yield ahead.take(key)
    finally:
        ahead.close()
