"""What a page says of the run as a whole."""

from collections.abc import Iterator
from shlex import join

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.playing import amount
from kubelet_conformance.reports.safe import counted, safe
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.run_record.model import Ended, Kind, Run

_LONG = 4000


def conclusion(run: Run) -> tuple[str, str]:
    """How the run ended: the verdict that colours it, and a sentence."""
    if run.ended is not Ended.COMPLETE:
        return "error", f"Incomplete: the run was {run.ended.words}."
    failing = sum(1 for each in run.contracts if run.fails(each) and each.verdict is Verdict.BROKEN)
    broken = run.totals.get(Verdict.BROKEN, 0)
    kept = counted(run.totals.get(Verdict.KEPT, 0), "contract")
    match Exit(run.exit_code):
        case Exit.OK if broken:
            return "known_deviation", f"Passed: {kept} kept; {broken} broken that do not fail it."
        case Exit.OK:
            return "kept", f"Passed: {kept} kept, none broken."
        case Exit.FAILED if failing:
            return "broken", f"Failed: {counted(broken, 'contract')} broken."
        case Exit.FAILED:
            return "broken", "Failed."
        case other:
            return "error", f"{other.name.replace('_', ' ').capitalize()}."


def facts(run: Run) -> Iterator[tuple[str, str]]:
    """What was run, as names and values."""
    target = run.target
    pairs = [
        ("Kubelet", target.kubelet),
        ("in turns with", target.then_kubelet),
        ("Runtime", target.runtime),
        ("called at", target.address),
        ("Kubernetes", target.kubernetes or ", ".join(sorted({t.kubernetes or "" for t in run.traces}))),
        ("Feature gates", ", ".join(target.gates)),
        ("Configuration", target.config),
        ("Known deviations", target.known),
        ("Seed", "" if run.kind is Kind.CHECK else str(target.seed)),
        ("Judged", counted(len(run.traces), "trace") if run.kind is Kind.CHECK else amount(run)),
        ("Records", f"{sum(each.records for each in run.traces):,}"),
        ("Suite", run.suite),
        ("Started", f"{run.started[:16].replace('T', ' ')} UTC" if run.started else ""),
        ("Took", f"{run.seconds:.0f} s" if run.started else ""),
    ]
    for name, value in pairs:
        if value:
            yield name, safe(value, _LONG)
    if run.command:
        yield "Command", safe(join(run.command), _LONG)


def troubles(run: Run) -> list[tuple[str, list[str]]]:
    """What else wants a look, besides contracts: titles, each with its lines."""
    found = [
        (f"The kubelet ended by itself in {safe(each.name)}", each.died.splitlines()) for each in run.died
    ]
    found += [(f"The suite failed in {safe(each.name)}", each.failed.splitlines()) for each in run.failed]
    found += [
        (f"Timed out, or failed an assertion: {safe(each.name)}", each.unmet.splitlines())
        for each in run.unexplained
    ]
    if run.unreadable:
        found.append(("Could not be judged", [str(each) for each in run.unreadable]))
    if run.stale:
        title = "Stale in the baseline: exercised and never broken, remove them"
        found.append((title, [str(each) for each in run.stale]))
    if run.not_played is not None:
        title = f"Scenarios that were not played, because of {run.not_played.option}"
        found.append((title, list(run.not_played.scenarios)))
    for reason, names in run.reasons().items():
        found.append((f"{counted(len(names), 'scenario')} not applicable: {reason}", names))
    for each in run.histories.found if run.histories is not None else ():
        found.append((f"History {safe(each.name)} broke {safe(each.broke)}", [*each.words, each.again]))
    return [(safe(title), [safe(line, _LONG) for line in lines]) for title, lines in found]
