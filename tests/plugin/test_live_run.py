"""`run` on a runtime at a socket: what is played there, what is not applicable, and how that is reported."""

import json
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from scenario_files import GOOD, scenario_file

from kubelet_conformance.contract.checking import judge_file
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.plugin.live import culprits, forecast, live_run
from kubelet_conformance.run_record.conclusion import Exit
from kubelet_conformance.targets.live.stage import WallStage

pytest_plugins = ["pytester"]

#: Loaded here once, and not again in every inner run.
LOADED = WallStage
ALONE = ("-p", "kubelet_conformance.plugin", "--disable-plugin-autoload", "-p", "no:cacheprovider")
ABSENT = "--kc-runtime=unix:///nowhere/cri.sock"
SCRIPTED = '''
async def test_scripted(node: Node) -> None:
    """A pod that cannot have a network."""
    with node.not_ready(network=False):
        node.want(pod())
'''
QUICK = '''
async def test_quick(node: Node) -> None:
    """A pod that runs."""
    await node.run()
'''
WITH_FIXTURE = '''
import pytest

@pytest.fixture
def code() -> int:
    return 3

async def test_with_fixture(node: Node, code: int) -> None:
    """A pod that ends."""
    web = node.want({"metadata": {"name": "web"}, "spec": {"containers": [
        container("c1", f"exit {code} 0")], "restartPolicy": "Never"}})
    await web.until_phase("Failed")
'''
#: A kubelet that ends when a manifest of a pod called bad is there, or those of pods called left and right.
MORTAL = """
import http.server, os, signal, sys, threading, time
if sys.argv[3:] and "maxPods" in open(sys.argv[3]).read(): sys.exit("no such field: maxPods")
if "stubborn" in sys.argv: signal.signal(signal.SIGTERM, signal.SIG_IGN)
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers)
threading.Thread(target=server.serve_forever, daemon=True).start()
while True:
    names = [each for each in os.listdir(sys.argv[2]) if not each.startswith(".")]
    texts = [open(os.path.join(sys.argv[2], each)).read() for each in names]
    found = {name for name in ("bad", "left", "right") if any(f'"name": "{name}"' in each for each in texts)}
    if "bad" in found or {"left", "right"} <= found: break
    time.sleep(0.05)
print("panic: no bad pods\\n\\tof all")
sys.exit(2)
"""
DEADLY = '''
async def test_deadly(node: Node) -> None:
    """A pod that ends the kubelet."""
    await node.wait(0.2)
    node.want_static(pod(name="good"), file="good.yaml")
    node.want_static(pod(name="bad"), file="bad.yaml")
    await node.wait(8)
'''
HALF = '''
async def test_half(node: Node) -> None:
    """A pod that ends the kubelet beside another one."""
    node.want_static(pod(name="left"), file="left.yaml")
    await node.wait(1)
'''
INTERRUPTS = '''
import signal
TIMES = []
async def test_interrupts(node: Node) -> None:
    """The user ends the run, when it is not rehearsed any more."""
    TIMES.append(node)
    if len(TIMES) > 1:
        signal.raise_signal(signal.SIGINT)
    await node.wait(60)
'''
SET = '''
from kubelet_conformance.node import witness
@witness("LOOP-22", max_pods=5)
async def test_set(node: Node) -> None:
    """A kubelet with a limit of its own."""
    await node.wait(0.1)
'''
BESIDE = '''
async def test_beside(node: Node) -> None:
    """Nothing, for a while."""
    await node.wait(2)
'''


@pytest.fixture
def one_shared_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all scenarios that can share a node share one."""
    monkeypatch.setattr(forecast, "_NODES_A_SHARED_ONE", 99)


@pytest.fixture
def play(pytester: pytest.Pytester) -> Any:
    """Play a file of scenarios with the plugin, in this process; arguments are pytest's."""

    def run(scenarios: tuple[str, ...], *arguments: str) -> pytest.RunResult:
        text = scenario_file(*scenarios).replace("import Node, container", "import Node, container, pod")
        pytester.makepyfile(test_mine=text)
        return pytester.runpytest_inprocess(*ALONE, *arguments)

    return run


@pytest.fixture
def rehearsed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was rehearsed."""
    found: list[object] = []

    def note(*given: object) -> None:
        found.append(given)

    monkeypatch.setattr(live_run, "dry_run", note)
    return found


@pytest.fixture
def fake(tmp_path: Path) -> Generator[str]:
    """The address of the fake runtime in a process of its own."""
    address = f"unix://{tmp_path}/s"
    command = [sys.executable, "-m", "kubelet_conformance", "serve-fake", "--listen", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert address in process.stdout.readline()
            yield address
        finally:
            process.terminate()


@pytest.mark.slow
def test_plays_what_it_can(play: Any, fake: str) -> None:
    """What shares a node, what takes fixtures and what is not applicable each end as they should."""
    ended = play(
        (QUICK, WITH_FIXTURE, GOOD, SCRIPTED), f"--kc-runtime={fake}", "--kc-record=kept", "--kc-format=json"
    )
    found = json.loads(Path("kept", "run.json").read_text(encoding="utf-8"))

    assert ended.ret == 0
    ended.assert_outcomes(passed=2, skipped=2)
    assert sorted(each.name for each in Path("kept", "traces").iterdir()) == [
        "mine.with_fixture.jsonl",
        "node.jsonl",
    ]
    assert found["target"]["runtime"] == "fake 1.0.0"
    assert [(each["name"], each["broken"], each["unmet"]) for each in found["scenarios"]] == [
        ("mine.quick", [], ""),
        ("mine.with_fixture", [], ""),
    ]
    assert all(each["seconds"] > 0 and each["exercised"] for each in found["scenarios"])
    assert {each["name"]: each["reason"] for each in found["not_applicable"]} == {
        "mine.good": "needs a runtime that reports the process of a sandbox, on this machine",
        "mine.scripted": "needs a scripted runtime: set_conditions",
    }
    assert found["totals"]["kept"] > 50


@pytest.mark.slow
@pytest.mark.usefixtures("one_shared_node")
def test_kubelet_that_ends_by_itself_has_failed(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends it is named with its log's last lines and its manifests; the others are played."""
    monkeypatch.setattr(culprits, "_END_SECONDS", 1.0)
    mortal_kubelet()
    ended = play(
        (DEADLY, BESIDE, BESIDE.replace("beside", "after")),
        *("--kc-kubelet=k.toml", "--kc-record=kept", "--kc-format=json", "--kc-concurrency=2"),
    )
    found = json.loads(Path("kept", "run.json").read_text(encoding="utf-8"))
    died = {each["name"]: each["died"].splitlines() for each in found["scenarios"]}
    traces = {each.name for each in Path("kept", "traces").iterdir()}

    assert ended.ret == 1
    ended.assert_outcomes(passed=2, failed=1)
    assert died.pop("mine.deadly")[:4] == [
        "kubelet ended by itself with code 2; it wrote:",
        *("  panic: no bad pods", "      of all"),
        "the fewest manifests that end it:",
    ]
    assert died == {"mine.after": [], "mine.beside": []}
    assert "name: bad" in ended.stdout.str()
    assert "name: good" not in ended.stdout.str()
    assert "panic: no bad pods" in Path("kept", "logs", "mine.deadly.log").read_text(encoding="utf-8")
    assert {"node.jsonl", "node-2.jsonl", "mine.deadly.jsonl", "mine.beside.jsonl"} == traces
    assert {each["scenario"] for each in evidence(found, "LOOP-22")} == {"mine.deadly"}
    (seen,) = judge_file("kept/traces/node.jsonl", [every_contract()["LOOP-22"]]).outcomes["LOOP-22"].evidence
    assert seen.scenario == "mine.deadly", "the trace alone says it too"


@pytest.mark.slow
@pytest.mark.usefixtures("one_shared_node")
def test_end_of_a_kubelet_is_a_first_break(play: Any) -> None:
    """With --kc-fail-fast the run ends with it, and reports it; nothing is played again."""
    mortal_kubelet()
    ended = play(
        (DEADLY, BESIDE),
        *("--kc-kubelet=k.toml", "--kc-record=kept", "--kc-fail-fast", "--kc-concurrency=2"),
    )
    found = json.loads(Path("kept", "run.json").read_text(encoding="utf-8"))

    assert ended.ret == 1
    assert "mine.deadly" in {each["name"] for each in found["scenarios"] if each["died"]}
    assert len(evidence(found, "LOOP-22")) == 1


@pytest.mark.slow
def test_first_break_ends_the_run(play: Any, fake: str) -> None:
    """With --kc-fail-fast a scenario is not waited for that a break was seen in, and no other begins."""
    waits = QUICK.replace("await node.run()", "await node.run(); await node.wait(60)")
    ended = play(
        (waits, waits.replace("quick", "never").replace("wait(60)", "wait(90)")),
        *(f"--kc-runtime={fake}", "--kc-kubelet=bug:K8S-32935", "--kc-fail-fast", "--kc-concurrency=1"),
        *("--kc-format=json", "--kc-output=report.json"),
    )
    found = json.loads(Path("report.json").read_text(encoding="utf-8"))

    assert ended.ret == 1
    ended.assert_outcomes(failed=1)
    assert ended.duration < 30
    assert [each["name"] for each in found["scenarios"]] == ["mine.quick"]
    assert found["not_played"] == {"option": "--fail-fast", "scenarios": ["mine.never"], "contracts": []}
    assert "--kc-fail-fast" in found["command"]


def evidence(report: dict[str, Any], contract: str) -> list[dict[str, Any]]:
    """What breaks a contract."""
    return [one for each in report["contracts"] if each["id"] == contract for one in each["evidence"]]


@pytest.mark.slow
def test_kubelet_that_ends_with_the_settings_of_a_scenario_has_failed(play: Any) -> None:
    """One that ends before it is ready, where it is not so elsewhere, is reported like any that ends."""
    mortal_kubelet("{config}", config='"kind: KubeletConfiguration"')
    ended = play((BESIDE, SET), "--kc-kubelet=k.toml")

    assert ended.ret == 1
    assert "mine.set\n      kubelet ended with code 1 before it was ready; it wrote:\n" in ended.stdout.str()
    assert "no such field: maxPods" in ended.stdout.str()


@pytest.mark.slow
@pytest.mark.usefixtures("one_shared_node")
def test_interrupt_reports_what_was_played(play: Any) -> None:
    """Ctrl-C ends what is being played, with its traces; the rest is reported as not played."""
    mortal_kubelet()
    ended = play(
        (QUICK.replace("await node.run()", "await node.wait(0.2)"), INTERRUPTS, BESIDE),
        *("--kc-kubelet=k.toml", "--kc-record=kept", "--kc-concurrency=1"),
    )
    found = json.loads(Path("kept", "run.json").read_text(encoding="utf-8"))
    over = {each["name"] for each in found["scenarios"]} | set(found["not_played"]["scenarios"])

    assert ended.ret == Exit.INTERRUPTED
    assert (found["ended"], found["not_played"]["option"]) == ("interrupted", "the interrupt")
    assert {each["trace"] for each in found["scenarios"]} == {"traces/node.jsonl"}
    assert over == {"mine.quick", "mine.interrupts", "mine.beside"}
    assert "mine.interrupts" not in found["not_played"]["scenarios"]
    assert "INCOMPLETE, interrupted: " in ended.stdout.str()
    assert '"kind":"end"' in Path("kept", "traces", "node.jsonl").read_text(encoding="utf-8")


@pytest.mark.slow
def test_kubelet_that_nothing_ends_alone(play: Any) -> None:
    """All that was being played is named, and all pods that were desired."""
    mortal_kubelet()
    other = HALF.replace("left", "right").replace("half", "other")
    ended = play((HALF, other), "--kc-kubelet=k.toml", "--kc-record=kept", "--kc-format=json")
    found = json.loads(Path("kept", "run.json").read_text(encoding="utf-8"))
    died = [each["died"].splitlines() for each in found["scenarios"]]

    assert ended.ret == 1
    assert died[0] == died[1]
    assert "being played then, and none of them ends it alone: mine.half mine.other" in died[0]
    assert re.fullmatch(r"pods then: kcrun-\S+/left kcrun-\S+/right", died[0][-1])


def mortal_kubelet(*arguments: str, **keys: object) -> None:
    """Write k.toml, with the kubelet that bad pods end."""
    Path("mortal.py").write_text(MORTAL, encoding="utf-8")
    script = str(Path("mortal.py").absolute())
    write_target(["{python}", "-S", script, "{healthz_port}", "{pods}", *arguments], **keys)


def write_target(command: list[str], **keys: object) -> None:
    """Write k.toml, for a kubelet of this command, with other keys of a target file as they are written."""
    lines = [f"{key} = {value}" for key, value in keys.items()]
    text = "\n".join([f"[kubelet]\ncommand = {command}\ncapabilities = []", *lines])
    Path("k.toml").write_text(text, encoding="utf-8")


UNFIT = [
    (["/bin/echo", "no kubelet"], "ended with code 0 before it was ready; it wrote:\n  no kubelet"),
    (["sh", "-c", "echo need root; exit 1"], "ended with code 1 before it was ready; it wrote:\n  need root"),
    (["sh", "-c", "echo hello; exec sleep 60"], "name its URL in `healthz`; it wrote:\n  hello"),
]
"""Commands that are no kubelet, and what is said of them."""


@pytest.mark.parametrize(("command", "said"), UNFIT, ids=["no kubelet", "needs root", "never ready"])
def test_what_is_no_kubelet_is_a_usage_error(
    play: Any, rehearsed: list[object], command: list[str], said: str
) -> None:
    """It is started once, and reported with the last lines of its log, before anything is rehearsed."""
    write_target(command, start_seconds=0.3)
    ended = play((QUICK,), "--kc-kubelet=k.toml")

    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    assert said in ended.stderr.str()
    assert rehearsed == []


def test_kubelet_that_hangs_on_sigterm_is_a_usage_error(play: Any) -> None:
    """It is asked to end once, and killed."""
    mortal_kubelet("/dev/null", "stubborn", stop_seconds=0.1)
    ended = play((QUICK,), "--kc-kubelet=k.toml")

    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    assert "kubelet did not end in 0.1 s after SIGTERM; it wrote:\n  " in ended.stderr.str()


@pytest.mark.slow
def test_kubelet_in_a_process_of_its_own(play: Any) -> None:
    """Such a kubelet lives beside a fake runtime that listens for it alone."""
    ended = play((QUICK, WITH_FIXTURE), "--kc-kubelet=reference-process")

    assert ended.ret == 0
    ended.assert_outcomes(passed=2)


def test_absent_socket_is_a_usage_error(play: Any) -> None:
    """A runtime that is not there is reported in one message before anything is played."""
    ended = play((QUICK,), ABSENT)

    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: /nowhere/cri.sock: there is no such socket: start the runtime" in ended.stderr.str()


def test_absent_socket_is_noticed_before_many_rehearsals(
    play: Any, rehearsed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rehearsing many scenarios takes a while: the runtime is looked for first."""
    monkeypatch.setattr(live_run, "_FEW", 0)
    ended = play((QUICK,), ABSENT)

    assert "ERROR: /nowhere/cri.sock: there is no such socket: start the runtime" in ended.stderr.str()
    assert rehearsed == []


def test_nothing_applicable_is_inconclusive(play: Any) -> None:
    """Where no scenario can be played the run says so and why, without a runtime."""
    ended = play((SCRIPTED,), ABSENT, "--kc-verbose")

    assert ended.ret == 3
    ended.assert_outcomes(skipped=1)
    reported = r"not applicable here \(1\)\n +needs a scripted runtime: set_conditions \(1\)\n +mine"
    assert re.search(reported, ended.stdout.str())


def test_budget_leaves_out_what_takes_longer(play: Any) -> None:
    """--kc-budget is the wall time that a scenario may need, and is part of the command that plays again."""
    slow = QUICK.replace("await node.run()", "await node.wait(200)")
    ended = play((slow,), ABSENT, "--kc-budget=100", "--kc-record=kept")
    found = json.loads(Path("kept", "run.json").read_text(encoding="utf-8"))

    assert ended.ret == 3
    assert found["not_applicable"] == [{"name": "mine.quick", "reason": "needs 4 min of wall time"}]
    assert "--kc-budget=100" in found["command"]


def test_report_for_ci_skips_what_is_not_applicable(play: Any) -> None:
    """In JUnit's form such a scenario is skipped, with its reason."""
    play((SCRIPTED,), ABSENT, "--kc-format=junit", "--kc-output=report.xml")
    suites = ET.fromstring(Path("report.xml").read_text(encoding="utf-8"))  # noqa: S314 - written just now
    [case] = suites.findall("testsuite[@name='scenarios']/testcase")
    [skipped] = case.findall("skipped")

    assert case.get("name") == "mine.scripted"
    assert skipped.get("message") == "not applicable: needs a scripted runtime: set_conditions"


def test_report_for_a_pull_request_folds_them_away(play: Any) -> None:
    """In Markdown they are listed by reason, folded."""
    play((SCRIPTED,), ABSENT, "--kc-format=markdown", "--kc-output=report.md")
    text = Path("report.md").read_text(encoding="utf-8")

    assert "<summary>1 scenario not applicable here</summary>" in text
    assert "| needs a scripted runtime: set_conditions | `mine.scripted` |" in text


def test_unknown_runtimes_are_usage_errors(play: Any) -> None:
    """A name that is no runtime is reported with the choice there is."""
    ended = play((QUICK,), "--kc-runtime=docker")

    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    assert "no runtime is named 'docker'; choose fake, containerd or unix:///PATH" in ended.stderr.str()
