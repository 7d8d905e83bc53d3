"""The example project: a toy kubelet with known deviations, their mends, and a contract of its own."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "toy_kubelet"
PAGE = (ROOT / "docs" / "toy-kubelet.md").read_text(encoding="utf-8")
ENTRY_POINTS = """
[kubelet_conformance.contracts]
toy = toy_rules.contracts
[kubelet_conformance.scenarios]
toy = toy_rules.scenarios
[kubelet_conformance.runtime_scenarios]
toy = toy_rules.runtime_scenarios
[kubelet_conformance.bugs]
toy = toy_rules.bugs
"""
LEFT = {"START-08", "START-10"}
"""What the mended toy breaks."""
SOMETIMES = {"SYNC-11"}
"""What it breaks by its timing."""
PROVED = "TOY-1  can be kept and broken\nTOY-2  can be kept and broken\n"
Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project, installed as far as its entry points go."""
    shutil.copytree(EXAMPLE, tmp_path / "toy", ignore=shutil.ignore_patterns("__pycache__"))
    folder = tmp_path / "toy" / "toy_kubelet-0.1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-kubelet\nVersion: 0.1\n")
    (folder / "entry_points.txt").write_text(ENTRY_POINTS)
    return tmp_path / "toy"


@pytest.fixture
def run(project: Path) -> Run:
    """Run a module of Python in the project."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", *arguments]
        return subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=300
        )

    return run


def judged(run: Run, project: Path, *arguments: str) -> tuple[int, dict[str, set[str]], str]:
    """The exit code of the project's tests, the contracts by their verdicts, and what was printed."""
    ended = run(
        "pytest",
        "-p",
        "no:asyncio",
        "-p",
        "no:cacheprovider",
        "--kc-format=json",
        "--kc-output=out.json",
        *arguments,
    )
    found: dict[str, set[str]] = {}
    contracts: list[dict[str, Any]] = json.loads((project / "out.json").read_text())["contracts"]
    for each in contracts:
        found.setdefault(each["verdict"], set()).add(each["id"])
    return ended.returncode, found, ended.stdout


@pytest.mark.slow
def test_every_break_is_explained(run: Run, project: Path) -> None:
    """The toy breaks what its deviations list, and the page explains each of them."""
    code, found, printed = judged(run, project)
    explained = set(re.findall(r"^### (\S+)$|\*\*([A-Z]+-\d+)\*\*", PAGE, re.MULTILINE))

    assert code == 0, printed
    assert {first or second for first, second in explained} - LEFT == found["known_deviation"] | SOMETIMES
    assert "broken" not in found


@pytest.mark.campaign
def test_mends_mend(run: Run, project: Path) -> None:
    """The page's changes, all applied, mend what they say."""
    file = project / "toy_kubelet.py"
    text = file.read_text(encoding="utf-8")
    for hunk in re.findall(r"^```diff\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        lines = hunk.splitlines(keepends=True)
        before, after = ("".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    file.write_text(text, encoding="utf-8")
    code, found, printed = judged(run, project, "--kc-baseline=/dev/null")

    assert (code, found["broken"] - SOMETIMES) == (1, LEFT), printed


def test_page_shows_the_files() -> None:
    """The page's target file and tests are those of the project."""
    for name, language in (("toy.toml", "toml"), ("tests/test_toy.py", "python")):
        assert f"```{language}\n{(EXAMPLE / name).read_text(encoding='utf-8')}```" in PAGE


def test_entry_points_are_those_of_the_project() -> None:
    """What the tests install is what the project's own file says."""
    text = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    named = re.findall(r'^toy = "(.*)"$', text, re.MULTILINE)

    assert named == re.findall(r"^toy = (.*)$", ENTRY_POINTS, re.MULTILINE)


@pytest.mark.campaign
def test_own_contract_is_told_apart(run: Run) -> None:
    """`list` and `explain` name the package of a contract; `run` plays its scenario and judges by it."""
    listed = run("kubelet_conformance", "list", "--area", "toy")
    explained = run("kubelet_conformance", "explain", "TOY-1")
    played = run("kubelet_conformance", "run", "TOY-1", "--format=json")
    report = json.loads(played.stdout)

    assert "log shipper finds it. (toy-kubelet 0.1)" in listed.stdout, listed.stderr
    assert "operations handbook, 3.1; toy-kubelet 0.1" in explained.stdout, explained.stderr
    assert "toy.logs.pod_writes_logs" in explained.stdout
    assert "TOY-BUG-1" in explained.stdout
    assert [each["name"] for each in report["scenarios"]] == ["toy.logs.pod_writes_logs"]
    assert [(each["id"], each["verdict"]) for each in report["contracts"]] == [("TOY-1", "kept")]


@pytest.mark.campaign
def test_own_runtime_scenario_is_played(run: Run) -> None:
    """`runtime` plays it beside those of the suite, and the report names it with its entry point."""
    played = run("kubelet_conformance", "runtime", "fake", "CRI-05", "TOY-2", "--format=json")
    report = json.loads(played.stdout)

    assert "toy.sandbox_is_stopped_three_times" in [each["name"] for each in report["scenarios"]]
    assert [(each["id"], each["verdict"]) for each in report["contracts"]] == [
        ("CRI-05", "kept"),
        ("TOY-2", "kept"),
    ]


@pytest.mark.campaign
def test_break_of_own_contract_fails(run: Run) -> None:
    """A contract of another package is in no list of a release, and its break fails a run all the same."""
    ended = run("kubelet_conformance", "run", "TOY-1", "--kubelet", "bug:TOY-BUG-1")

    assert ended.returncode == 1, ended.stdout
    assert "again: kubelet-conformance run TOY-1 --scenario toy.logs.pod_writes_logs" in ended.stdout


@pytest.mark.campaign
def test_contract_that_cannot_fail_is_refused(run: Run, project: Path) -> None:
    """`zoo --contract` proves a contract by its scenario and its bug; one that holds always is refused."""
    proved = run("kubelet_conformance", "zoo", "--contract", "TOY-*")
    file = project / "toy_rules" / "contracts.py"
    file.write_text(file.read_text().replace('if not folder.endswith(f"_{pod.uid}")', "if not folder"))
    refused = run("kubelet_conformance", "zoo", "--contract", "TOY-1")
    (project / "toy_rules" / "bugs.py").write_text("")
    lacking = run("kubelet_conformance", "zoo", "--contract", "TOY-1")

    assert (proved.returncode, proved.stdout) == (0, PROVED), proved.stderr
    assert (refused.returncode, lacking.returncode) == (1, 1)
    assert "TOY-BUG-1 does not break it: its judge may be unable to" in refused.stdout
    assert "no bug breaks it, perhaps nothing can" in lacking.stdout


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"TOY-1"', '"SANDBOX-99"', "is of the catalogue; choose an area of your own, such as ACME"),
        ('"TOY-1"', '"TOY"', "expected an id such as ACME-01"),
        (' level="MUST",', "", 'TOY-1 has no level: write @contract("TOY-1", ..., level="MUST")'),
        ("contract import", "contracts import", "toy_rules/contracts.py:5: cannot be imported: ImportError"),
    ],
)
def test_mistakes_of_other_packages_are_named(
    run: Run, project: Path, before: str, after: str, message: str
) -> None:
    """A package whose contracts cannot be used is named, with what to write."""
    file = project / "toy_rules" / "contracts.py"
    file.write_text(file.read_text().replace(before, after, 1))
    ended = run("kubelet_conformance", "list")

    assert ended.returncode != 0
    assert message in ended.stderr
