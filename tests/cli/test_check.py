"""`check`: what it judges, and the exit code it ends with."""

import json
from pathlib import Path
from typing import Any

import pytest
from command import Ended, in_process
from lines import end, record, trace
from trace_builder import TraceBuilder

from kubelet_conformance.contract.baseline import clause_names
from kubelet_conformance.contract.definition import Findings, contract
from kubelet_conformance.contract.definition import broken as broken_here
from kubelet_conformance.contract.patterns import call
from kubelet_conformance.contracts import every_contract
from kubelet_conformance.trace.world.moment import Moment


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A trace that keeps SANDBOX-01 and breaks nothing of SANDBOX-04."""
    s = TraceBuilder(scenario="first")
    s.run_sandbox(s.pod())
    path = tmp_path / "kept.jsonl"
    path.write_bytes(s.text())
    return path


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A trace that breaks SANDBOX-04: a second sandbox is run while the first stands."""
    s = TraceBuilder(scenario="second")
    web = s.pod()
    s.run_sandbox(web)
    s.wait(1).run_sandbox(web, attempt=1)
    path = tmp_path / "broken.jsonl"
    path.write_bytes(s.text())
    return path


def report(ended: Ended) -> dict[str, Any]:
    """The JSON report."""
    found: dict[str, Any] = json.loads(ended.out)
    return found


def entries(contract_id: str, reason: str) -> str:
    """A baseline that names every clause of a contract."""
    names = clause_names(every_contract()[contract_id])
    head = f'[[deviation]]\nid = "{contract_id}"\nreason = "{reason}"\n'
    return "".join(f'{head}clause = "{name}"\n' for name in names)


def test_all_kept_is_zero(capsys: pytest.CaptureFixture[str], kept: Path) -> None:
    """A run in which something was put to the test and nothing broke ends with 0."""
    ended = in_process(capsys, "check", kept, "--contract", "SANDBOX-01")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[-1].startswith("OK: 1 kept, 0 broken")


def test_something_broken_is_one(capsys: pytest.CaptureFixture[str], broken: Path) -> None:
    """A broken MUST ends with 1, by whatever case its id is given."""
    ended = in_process(capsys, "check", broken, "--contract", "sandbox-04")

    assert ended.code == 1
    assert "BROKEN  SANDBOX-04  MUST" in ended.out


def test_nothing_exercised_is_three(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A trace that puts nothing to the test is inconclusive, and with --require-exercised it fails."""
    path = tmp_path / "idle.jsonl"
    path.write_bytes(trace(end(1)))

    assert in_process(capsys, "check", path).code == 3
    assert in_process(capsys, "check", path, "--require-exercised").code == 1


def test_require_exercised_fails_on_what_was_not(capsys: pytest.CaptureFixture[str], kept: Path) -> None:
    """One contract that was not put to the test fails the run on request only."""
    chosen = ("--contract", "SANDBOX-01", "--contract", "SANDBOX-10")

    assert in_process(capsys, "check", kept, *chosen).code == 0
    assert in_process(capsys, "check", kept, *chosen, "--require-exercised").code == 1
    assert in_process(capsys, "check", kept, "--contract", "SANDBOX-01", "--require-exercised").code == 0


def test_wait_in_vain_is_inconclusive(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A scenario's wait that nothing explains ends with 3, and the report names it."""
    s = TraceBuilder()
    s.run_sandbox(s.pod())
    s.record("expect", contract="SANDBOX-01", awaited="another sandbox", met=False)
    path = tmp_path / "t.jsonl"
    path.write_bytes(s.text())
    ended = in_process(capsys, "check", path, "--contract", "SANDBOX-01")

    assert ended.code == 3
    assert "another sandbox (SANDBOX-01)" in ended.out


def test_several_traces_are_judged_together(
    capsys: pytest.CaptureFixture[str], kept: Path, broken: Path
) -> None:
    """A contract takes the gravest verdict of all traces, and JSON names each trace."""
    ended = in_process(capsys, "check", kept.parent, "--contract", "SANDBOX-0[14]", "--format", "json")
    found = report(ended)

    assert ended.code == 1
    assert [each["path"] for each in found["traces"]] == [str(broken), str(kept)]
    assert {each["id"]: each["verdict"] for each in found["contracts"]} == {
        "SANDBOX-01": "kept",
        "SANDBOX-04": "broken",
    }


@pytest.mark.parametrize("left_of_end", [0, 20], ids=["between lines", "in a line"])
def test_truncated_trace_is_judged_up_to_the_cut(
    capsys: pytest.CaptureFixture[str], broken: Path, left_of_end: int
) -> None:
    """On request; the report names its last whole line, and what shows a break again has the option too."""
    *whole, end = broken.read_bytes().splitlines(keepends=True)
    judged = len(whole)
    broken.write_bytes(b"".join(whole) + end[:left_of_end])
    refused = in_process(capsys, "check", broken)
    ended = in_process(capsys, "check", broken, "--allow-truncated")
    found = report(in_process(capsys, "check", broken, "--allow-truncated", "--format", "json"))

    assert (refused.code, "--allow-truncated" in refused.err) == (2, True)
    assert (ended.code, f"is truncated: judged up to line {judged}." in ended.out) == (1, True)
    assert "--contract SANDBOX-04 --allow-truncated" in ended.out
    assert found["traces"][0]["truncated_after_line"] == judged


def test_trace_given_twice_is_judged_once(capsys: pytest.CaptureFixture[str], kept: Path) -> None:
    """The same file by its path, its folder and a link is one trace."""
    (kept.parent / "link.jsonl").symlink_to(kept)
    ended = in_process(
        capsys, "check", kept, kept, kept.parent, kept.parent / "link.jsonl", "--format", "json"
    )

    assert [each["path"] for each in report(ended)["traces"]] == [str(kept)]


def test_version_of_the_header_can_be_replaced(capsys: pytest.CaptureFixture[str], kept: Path) -> None:
    """--kubernetes judges by another version; both reports say so."""
    terminal = in_process(capsys, "check", kept, "--kubernetes", "v1.26.3")
    machine = report(in_process(capsys, "check", kept, "--kubernetes", "1.26", "--format", "json"))

    assert "1 trace judged by --kubernetes 1.26, although the header says 1.32." in terminal.out
    assert machine["traces"][0]["kubernetes"] == "1.26"
    assert machine["traces"][0]["kubernetes_in_header"] == "1.32"


def test_baseline_turns_a_break_into_a_known_deviation(
    capsys: pytest.CaptureFixture[str], broken: Path, tmp_path: Path
) -> None:
    """A known break does not fail the run; its reason is in the report."""
    known = tmp_path / "known.toml"
    known.write_text(entries("SANDBOX-04", "Mended in the next release."))
    ended = in_process(capsys, "check", broken, "--contract", "SANDBOX-04", "--baseline", known)

    assert ended.code == 0
    assert "SANDBOX-04  Mended in the next release." in ended.out


def test_stale_baseline_fails(capsys: pytest.CaptureFixture[str], kept: Path, tmp_path: Path) -> None:
    """An entry that was exercised and never broken fails the run, and is named with its line."""
    known = tmp_path / "known.toml"
    known.write_text(entries("SANDBOX-01", "r"))
    terminal = in_process(capsys, "check", kept, "--contract", "SANDBOX-01", "--baseline", known)
    machine = in_process(
        capsys, "check", kept, "--contract", "SANDBOX-01", "--baseline", known, "--format", "json"
    )

    assert (terminal.code, machine.code) == (1, 1)
    assert f"{known}:1: SANDBOX-01" in terminal.out
    assert {each["id"] for each in report(machine)["baseline"]["stale"]} == {"SANDBOX-01"}


@contract("CRI-04", on=call("RunPodSandbox"))
def nobody_runs_a_sandbox(_: Moment) -> Findings:
    """Nobody runs a sandbox."""
    return broken_here("a sandbox was run")


@contract("SANDBOX-01", on=call("RunPodSandbox"))
def judge_that_fails(_: Moment) -> Findings:
    """A judge has a mistake in it."""
    raise LookupError("what no judge expects")


def test_broken_should_fails_only_when_strict(
    capsys: pytest.CaptureFixture[str], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken SHOULD is reported and fails on --strict alone."""
    monkeypatch.setattr(
        "kubelet_conformance.cli.commands.check.every_contract", lambda: {"CRI-04": nobody_runs_a_sandbox}
    )
    lenient = in_process(capsys, "check", kept)
    strict = in_process(capsys, "check", kept, "--strict")

    assert (lenient.code, strict.code) == (0, 1)
    assert "BROKEN  CRI-04  SHOULD  (fails only with --strict)" in lenient.out


def test_judge_that_fails_is_an_internal_error(
    capsys: pytest.CaptureFixture[str], kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that raises makes its contract an error and the exit code 4; --debug shows where."""
    every = {each.id: each for each in (judge_that_fails, nobody_runs_a_sandbox)}
    monkeypatch.setattr("kubelet_conformance.cli.commands.check.every_contract", lambda: every)
    ended = in_process(capsys, "check", kept)
    machine = in_process(capsys, "check", kept, "--format", "json")
    debugged = in_process(capsys, "check", kept, "--debug")

    assert (ended.code, machine.code) == (4, 4)
    assert {each["id"]: each["verdict"] for each in report(machine)["contracts"]} == {
        "SANDBOX-01": "error",
        "CRI-04": "broken",
    }
    assert "LookupError: what no judge expects" in ended.out
    assert "test_check.py" not in ended.out
    assert "test_check.py" in debugged.out


def test_progress_is_reported_in_a_log(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long judging says now and then on standard error how far it has come; the report stays clean."""
    monkeypatch.setattr("kubelet_conformance.reports.progress.LOGGED_RECORDS", 4)
    monkeypatch.setattr("kubelet_conformance.contract.checking.PROGRESS_RECORDS", 2)
    path = tmp_path / "t.jsonl"
    path.write_bytes(trace(*(record(n, "fault", what="x") for n in range(1, 9)), end(9)))
    ended = in_process(capsys, "check", path, "--format", "json")

    assert "(1 of 1), 4 records so far" in ended.err
    assert report(ended)["traces"][0]["records"] == 9
