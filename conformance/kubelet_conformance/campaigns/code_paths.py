"""The code of a contract: its judge, its scenarios, its bugs, and the reference code that they replace."""

from kubelet_conformance.campaigns.declared import declared_witnesses
from kubelet_conformance.contract.baseline import MAIN_CLAUSE
from kubelet_conformance.contract.definition import Contract
from kubelet_conformance.reports.catalogue import CodePath, CodePaths, Entry
from kubelet_conformance.reports.source_lines import SourceLines, lines_of
from kubelet_conformance.runtime_checks.scenarios import every_runtime_scenario
from kubelet_conformance.scenarios import every_scenario
from kubelet_conformance.targets.bug_sources import bug_source
from kubelet_conformance.targets.bugs import declared_bugs


def code_paths(entry: Entry) -> CodePaths:
    """The code behind one row of the catalogue."""
    rule = entry.row.id
    bugs = [bug_source(name) for name in declared_bugs().get(rule, ())]
    keeping = {lines for bug in bugs for lines in bug.replaces}
    return CodePaths(
        _clauses(entry.contract) if entry.contract else (),
        tuple(CodePath(name, "", _scenario_lines(name)) for name in declared_witnesses().get(rule, ())),
        tuple(CodePath(bug.id, bug.title, bug.lines) for bug in bugs),
        tuple(sorted(keeping, key=lambda each: (each.file, each.first))),
    )


def _clauses(contract: Contract) -> tuple[CodePath, ...]:
    return tuple(
        CodePath(each.name or MAIN_CLAUSE, each.sentence, lines_of(each.judge)) for each in contract.clauses
    )


def _scenario_lines(name: str) -> SourceLines | None:
    played = every_scenario().get(name)
    if played is not None:
        return lines_of(played)
    return next((lines_of(each.run) for each in every_runtime_scenario() if each.title == name), None)
