"""Plain pytest with our plugin: scenarios of the package and of others, beside tests that are none."""

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scenario_files import ASSERTS, GOOD, PLAIN, RAISES, TIMES_OUT, scenario_file

from kubelet_conformance.plugin import play as play_module
from kubelet_conformance.plugin.hooks import Scenarios
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.targets.in_process.stage import InProcessStage

pytest_plugins = ["pytester"]

#: Loaded here once, and not again in every inner run.
LOADED = (Scenarios, InProcessStage)
OURS = ("-p", "kubelet_conformance.plugin")
#: What is installed where these tests run must not reach the inner runs.
ALONE = ("--disable-plugin-autoload", "-p", "no:cacheprovider")
BUGGY = ("--kc-kubelet", "bug:K8S-9649")
PROBED = '''
async def test_probed(node: Node) -> None:
    """A container whose readiness probe fails."""
    probe = {"exec": {"command": ["x", "1", "0"]}, "periodSeconds": 2, "failureThreshold": 1}
    await node.run(container("c1", readinessProbe=probe))
    await node.wait(20)
'''
UNKNOWN = GOOD.replace("SANDBOX-02", "SANDBOX-99")
WRONG = "def test_wrong():\n    assert False\n"
NEWER = GOOD.replace('@witness("SANDBOX-02")', '@witness("SANDBOX-02", kubernetes=(1, 29))')


@pytest.fixture
def play(pytester: pytest.Pytester) -> Any:
    """Play a file of scenarios with the plugin, in this process; arguments are pytest's."""

    def run(scenarios: Sequence[str], *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_mine=scenario_file(*scenarios))
        return pytester.runpytest_inprocess(*OURS, *ALONE, *arguments)

    return run


def reported(ended: pytest.RunResult) -> str:
    """What was printed."""
    return ended.stdout.str()


class Ends(NamedTuple):
    """How a run of these scenarios ends: its exit code, the outcomes of the tests, what is printed or not."""

    scenarios: Sequence[str]
    arguments: Sequence[str]
    code: int
    outcomes: Mapping[str, int]
    printed: Sequence[str] = ()
    hidden: str = "^$."


ENDS = {
    "a scenario outside the package is judged by all contracts; its file is nothing special": Ends(
        *([GOOD, PLAIN], (), 0, {"passed": 2}),
        [r"^Played 1 scenario on .* judged by \d{3} contracts\.$"],
    ),
    "without a scenario the plugin neither reports nor changes the exit code": Ends(
        [PLAIN, WRONG], (), 1, {"passed": 1, "failed": 1}, hidden="Played"
    ),
    "so it is where every scenario is left out": Ends(
        [TIMES_OUT, PLAIN], ["--kc-contract=SANDBOX-02"], 0, {"passed": 1, "deselected": 1}, hidden="Played"
    ),
    "a wait that times out names its line, what was awaited and last seen, and how the trace ends": Ends(
        *([TIMES_OUT], ["--tb=short"], 3, {"failed": 1}),
        [
            r"test_mine\.py:\d+: timed out after 20 s waiting for pod web: phase Failed\n",
            r"last seen: phase Running; c1 running; the runtime has c1#0 RUNNING\nthe trace ends:\n",
            r"^ +0\.000  StartContainer c1#0 .* of default/web -> ok$",
            r"timed out or failed, and no broken contract explains it \(1\)\n    mine\.times_out\n",
        ],
    ),
    "an assert that fails names its line and both sides, and is inconclusive": Ends(
        [ASSERTS], (), 3, {"failed": 1}, [r"test_mine\.py:\d+: assert 'Running' == 'Failed'"]
    ),
    "an exception of a scenario of one's own is so too, and tells where it comes from": Ends(
        [RAISES],
        (),
        3,
        {"failed": 1},
        [r"^      test_mine\.py:\d+: ValueError: boom\n +File \S+test_mine\.py"],
    ),
    "a plain test that fails makes a run fail whose scenarios are well": Ends(
        [GOOD, WRONG], (), 1, {"passed": 1, "failed": 1}, ["OK: "]
    ),
    "scenarios that do not declare the contract are left out, and no other tests": Ends(
        [GOOD, TIMES_OUT, PLAIN], ["--kc-contract=SANDBOX-02"], 0, {"passed": 2, "deselected": 1}
    ),
    "a scenario for a newer version is not played on an older one": Ends(
        [NEWER, PLAIN], ["--kc-kubernetes=1.26"], 0, {"passed": 1, "deselected": 1}
    ),
    "it is played on its own": Ends([NEWER, PLAIN], ["--kc-kubernetes=1.32"], 0, {"passed": 2}),
}


@pytest.mark.parametrize("case", ENDS)
def test_run_ends_as_expected(play: Any, case: str) -> None:
    """The exit code, the outcomes of the tests and the text are those of the row."""
    expected = ENDS[case]
    ended = play(expected.scenarios, *expected.arguments)
    text = reported(ended)

    assert ended.ret == expected.code
    ended.assert_outcomes(**expected.outcomes)
    assert [each for each in expected.printed if not re.search(each, text, re.MULTILINE)] == []
    assert not re.search(expected.hidden, text)


def test_contract_that_does_not_exist_is_a_mistake(play: Any) -> None:
    """A scenario that is to exercise what is not in the catalogue is refused, and named."""
    ended = play([UNKNOWN])

    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    assert re.search(
        r"test_mine\.py::test_good: there is no contract SANDBOX-99; nearest: SANDBOX-\d\d",
        ended.stderr.str(),
    )


def test_break_fails_its_scenario(play: Any) -> None:
    """A scenario whose trace breaks a MUST fails, names the contracts, and can be played again alone."""
    ended = play(
        [PROBED, GOOD], *BUGGY, "--kc-contract=PROBE-10", "--kc-contract=SANDBOX-02", "--kc-scenario=*"
    )
    [again] = re.findall(r"^    again: python -m (pytest .*)$", reported(ended), re.MULTILINE)

    assert ended.ret == 1
    ended.assert_outcomes(failed=1, passed=1)
    assert "broken: PROBE-10" in reported(ended)
    assert shlex.split(again) == [
        "pytest",
        *OURS,
        "test_mine.py",
        "--kc-contract=PROBE-10",
        "--kc-scenario=mine.probed",
        "--kc-kubelet=bug:K8S-9649",
    ]


def test_command_of_a_break_plays_it_again(play: Any, pytester: pytest.Pytester) -> None:
    """The command that is shown for a break breaks the same."""
    first = play([PROBED], *BUGGY, "--kc-contract=PROBE-10", "--kc-scenario=mine.probed")
    [again] = re.findall(r"^    again: python -m pytest (.*)$", reported(first), re.MULTILINE)
    second = pytester.runpytest_inprocess(*shlex.split(again), *ALONE)

    assert second.ret == 1
    assert f"again: python -m pytest {again}" in reported(second)


@pytest.fixture
def _scenarios_of_the_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all scenarios for those of the suite."""
    monkeypatch.setattr(play_module, "_PACKAGE", "")


@pytest.mark.usefixtures("_scenarios_of_the_suite")
def test_exception_is_a_mistake_of_the_suite(play: Any) -> None:
    """A scenario that raises ends with 4; others are judged all the same, and the report tells where."""
    ended = play([RAISES, GOOD], "--kc-format=json", "--kc-output=report.json")
    found = json.loads(Path("report.json").read_text(encoding="utf-8"))
    [raised, good] = found["scenarios"]

    assert (ended.ret, found["exit_code"]) == (4, 4)
    ended.assert_outcomes(failed=1, passed=1)
    assert re.match(r"test_mine\.py:\d+: ValueError: boom\nTraceback", raised["failed"])
    assert (good["failed"], good["unmet"]) == ("", "")
    assert found["totals"]["kept"] > 20


@pytest.mark.usefixtures("_scenarios_of_the_suite")
@pytest.mark.parametrize(("debug", "lines"), [((), 0), (("--kc-debug",), 1)])
def test_traceback_is_shown_on_request(play: Any, debug: tuple[str, ...], lines: int) -> None:
    """The report tells an exception in one line, and where it came from with --kc-debug."""
    ended = play([RAISES], *debug)
    report = reported(ended).partition("the suite itself failed (1)")[2]
    # Where the environment variable CI is set, pytest's closing lines repeat each failure in full.
    report = report.partition("short test summary info")[0]

    assert re.search(r"^      test_mine\.py:\d+: ValueError: boom$", report, re.MULTILINE)
    assert report.count("Traceback (most recent call last):") == lines


def test_baseline_lets_a_scenario_pass(play: Any) -> None:
    """A break that the baseline names is no failure of its scenario."""
    entry = '[[deviation]]\nid = "PROBE-10"\nclause = "no-kill"\nreason = "soon"\n'
    Path("known.toml").write_text(entry, encoding="utf-8")
    ended = play([PROBED], *BUGGY, "--kc-contract=PROBE-10", "--kc-scenario=*", "--kc-baseline=known.toml")

    assert ended.ret == 0
    ended.assert_outcomes(passed=1)


def test_parameters_and_fixtures(play: Any) -> None:
    """A scenario may have parameters and other fixtures; each of its plays has a trace of its own."""
    many = """
        import pytest

        @pytest.fixture
        def script():
            return "exit"

        @pytest.mark.parametrize("code", [0, 1], ids=["well", "a/b"])
        async def test_many(node: Node, code: int, script: str) -> None:
            web = node.want({"metadata": {"name": "web"}, "spec": {"containers": [
                container("c1", f"{script} {code} 2")], "restartPolicy": "Never"}})
            await web.until_phase("Failed" if code else "Succeeded")
    """
    import textwrap  # noqa: PLC0415 - for this text alone

    ended = play([textwrap.dedent(many)], "--kc-record=kept")

    assert ended.ret == 0
    assert sorted(each.name for each in Path("kept", "traces").iterdir()) == [
        "mine.many[a_b].jsonl",
        "mine.many[well].jsonl",
    ]


def test_same_names_are_distinguished(play: Any, pytester: pytest.Pytester) -> None:
    """Two scenarios of one name, in two folders, have a name and a trace each."""
    for folder in ("one", "two"):
        pytester.mkpydir(folder).joinpath("test_same.py").write_text(scenario_file(GOOD), encoding="utf-8")
    ended = play([], "--kc-format=json", "--kc-output=report.json", "one", "two")
    found = json.loads(Path("report.json").read_text(encoding="utf-8"))

    assert ended.ret == 0
    assert [each["name"] for each in found["scenarios"]] == ["same.good", "same.good-2"]


def test_wrong_choice_is_a_usage_error(play: Any) -> None:
    """What cannot be chosen is pytest's usage error, with our message."""
    ended = play([GOOD], "--kc-kubelet=crio")

    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        "ERROR: no kubelet is named 'crio'; choose reference, reference-process, the PATH of a kubelet,"
        " FILE.toml, or bug:ID" in ended.stderr.str()
    )


def test_junit_of_pytest_is_left_alone(play: Any) -> None:
    """Pytest's own reports hold nothing of ours."""
    play([GOOD], "--junitxml=own.xml")
    text = Path("own.xml").read_text(encoding="utf-8")

    assert 'name="test_good"' in text
    assert "propert" not in text


def test_lives_beside_pytest_asyncio(pytester: pytest.Pytester) -> None:
    """In the auto mode of pytest-asyncio, which takes every coroutine for its own, scenarios are played."""
    settings = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
    other = "import asyncio\n\nasync def test_other() -> None:\n    assert asyncio.get_running_loop()\n"
    pytester.makepyfile(test_mine=scenario_file(GOOD, other))
    ended = pytester.runpytest_inprocess(*OURS, *ALONE, "-p", "pytest_asyncio.plugin", *settings)

    assert ended.ret == 0
    ended.assert_outcomes(passed=2)


@pytest.mark.campaign
def test_workers_of_xdist_are_merged(pytester: pytest.Pytester) -> None:
    """With xdist the report is the same as without, record and order included."""
    pytester.makepyfile(test_mine=scenario_file(TIMES_OUT, GOOD, RAISES, ASSERTS, PLAIN))
    serial = pytester.runpytest_inprocess(*OURS, *ALONE, "--kc-record=kept")
    found = [json.loads(Path("kept", "run.json").read_text(encoding="utf-8"))]
    command = (sys.executable, "-m", "pytest", *OURS, "-p", "no:asyncio", "-n", "2", "--kc-record=kept")
    spread = pytester.run(*command)
    found.append(json.loads(Path("kept", "run.json").read_text(encoding="utf-8")))
    commands = [each.pop("command") for each in found]
    for each in (*found, *(scenario for one in found for scenario in one["scenarios"])):
        del each["seconds"]
    for each in found:
        del each["started"]

    for ended in (serial, spread):
        assert ended.ret == Exit.INCONCLUSIVE
        ended.assert_outcomes(passed=2, failed=3)
    assert " ".join(commands[1]).startswith("python -m pytest -p kubelet_conformance.plugin -p no:asyncio")
    assert [each["name"] for each in found[0]["scenarios"]] == [
        "mine.times_out",
        "mine.good",
        "mine.raises",
        "mine.asserts",
    ]
    assert found[0] == found[1]
