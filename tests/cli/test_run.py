"""`run`: scenarios are played and judged, and every end has its documented exit code."""

import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from command import Ended, in_process, in_subprocess
from jsonschema import Draft202012Validator
from playing_run import BUG, BUGGY, KEPT, Runs, runs_of

from kubelet_conformance.cli import pytest_process

VALIDATOR: Any = Draft202012Validator(
    json.loads(
        resources.files("kubelet_conformance.run_record").joinpath("run.schema.json").read_text("utf-8")
    )
)
AGAIN = f"kubelet-conformance run PROBE-10 --scenario probes.failing_readiness_never_kills --kubelet={BUG}"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    """The command, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return runs_of(capsys, monkeypatch)


def report(ended: Ended) -> dict[str, Any]:
    """The JSON report on standard output, held against its schema."""
    found: dict[str, Any] = json.loads(ended.out)
    VALIDATOR.validate(found)
    return found


def test_kept_is_zero(run: Runs) -> None:
    """What is kept ends with 0; the report counts scenarios and contracts, and nothing else is written."""
    ended = run(*KEPT)

    assert (ended.code, ended.err) == (0, "")
    assert re.match(
        r"Played 1 scenario on kubelet reference \(Kubernetes 1\.32\) and runtime fake: \d+ records "
        r"judged by 1 contract\.\n",
        ended.out,
    )
    assert ended.out.endswith(
        "OK: 1 kept, 0 broken, 0 known deviation, 0 not exercised, 0 not applicable, 0 error in 1 trace\n"
    )
    assert list(Path.cwd().iterdir()) == []


def test_broken_is_one(run: Runs) -> None:
    """A broken MUST ends with 1, and shows rule, scenario, slice, and the command that plays it again."""
    ended = run(*BUGGY)

    assert (ended.code, ended.err) == (1, "")
    assert "BROKEN  PROBE-10  MUST\n\n    in scenario probes.failing_readiness_never_kills\n" in ended.out
    assert "      clause: no-kill: The container is not stopped for that result.\n" in ended.out
    assert "    rule: A readiness probe that fails never gets its container killed.\n" in ended.out
    assert re.search(r"\+0\.000 s +#\d+ ExecSync c1#0 .* `x 1 0`, .*-> exit code 1", ended.out)
    assert re.search(r"s +#\d+ StopContainer c1#0 .* of default/web, timeout 30 s", ended.out)
    assert f"    again: {AGAIN}\n" in ended.out
    assert run(*AGAIN.split()[2:]).out == ended.out


def test_ids_choose_their_witnesses(run: Runs) -> None:
    """An id, in small letters too, or a glob plays the scenarios that declare it, and judges it alone."""
    found = report(run("sandbox-1[0]", "start-14", "--format", "json"))
    played = {each["name"] for each in found["scenarios"]}

    assert [each["id"] for each in found["contracts"]] == ["SANDBOX-10", "START-14"]
    assert [each["verdict"] for each in found["contracts"]] == ["kept", "kept"]
    assert played
    assert "probes.failing_readiness_never_kills" not in played


def test_scenario_is_judged_by_everything(run: Runs) -> None:
    """A scenario that is named is played alone, and judged by all contracts if none is named."""
    found = report(run("--scenario", "sandbox.killed_sandbox_is_*", "--format", "json"))

    assert [each["name"] for each in found["scenarios"]] == ["sandbox.killed_sandbox_is_replaced"]
    assert len(found["contracts"]) > 200


BAD: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown id": (("NOPE-1",), "there is no contract NOPE-1"),
    "scenario for an id": (("probes.nothing_is_probed",), "scenarios are for --scenario"),
    "area": (("sandbox",), "there is no contract sandbox; did you mean 'SANDBOX-*'?"),
    "id without a judge": (("GATE-01",), "GATE-01"),
    "no such level": (("SANDBOX-02", "--level", "may"), "none of SANDBOX-02 is a MAY; leave out level"),
    "unknown scenario": (
        ("--scenario", "nope.nope"),
        "there is no scenario nope.nope; `kubelet-conformance list --scenarios` shows them all",
    ),
    "kubelet": (
        ("--kubelet", "crio"),
        "no kubelet is named 'crio'; choose reference, reference-process, the PATH of a kubelet, FILE.toml",
    ),
    "glob that nothing fits": (("--scenario", "sandbx*"), "no scenario sandbx*; nearest: sandbox.*; "),
    "mistyped kubelet": (("--kubelet", "refrence"), "no kubelet is named 'refrence'; nearest: reference, "),
    "mistyped runtime": (("--runtime", "containrd"), "no runtime is named 'containrd'; nearest: containerd"),
    "mistyped form": (("--report", "htm=x"), "; nearest: html"),
    "mistyped baseline": (("--baseline", "kuberntes-1.36"), "did you mean kubernetes-1.36?"),
    "part of a campaign": (("--sample", "3"), "--sample is part of --sweep: give that too"),
    "bug": (("--kubelet", "bug:nope"), "no bug is named 'nope'"),
    "another kubelet without a version": (("--then-kubelet", "reference"), "write reference@1.36"),
    "another kubelet in a process": (("--then-kubelet", "reference-process@1.36"), "or both in this one"),
    "runtime": (("--runtime", "docker"), "no runtime is named 'docker'; choose fake"),
    "version": (("--kubernetes", "9.99"), "Kubernetes 9.99 is not known; this suite knows 1.24 to 1.36"),
    "no version": (("--kubernetes", "new"), "'new' is no Kubernetes version; write it like 1.32"),
    "baseline": (("--baseline", "nope.toml"), "nope.toml: cannot be read"),
    "record": (("--record", "/dev/null/x"), "/dev/null/x: cannot hold a record"),
    "output": (("--output", "nope/report.txt"), "nope/report.txt: its folder does not exist"),
    "format": (("--format", "pdf"), "'pdf' is not one of"),
    "option": (("--nope",), "No such option"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_wrong_usage_is_two(run: Runs, arguments: tuple[str, ...], message: str) -> None:
    """What cannot be chosen ends with 2 and one message, before anything is played."""
    ended = run(*arguments)

    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert list(Path.cwd().iterdir()) == []


def test_nothing_exercised_is_three(run: Runs) -> None:
    """A run in which no precondition came true is inconclusive."""
    ended = run("CRI-25", *KEPT[1:])

    assert ended.code == 3
    assert "INCONCLUSIVE: 0 kept" in ended.out


def test_no_witness_is_three(run: Runs) -> None:
    """An id that no scenario puts to the test is inconclusive, and the message says so."""
    ended = run("CRI-25")

    assert (ended.code, ended.out) == (3, "")
    assert ended.err == "error: no scenario puts CRI-25 to the test as Kubernetes 1.32\n"


def test_not_exercised_fails_on_request(run: Runs) -> None:
    """--require-exercised makes what was not put to the test fail."""
    arguments = ("SANDBOX-02", "SIDECAR-02", *KEPT[1:])

    assert run(*arguments).code == 0
    assert run(*arguments, "--require-exercised").code == 1


@pytest.mark.slow
@pytest.mark.parametrize("debug", [False, True])
def test_mistake_of_our_own_is_four(*, debug: bool) -> None:
    """An internal error ends with 4, and shows a traceback only on request."""
    program = (
        "import sys, kubelet_conformance.contracts as contracts\n"
        "def wrong(): raise RuntimeError('boom')\n"
        "contracts.every_contract = wrong\n"
        "from kubelet_conformance.cli.pytest_process import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *(["--kc-debug"] if debug else [])],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stdout) == (4, "")
    assert (
        "error: internal error, RuntimeError: boom; this is a mistake in kubelet-conformance" in done.stderr
    )
    assert ("Traceback" in done.stderr) is debug


def test_module_that_cannot_be_imported_is_four(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Scenarios that cannot be loaded are a mistake of our own too."""
    path = tmp_path / "test_wrong.py"
    path.write_text("raise ValueError('wrong')\n")
    monkeypatch.chdir(tmp_path)
    code = pytest_process.main([str(path), "--kc-contract=SANDBOX-02"])
    err = capsys.readouterr().err

    assert code == 4
    assert "test_wrong.py:\nE   ValueError: wrong\n" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_interruption_is_130(tmp_path: Path) -> None:
    """Ctrl-C ends with 130, says so, reports what was played, and leaves no trace behind."""
    command = [sys.executable, "-m", "kubelet_conformance", "run"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    assert re.match(r"\d+ of \d+ scenarios played, now \w+\.\w+\n", first)
    assert process.returncode == 130
    assert out.splitlines()[-1].startswith("INCOMPLETE, interrupted: ")
    assert err.endswith("error: interrupted\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_process_is_the_projects_own(tmp_path: Path) -> None:
    """The user's pytest settings, conftest and modules change nothing, and nothing else is printed."""
    (tmp_path / "conftest.py").write_text("raise SystemExit('the conftest was read')\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --bogus\n")
    (tmp_path / "yaml.py").write_text("raise SystemExit('the wrong module was read')\n")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kubelet_conformance", "run", *KEPT, "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTEST_ADDOPTS": "--bogus", "PYTEST_PLUGINS": "bogus"},
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert report(Ended(0, done.stdout, ""))["totals"]["kept"] == 1


def test_json_is_the_published_form(run: Runs) -> None:
    """The JSON report fits its schema and tells the target, the scenarios and the command."""
    ended = run(*BUGGY, "--format", "json", "--seed", "7")
    found = report(ended)
    [scenario] = found["scenarios"]
    target = {key: value for key, value in found["target"].items() if value}

    assert (ended.code, found["exit_code"], found["schema"]) == (1, 1, 3)
    assert target == {"kubelet": BUG, "runtime": "fake", "kubernetes": "1.32", "seed": 7}
    assert (scenario["name"], scenario["broken"]) == ("probes.failing_readiness_never_kills", ["PROBE-10"])
    assert (scenario["unmet"], scenario["failed"]) == ("", "")
    assert shlex.join(found["command"]) == (
        "kubelet-conformance run PROBE-10 --scenario=probes.failing_readiness_never_kills "
        f"--kubelet={BUG} --seed=7"
    )


def test_junit_is_clean(run: Runs, tmp_path: Path) -> None:
    """JUnit on standard output or in a file is the same XML, in which each contract is a test case."""
    printed = run(*BUGGY, "--format", "junit", "--report", f"junit={tmp_path / 'report.xml'}")
    written = run(*BUGGY, "--format", "junit", "--output", tmp_path / "other.xml")
    suites = ET.fromstring(printed.out)  # noqa: S314 - written by the command under test
    [case] = suites.findall("testsuite[@name='PROBE']/testcase")

    assert (printed.code, written.code, written.out) == (1, 1, "")
    assert written.err.startswith("FAILED: 0 kept, 1 broken")
    assert (tmp_path / "report.xml").read_text() == printed.out
    assert float(suites.attrib.pop("time")) > 0
    assert suites.attrib.pop("timestamp").startswith("20")
    assert suites.attrib == {
        "name": "kubelet-conformance",
        "tests": "1",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
    }
    assert case.get("name") == "PROBE-10"
    assert AGAIN in (case.findtext("failure") or "")


def test_markdown_is_clean(run: Runs) -> None:
    """The Markdown report has a table of areas, and the slice and command of what is broken."""
    ended = run(*BUGGY, "--format", "markdown")

    assert ended.code == 1
    assert ended.out.startswith("# kubelet-conformance: failed\n\nPlayed 1 scenario on ")
    assert "\n| PROBE |  | 1 |  |  |  |  |\n" in ended.out
    assert f"\nAgain: `{AGAIN}`\n" in ended.out
    assert ended.out.count("```") % 2 == 0


def proved(found: dict[str, Any]) -> list[Any]:
    """What is broken, and by which records."""
    return [
        [(each["verdict"], proof["seq"], proof["text"]) for proof in each["evidence"]]
        for each in found["contracts"]
    ]


def test_record_can_be_checked(run: Runs, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """--record keeps run.json and the traces, which `check` judges alike; an older record is replaced."""
    run("--scenario", "sandbox.*sandbox_is_replaced", "SANDBOX-02", "--record", "kept")
    ended = run(*BUGGY, "--record", "kept")
    found = json.loads((tmp_path / "kept" / "run.json").read_text())
    VALIDATOR.validate(found)
    checked = in_process(capsys, "check", "kept", "--contract", "PROBE-10", "--format", "json")

    assert [each.name for each in (tmp_path / "kept" / "traces").iterdir()] == [
        "probes.failing_readiness_never_kills.jsonl"
    ]
    assert "in kept/traces/" not in ended.out
    assert "in scenario probes.failing_readiness_never_kills, kept/traces/probes." in ended.out
    assert checked.code == 1
    assert proved(json.loads(checked.out)) == proved(found)


def test_record_tells_the_whole_command(run: Runs, tmp_path: Path) -> None:
    """The command in run.json has every option that decides how the run ends."""
    (tmp_path / "known.toml").write_text("")
    run(*KEPT, "--level", "must", "--strict", "--baseline", "known.toml", "--record", "kept")
    found = json.loads((tmp_path / "kept" / "run.json").read_text())

    assert shlex.join(found["command"]) == (
        "kubelet-conformance run SANDBOX-02 --scenario=sandbox.killed_sandbox_is_replaced --strict "
        "--level=must --baseline=known.toml"
    )


def test_record_that_cannot_be_written_is_two(run: Runs, tmp_path: Path) -> None:
    """A record that cannot be written is refused before anything is played."""
    (tmp_path / "kept" / "run.json").mkdir(parents=True)
    ended = run(*KEPT, "--record", "kept")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: kept: cannot hold a record: ")


def test_full_disk_ends_the_run_with_two(run: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A trace that cannot be written ends the run at once: one message with its path, and no report."""

    def full(path: Path, data: bytes) -> int:
        path.write_text(repr(data[:9]))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    ended = run("EPH-*", "--record", "kept")

    assert (ended.code, ended.out) == (2, "")
    assert re.fullmatch(
        r"error: kept/traces/\S+\.jsonl: cannot be written: No space left on device; "
        r"`kubelet-conformance report kept` shows what is over\n",
        ended.err,
    )
    assert list((tmp_path / "kept" / "traces").iterdir()) == []
    assert json.loads((tmp_path / "kept" / "run.json").read_text())["ended"] == "unfinished"


@pytest.mark.parametrize(
    ("entry", "code", "word"),
    [
        ('id = "PROBE-10"\nclause = "no-kill"', 0, "known deviations (1)"),
        ('id = "PROBE-10"\nclause = "no-kill"\nscenario = "another.one"', 1, "BROKEN  PROBE-10"),
    ],
)
def test_baseline_knows_deviations(run: Runs, tmp_path: Path, entry: str, code: int, word: str) -> None:
    """A break that the baseline names is known; one in another scenario is not."""
    (tmp_path / "known.toml").write_text(f'[[deviation]]\n{entry}\nreason = "mended soon"\n')
    ended = run(*BUGGY, "--baseline", "known.toml")

    assert ended.code == code
    assert word in ended.out


def test_stale_baseline_is_one(run: Runs, tmp_path: Path) -> None:
    """An entry that was exercised and kept fails the run, in every form of the report."""
    (tmp_path / "known.toml").write_text(
        f'[[deviation]]\nid = "SANDBOX-02"\nclause = "main"\nscenario = "{KEPT[2]}"\nreason = "once"\n'
    )
    reported = {
        form: run(*KEPT, "--baseline", "known.toml", "--format", form)
        for form in ("terminal", "json", "junit", "markdown")
    }

    assert [each.code for each in reported.values()] == [1, 1, 1, 1]
    assert "stale in the baseline" in reported["terminal"].out
    assert report(reported["json"])["baseline"]["stale"][0]["id"] == "SANDBOX-02"
    assert 'failures="1"' in reported["junit"].out
    assert "## Stale in the baseline" in reported["markdown"].out


def test_level_chooses_contracts(run: Runs) -> None:
    """--level judges the contracts of that level alone."""
    found = report(run("--level", "should", *KEPT[1:], "--format", "json"))

    assert {each["level"] for each in found["contracts"]} == {"SHOULD"}


def test_options_reach_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every option is handed over under the plugin's name; flags and options that are not given are not."""
    given: list[list[str]] = []

    def execv(_: str, arguments: list[str]) -> None:
        given.append(arguments)

    monkeypatch.setattr(os, "execv", execv)
    in_process(capsys, "run", "A-1", "B-*", "--seed", "3", "--strict", "--debug", "--scenario", "a.b")
    [arguments] = given

    assert arguments[1:4] == ["-P", "-m", "kubelet_conformance.cli.pytest_process"]
    assert sorted(arguments[4:]) == [
        "--kc-contract=A-1",
        "--kc-contract=B-*",
        "--kc-debug",
        "--kc-format=terminal",
        "--kc-kubelet=reference",
        "--kc-runtime=fake",
        "--kc-scenario=a.b",
        "--kc-seed=3",
        "--kc-strict",
    ]


def trace_of(run: Runs, folder: str, *arguments: str) -> bytes:
    """The trace of the one scenario that is played."""
    run(*KEPT, "--record", folder, *arguments)
    [trace] = Path(folder, "traces").iterdir()
    return trace.read_bytes()


def test_same_seed_is_the_same_trace(run: Runs) -> None:
    """A seed gives the same trace byte by byte, and another one a trace that tells its own seed."""
    first, second, other = (
        trace_of(run, name, "--seed", seed) for name, seed in (("a", "1"), ("b", "1"), ("c", "2"))
    )

    assert first == second
    assert b'"seed":2' in other.splitlines()[0]


def test_old_version_is_played(run: Runs) -> None:
    """--kubernetes chooses the behaviour, and what is judged."""
    found = report(run(*KEPT, "--kubernetes", "1.26", "--format", "json"))

    assert found["target"]["kubernetes"] == "1.26"
    assert found["contracts"][0]["versions"] == {"1.26": "kept"}


@pytest.mark.slow
def test_report_that_cannot_be_written_is_printed() -> None:
    """A report whose file cannot be written goes to standard output, and the exit code is 2."""
    ended = in_subprocess("run", *KEPT, "--output", "/dev/full")

    assert ended.code == 2
    assert "OK: 1 kept" in ended.out
    assert "/dev/full: cannot be written" in ended.err
