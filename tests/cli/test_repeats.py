"""`run --repeat` compares several runs, and says what does not come out alike."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kubelet_conformance.cli.repeats import play_repeatedly

#: What stands in for a run: it writes the report of its number where that is asked for.
PLAYED = """
import pathlib, sys
output, reports = map(pathlib.Path, sys.argv[1:])
report = reports / output.name
if report.exists():
    output.write_text(report.read_text())
sys.exit(2)
"""


def written(folder: Path, number: int, verdict: str, code: int, **scenario: Any) -> None:
    """The report of one run: of one contract that is always broken, and of one with this verdict."""
    ended: dict[str, Any] = {"name": "plain", "failed": "", "died": "", "broken": [], "unmet": "", **scenario}
    report = {
        "contracts": [{"id": "TERM-01", "verdict": "broken"}, {"id": "TERM-02", "verdict": verdict}],
        "scenarios": [ended],
        "totals": {"kept": int(verdict == "kept")},
        "command": "run",
        "exit_code": code,
    }
    (folder / f"{number}.json").write_text(json.dumps(report))


def repeated(folder: Path, form: str) -> int:
    """The exit code of two runs whose reports are in the folder."""

    def command(options: Mapping[str, object]) -> list[str]:
        return [sys.executable, "-c", PLAYED, str(options["output"]), str(folder)]

    return play_repeatedly(command, {"repeat": 2, "record": None, "format": form, "output": None})


def test_what_differs_is_unstable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Contracts and scenarios are named with what came of each run; the gravest exit code counts."""
    written(tmp_path, 1, "kept", 3, unmet="timed out")
    written(tmp_path, 2, "not_exercised", 1, broken=["TERM-01"])
    codes = [repeated(tmp_path, form) for form in ("terminal", "json")]
    text, _, report = capsys.readouterr().out.partition("{")

    assert codes == [1, 1]
    assert "unstable contracts (1)\n    TERM-02: kept, not exercised\n" in text
    assert "unstable scenarios (1)\n    plain: timed out or failed, broke TERM-01\n" in text
    assert json.loads(f"{{{report}")["unstable"]["contracts"] == {"TERM-02": ["kept", "not_exercised"]}


def test_run_without_a_report_ends_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that cannot be made ends with its own exit code, and nothing is compared."""
    written(tmp_path, 1, "kept", 0)

    assert repeated(tmp_path, "terminal") == 2
    assert not capsys.readouterr().out
