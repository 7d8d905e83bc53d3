"""`check` says of a recorded trace what `run` said when it played it: verdicts, evidence and reasons."""

import json
from pathlib import Path
from typing import Any

import pytest
from playing_run import runs_of

from kubelet_conformance.cli import main

CASES = {
    "a bug of a kubelet": ("probes.failing_readiness_never_kills", "--kubelet", "bug:K8S-9649"),
    "a bug of a runtime": ("sandbox.killed_sandbox_is_replaced", "--runtime", "bug:CRIO-8030"),
    "a runtime that is made to lie": ("sync.sandbox_status_that_tells_nothing",),
    "a kubelet in a process": ("loop.name_servers_are_limited", "--kubelet", "reference-process"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_check_is_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: str
) -> None:
    """All that a verdict depends on stands in the trace."""
    scenario, *choice = CASES[case]
    record = tmp_path / "record"
    played = runs_of(capsys, monkeypatch)("--scenario", scenario, *choice, "--record", record)
    code = main(["check", str(record / "traces"), "--format", "json"])

    assert code == played.code
    assert found((record / "run.json").read_text()) == found(capsys.readouterr().out)


def found(report: str) -> list[Any]:
    """What a report says of each contract, traces named by their files."""
    contracts = json.loads(report)["contracts"]
    for each in contracts:
        each["evidence"] = [one | {"trace": Path(one["trace"]).name, "again": ""} for one in each["evidence"]]
    return list(contracts)
