"""The report of a run of histories: as that of scenarios, with each find told and ready to be pasted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from kubelet_conformance.reports.jsonreport import as_json
from kubelet_conformance.reports.junit import as_junit
from kubelet_conformance.reports.markdown import as_markdown
from kubelet_conformance.reports.output import drawn
from kubelet_conformance.reports.played import Played, PlayedRun
from kubelet_conformance.reports.run import Exit, gravest
from kubelet_conformance.reports.run_terminal import RunReport
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.terminal import counted


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


@dataclass(frozen=True, slots=True)
class HistoriesRun(PlayedRun):
    """A whole run of histories: `histories` were played, `repeated` drawn again, `found` broke something."""

    histories: int = 0
    repeated: int = 0
    found: tuple[HistoryFound, ...] = ()

    def conclusion(self) -> Exit:
        """How the run ends. A node that does not settle has failed, whatever else was kept."""
        restless = any(each.played.vain for each in self.found)
        return gravest(PlayedRun.conclusion(self), Exit.FAILED if restless else Exit.OK)

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
                    "again": self.replay([each.played]),
                }
                for each in self.found
            ],
        }
        return report

    def replay(self, played: Iterable[Played]) -> str:
        """The command that plays these histories again."""
        return self.commands.again("", played)


class _HistoriesReport(RunReport):
    """Prints one run of histories."""

    def __init__(self, run: HistoriesRun, console: Console) -> None:
        super().__init__(run, console)
        self._histories = run

    def _target(self) -> None:
        run = self._histories
        records = counted(sum(trace.records for trace in self._check.traces), "record")
        contracts = counted(len(self._check.results), "contract")
        histories = counted(run.histories, "history").replace("historys", "histories")
        self._line(f"Played {histories} on {run.target}: {records} judged by {contracts}.")
        if run.repeated:
            self._line(f"Not played again: {run.repeated} that were drawn more than once.")

    def _waits(self) -> None:
        super()._waits()
        run = self._histories
        for each in run.found:
            self._line()
            self._line(f"history {safe(each.played.scenario)} broke {safe(each.what)}", "bold red")
            for line in each.words:
                self._line(f"    {safe(line, 2000)}")
            self._line(f"    kept in {safe(each.file)}", "dim")
            self._line(f"    again: {run.replay([each.played])}", "cyan")
            self._line("    as a scenario:")
            for line in each.scenario.splitlines():
                self._line(f"        {safe(line, 4000)}" if line else "", "dim")


def histories_in_form(form: str, run: HistoriesRun, *, to_file: bool) -> str:
    """The report as text; in colours only where it goes to a terminal."""
    if form == "json":
        return as_json(run.report())
    if form == "junit":
        return as_junit(run)
    if form == "markdown":
        return as_markdown(run) + "".join(map(_markdown, run.found))
    return drawn(lambda console: _HistoriesReport(run, console).print(), to_file=to_file)


def _markdown(found: HistoryFound) -> str:
    words = "\n".join(safe(line, 2000) for line in found.words)
    title = f"## History {safe(found.played.scenario)} broke {safe(found.what)}"
    return f"\n{title}\n\n```text\n{words}\n```\n\n```python\n{found.scenario}```\n"
