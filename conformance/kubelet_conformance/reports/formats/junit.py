"""The report for CI systems: JUnit's XML, in which each contract is a test case."""

from itertools import groupby
from xml.etree import ElementTree as ET

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.reports.playing import again
from kubelet_conformance.reports.safe import safe
from kubelet_conformance.reports.trace_text.breaks import Break, breaks_of, in_lines
from kubelet_conformance.run_record.model import ContractResult, Ended, Run, ScenarioResult
from kubelet_conformance.run_record.record import Record

_TEXT_MAX = 4000
_SECOND_CHARS = 19
"""The length of a time of day to the second, such as 2026-01-02T03:04:05."""
_IDLE = frozenset({Verdict.NOT_EXERCISED, Verdict.NOT_APPLICABLE})


def as_junit(record: Record) -> str:
    """The run as one test suite an area, without what was not exercised if scenarios were chosen."""
    run, root = record.run, ET.Element("testsuites", name="kubelet-conformance")
    results = [
        each for each in run.contracts if not run.chosen or each.verdict not in _IDLE or run.fails(each)
    ]
    breaks, seconds = breaks_of((each for each in results if _is_bad(each, run)), record), _shares(run)
    for area, those in groupby(results, key=lambda result: result.area):
        suite = ET.SubElement(root, "testsuite", name=area)
        for result in those:
            case = _new_case(suite, result.id, seconds[result.id])
            _judged(case, result, record, breaks.get(result.id, []))
        _count(suite)
    _scenarios(ET.SubElement(root, "testsuite", name="scenarios"), run)
    if run.baseline is not None:
        known = ET.SubElement(root, "testsuite", name="baseline")
        for stale in run.stale:
            text = "stale: exercised and never broken, remove it"
            _say(_new_case(known, str(stale)), "failure", text, run.baseline.path)
        _count(known)
    _count(root)
    root.set("time", f"{run.seconds:.3f}")
    if run.started:
        root.set("timestamp", run.started[:_SECOND_CHARS])
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _shares(run: Run) -> dict[str, float]:
    """The time of each contract: that of a scenario is shared by all contracts that it exercised."""
    shares = dict.fromkeys((each.id for each in run.contracts), 0.0)
    for played in run.scenarios:
        for contract in played.exercised:
            if contract in shares:
                shares[contract] += played.seconds / len(played.exercised)
    return shares


def _scenarios(suite: ET.Element, run: Run) -> None:
    """What did not end well beside the contracts."""
    for played in run.died:
        _say(_new_case(suite, played.name), "failure", "the kubelet ended by itself", played.died)
    for played in (*run.failed, *run.unexplained):
        _say(_new_case(suite, played.name), "error", *_ended(played))
    for error in run.unreadable:
        _say(_new_case(suite, error.path), "error", "could not be judged", str(error))
    for left_out in run.not_applicable:
        _say(_new_case(suite, left_out.name), "skipped", f"not applicable: {left_out.reason}")
    if run.ended is not Ended.COMPLETE:
        _say(_new_case(suite, "all scenarios"), "error", f"incomplete: the run was {run.ended.words}")
    for name in () if run.not_played is None else run.not_played.scenarios:
        _say(_new_case(suite, name), "skipped", "not played")
    _count(suite)


def _ended(played: ScenarioResult) -> tuple[str, str]:
    """How a scenario ended that did not end well: in short, and in full."""
    if played.failed:
        return "the suite failed", played.failed
    return "timed out or failed", played.unmet


def _new_case(suite: ET.Element, name: str, seconds: float = 0.0) -> ET.Element:
    attributes = {"classname": suite.get("name", ""), "name": safe(name, _TEXT_MAX), "time": f"{seconds:.3f}"}
    return ET.SubElement(suite, "testcase", attributes)


def _is_bad(result: ContractResult, run: Run) -> bool:
    return result.verdict is Verdict.ERROR or run.fails(result)


def _judged(case: ET.Element, result: ContractResult, record: Record, breaks: list[Break]) -> None:
    verdict = result.verdict
    if verdict is Verdict.KEPT:
        return
    if _is_bad(result, record.run):
        kind = "error" if verdict is Verdict.ERROR else "failure"
        _say(case, kind, result.rule, _proof(result, record, breaks))
        return
    reason = "; ".join(result.reasons) or "; ".join(
        dict.fromkeys(each.deviation for each in result.evidence if each.deviation)
    )
    _say(case, "skipped", f"{verdict.words}{f': {reason}' if reason else ''}")


def _proof(result: ContractResult, record: Record, breaks: list[Break]) -> str:
    """The breaks that are shown, each with its slice of the trace, and the commands that play them again."""
    parts = [f"source: {result.source}", *result.reasons]
    if result.follows_from:
        parts.append(f"may follow from {', '.join(result.follows_from)}, which the container runtime breaks")
    for each in breaks:
        parts.append(f"scenario {each.proof.scenario or record.shown(each.proof.trace)}")
        parts += in_lines(each.parts(result))
    commands = dict.fromkeys(again(record, result.id, each.proof) for each in breaks)
    return "\n".join([*parts, *(f"again: {each}" for each in commands if each)])


def _say(case: ET.Element, kind: str, message: str, text: str = "") -> None:
    element = ET.SubElement(case, kind, message=safe(message, _TEXT_MAX))
    if text:
        element.text = "\n".join(safe(line, _TEXT_MAX) for line in text.splitlines())


def _count(suite: ET.Element) -> None:
    cases = list(suite.iter("testcase"))
    suite.set("tests", str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", f"{sum(float(case.get('time', 0)) for case in cases):.3f}")
