"""The report of a run, to read in a terminal or a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.terminal import TerminalReport

if TYPE_CHECKING:
    from rich.console import Console

    from kubelet_conformance.contract.checking import Result
    from kubelet_conformance.contract.verdicts import Evidence
    from kubelet_conformance.reports.played import Played, PlayedRun
    from kubelet_conformance.reports.run import Exit

__all__ = ("RunReport",)


class RunReport(TerminalReport):
    """Prints one run: as a check of its traces, with its scenarios and the commands that play them again."""

    def __init__(self, run: PlayedRun, console: Console) -> None:
        super().__init__(run.check, run.options, console)
        self._played = run

    def _target(self) -> None:
        count = len(self._played.scenarios)
        records = sum(trace.records for trace in self._check.traces)
        self._line(
            f"Played {count} scenario{'' if count == 1 else 's'} on {self._played.target}: "
            f"{records} records judged by {len(self._check.results)} contracts."
        )

    def _place(self, evidence: Evidence) -> list[str]:
        kept = [safe(evidence.trace)] if self._played.kept else []
        return [f"scenario {safe(evidence.scenario or '')}", *kept]

    def _again(self, result: Result, trace: str) -> None:
        del trace
        self._line(f"    again: {self._played.again(result.contract.id)}", "cyan")

    def _waits(self) -> None:
        self._scenarios("waited in vain, and no broken contract explains it", self._played.unexplained)
        self._scenarios("the suite itself failed", self._played.failed)

    def _scenarios(self, title: str, scenarios: list[Played]) -> None:
        if not scenarios:
            return
        self._heading(title, len(scenarios), "bold yellow")
        for played in scenarios:
            self._line(f"    {played.scenario}", "bold")
            for line in (played.vain or played.failed).splitlines():
                self._line(f"      {safe(line, 400)}")

    def _conclusion(self) -> Exit:
        return self._played.conclusion()
