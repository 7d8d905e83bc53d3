"""`runtime`: a container runtime is called and judged, and every end has its documented exit code."""

import json
import re
import signal
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from command import Ended, in_process
from jsonschema import Draft202012Validator

from kubelet_conformance.contract.baseline import Baseline
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.runtime_checks import baselines, running
from kubelet_conformance.targets.cri_endpoint import shipped_baseline

VALIDATOR: Any = Draft202012Validator(
    json.loads(
        resources.files("kubelet_conformance.run_record").joinpath("run.schema.json").read_text("utf-8")
    )
)
GUIDE = Path(__file__).resolve().parent.parent.parent / "docs" / "runtime.md"
BROKEN = ("bug:CTRD-13599", "CRI-11")


@pytest.fixture
def runtime(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Ended]:
    """The command, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: in_process(capsys, "runtime", *arguments)


def test_the_fake_keeps_all(runtime: Callable[..., Ended]) -> None:
    """All contracts are kept; the report names the runtime and where it was called."""
    ended = runtime("fake", "--require-exercised", "--strict")

    assert (ended.code, ended.err) == (0, "")
    assert "on runtime fake 1.0.0, called at fake:" in ended.out
    assert " 0 broken, 0 known deviation, 0 not exercised, 0 not applicable, 0 error in " in ended.out


def test_a_broken_contract_is_one(runtime: Callable[..., Ended]) -> None:
    """A break is shown with its calls and with the command that shows it again, and ends with 1."""
    ended = runtime(*BROKEN)

    assert ended.code == 1
    assert "BROKEN  CRI-11  MUST" in ended.out
    assert "a container was created in a stopped sandbox" in ended.out
    assert "again: kubelet-conformance runtime bug:CTRD-13599 CRI-11\n" in ended.out


def test_interrupt_reports_what_was_played(
    runtime: Callable[..., Ended], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C and SIGTERM end with 130; what was over by then is reported, and marked as incomplete."""
    play, left = running.run_one, [signal.SIGTERM, None, None]

    async def interrupted(*given: Any, **options: Any) -> running.CheckResult:
        number = left.pop()
        if number is not None:
            signal.raise_signal(number)
        return await play(*given, **options)

    monkeypatch.setattr(running, "run_one", interrupted)
    ended = runtime("fake", "--record", "kept")
    report = json.loads(Path("kept", "run.json").read_text(encoding="utf-8"))

    assert (ended.code, ended.err.strip()) == (130, "error: interrupted")
    assert ended.out.splitlines()[-1].startswith("INCOMPLETE, interrupted: ")
    assert (report["ended"], len(report["scenarios"])) == ("interrupted", 2)
    VALIDATOR.validate(report)


def test_globs_choose_contracts(runtime: Callable[..., Ended]) -> None:
    """Only the contracts that were asked for are judged, by their own scenarios."""
    ended = runtime("fake", "CRI-2[01]", "cri-05", "--format", "json")
    report = json.loads(ended.out)

    assert {each["id"] for each in report["contracts"]} == {"CRI-05", "CRI-20", "CRI-21"}
    assert 0 < len(report["scenarios"]) < 20


def test_json_fits_the_schema(runtime: Callable[..., Ended]) -> None:
    """The report for programs is that of a check, with the runtime as its target."""
    ended = runtime("fake", "CRI-01", "--format", "json")
    report = json.loads(ended.out)
    VALIDATOR.validate(report)
    target = {key: report["target"][key] for key in ("runtime", "address", "kubernetes")}

    assert target == {"runtime": "fake 1.0.0", "address": "fake", "kubernetes": "1.32"}
    assert report["target"]["kubelet"] == ""
    assert report["command"] == ["kubelet-conformance", "runtime", "fake", "CRI-01"]


def test_junit_has_a_case_for_each_contract(runtime: Callable[..., Ended], tmp_path: Path) -> None:
    """The report for CI is written to a file, and standard output stays empty."""
    file = tmp_path / "report.xml"
    ended = runtime(*BROKEN, "--format", "junit", "--output", file)
    suites = ET.fromstring(file.read_text())  # noqa: S314 - our own report
    failed = [case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None]

    assert (ended.code, ended.out, failed) == (1, "", ["CRI-11"])


def test_markdown_names_the_runtime(runtime: Callable[..., Ended]) -> None:
    """The report for a pull request says what was called."""
    ended = runtime("fake", "CRI-01", "--format", "markdown")

    assert "on runtime fake 1.0.0, called at fake; judged by 1 contract." in ended.out


def test_a_record_can_be_judged_again(
    runtime: Callable[..., Ended], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """--record keeps a trace of each scenario and run.json, and `check` comes to the same verdict."""
    runtime(*BROKEN, "--record", tmp_path / "record")
    again = in_process(capsys, "check", tmp_path / "record" / "traces", "--contract", "CRI-11")

    assert json.loads((tmp_path / "record" / "run.json").read_text())["exit_code"] == 1
    assert again.code == 1
    assert "BROKEN  CRI-11" in again.out


def test_a_second_record_replaces_the_first(runtime: Callable[..., Ended], tmp_path: Path) -> None:
    """Traces of an earlier run are not left among those of this one."""
    for contract in ("CRI-05", "CRI-01"):
        runtime("fake", contract, "--record", tmp_path / "record")
    traces = [each.name for each in (tmp_path / "record" / "traces").iterdir()]

    assert traces == ["it_says_who_it_is.jsonl"]


def test_a_baseline_knows_deviations(runtime: Callable[..., Ended], tmp_path: Path) -> None:
    """What a baseline names is known and ends with 0; where it is kept the entry is stale: 1."""
    known = tmp_path / "known.toml"
    known.write_text('[[deviation]]\nid = "CRI-11"\nclause = "main"\nreason = "containerd#13599"\n')
    ended = [runtime(target, "CRI-11", "--baseline", known) for target in ("bug:CTRD-13599", "fake")]

    assert [each.code for each in ended] == [0, 1]
    assert "known deviations (1)" in ended[0].out
    assert "stale in the baseline" in ended[1].out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nonsense",), "choose unix:///PATH, containerd, fake, fake-grpc, bug:ID"),
        (("unix:///nowhere/cri.sock",), "there is no such socket: start the runtime, or name its socket"),
        (("bug:CTRD-1359",), "did you mean"),
        (("bug:K8S-52641",), "is a bug of kubelets"),
        (("fake", "CRI-99"), "there is no contract CRI-99"),
        (("fake", "SANDBOX-03"), "binds no runtime"),
        (("fake", "CRI-41"), "binds no runtime"),
        (("fake", "--baseline", "none.toml"), "none.toml: cannot be read"),
        (("fake", "--output", "none/report"), "its folder does not exist"),
        (("fake", "--concurrency", "0"), "0 is not in the range"),
        ((), "Missing argument 'TARGET'"),
    ],
)
def test_bad_input_is_two(runtime: Callable[..., Ended], arguments: tuple[str, ...], said: str) -> None:
    """Each is one message with its remedy, without a traceback."""
    ended = runtime(*arguments)

    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_a_record_needs_a_folder(runtime: Callable[..., Ended], tmp_path: Path) -> None:
    """A file cannot hold a record."""
    (tmp_path / "file").touch()
    ended = runtime("fake", "CRI-01", "--record", tmp_path / "file")

    assert ended.code == 2
    assert "cannot hold a record" in ended.err


def test_the_guide_explains_every_option(runtime: Callable[..., Ended]) -> None:
    """Every option of the command is in the guide's table, and no other."""
    table = GUIDE.read_text(encoding="utf-8").partition("## Options")[2].partition("\n## ")[0]
    offered = re.findall(r"^  (--[a-z-]+)", runtime("--help").out, re.MULTILINE)

    assert set(re.findall(r"^\| `(--[a-z-]+)", table, re.MULTILINE)) == set(offered)


def test_the_guide_tells_the_deviations_that_come_along() -> None:
    """The table of containerd's deviations has a line for each entry of the baseline, in its order."""
    table = GUIDE.read_text(encoding="utf-8").partition("## Known deviations")[2].partition("\n## ")[0]
    shipped = shipped_baseline(baselines, "containerd", "1.6.20")
    known = Baseline.read(str(shipped), every_contract()).deviations

    assert re.findall(r"^\| (CRI-\d+) \|", table, re.MULTILINE) == [each.id for each in known]


def test_the_guides_scenario_is_one_of_ours() -> None:
    """The scenario that the guide shows stands in the package, word for word."""
    page = GUIDE.read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(@runtime_scenario.*?)^```$", page, re.MULTILINE | re.DOTALL)
    every = (
        resources.files("kubelet_conformance.runtime_checks.scenarios").joinpath("sandboxes.py").read_text()
    )

    assert [each in every for each in shown] == [True]
