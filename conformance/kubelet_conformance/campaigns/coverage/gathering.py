"""Play every scenario and every runtime scenario once, and count how often each exercises contracts."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kubelet_conformance.campaigns.coverage.decisions import decision_rows, decisions, forget_decisions
from kubelet_conformance.campaigns.declared import declared_witnesses
from kubelet_conformance.contract.applicability import USUAL_VERSION
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.plugin.play import play
from kubelet_conformance.reports.catalogue import Entry, Fate, entries
from kubelet_conformance.run_record.played_run import Played
from kubelet_conformance.run_record.temporary_folder import TemporaryFolder
from kubelet_conformance.runtime_checks.judging import run_in_process
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bugs import declared_bugs
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.opening import open_stage

Counts: TypeAlias = Mapping[str, int]
"""How often contracts were exercised and kept, by their ids."""

_CHUNK = 8


@dataclass(frozen=True, slots=True)
class Witness:
    """A scenario or runtime scenario that declares a contract, and how often it exercises it."""

    name: str
    activations: int


@dataclass(frozen=True, slots=True)
class Gathered:
    """What one contract rests on.

    Attributes:
        entry: its row, and its judge if it has one.
        witnesses: the scenarios and runtime scenarios that declare it.
        activations: how often all scenarios and runtime scenarios together exercise it.
        bugs: the ids of the bugs of the zoo that declare to break it.
    """

    entry: Entry
    witnesses: tuple[Witness, ...]
    activations: int
    bugs: tuple[str, ...]

    @property
    def gaps(self) -> tuple[str, ...]:
        """What it lacks, in words; an excluded one lacks nothing."""
        if self.entry.fate is not Fate.IMPLEMENTED:
            return ("no judge",) if self.entry.fate is Fate.PLANNED else ()
        idle = [each.name for each in self.witnesses if not each.activations]
        return (
            *(() if self.witnesses else ("no witness",)),
            *(f"not exercised by {name}" for name in idle),
            *(() if self.bugs else ("no bug",)),
        )


@dataclass(frozen=True, slots=True)
class Coverage:
    """What all scenarios together come to.

    Attributes:
        contracts: what each contract of the catalogue rests on, in its order.
        decisions: how often each row of a decision table decided, 0 where none did.
    """

    contracts: Sequence[Gathered]
    decisions: Counts

    @property
    def untaken(self) -> tuple[str, ...]:
        """The rows that no scenario makes decide."""
        return tuple(name for name, times in self.decisions.items() if not times)


def gather(begin: Callable[[str], None] = lambda _: None) -> Coverage:
    """Play all scenarios; calls `begin` with the name of each."""
    counts, decided = runtime_counts(), Counter[str]()
    for name, (counted, rows) in _played(list(every_scenario())):
        begin(name)
        counts[name] = counted
        decided.update(rows)
    return coverage_of(counts, decided)


def coverage_of(counts: Mapping[str, Counts], decided: Counter[str]) -> Coverage:
    """All together, by how often each scenario exercises each contract and how often each row decided."""
    return Coverage(_gathered(counts), {name: decided[name] for name in decision_rows()})


def _gathered(counts: Mapping[str, Counts]) -> list[Gathered]:
    witnesses, bugs = declared_witnesses(), declared_bugs()
    return [
        Gathered(
            each,
            tuple(Witness(name, counts[name].get(each.row.id, 0)) for name in witnesses.get(each.row.id, ())),
            sum(counted.get(each.row.id, 0) for counted in counts.values()),
            tuple(bugs.get(each.row.id, ())),
        )
        for each in entries(every_contract())
    ]


def _played(names: Sequence[str]) -> Iterator[tuple[str, tuple[Counts, Counts]]]:
    """What each scenario exercises and decides, as the version that it is meant for; on all cores."""
    workers = min(os.cpu_count() or 1, len(names))
    with ProcessPoolExecutor(workers) as pool:
        yield from zip(names, pool.map(_count, names, chunksize=_CHUNK), strict=True)


def _count(name: str) -> tuple[Counts, Counts]:
    forget_decisions()
    with TemporaryFolder() as folder:
        contracts = every_contract().values()
        played = play(
            every_scenario()[name], name, open_stage(Choice()), contracts, Path(folder, "trace.jsonl")
        )
    return kept_counts(played), decisions()


def kept_counts(played: Played) -> Counts:
    """How often one play exercised each contract that it kept."""
    outcomes = played.judged.outcomes.items()
    return {each: one.activations for each, one in outcomes if one.verdict is Verdict.KEPT}


def runtime_counts() -> dict[str, Counts]:
    """What each runtime scenario exercises, on the fake."""
    outcomes = run_in_process("fake", every_runtime_scenario(), USUAL_VERSION)
    return {title: kept_counts(played) for title, (_, played) in outcomes.items()}
