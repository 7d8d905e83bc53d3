"""The report to read, in a terminal with colours or in a log without."""

from collections.abc import Sequence
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from kubelet_conformance.contract.checking import REPORTED
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.playing import again, amount
from kubelet_conformance.reports.safe import a_few, counted, safe
from kubelet_conformance.reports.trace_text.breaks import Break, breaks_of, names_rule
from kubelet_conformance.reports.trace_text.causes import Group, groups_of
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.model import (
    ContractResult,
    Ended,
    Found,
    Kind,
    Proof,
    Run,
    ScenarioResult,
)
from kubelet_conformance.run_record.record import Record

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
_PART_STYLES = {"expected": "green", "happened": _STYLES[Verdict.BROKEN], "log": "dim", "count": "dim"}
_SENTENCES = frozenset({"expected", "clause"})
"""What may be set on several lines; a record or a name that is cut could not be searched for."""
_TITLE_CHARS = 16
_CONCLUSIONS = {
    Exit.OK: ("OK", "bold green"),
    Exit.FAILED: ("FAILED", "bold red"),
    Exit.BAD_INPUT: ("BAD INPUT", "bold red"),
    Exit.INCONCLUSIVE: ("INCONCLUSIVE", "bold yellow"),
    Exit.INTERNAL_ERROR: ("INTERNAL ERROR", "bold magenta"),
    Exit.INTERRUPTED: ("INCOMPLETE, interrupted", "bold red"),
}


class TerminalReport:
    """Prints one record on a console, part by part.

    Args:
        debug: whether tracebacks of the suite itself are shown.
        verbose: whether what is only counted is named too.
    """

    def __init__(self, record: Record, console: Console, *, debug: bool, verbose: bool = False) -> None:
        self._record = record
        self._run = record.run
        self._console = console
        self._debug = debug
        self._verbose = verbose
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

    def _named(self, names: Sequence[str], indent: str, *, shown: bool = False) -> None:
        """Names under a heading that counts them, where they are wanted."""
        if self._verbose or shown:
            self._wrapped(" ".join(map(safe, names)), indent, "dim")

    def _heading(self, title: str, count: int, style: str = "bold", *, more: bool = False) -> None:
        """The heading of a list, if anything is in it; `more` says that names come only where wanted."""
        if count:
            self._line()
            self._line(f"{title} ({count}{'; -v names them' if more and not self._verbose else ''})", style)

    def _target(self) -> None:
        run = self._run
        records = counted(sum(trace.records for trace in run.traces), "record")
        contracts = counted(len(run.contracts), "contract")
        if run.kind is Kind.CHECK:
            versions = sorted({trace.kubernetes or "unknown" for trace in run.traces}, key=_by_number)
            judged = f"{counted(len(run.traces), 'trace')}, {records}"
            self._line(f"Judged {judged} of Kubernetes {', '.join(versions) or 'unknown'} by {contracts}.")
        else:
            self._line(f"Played {amount(run)} on {run.target.words}: {records} judged by {contracts}.")
        if run.histories is not None and run.histories.repeated:
            self._line(f"Not played again: {run.histories.repeated} that were drawn more than once.")
        if run.ended is Ended.UNFINISHED:
            self._line(
                "Unfinished: the run is not over, its process was ended, or a part is missing.", "bold red"
            )
        if run.kind is Kind.CHECK:
            self._judged_otherwise()

    def _judged_otherwise(self) -> None:
        """Traces that were judged by another version than they state, and those that are truncated."""
        overridden = [trace for trace in self._run.traces if trace.overridden]
        if overridden:
            headers = {safe(trace.kubernetes_in_header or "") for trace in overridden}
            stated = ", ".join(sorted(headers, key=_by_number))
            count = counted(len(overridden), "trace")
            by = overridden[0].kubernetes
            self._line(f"{count} judged by --kubernetes {by}, although the header says {stated}.", "yellow")
        for trace in self._run.traces:
            if trace.truncated_after_line is not None:
                where = f"judged up to line {trace.truncated_after_line}"
                self._line(f"{safe(self._record.shown(trace.path))} is truncated: {where}.", "yellow")

    def _areas(self) -> None:
        counts = self._run.by_area()
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
        broken = self._run.having(Verdict.BROKEN)
        shown = breaks_of(broken, self._record)
        for group in groups_of(broken, self._run):
            self._group(group)
            for number, result in enumerate(group.contracts):
                breaks = shown[result.id]
                # A consequence needs no more than an example.
                self._broken_contract(result, breaks if number == 0 or self._verbose else breaks[:1])

    def _group(self, group: Group) -> None:
        if group.words:
            self._line()
            self._wrapped(group.words, "", "bold")

    def _broken_contract(self, result: ContractResult, breaks: list[Break]) -> None:
        self._line()
        self._heading_of(result, "BROKEN")
        for each in breaks:
            self._break(result, each)
        self._rule(result, is_named=names_rule(result, breaks))
        for command in dict.fromkeys(again(self._record, result.id, each.proof) for each in breaks):
            if command:
                self._line(f"    again: {command}", "cyan")
        more = result.breaks - sum(len(each.alike) for each in breaks)
        if more > 0:
            self._line(f"    and {counted(more, 'more break')}; --format json lists them", "dim")

    def _heading_of(self, result: ContractResult, word: str) -> None:
        verdict = result.verdict
        line = (
            Text().append(word, _STYLES[verdict]).append(f"  {result.id}", "bold").append(f"  {result.level}")
        )
        if verdict is Verdict.BROKEN and result.level != "MUST":
            line.append("  (fails only with --strict)" if result.level == "SHOULD" else "  (never fails)")
        if verdict is Verdict.BROKEN and not result.scored:
            line.append("  (newer than the requirements of this release: does not fail)")
        if result.follows_from:
            line.append(f"  (may follow from {', '.join(result.follows_from)})")
        self._line(line)

    def _rule(self, result: ContractResult, *, is_named: bool = False) -> None:
        if not is_named:
            self._wrapped(f"rule: {result.rule}", "    ")
        self._wrapped(f"source: {result.source}", "    ", "dim")

    def _break(self, result: ContractResult, at: Break) -> None:
        self._line()
        self._line(f"    in {', '.join(self._place(at.proof))}")
        for title, lines in at.parts(result):
            most = _LOG_CHARS_MAX if title == "log" else WIDTH_MAX * 20
            first, *others = (safe(line, most) for line in lines)
            if title in _SENTENCES:
                first, *others = wrap(first, self._width - _TITLE_CHARS, break_on_hyphens=False)
            self._line(f"      {title}: {first}", _PART_STYLES.get(title, ""))
            for line in others:
                self._line(f"        {line}", _PART_STYLES.get(title, ""))

    def _place(self, proof: Proof) -> list[str]:
        """Where a break was seen: the scenario, the trace and the log, as far as they are known."""
        scenario = f"scenario {safe(proof.scenario)}" if proof.scenario else ""
        trace, log = self._record.shown(proof.trace), self._record.shown_log(proof.trace)
        if self._run.kind is Kind.CHECK:
            return [safe(trace), *filter(None, [scenario])]
        kept = [safe(trace)] if trace else []
        return [scenario or "the node as a whole", *kept, *([f"log {safe(log)}"] if log else [])]

    def _errors(self) -> None:
        for result in self._run.having(Verdict.ERROR):
            self._line()
            self._heading_of(result, "ERROR")
            self._rule(result)
            lines = result.reasons[0].splitlines() if result.reasons else [""]
            first, last = lines[0], lines[-1]
            for line in lines if self._debug else dict.fromkeys((first, last)):
                self._line(f"    {safe(line)}", _STYLES[Verdict.ERROR])

    def _known(self) -> None:
        known = self._run.having(Verdict.KNOWN_DEVIATION)
        self._heading("known deviations", len(known), "yellow")
        of_reasons: dict[str, list[str]] = {}
        for result in known:
            reasons = dict.fromkeys(each.deviation for each in result.evidence if each.deviation)
            of_reasons.setdefault("; ".join(reasons), []).append(result.id)
        for reason, ids in of_reasons.items():
            self._wrapped(f"{', '.join(ids)}  {safe(reason)}", "    ")

    def _stale(self) -> None:
        baseline, stale = self._run.baseline, self._run.stale
        if baseline is None or not stale:
            return
        self._heading(
            "stale in the baseline: exercised and never broken, remove them", len(stale), "bold red"
        )
        for each in stale:
            where = f"{safe(baseline.path)}:{each.line}" if each.line else safe(baseline.path)
            self._line(f"    {where}: {safe(str(each))}")

    def _waits(self) -> None:
        if self._run.kind is not Kind.CHECK:
            self._ends()
            return
        waits = self._run.waits
        self._heading("waits that timed out, explained by no broken contract", len(waits), "bold yellow")
        for wait in waits:
            what, trace = safe(wait.awaited or wait.contract), safe(self._record.shown(wait.trace))
            self._line(f"    {trace} #{wait.seq}: {what} ({safe(wait.contract)})")

    def _ends(self) -> None:
        """Scenarios that did not end well, and histories that broke something."""
        run = self._run
        self._deaths(run.died)
        self._scenarios(
            "timed out or failed, and no broken contract explains it",
            [(played.name, played.unmet) for played in run.unexplained],
        )
        self._scenarios(
            "the suite itself failed", [(played.name, self._failure(played)) for played in run.failed]
        )
        for found in run.histories.found if run.histories is not None else ():
            self._history(found)

    def _inconclusive(self) -> None:
        stalled = [trace for trace in self._run.traces if trace.stalls]
        if not stalled:
            return
        count = counted(sum(trace.stalls for trace in stalled), "stall")
        seconds = sum(trace.stalled_seconds for trace in stalled)
        excused = {result.id: result.inconclusive for result in self._run.contracts if result.inconclusive}
        self._line()
        more = "; -v names them" if excused and not self._verbose else ""
        title = "inconclusive: a stall of the machine may be why it seemed broken"
        self._line(f"{title} ({len(excused)}{more})", "bold")
        self._line(f"    {count} of the machine, {seconds:.1f} s in {counted(len(stalled), 'trace')}", "dim")
        self._named([f"{name} ({times})" for name, times in excused.items()], "    ")
        only = [result.id for result in self._run.having(Verdict.NOT_EXERCISED) if result.inconclusive]
        if only:
            named = ", ".join(only) if self._verbose else a_few(only, "contracts")
            self._wrapped(f"exercised in no other way, so play these again: {named}", "    ")

    def _not_exercised(self) -> None:
        idle = self._run.having(Verdict.NOT_EXERCISED)
        fails = ", and --require-exercised is given" if self._run.require_exercised else ""
        self._heading(f"not exercised{fails}", len(idle), more=not fails)
        self._named([result.id for result in idle], "    ", shown=self._run.require_exercised)

    def _not_applicable(self) -> None:
        without = self._run.having(Verdict.NOT_APPLICABLE)
        by_reason: dict[str, list[str]] = {}
        for result in without:
            by_reason.setdefault("; ".join(result.reasons) or "no trace was judged", []).append(result.id)
        self._heading("not applicable", len(without), more=True)
        for reason, ids in by_reason.items():
            named = f": {' '.join(ids)}" if self._verbose else f" ({len(ids)})"
            self._wrapped(f"{safe(reason)}{named}", "    ")
        self._scenarios_left_out()

    def _unreadable(self) -> None:
        errors = self._run.unreadable
        self._heading("not judged, bad input", len(errors), "bold red")
        for error in errors:
            self._line(f"    {safe(str(error))}")

    def _summary(self) -> None:
        word, said = summary(self._run)
        self._line()
        self._line(Text().append(word, _CONCLUSIONS[Exit(self._run.exit_code)][1]).append(f" {said}"))

    def _deaths(self, died: list[ScenarioResult]) -> None:
        """How the kubelet ended by itself, once for all scenarios that it ended alike."""
        endings: dict[str, list[str]] = {}
        for played in died:
            endings.setdefault(played.died, []).append(played.name)
        self._heading("the kubelet ended by itself", len(endings), "bold red")
        for text, scenarios in endings.items():
            self._wrapped(" ".join(map(safe, scenarios)), "    ", "bold")
            for line in text.splitlines():
                self._line(f"      {safe(line, _LOG_CHARS_MAX)}")

    def _history(self, found: Found) -> None:
        self._line()
        self._line(f"history {safe(found.name)} broke {safe(found.broke)}", "bold red")
        for line in found.words:
            self._line(f"    {safe(line, 2000)}")
        self._line(f"    kept in {safe(found.file)}", "dim")
        self._line(f"    again: {found.again}", "cyan")
        self._line("    as a scenario:")
        for line in found.scenario.splitlines():
            self._line(f"        {safe(line, 4000)}" if line else "", "dim")

    def _scenarios_left_out(self) -> None:
        """The scenarios that were not played, by the reason."""
        rest = self._run.not_played
        if rest is not None:
            title = f"scenarios that were not played, because of {rest.option}"
            self._heading(title, len(rest.scenarios), more=True)
            self._named(rest.scenarios, "    ")
            self._heading("contracts that only these exercise", len(rest.contracts), more=True)
            self._named(rest.contracts, "    ")
        missing = self._run.not_applicable
        self._heading("scenarios that are not applicable here", len(missing), more=True)
        for reason, scenarios in self._run.reasons().items():
            self._line(f"    {safe(reason)} ({len(scenarios)})", "dim")
            self._named(scenarios, "      ")

    def _failure(self, played: ScenarioResult) -> str:
        """What went wrong; where in this program only with --debug."""
        return played.failed if self._debug else played.failed.splitlines()[0]

    def _scenarios(self, title: str, scenarios: list[tuple[str, str]]) -> None:
        self._heading(title, len(scenarios), "bold yellow")
        for name, reason in scenarios:
            self._line(f"    {safe(name)}", "bold")
            for line in reason.splitlines():
                self._line(f"      {safe(line)}")


def summary(run: Run) -> tuple[str, str]:
    """The last line of a report: how the run ended, and how many contracts have each verdict."""
    counts = ", ".join(f"{number} {verdict.words}" for verdict, number in run.totals.items())
    unread, stale = len(run.unreadable), len(run.stale)
    also = f"; {counted(unread, 'input')} could not be judged" if unread else ""
    also += f"; {counted(stale, 'entry', 'entries')} of the baseline stale" if stale else ""
    is_harmless = run.exit_code == Exit.OK and run.totals.get(Verdict.BROKEN)
    also += "; what is broken is not required, and fails no run" if is_harmless else ""
    word, _ = _CONCLUSIONS[Exit(run.exit_code)]
    return f"{word}:", f"{counts} in {counted(len(run.traces), 'trace')}{also}"


def _by_number(version: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in version.split(".")]
