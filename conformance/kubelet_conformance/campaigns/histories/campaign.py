"""A run of histories: kept ones first, then new ones; a history that breaks something is shrunk and kept."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from kubelet_conformance.campaigns.histories.history import History, KeptHistory, keep, name_of
from kubelet_conformance.campaigns.histories.novelty import Novelty
from kubelet_conformance.campaigns.histories.play import (
    NOT_CONVERGED,
    PlayedHistory,
    as_scenario,
    as_words,
    play,
)
from kubelet_conformance.campaigns.histories.search import chunks, histories_of, seek
from kubelet_conformance.contract.checking import Check, Trace
from kubelet_conformance.contract.deferred_gc import deferred_gc
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.run_record.model import LeftOut
from kubelet_conformance.run_record.played_run import HistoryFound, Played
from kubelet_conformance.targets.choice import Choice

FINDS_MAX = 3
"""After so many different finds that fail the run no more histories are drawn: that is enough to do."""


@dataclass(frozen=True, slots=True)
class HistoriesRequest:
    """Which histories a campaign runs.

    Attributes:
        total: so many new histories.
        seed: what they are drawn from.
        shard: the part of them, counted from 1, of `shards`.
        shards: in how many parts they are shared out.
        kept: histories to play before.
        guided: of more histories those are run that hold what few before them held; see `Novelty`.
    """

    total: int
    seed: int = 0
    shard: int = 1
    shards: int = 1
    kept: Sequence[KeptHistory] = ()
    guided: bool = False

    def novelty(self) -> Novelty | None:
        """What chooses the histories, if anything does."""
        return Novelty() if self.guided else None

    @property
    def count(self) -> int:
        """How many histories that are, if nothing is broken."""
        return len(self.kept) + sum(
            chunk.size for chunk in chunks(self.total, self.seed, self.shard, self.shards)
        )


def drawn_for(request: HistoriesRequest) -> Iterator[tuple[str, History]]:
    """All that a request is about with the names of the traces, and none of it played."""
    for kept in request.kept:
        yield kept.name, kept.history
    parts = chunks(request.total, request.seed, request.shard, request.shards)
    novelty = request.novelty()
    new = (history for chunk in parts for history in histories_of(chunk, novelty))
    for number, history in enumerate(new, 1):
        yield f"history-{number}", history


@dataclass(slots=True)
class Campaign:
    """Plays histories and records their results.

    Attributes:
        choice: the kubelet and the runtime.
        contracts: what all of them are judged by.
        counts: whether it makes the run fail that this was broken.
        check: takes the verdicts.
        traces: the folder for the traces of histories that broke something.
        folder: where such histories are kept.
        begin: called with the name of each history that is played.
        found: the histories that broke something.
        played: how many were played.
        repeated: how many were drawn again, and not played again.
    """

    choice: Choice
    contracts: Sequence[Contract]
    counts: Callable[[str], bool]
    check: Check
    traces: Path
    folder: Path
    begin: Callable[[str], None]
    found: list[HistoryFound] = field(default_factory=list[HistoryFound])
    played: int = 0
    repeated: int = 0
    _records: int = 0

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The histories that are not applicable: none."""
        return ()

    @deferred_gc()
    def run(self, request: HistoriesRequest) -> None:
        """Play all that was asked for; raises OSError if a find cannot be kept."""
        try:
            self._play(request)
        finally:
            total = Trace(f"{self.played} histories", None, None, None, None, self._records)
            self.check.traces.append(total)

    def _play(self, request: HistoriesRequest) -> None:
        run = partial(play, choice=self.choice, contracts=self.contracts)
        for kept in request.kept:
            self.begin(kept.name)
            played = run(kept.history)
            broken = self._broken(played)
            if broken:
                self._enter(kept.history, broken[0], kept.path)
            self._count(played)
        novelty = request.novelty()
        for chunk in chunks(request.total, request.seed, request.shard, request.shards):
            known = frozenset(each.what for each in self.found)
            if sum(map(self.counts, known)) >= FINDS_MAX:
                break
            found = seek(chunk, run, self._broken, known, self._count, novelty)
            if found is not None:
                history = found.played.history
                self._enter(history, found.what, keep(self.folder, history, found.what))

    def _broken(self, played: PlayedHistory) -> list[str]:
        """What it broke, first of all what makes the run fail; other contracts are reported, too."""
        ids = {contract.id for contract in self.contracts}
        broken = [each for each in played.broken() if each in ids or self.counts(each)]
        return sorted(broken, key=self.counts, reverse=True)

    def _count(self, played: PlayedHistory | None) -> None:
        """Take in the verdicts on a history, if it broke nothing: finds are reported once they are shrunk.

        None is one that had been played.
        """
        if played is None:
            self.repeated += 1
        else:
            self.played += 1
            self._records += played.judged.trace.records
        self.begin(f"history {self.played + self.repeated + 1}")
        if played is not None and not played.broken():
            self.check.add(played.judged)
            self.check.traces.pop()

    def _enter(self, history: History, what: str, kept: Path) -> None:
        """Play a find once more, and write its trace for the report."""
        name = name_of(history, what)
        path = self.traces / f"{name}.jsonl"
        played = play(history, self.choice, self.contracts, name, str(path))
        path.write_bytes(played.trace)
        self.check.add(played.judged)
        timed_out = played.endless
        if played.progress.not_converged:
            timed_out = f"{NOT_CONVERGED}: {'; '.join(played.progress.not_converged)}"
        scenario = Played(name, played.judged, timed_out, played.failed, len(self.found))
        words, code = tuple(as_words(played)), as_scenario(played, what)
        self.found.append(HistoryFound(what, scenario, words, code, str(kept)))
