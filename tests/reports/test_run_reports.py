"""The reports of a run: each form is whole and safe, whatever a trace or a scenario says."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from lines import HEADER, end, trace
from trace_builder import TraceBuilder

from kubelet_conformance.contract.baseline import Baseline, Deviation, clause_names
from kubelet_conformance.contract.checking import Check, judge_file
from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.reports.formats.markdown import BYTES_MAX
from kubelet_conformance.reports.forms import FORMS, in_form
from kubelet_conformance.run_record.conclusion import Exit, gravest
from kubelet_conformance.run_record.model import Target
from kubelet_conformance.run_record.played_run import Played, PlayedRun
from kubelet_conformance.run_record.record import Record

HOSTILE = "\x1b[31m``` \x00 ]]> \u202e & <b>\ud800"


class Commands:
    """Commands that tell what they were asked for."""

    def command(self) -> tuple[str, ...]:
        """That of the whole run."""
        return ("play",)

    def again(self, contract: str, played: Iterable[Played]) -> str:
        """That of a part."""
        return f"play {contract} {' '.join(each.scenario for each in played)}"


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """The trace of a scenario in which a second sandbox is run while the first stands."""
    s = TraceBuilder(scenario=f"two{HOSTILE[:-1]}")
    web = s.pod(HOSTILE[:-1])
    s.run_sandbox(web)
    s.wait(1).run_sandbox(web, attempt=1)
    path = tmp_path / "broken.jsonl"
    path.write_bytes(s.text())
    return path


@pytest.fixture
def idle(tmp_path: Path) -> Path:
    """The trace of a scenario in which nothing happens."""
    path = tmp_path / "idle.jsonl"
    path.write_bytes(trace(end(1), header={**HEADER, "scenario": "idle"}))
    return path


def run_of(
    *played: Played, contracts: str = "SANDBOX-04 INIT-01", baseline: Baseline | None = None
) -> Record:
    """The record of a run of these, judged by these contracts."""
    every = every_contract()
    check = Check([every[each] for each in contracts.split()], baseline)
    for each in played:
        check.add(each.judged)
    target = Target(kubelet="k", runtime="r", kubernetes="1.32")
    return Record(PlayedRun(check, played, target, Commands()).result(), Path())


def judged(
    path: Path, name: str, contracts: str = "SANDBOX-04 INIT-01", *, unmet: str = "", failed: str = ""
) -> Played:
    """What came of the scenario of this trace, judged by these contracts."""
    chosen = [every_contract()[each] for each in contracts.split()]
    return Played(name, judge_file(str(path), chosen), unmet, failed)


def suites(run: Record) -> dict[str, ET.Element]:
    """The suites of its JUnit report by name."""
    root = ET.fromstring(in_form("junit", run, to_file=True))  # noqa: S314 - made here
    return {"": root, **{each.get("name", ""): each for each in root}}


def counts(suite: ET.Element) -> tuple[str | None, ...]:
    """How many tests, failures, errors and skipped ones a suite says it has."""
    return tuple(suite.get(name) for name in ("tests", "failures", "errors", "skipped"))


def test_junit_counts_contracts(broken: Path, idle: Path) -> None:
    """Each contract is a test case of its area; scenarios that ended badly are errors beside them."""
    run = run_of(
        judged(broken, "two"), judged(idle, "idle", unmet="waited"), judged(idle, "odd", failed="boom")
    )
    found = suites(run)

    assert list(found) == ["", "SANDBOX", "INIT", "scenarios"]
    assert [counts(each) for each in found.values()] == [
        ("4", "1", "2", "1"),
        ("1", "1", "0", "0"),
        ("1", "0", "0", "1"),
        ("2", "0", "2", "0"),
    ]
    assert [each.get("classname") for each in found[""].iter("testcase")] == [
        "SANDBOX",
        "INIT",
        "scenarios",
        "scenarios",
    ]
    assert found["INIT"].find("testcase/skipped[@message='not exercised']") is not None
    assert [each.get("message") for each in found["scenarios"].iter("error")] == [
        "the suite failed",
        "timed out or failed",
    ]


def test_junit_proves_the_break(broken: Path) -> None:
    """A failure has the rule as its message, and source, slice, sentence and command as its text."""
    [failure] = suites(run_of(judged(broken, "two")))["SANDBOX"].iter("failure")
    text = failure.text or ""

    assert failure.get("message") == every_contract()["SANDBOX-04"].rule
    assert text.startswith("source: kuberuntime/kuberuntime_manager.go")
    assert "RunPodSandbox" in text
    assert text.endswith("again: play SANDBOX-04 two")


def test_junit_tells_what_is_known(broken: Path) -> None:
    """A known deviation is skipped, with the reason that the baseline gives."""
    clauses = clause_names(every_contract()["SANDBOX-04"])
    known = Baseline("known.toml", [Deviation("SANDBOX-04", "soon", each) for each in clauses])
    run = run_of(judged(broken, "two"), baseline=known)
    found = suites(run)

    assert found["SANDBOX"].find("testcase/skipped[@message='known deviation: soon']") is not None
    assert counts(found["baseline"]) == ("0", "0", "0", "0")
    assert run.run.exit_code == Exit.OK


@pytest.mark.parametrize(("scenario", "end_of_run"), [("idle", Exit.FAILED), ("deadly", Exit.OK)])
def test_kubelet_that_ends_by_itself_fails_unless_known(
    tmp_path: Path, scenario: str, end_of_run: Exit
) -> None:
    """The baseline may know that a scenario ends the kubelet; in another one that is a failure."""
    s = TraceBuilder(scenario=scenario)
    s.record("kubelet", op="ended", code=2)
    path = tmp_path / "deadly.jsonl"
    path.write_bytes(s.text())
    died = replace(judged(path, scenario, "LOOP-22 SANDBOX-04"), died="with code 2")
    known = Baseline("known.toml", [Deviation("LOOP-22", "soon", "main", "deadly")])

    assert run_of(died, contracts="LOOP-22 SANDBOX-04", baseline=known).run.exit_code == end_of_run


@pytest.mark.parametrize("form", FORMS)
def test_hostile_text_stays_text(form: str, broken: Path, idle: Path) -> None:
    """Whatever a trace or an exception says neither breaks a form nor reaches a terminal."""
    ended = (judged(idle, "odd", failed=HOSTILE), judged(idle, "unmet", unmet=HOSTILE))
    text = in_form(form, run_of(judged(broken, "two"), *ended), to_file=True)
    fences = [line for line in text.splitlines() if line.startswith("```")]

    assert text.isprintable() or set(filter(lambda char: not char.isprintable(), text)) == {"\n"}
    assert fences == (["```text", "```"] * 3 if form == "markdown" else [])


def test_scenario_explained_by_a_break_is_not_distinguished(broken: Path) -> None:
    """A wait that timed out in a trace that breaks a contract is explained by it."""
    run = run_of(judged(broken, "two", unmet="waited"))

    assert (run.run.unexplained, run.run.exit_code) == ([], Exit.FAILED)


def test_wait_that_timed_out_is_inconclusive_beside_what_was_kept(broken: Path, idle: Path) -> None:
    """A wait that no break explains makes a run inconclusive, and less grave than a break elsewhere."""
    only = "SANDBOX-01"
    unmet = judged(idle, "idle", only, unmet="waited")
    kept = run_of(judged(broken, "two", only), unmet, contracts=only)
    worse = run_of(judged(broken, "two"), judged(idle, "idle", unmet="waited"))

    assert kept.run.exit_code == Exit.INCONCLUSIVE
    assert worse.run.exit_code == Exit.FAILED


def test_gravest_end_counts() -> None:
    """An internal error comes before bad input, that before a failure, that before an inconclusive run."""
    order = [Exit.INTERNAL_ERROR, Exit.BAD_INPUT, Exit.FAILED, Exit.INCONCLUSIVE, Exit.OK]

    assert [gravest(*order[number:]) for number in range(len(order))] == order


def test_junit_leaves_out_what_chosen_scenarios_do_not_exercise(broken: Path) -> None:
    """Where scenarios were chosen, contracts that these do not exercise are no test cases."""
    whole = run_of(judged(broken, "two"))
    chosen = replace(whole, run=msgspec.structs.replace(whole.run, chosen=("two",)))

    assert [counts(suites(each)[""])[0] for each in (whole, chosen)] == ["2", "1"]


def test_junit_shares_the_time_of_scenarios(broken: Path) -> None:
    """A scenario's time is that of the contracts that it exercised, and the sum is the time of all."""
    contracts = "SANDBOX-04 SANDBOX-01 INIT-01"
    run = run_of(replace(judged(broken, "two", contracts), seconds=3.0), contracts=contracts)
    root = suites(run)[""]
    times = {str(case.get("name")): float(case.get("time", 0)) for case in root.iter("testcase")}

    assert times == {"SANDBOX-01": 1.5, "SANDBOX-04": 1.5, "INIT-01": 0.0}


def test_markdown_fits_a_job_summary(broken: Path) -> None:
    """However much is broken, a job summary takes the report; what is left out is said."""
    text = "x" * 2000
    ended = [judged(broken, f"two-{number}", failed=f"{number}\n{text}") for number in range(600)]
    report = in_form("markdown", run_of(*ended), to_file=True)

    assert len(report.encode()) <= BYTES_MAX
    assert report.endswith("`--format json` has it.\n")
    assert report.count("```") % 2 == 0


def test_markdown_folds_many_breaks(broken: Path) -> None:
    """Of a few broken contracts the likeliest cause is open; of many each is folded, with its rule."""
    every = " ".join(each for each in every_contract() if each.startswith("SANDBOX-"))
    run = run_of(judged(broken, "two", every), contracts=every)
    many = tuple(msgspec.structs.replace(each, verdict=Verdict.BROKEN) for each in run.run.contracts)
    worse = replace(run, run=msgspec.structs.replace(run.run, contracts=many))
    folded = in_form("markdown", worse, to_file=True)

    assert "### SANDBOX-04 (MUST)" in in_form("markdown", run, to_file=True)
    assert folded.count("<details><summary><b>SANDBOX-") == len(many) == folded.count("</details>")


@pytest.mark.parametrize(("name", "colour"), [("broken", "#c62828"), ("idle", "#8a6100")])
def test_badge_tells_what_is_kept(request: pytest.FixtureRequest, name: str, colour: str) -> None:
    """The badge counts what was exercised, and its colour is that of the end."""
    badge = in_form("badge", run_of(judged(request.getfixturevalue(name), name)), to_file=True)
    root = ET.fromstring(badge)  # noqa: S314 - made here

    assert root.findtext("{*}title") == f"k: 0 of {int(name == 'broken')} kept"
    assert colour in badge
