"""The README's first screen is enough to run the main job and the tests."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from kubelet_conformance.contracts import every_contract
from kubelet_conformance.scenarios import every_scenario

ROOT = Path(__file__).resolve().parent.parent
FIRST_SCREEN = 40

MAIN_JOB = "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/kubelet-conformance run"
TESTS = "python3 -m venv .venv && .venv/bin/pip install -q tox && .venv/bin/tox p -o"


def run_ci(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the CI script of a tree as a build machine does: from elsewhere, with nothing on stdin."""
    return subprocess.run(
        [root / ".ci" / "run"],
        cwd=root.parent,
        env=os.environ | {"CI": "true"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A tree with our CI script and a README whose commands only speak."""
    root = tmp_path / "tree"
    (root / ".ci").mkdir(parents=True)
    script = root / ".ci" / "run"
    script.write_bytes((ROOT / ".ci" / "run").read_bytes())
    script.chmod(0o755)
    write_readme(root, "pwd && exit 7")
    for path, text in {
        ".ci/install-debian-packages": "echo packages",
        ".venv/bin/tox": "echo $@; exit 5",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"#!/bin/sh\n{text}\n")
        (root / path).chmod(0o755)
    return root


def write_readme(root: Path, second: str) -> None:
    """A README whose second command is this."""
    (root / "README.md").write_text(f"# T\n\n```sh\necho first\n```\n\n```sh\n{second}\n```\n")


def test_counts_are_those_of_the_suite() -> None:
    """How many scenarios and contracts there are is said as it is, and so is how many traces a run has."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    scenarios = len(every_scenario())

    assert f"{scenarios} scenarios of the pod lifecycle, judged by {len(every_contract())} contracts" in text
    assert f"0 error in {scenarios} traces\n" in text


def test_first_screen_shows_two_commands() -> None:
    """The first 40 lines hold two commands of one line each: the main job, then the tests."""
    screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:FIRST_SCREEN]

    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", "\n".join(screen), re.MULTILINE | re.DOTALL)

    assert blocks[:2] == [("sh", MAIN_JOB + "\n"), ("sh", TESTS + "\n")]
    assert [language for language, _ in blocks[2:]] == ["text"]


def test_ci_runs_the_second_command(copy: Path) -> None:
    """CI runs what the README shows, at the root of the tree, and ends with its exit code where it fails."""
    done = run_ci(copy)

    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines() == ["+ pwd && exit 7", str(copy)]


def test_ci_runs_containerd_afterwards(copy: Path) -> None:
    """Where that goes well, CI installs packages and runs the other environments with the same tox."""
    write_readme(copy, "pwd")

    done = run_ci(copy)

    assert done.returncode == 5, done.stderr
    others = "-e pyright,campaigns,containerd,page"
    shown = ["+ pwd", str(copy), "packages", f"+ .venv/bin/tox {others}", others]
    assert done.stdout.splitlines() == shown


def test_ci_needs_the_second_command(copy: Path) -> None:
    """A README that lost its second command fails, and the message says so."""
    (copy / "README.md").write_text("# T\n\n```sh\necho first\n```\n")

    done = run_ci(copy)

    assert done.returncode == 2
    assert "no second block" in done.stderr
