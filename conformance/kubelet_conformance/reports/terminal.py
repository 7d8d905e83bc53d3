"""The report to read, in a terminal with colours or in a log without."""

from itertools import groupby
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from kubelet_conformance.contract.baseline import MAIN_CLAUSE, clause_names
from kubelet_conformance.contract.checking import REPORTED, Check, Result, Trace
from kubelet_conformance.contract.stalls import Stalls
from kubelet_conformance.contract.verdicts import Evidence, Verdict
from kubelet_conformance.reports.played_run import HistoryFound, Played, PlayedRun
from kubelet_conformance.reports.run import Exit, Run, by_area, concluded
from kubelet_conformance.reports.safe import counted, in_shell, safe
from kubelet_conformance.reports.trace_text.breaks import Break, chosen, lines_of

WIDTH_MAX = 110
_LOG_CHARS_MAX = 400
_STYLES = {
    Verdict.KEPT: "green",
    Verdict.BROKEN: "bold red",
    Verdict.KNOWN_DEVIATION: "yellow",
    Verdict.NOT_EXERCISED: "",
    Verdict.NOT_APPLICABLE: "dim",
    Verdict.ERROR: "bold magenta",
}
_CONCLUSIONS = {
    Exit.OK: ("OK", "bold green"),
    Exit.FAILED: ("FAILED", "bold red"),
    Exit.BAD_INPUT: ("BAD INPUT", "bold red"),
    Exit.INCONCLUSIVE: ("INCONCLUSIVE", "bold yellow"),
    Exit.INTERNAL_ERROR: ("INTERNAL ERROR", "bold magenta"),
    Exit.INTERRUPTED: ("INCOMPLETE, interrupted", "bold red"),
}


class TerminalReport:
    """Prints one check on a console, part by part."""

    def __init__(self, check: Check, run: Run, console: Console) -> None:
        self._check = check
        self._run = run
        self._console = console
        self._width = min(console.width, WIDTH_MAX) if console.is_terminal else WIDTH_MAX

    def print(self) -> None:
        """The whole report."""
        self._target()
        self._areas()
        self._broken()
        self._errors()
        self._known()
        self._stale()
        self._waits()
        self._inconclusive()
        self._not_exercised()
        self._not_applicable()
        self._unreadable()
        self._summary()

    def _line(self, text: str | Text = "", style: str = "") -> None:
        # A log has no width: a command or an id that is cut in two can be neither copied nor searched for.
        self._console.print(Text(text, style) if isinstance(text, str) else text, soft_wrap=True)

    def _wrapped(self, text: str, indent: str, style: str = "") -> None:
        for line in wrap(text, self._width - len(indent), break_long_words=False, break_on_hyphens=False):
            self._line(indent + line, style)

    def _heading(self, title: str, count: int, style: str = "bold") -> None:
        """The heading of a list, if anything is in it."""
        if count:
            self._line()
            self._line(f"{title} ({count})", style)

    def _having(self, verdict: Verdict) -> list[Result]:
        return [result for result in self._check.results.values() if result.outcome.verdict is verdict]

    def _target(self) -> None:
        traces = self._check.traces
        versions = sorted({trace.version or "unknown" for trace in traces}, key=_by_number)
        records = sum(trace.records for trace in traces)
        judged = f"{counted(len(traces), 'trace')}, {counted(records, 'record')}"
        contracts = counted(len(self._check.results), "contract")
        self._line(f"Judged {judged} of Kubernetes {', '.join(versions) or 'unknown'} by {contracts}.")
        overridden = [trace for trace in traces if trace.overridden]
        if overridden:
            stated = ", ".join(sorted({safe(trace.stated or "") for trace in overridden}, key=_by_number))
            count = counted(len(overridden), "trace")
            by = overridden[0].version
            self._line(f"{count} judged by --kubernetes {by}, although the header says {stated}.", "yellow")

        for trace in self._truncated():
            self._line(f"{safe(trace.path)} is truncated: judged up to line {trace.cut_line}.", "yellow")

    def _truncated(self) -> list[Trace]:
        return [trace for trace in self._check.traces if trace.cut_line is not None]

    def _areas(self) -> None:
        counts = by_area(self._check)
        wide = max((len(area) for area in counts), default=0)
        self._line()
        self._line(f"{'area':{wide}}  " + "  ".join(verdict.words for verdict in REPORTED), "bold")
        for area, count in counts.items():
            line = Text(f"{area:{wide}}")
            for verdict in REPORTED:
                number = count[verdict]
                cell = f"{number or '-':>{len(verdict.words)}}"
                line.append("  ").append(cell, _STYLES[verdict] if number else "dim")
            self._line(line)

    def _broken(self) -> None:
        broken = self._having(Verdict.BROKEN)
        shown = {result.contract.id: chosen(result.outcome.evidence) for result in broken}
        lines = lines_of(each for breaks in shown.values() for each in breaks)
        for result in broken:
            self._line()
            self._contract(result, "BROKEN")
            for trace, breaks in groupby(shown[result.contract.id], key=lambda each: each.trace):
                for each in breaks:
                    self._break(result, Break(each, lines))
                self._again(result, trace)
            more = result.outcome.breaks - len(shown[result.contract.id])
            if more:
                self._line(f"    and {counted(more, 'more break')}; --format json lists them", "dim")

    def _contract(self, result: Result, word: str) -> None:
        contract, verdict = result.contract, result.outcome.verdict
        line = (
            Text()
            .append(word, _STYLES[verdict])
            .append(f"  {contract.id}", "bold")
            .append(f"  {contract.level}")
        )
        if verdict is Verdict.BROKEN and contract.level != "MUST":
            line.append("  (fails only with --strict)" if contract.level == "SHOULD" else "  (never fails)")
        if verdict is Verdict.BROKEN and not result.counts:
            line.append("  (newer than the requirements of this release: does not fail)")
        self._line(line)
        self._wrapped(contract.rule, "    ")
        self._wrapped(f"source: {contract.row.source}", "    ", "dim")

    def _break(self, result: Result, at: Break) -> None:
        evidence, contract = at.evidence, result.contract
        where = self._place(evidence)
        if len(clause_names(contract)) > 1:
            where.append(f"clause {evidence.clause or MAIN_CLAUSE}")
        self._line()
        self._line(f"    in {', '.join(where)}")
        for line in at.slice():
            self._line(f"      {line}")
        for line in evidence.text.splitlines():
            self._line(f"      {safe(line, WIDTH_MAX * 20)}", _STYLES[Verdict.BROKEN])
        for line in evidence.log:
            self._line(f"        log: {safe(line, _LOG_CHARS_MAX)}", "dim")

    def _place(self, evidence: Evidence) -> list[str]:
        """Where a break was seen."""
        return [safe(evidence.trace), *([f"scenario {safe(evidence.scenario)}"] if evidence.scenario else [])]

    def _again(self, result: Result, trace: str) -> None:
        command = f"kubelet-conformance check {in_shell(trace)} --contract {result.contract.id}"
        if self._run.kubernetes:
            command += f" --kubernetes {self._run.kubernetes}"
        if trace in [each.path for each in self._truncated()]:
            command += " --allow-truncated"
        self._line(f"    again: {command}", "cyan")

    def _errors(self) -> None:
        for result in self._having(Verdict.ERROR):
            self._line()
            self._contract(result, "ERROR")
            lines = result.outcome.reason.splitlines() or [""]
            first, last = lines[0], lines[-1]
            for line in lines if self._run.debug else dict.fromkeys((first, last)):
                self._line(f"    {safe(line)}", _STYLES[Verdict.ERROR])

    def _known(self) -> None:
        known = self._having(Verdict.KNOWN_DEVIATION)
        self._heading("known deviations", len(known), "yellow")
        for result in known:
            reasons = dict.fromkeys(each.deviation for each in result.outcome.evidence if each.deviation)
            self._wrapped(f"{result.contract.id}  {safe('; '.join(reasons))}", "    ")

    def _stale(self) -> None:
        baseline, stale = self._check.baseline, self._check.stale()
        if baseline is None or not stale:
            return
        self._heading(
            "stale in the baseline: exercised and never broken, remove them", len(stale), "bold red"
        )
        for each in stale:
            where = f"{safe(baseline.path)}:{each.line}" if each.line else safe(baseline.path)
            self._line(f"    {where}: {safe(str(each))}")

    def _waits(self) -> None:
        waits = self._check.unexplained()
        self._heading("waits that timed out, explained by no broken contract", len(waits), "bold yellow")
        for wait in waits:
            what = safe(wait.awaited or wait.contract)
            self._line(f"    {safe(wait.trace)} #{wait.seq}: {what} ({safe(wait.contract)})")

    def _inconclusive(self) -> None:
        stalled = [trace for trace in self._check.traces if trace.stalls]
        if not stalled:
            return
        count = counted(sum(len(trace.stalls) for trace in stalled), "stall")
        seconds = sum(Stalls(trace.stalls).seconds for trace in stalled)
        excused = {
            result.contract.id: result.outcome.inconclusive
            for result in self._check.results.values()
            if result.outcome.inconclusive
        }
        self._line()
        self._line(
            f"inconclusive: a stall of the machine may be why it seemed broken ({len(excused)})", "bold"
        )
        self._line(f"    {count} of the machine, {seconds:.1f} s in {counted(len(stalled), 'trace')}", "dim")
        self._wrapped(" ".join(f"{name} ({times})" for name, times in excused.items()), "    ")

    def _not_exercised(self) -> None:
        idle = self._having(Verdict.NOT_EXERCISED)
        fails = ", and --require-exercised is given" if self._run.require_exercised else ""
        self._heading(f"not exercised{fails}", len(idle))
        self._wrapped(" ".join(result.contract.id for result in idle), "    ")

    def _not_applicable(self) -> None:
        without = self._having(Verdict.NOT_APPLICABLE)
        by_reason: dict[str, list[str]] = {}
        for result in without:
            by_reason.setdefault("; ".join(result.reasons) or "no trace was judged", []).append(
                result.contract.id
            )
        self._heading("not applicable", len(without))
        for reason, ids in by_reason.items():
            self._wrapped(f"{safe(reason)}: {' '.join(ids)}", "    ")

    def _unreadable(self) -> None:
        errors = self._check.errors
        self._heading("not judged, bad input", len(errors), "bold red")
        for error in errors:
            self._line(f"    {safe(str(error))}")

    def _conclusion(self) -> Exit:
        return concluded(self._check, self._run)

    def _summary(self) -> None:
        word, style = _CONCLUSIONS[self._conclusion()]
        counts = ", ".join(f"{number} {verdict.words}" for verdict, number in self._check.totals().items())
        unread = len(self._check.errors)
        also = f"; {counted(unread, 'input')} could not be judged" if unread else ""
        stale = len(self._check.stale())
        also += f"; {counted(stale, 'entry', 'entries')} of the baseline stale" if stale else ""
        self._line()
        said = f" {counts} in {counted(len(self._check.traces), 'trace')}{also}"
        self._line(Text().append(f"{word}:", style).append(said))


class RunReport(TerminalReport):
    """Prints one run: as a check of its traces, with its scenarios and the commands that play them again."""

    def __init__(self, run: PlayedRun, console: Console) -> None:
        super().__init__(run.check, run.options, console)
        self._played = run

    def _target(self) -> None:
        records = counted(sum(trace.records for trace in self._check.traces), "record")
        contracts = counted(len(self._check.results), "contract")
        self._line(f"Played {self._played.amount} on {self._played.target}: {records} judged by {contracts}.")
        if self._played.repeated:
            self._line(f"Not played again: {self._played.repeated} that were drawn more than once.")

    def _place(self, evidence: Evidence) -> list[str]:
        log = self._played.log(evidence.trace)
        kept = [safe(evidence.trace)] if self._played.kept else []
        kept += [f"log {safe(log)}"] if log else []
        scenario = f"scenario {safe(evidence.scenario)}" if evidence.scenario else "the node as a whole"
        return [scenario, *kept]

    def _again(self, result: Result, trace: str) -> None:
        self._line(f"    again: {self._played.again(result.contract.id, [trace])}", "cyan")

    def _waits(self) -> None:
        run = self._played
        self._deaths(run.died)
        self._scenarios(
            "timed out or failed an assertion, and no broken contract explains it",
            [(played.scenario, played.unmet) for played in run.unexplained],
        )
        self._scenarios(
            "the suite itself failed", [(played.scenario, self._failure(played)) for played in run.failed]
        )
        for found in run.found:
            self._history(found)

    def _deaths(self, died: list[Played]) -> None:
        """How the kubelet ended by itself, once for all scenarios that it ended alike."""
        endings: dict[str, list[str]] = {}
        for played in died:
            endings.setdefault(played.died, []).append(played.scenario)
        self._heading("the kubelet ended by itself", len(endings), "bold red")
        for text, scenarios in endings.items():
            self._wrapped(" ".join(map(safe, scenarios)), "    ", "bold")
            for line in text.splitlines():
                self._line(f"      {safe(line, _LOG_CHARS_MAX)}")

    def _history(self, found: HistoryFound) -> None:
        self._line()
        self._line(f"history {safe(found.played.scenario)} broke {safe(found.what)}", "bold red")
        for line in found.words:
            self._line(f"    {safe(line, 2000)}")
        self._line(f"    kept in {safe(found.file)}", "dim")
        self._line(f"    again: {self._played.replay(found)}", "cyan")
        self._line("    as a scenario:")
        for line in found.scenario.splitlines():
            self._line(f"        {safe(line, 4000)}" if line else "", "dim")

    def _not_applicable(self) -> None:
        super()._not_applicable()
        rest = self._played.not_played
        if rest is not None:
            self._heading(f"scenarios that were not played, because of {rest.option}", len(rest.scenarios))
            self._wrapped(" ".join(map(safe, rest.scenarios)), "    ", "dim")
            self._heading("contracts that only these exercise", len(rest.contracts))
            self._wrapped(" ".join(rest.contracts), "    ")
        self._heading("scenarios that are not applicable here", len(self._played.left_out))
        for reason, scenarios in self._played.reasons().items():
            self._line(f"    {safe(reason)} ({len(scenarios)})", "dim")
            self._wrapped(" ".join(map(safe, scenarios)), "      ", "dim")

    def _failure(self, played: Played) -> str:
        """What went wrong; where in this program only with --debug."""
        return played.failed if self._run.debug else played.failed.splitlines()[0]

    def _scenarios(self, title: str, scenarios: list[tuple[str, str]]) -> None:
        self._heading(title, len(scenarios), "bold yellow")
        for name, reason in scenarios:
            self._line(f"    {safe(name)}", "bold")
            for line in reason.splitlines():
                self._line(f"      {safe(line)}")

    def _conclusion(self) -> Exit:
        return self._played.conclusion()


def print_check(check: Check, run: Run, console: Console) -> None:
    """Print one check."""
    TerminalReport(check, run, console).print()


def _by_number(version: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in version.split(".")]
