"""What a run of scenarios leaves for its reports."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from kubelet_conformance.contract.checking import Check, Judged
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.jsonreport import check_report
from kubelet_conformance.reports.run import Exit, Run, concluded, gravest
from kubelet_conformance.reports.safe import counted

ENDS = "LOOP-22"
"""The contract that a kubelet does not end by itself."""
LOGS = "logs"
"""The folder of a record with the logs of kubelets."""
_AGAIN_MAX = 10
"""So many scenarios are named in a command that plays them again; more are left to the contract."""


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one scenario: its verdicts, and how it ended if not well.

    Attributes:
        scenario: its name.
        judged: the verdicts on its trace.
        unmet: the wait that timed out, or the assertion that failed.
        failed: what went wrong in the suite itself; the first line says it, a traceback follows.
        place: its number in the order in which the scenarios were found.
        file: where it stands, for one that is not of this package.
        died: how the kubelet ended, if it did by itself; what it wrote last follows in further lines.
    """

    scenario: str
    judged: Judged
    unmet: str = ""
    failed: str = ""
    place: int = 0
    file: str = ""
    died: str = ""

    @property
    def broken(self) -> list[str]:
        """The ids of the contracts that its trace breaks."""
        outcomes = self.judged.outcomes.items()
        return [each for each, outcome in outcomes if outcome.verdict is Verdict.BROKEN]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A scenario that is not applicable to the target: `reason` is what it needs and there is not."""

    scenario: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotPlayed:
    """The scenarios that were not played because of an option, and the contracts that only they exercise."""

    option: str
    scenarios: tuple[str, ...]
    contracts: tuple[str, ...]


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

    def command(self) -> str:
        """The command of the whole run."""
        ...

    def again(self, contract: str, played: Iterable[Played]) -> str:
        """The command that plays these scenarios again and judges them by this contract."""
        ...


@dataclass(frozen=True, slots=True)
class PlayedRun:
    """A whole run: its target, its scenarios, and the verdicts over all their traces.

    One that was `interrupted` has what was over by then. `kept` says whether the traces are there after the
    run, `unwritten` that its record could not be finished, and `logs` is the folder with the kubelets' logs,
    if they are kept; `found` are the histories that broke something, and `repeated` were drawn again and not
    played again. `not_played` is what an option kept from being played.
    """

    check: Check
    scenarios: tuple[Played, ...]
    kubelet: str
    runtime: str
    kubernetes: str
    seed: int
    commands: Commands
    strict: bool = False
    require_exercised: bool = False
    kept: bool = False
    debug: bool = False
    left_out: tuple[LeftOut, ...] = ()
    found: tuple[HistoryFound, ...] = ()
    repeated: int = 0
    unwritten: bool = False
    interrupted: bool = False
    logs: str = ""
    not_played: NotPlayed | None = None

    @property
    def options(self) -> Run:
        """What decides how it ends."""
        return Run(self.kubernetes, self.strict, self.require_exercised, debug=self.debug)

    @property
    def target(self) -> str:
        """The kubelet and the runtime in words."""
        return f"kubelet {self.kubelet} (Kubernetes {self.kubernetes}) and runtime {self.runtime}"

    def log(self, trace: str) -> str:
        """The log of the kubelet that a trace is of, "" if it is not kept."""
        return str(Path(self.logs, f"{Path(trace).stem}.log")) if self.logs and trace else ""

    @property
    def amount(self) -> str:
        """How much was played, in words."""
        return counted(len(self.scenarios), "scenario")

    def replay(self, found: HistoryFound) -> str:
        """The command that plays a history again."""
        return self.commands.again("", [found.played])

    def again(self, contract: str, traces: Iterable[str]) -> str:
        """The command that plays the scenarios of these traces again and judges them by this contract."""
        wanted = set(traces)
        there = [played for played in self.scenarios if played.judged.trace.path in wanted]
        # Scenarios that share a node share its trace: those that broke the contract there are meant.
        to_blame = [played for played in there if contract in played.broken] or there
        return self.commands.again(contract, to_blame if len(to_blame) <= _AGAIN_MAX else [])

    def reasons(self) -> dict[str, list[str]]:
        """The scenarios that were left out by the reason, most frequent reasons first."""
        found: dict[str, list[str]] = {}
        for each in self.left_out:
            found.setdefault(each.reason, []).append(each.scenario)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    @property
    def failed(self) -> list[Played]:
        """Scenarios in which the suite itself failed."""
        return [played for played in self.scenarios if played.failed]

    @property
    def unexplained(self) -> list[Played]:
        """Scenarios that timed out or failed an assertion although no contract is broken in their trace."""
        return [played for played in self.scenarios if played.unmet and not played.broken]

    @property
    def died(self) -> list[Played]:
        """Scenarios in which the kubelet ended by itself, unless the baseline knows that."""
        died = [played for played in self.scenarios if played.died]
        return [played for played in died if not self.check.knows(ENDS, played.judged)]

    def conclusion(self) -> Exit:
        """How the run ends: the gravest of what happened. A kubelet that ends by itself has failed."""
        return gravest(
            concluded(self.check, self.options),
            Exit.FAILED if self.died else Exit.OK,
            Exit.INTERNAL_ERROR if self.failed else Exit.OK,
            Exit.INCONCLUSIVE if self.unexplained else Exit.OK,
            Exit.BAD_INPUT if self.unwritten else Exit.OK,
            Exit.INTERRUPTED if self.interrupted else Exit.OK,
        )

    def report(self) -> dict[str, Any]:
        """The report for programs: that of a check, with the target and the scenarios."""
        report = check_report(self.check, self.options)
        report["target"] |= {
            "kubelet": self.kubelet,
            "runtime": self.runtime,
            "kubernetes": self.kubernetes,
            "seed": self.seed,
        }
        report["scenarios"] = [
            {
                "name": played.scenario,
                "trace": played.judged.trace.path,
                "records": played.judged.trace.records,
                "broken": played.broken,
                "unmet": played.unmet,
                "failed": played.failed,
                "died": played.died,
            }
            for played in self.scenarios
        ]
        report["not_applicable"] = [{"name": each.scenario, "reason": each.reason} for each in self.left_out]
        report["incomplete"] = self.interrupted
        report["not_played"] = None if self.not_played is None else asdict(self.not_played)
        report["command"] = self.commands.command()
        report["exit_code"] = int(self.conclusion())
        return report


@dataclass(frozen=True, slots=True)
class CalledRun(PlayedRun):
    """A run without a kubelet.

    `address` is where the runtime was called; `known` names where its known deviations come from, if any do.
    """

    address: str = ""
    known: str = ""

    @property
    def target(self) -> str:
        """The runtime in words."""
        known = f", less the known deviations of {self.known}" if self.known else ""
        return f"runtime {self.runtime}, called at {self.address}{known}"

    def report(self) -> dict[str, Any]:
        """The report for programs."""
        report = PlayedRun.report(self)
        del report["target"]["kubelet"], report["target"]["seed"]
        report["target"]["address"] = self.address
        return report


@dataclass(frozen=True, slots=True)
class HistoriesRun(PlayedRun):
    """A whole run of histories: `histories` were played."""

    histories: int = 0

    @property
    def amount(self) -> str:
        """How much was played, in words."""
        return counted(self.histories, "history", "histories")

    def conclusion(self) -> Exit:
        """How the run ends. A node that does not settle has failed, whatever else was kept."""
        not_converged = any(each.played.unmet for each in self.found)
        return gravest(PlayedRun.conclusion(self), Exit.FAILED if not_converged else Exit.OK)

    def report(self) -> dict[str, Any]:
        """The report for programs."""
        report = PlayedRun.report(self)
        report["histories"] = {
            "played": self.histories,
            "repeated": self.repeated,
            "found": [
                {
                    "broke": each.what,
                    "name": each.played.scenario,
                    "file": each.file,
                    "words": list(each.words),
                    "scenario": each.scenario,
                    "again": self.replay(each),
                }
                for each in self.found
            ],
        }
        return report
