"""What a run of scenarios leaves for its record."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from kubelet_conformance.contract.checking import Check, Judged
from kubelet_conformance.contract.verdicts import Evidence, Verdict
from kubelet_conformance.run_record.model import (
    Ended,
    Found,
    Histories,
    Kind,
    LeftOut,
    NotPlayed,
    Run,
    ScenarioResult,
    Target,
)
from kubelet_conformance.run_record.results import Scoring, finished, run_of

ENDS = "LOOP-22"
"""The contract that a kubelet does not end by itself."""
_AGAIN_MAX = 10
"""So many scenarios are named in a command that plays them again; more are left to the contract."""
_MILLI = 3
_USUAL = Scoring()


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one scenario: its verdicts, and how it ended if not well.

    Attributes:
        scenario: its name.
        judged: the verdicts on its trace.
        unmet: the wait that timed out, or the line of the scenario that failed.
        endless: whether that is a play that repeated itself without end.
        failed: what went wrong in the suite itself; the first line says it, a traceback follows.
        place: its number in the order in which the scenarios were found.
        file: where it stands, for one that is not of this package.
        died: how the kubelet ended, if it did by itself; what it wrote last follows in further lines.
        seconds: the time that it took to play it, and to judge it where its trace is its own.
        witnesses: the contracts that it declares to exercise.
    """

    scenario: str
    judged: Judged
    unmet: str = ""
    failed: str = ""
    place: int = 0
    file: str = ""
    died: str = ""
    seconds: float = field(default=0.0, compare=False)
    witnesses: tuple[str, ...] = ()
    endless: bool = False

    @property
    def broken(self) -> list[str]:
        """The ids of the contracts that its trace breaks."""
        outcomes = self.judged.outcomes.items()
        return [each for each, outcome in outcomes if outcome.verdict is Verdict.BROKEN]


@dataclass(frozen=True, slots=True)
class HistoryFound:
    """A history that broke something.

    Attributes:
        what: what it was made small for: the id of a contract, or what else it broke.
        played: what came of it.
        words: the history in words, a line each.
        scenario: the same as a scenario, ready to be pasted.
        file: where it is kept.
    """

    what: str
    played: Played
    words: tuple[str, ...]
    scenario: str
    file: str


class Commands(Protocol):
    """How a run, or a part of it, is played again."""

    def command(self) -> tuple[str, ...]:
        """The command of the whole run, word by word."""
        ...

    def again(self, contract: str, played: Iterable[Played]) -> str:
        """The command that plays these scenarios again and judges them by this contract."""
        ...


@dataclass(frozen=True, slots=True)
class PlayedRun:
    """A whole run: its target, its scenarios, and the verdicts over all their traces.

    One that was `interrupted` has what was over by then. `chosen` are the scenarios that were asked for;
    `shard` is the part that it is of a run in several; `not_played` is what an option kept from being
    played; `found` are the histories that broke something, of so many `histories`, and `repeated` were drawn
    again and not played again; `plays` is how many plays with a fault a sweep has made.
    """

    check: Check
    scenarios: tuple[Played, ...]
    target: Target
    commands: Commands
    kind: Kind = Kind.RUN
    scoring: Scoring = _USUAL
    chosen: tuple[str, ...] = ()
    shard: str = ""
    left_out: tuple[LeftOut, ...] = ()
    not_played: NotPlayed | None = None
    interrupted: bool = False
    histories: int = 0
    repeated: int = 0
    found: tuple[HistoryFound, ...] = ()
    plays: int = 0

    def result(self) -> Run:
        """The whole run as its record keeps it."""
        by_trace: dict[str, list[Played]] = {}
        for played in self.scenarios:
            by_trace.setdefault(played.judged.trace.path, []).append(played)

        def again(contract: str, evidence: Evidence) -> str:
            there = by_trace.get(evidence.trace, [])
            # Scenarios that share a node share its trace: those that broke the contract there are meant.
            to_blame = [played for played in there if contract in played.broken] or there
            return self.commands.again(contract, to_blame if len(to_blame) <= _AGAIN_MAX else [])

        run = run_of(self.check, self.scoring, self.kind, self.target, self.commands.command(), again)
        return finished(
            msgspec.structs.replace(
                run,
                ended=Ended.INTERRUPTED if self.interrupted else Ended.COMPLETE,
                chosen=self.chosen,
                shard=self.shard,
                scenarios=tuple(scenario_result(played, self.check) for played in self.scenarios),
                not_applicable=self.left_out,
                not_played=self.not_played,
                plays=self.plays,
                histories=self._histories() if self.kind is Kind.HISTORIES else None,
            )
        )

    def _histories(self) -> Histories:
        found = tuple(
            Found(
                broke=each.what,
                name=each.played.scenario,
                file=each.file,
                words=each.words,
                scenario=each.scenario,
                again=self.commands.again("", [each.played]),
            )
            for each in self.found
        )
        return Histories(self.histories, self.repeated, found)


def scenario_result(played: Played, check: Check) -> ScenarioResult:
    """What came of one scenario as a record keeps it; `check` has the baseline that may know its end."""
    outcomes = played.judged.outcomes.items()
    return ScenarioResult(
        name=played.scenario,
        trace=played.judged.trace.path,
        records=played.judged.trace.records,
        seconds=round(played.seconds, _MILLI),
        exercised=tuple(each for each, outcome in outcomes if outcome.activations),
        witnesses=played.witnesses,
        broken=tuple(played.broken),
        unmet=played.unmet,
        endless=played.endless,
        failed=played.failed,
        died=played.died,
        died_as_known=bool(played.died) and check.knows(ENDS, played.judged),
    )
