"""The report of a run, to read in a terminal or a log."""

from __future__ import annotations

from rich.console import Console

from kubelet_conformance.contract.checking import Result
from kubelet_conformance.contract.verdicts import Evidence
from kubelet_conformance.reports.played import Played, PlayedRun
from kubelet_conformance.reports.run import Exit
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.terminal import TerminalReport, counted


class RunReport(TerminalReport):
    """Prints one run: as a check of its traces, with its scenarios and the commands that play them again."""

    def __init__(self, run: PlayedRun, console: Console) -> None:
        super().__init__(run.check, run.options, console)
        self._played = run

    def _target(self) -> None:
        scenarios = counted(len(self._played.scenarios), "scenario")
        records = counted(sum(trace.records for trace in self._check.traces), "record")
        contracts = counted(len(self._check.results), "contract")
        self._line(f"Played {scenarios} on {self._played.target}: {records} judged by {contracts}.")

    def _place(self, evidence: Evidence) -> list[str]:
        kept = [safe(evidence.trace)] if self._played.kept else []
        scenario = f"scenario {safe(evidence.scenario)}" if evidence.scenario else "the node as a whole"
        return [scenario, *kept]

    def _again(self, result: Result, trace: str) -> None:
        self._line(f"    again: {self._played.again(result.contract.id, [trace])}", "cyan")

    def _waits(self) -> None:
        run = self._played
        self._scenarios(
            "waited or asserted in vain, and no broken contract explains it",
            [(played.scenario, played.vain) for played in run.unexplained],
        )
        self._scenarios(
            "the suite itself failed", [(played.scenario, self._failure(played)) for played in run.failed]
        )

    def _not_applicable(self) -> None:
        super()._not_applicable()
        if not self._played.left_out:
            return
        self._heading("scenarios that are not applicable here", len(self._played.left_out))
        for reason, scenarios in self._played.reasons().items():
            self._line(f"    {safe(reason)} ({len(scenarios)})", "dim")
            self._wrapped(" ".join(map(safe, scenarios)), "      ", "dim")

    def _failure(self, played: Played) -> str:
        """What went wrong; where in this program only with --debug."""
        return played.failed if self._run.debug else played.failed.splitlines()[0]

    def _scenarios(self, title: str, scenarios: list[tuple[str, str]]) -> None:
        if not scenarios:
            return
        self._heading(title, len(scenarios), "bold yellow")
        for name, told in scenarios:
            self._line(f"    {safe(name)}", "bold")
            for line in told.splitlines():
                self._line(f"      {safe(line)}")

    def _conclusion(self) -> Exit:
        return self._played.conclusion()
