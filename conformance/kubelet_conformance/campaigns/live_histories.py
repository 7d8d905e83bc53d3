"""A run of histories on wall time: all are played side by side, and what breaks is shrunk and kept."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from kubelet_conformance.campaigns.histories.bounds import bounded
from kubelet_conformance.campaigns.histories.campaign import FINDS_MAX, HistoriesRequest, drawn_for
from kubelet_conformance.campaigns.histories.history import History, as_json, keep, name_of
from kubelet_conformance.campaigns.histories.play import (
    NOT_CONVERGED,
    PlayedHistory,
    as_scenario,
    as_words,
    begun,
    exempt_of,
    live_through,
    play,
    settings_of,
)
from kubelet_conformance.campaigns.histories.search import shrunk
from kubelet_conformance.campaigns.histories.steps import Progress
from kubelet_conformance.contract.applicability import parse_version
from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.node import Node, witness
from kubelet_conformance.plugin.live.live_run import LiveScenario
from kubelet_conformance.plugin.live.log_moments import with_log
from kubelet_conformance.plugin.naming import Named
from kubelet_conformance.plugin.session import Session
from kubelet_conformance.reports.progress import Steps
from kubelet_conformance.run_record.model import LeftOut
from kubelet_conformance.run_record.played_run import HistoryFound, Played
from kubelet_conformance.targets.choice import Choice
from kubelet_conformance.targets.controls import Target
from kubelet_conformance.targets.stage import Act, PlayedLife

_SETTLE_SECONDS = 60.0
"""How long a healed node may take to settle."""
_WATCH_SECONDS = 15.0
"""For how long a node that has settled is watched."""
_SHRINK_WIDTH = 8
"""So many smaller histories are played side by side."""
_SHRINKS_MAX = 64
_SHRINK_SECONDS = 240.0
"""After so long no more smaller histories are played; those that are being played are awaited."""


@dataclass(slots=True)
class _Drawn:
    """A history that is to be played, and what has happened in it: the latest time that it was played."""

    name: str
    history: History
    kubernetes: tuple[int, int]
    mirrors: bool
    progress: Progress = field(default_factory=Progress)

    async def play(self, node: Node) -> None:
        """Run it; a node that does not settle fails an assertion."""
        self.progress = begun(self.history, self.kubernetes)
        await live_through(
            self.history,
            node,
            self.progress,
            self.kubernetes,
            settle_seconds=_SETTLE_SECONDS,
            watch_seconds=_WATCH_SECONDS,
            mirrors=self.mirrors,
        )
        if self.progress.not_converged:
            raise AssertionError(f"{NOT_CONVERGED}: {'; '.join(self.progress.not_converged)}")

    def act(self, number: int) -> Act:
        """The history on a node of its own."""

        async def on(target: Target) -> None:
            await self.play(Node(target))

        progress = begun(self.history, self.kubernetes)
        exempt = exempt_of(self.history, progress)
        return Act(number, self.name, on, settings_of(progress), math.inf, exempt)


class LiveCampaign:
    """Plays histories on the kubelet of a session, which is a process of its own, and records their results.

    Attributes:
        found: the histories that broke something.
        played: how many were played.
        repeated: how many were drawn again, and not played again.
    """

    def __init__(self, session: Session, counts: Callable[[str], bool], folder: Path) -> None:
        if session.live is None:
            raise ValueError("the kubelet of the session is in this process")
        self._session = session
        self._live = session.live
        self._counts = counts
        self._folder = folder
        self._contracts: Sequence[Contract] = session.contracts
        self._kubernetes = session.options.choice.kubernetes
        self._version = parse_version(self._kubernetes)
        self.check = Check(session.contracts)
        self.found: list[HistoryFound] = []
        self.played = 0
        self.repeated = 0
        self._began: dict[str, float] = {}
        """When each of those that were played alone to shrink a find began, in seconds since the epoch."""

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The histories that are not applicable to the kubelet."""
        return tuple(self._live.left_out)

    def run(self, request: HistoriesRequest) -> None:
        """Play all that was asked for; raises OSError if a find cannot be kept."""
        drawn = {each.name: each for each in self._drawn(request)}
        trying = Steps(len(drawn), "histories tried")
        try:
            self._live.prepare(map(self._scenario, drawn.values()), self._session.folder, trying.begin)
        finally:
            trying.clear()
        known = self._session.check().baseline
        self.check = Check(self._contracts, None if known is None else known.anywhere())
        plan = self._live.plan
        plan.noun = "history", "histories"
        progress = Steps(len(plan.to_play), "histories played")
        if plan.to_play:
            progress.announce(plan.estimate)
        played: list[Played] = []
        replaced: set[str] = set()
        try:
            for name in drawn:
                each = self._live.play(name, {}, progress)
                if isinstance(each, Played):
                    played.append(each)
            self.played = len(played)
            replaced = {each.scenario for each in played if self._finds(each, drawn[each.scenario], progress)}
        except KeyboardInterrupt:
            self._session.interrupt()
            self.played = len(self._session.played)
            raise
        finally:
            progress.clear()
            for judged in self._live.lives:
                if judged.trace.scenario not in replaced:
                    self.check.add(judged)

    def _drawn(self, request: HistoriesRequest) -> list[_Drawn]:
        """The kept histories and the new ones, bounded and each once."""
        by_files = self._live.stage.by_files
        found: dict[bytes, _Drawn] = {}
        for name, history in drawn_for(request):
            less = bounded(history, by_files=by_files)
            key = as_json(less)
            self.repeated += key in found
            found.setdefault(key, _Drawn(name, less, self._version, not by_files))
        return list(found.values())

    def _scenario(self, drawn: _Drawn) -> LiveScenario:
        progress = begun(drawn.history, self._version)
        settings: dict[str, Any] = {**settings_of(progress)}

        @witness(exempt=exempt_of(drawn.history, progress), **settings)
        async def plays(node: Node) -> None:
            await drawn.play(node)

        place = int(drawn.name.rpartition("-")[2]) if drawn.name.startswith("history-") else 0
        return LiveScenario(Named(drawn.name, place, ""), plays, {})

    # What is found.

    def _broken(self, played: PlayedHistory) -> list[str]:
        """What it broke that the baseline does not know, first of all what makes the run fail."""
        outcomes = played.judged.outcomes
        known = {each for each in outcomes if self.check.knows(each, played.judged)}
        broken = [each for each in played.broken() if each not in known]
        return sorted(broken, key=self._counts, reverse=True)

    def _finds(self, played: Played, drawn: _Drawn, progress: Steps) -> bool:
        """Shrink and keep a history that broke something new; whether another was played in its place."""
        ended = PlayedHistory(drawn.history, b"", played.judged, played.failed, drawn.progress)
        known = {each.what for each in self.found}
        what = next((each for each in self._broken(ended) if each not in known), "")
        if not what:
            return False
        words: list[str] = []
        smallest = ended
        if sum(map(self._counts, known)) < FINDS_MAX:
            progress.show(f"shrinking {drawn.name}, which broke {what}", log=True)
            smallest = self._smallest(ended, what, words)
        return self._enter(played, smallest, what, words)

    def _smallest(self, found: PlayedHistory, what: str, words: list[str]) -> PlayedHistory:
        """The history shrunk: on the reference where that breaks the same, else on the kubelet itself."""
        history = found.history
        reference = partial(play, choice=Choice(kubernetes=self._kubernetes), contracts=self._contracts)

        def first(histories: Sequence[History]) -> PlayedHistory | None:
            return next((each for each in map(reference, histories) if what in each.broken()), None)

        on_live = partial(self._first_to_break, what)
        there = first([history])
        if there is not None:
            words.append(f"the reference as {self._kubernetes} breaks it too")
            again = on_live([shrunk(there, first)[0].history])
            if again is not None:
                return again
        again = on_live([history])
        if again is None:
            words.append("it was not broken again when this was played alone")
            return found
        until = max(self._began.values()) + _SHRINK_SECONDS

        def in_time(histories: Sequence[History]) -> PlayedHistory | None:
            return on_live(histories) if max(self._began.values()) < until else None

        return shrunk(again, in_time, width=_SHRINK_WIDTH, tries_max=_SHRINKS_MAX)[0]

    def _first_to_break(self, what: str, histories: Sequence[History]) -> PlayedHistory | None:
        """Play histories side by side, each on a node of its own; the first of them that breaks this."""
        drawn = [_Drawn(name_of(each, what), each, self._version, self._mirrors) for each in histories]
        lives = self._live.play_alone([each.act(number) for number, each in enumerate(drawn)])
        for one, life in zip(drawn, lives, strict=True):
            self._began[one.name] = 0.0 if life is None else life.started
        for number, (one, life) in enumerate(zip(drawn, lives, strict=True)):
            if life is not None:
                played = self._judged(one, life, number)
                if what in self._broken(played):
                    return played
        return None

    @property
    def _mirrors(self) -> bool:
        return not self._live.stage.by_files

    def _judged(self, drawn: _Drawn, life: PlayedLife, number: int) -> PlayedHistory:
        path = str(self._session.folder / f"{drawn.name}.jsonl")
        judged = judge_file(path, self._contracts, content=life.trace)
        ended = life.ended.get(number)
        failed = "" if ended is None or isinstance(ended.error, AssertionError) else ended.report
        return PlayedHistory(drawn.history, life.trace, judged, failed, drawn.progress)

    def _enter(self, played: Played, smallest: PlayedHistory, what: str, words: list[str]) -> bool:
        """Keep a find; whether another than the history that was drawn was played for it."""
        history = smallest.history
        file = keep(self._folder, history, what)
        again = bool(smallest.trace)
        if again:
            name = name_of(history, what)
            path = self._session.folder / f"{name}.jsonl"
            path.write_bytes(smallest.trace)
            timed_out = "; ".join(smallest.progress.not_converged)
            unmet = f"{NOT_CONVERGED}: {timed_out}" if timed_out else ""
            trace = replace(smallest.judged.trace, path=str(path), scenario=name)
            judged = replace(smallest.judged, trace=trace)
            judged = with_log(judged, path, self._live.log_of(name), self._began[name], {})
            played = Played(name, judged, unmet, smallest.failed)
            self.check.add(played.judged)
        for other in self._began.keys() - {played.scenario}:
            self._live.log_of(other).unlink(missing_ok=True)
        self._began.clear()
        code = as_scenario(smallest, what)
        self.found.append(HistoryFound(what, played, (*words, *as_words(smallest)), code, str(file)))
        return again
