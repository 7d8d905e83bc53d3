"""The report for CI systems: JUnit's XML, in which each contract is a test case."""

from itertools import groupby
from xml.etree import ElementTree as ET

from kubelet_conformance.contract.checking import Result
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.played_run import Played, PlayedRun
from kubelet_conformance.reports.run import fails
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.trace_text.breaks import shown

_TEXT_MAX = 4000


def as_junit(run: PlayedRun) -> str:
    """The whole run as one test suite an area."""
    suites = ET.Element("testsuites", name="kubelet-conformance")
    for area, results in groupby(run.check.results.values(), key=lambda result: result.contract.row.area):
        suite = ET.SubElement(suites, "testsuite", name=area)
        for result in results:
            _judged(_new_case(suite, result.contract.id), result, run)
        _count(suite)
    ends = ET.SubElement(suites, "testsuite", name="scenarios")
    for played in run.died:
        _say(_new_case(ends, played.scenario), "failure", "the kubelet ended by itself", played.died)
    for played in (*run.failed, *run.unexplained):
        _say(_new_case(ends, played.scenario), "error", *_ended(played))
    for left_out in run.left_out:
        _say(_new_case(ends, left_out.scenario), "skipped", f"not applicable: {left_out.reason}")
    if run.interrupted:
        _say(_new_case(ends, "all scenarios"), "error", "incomplete: the run was interrupted")
    for name in () if run.not_played is None else run.not_played.scenarios:
        _say(_new_case(ends, name), "skipped", "not played")
    _count(ends)
    if run.check.baseline is not None:
        known = ET.SubElement(suites, "testsuite", name="baseline")
        for stale in run.check.stale():
            text = "stale: exercised and never broken, remove it"
            _say(_new_case(known, str(stale)), "failure", text, run.check.baseline.path)
        _count(known)
    _count(suites)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _ended(played: Played) -> tuple[str, str]:
    """How a scenario ended that did not end well: in short, and in full."""
    if played.failed:
        return "the suite failed", played.failed
    return "timed out or failed an assertion", played.unmet


def _new_case(suite: ET.Element, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=suite.get("name", ""), name=safe(name, _TEXT_MAX))


def _judged(case: ET.Element, result: Result, run: PlayedRun) -> None:
    verdict, outcome = result.outcome.verdict, result.outcome
    if verdict is Verdict.KEPT:
        return
    if fails(result, run.options) or verdict is Verdict.ERROR:
        kind = "error" if verdict is Verdict.ERROR else "failure"
        _say(case, kind, result.contract.rule, _proof(result, run) or outcome.reason)
        return
    reason = "; ".join(result.reasons) or "; ".join(
        dict.fromkeys(each.deviation for each in outcome.evidence if each.deviation)
    )
    _say(case, "skipped", f"{verdict.words}{f': {reason}' if reason else ''}")


def _proof(result: Result, run: PlayedRun) -> str:
    """The breaks that are shown, each with its slice of the trace, and the command that plays them again."""
    breaks = shown(result.outcome.evidence)
    parts = [f"source: {result.contract.row.source}"]
    for each in breaks:
        evidence = each.evidence
        parts += [f"scenario {evidence.scenario or evidence.trace}", *each.slice(), evidence.text]
        parts += [f"  log: {line}" for line in evidence.log]
    again = run.again(result.contract.id, [each.evidence.trace for each in breaks])
    return "\n".join([*parts, f"again: {again}"])


def _say(case: ET.Element, kind: str, message: str, text: str = "") -> None:
    element = ET.SubElement(case, kind, message=safe(message, _TEXT_MAX))
    if text:
        element.text = "\n".join(safe(line, _TEXT_MAX) for line in text.splitlines())


def _count(suite: ET.Element) -> None:
    cases = list(suite.iter("testcase"))
    suite.set("tests", str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
