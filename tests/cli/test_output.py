"""Where reports go: whole into a file or not at all, and quietly into a pipe that closes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import in_process, in_subprocess
from lines import HEADER, end, trace

from kubelet_conformance import contracts
from kubelet_conformance.reports.output import deliver

COMMAND = [sys.executable, "-m", "kubelet_conformance"]


@pytest.fixture
def idle(tmp_path: Path) -> Path:
    """A trace in which nothing happens."""
    path = tmp_path / "idle.jsonl"
    path.write_bytes(trace(end(1)))
    return path


def test_report_goes_into_a_file(capsys: pytest.CaptureFixture[str], idle: Path, tmp_path: Path) -> None:
    """--output writes the same report and prints nothing; nothing else is left beside it."""
    printed = in_process(capsys, "check", idle, "--format", "markdown")
    written = in_process(capsys, "check", idle, "--format", "markdown", "--output", tmp_path / "report.md")

    assert (written.code, written.out) == (3, "")
    assert (tmp_path / "report.md").read_text() == printed.out
    assert sorted(each.name for each in tmp_path.iterdir()) == ["idle.jsonl", "report.md"]


def test_older_report_is_replaced_with_its_mode(
    capsys: pytest.CaptureFixture[str], idle: Path, tmp_path: Path
) -> None:
    """A report that was there is replaced, through a link too, and keeps its permissions."""
    target = tmp_path / "target.txt"
    target.write_text("old")
    target.chmod(0o640)
    (tmp_path / "link.txt").symlink_to(target)
    in_process(capsys, "check", idle, "--output", tmp_path / "link.txt")

    assert target.read_text().startswith("Judged 1 trace")
    assert target.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.txt").is_symlink()


def test_report_for_a_bad_trace_is_written_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file that was asked for never keeps an older result, even where nothing could be judged."""
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b"")
    (tmp_path / "report.txt").write_text("OK: of yesterday")
    ended = in_process(capsys, "check", bad, "--output", tmp_path / "report.txt")

    assert ended.code == 2
    assert "BAD INPUT" in (tmp_path / "report.txt").read_text()


def test_input_is_not_overwritten(capsys: pytest.CaptureFixture[str], idle: Path, tmp_path: Path) -> None:
    """A trace or a baseline cannot be the output as well."""
    before = idle.read_bytes()
    known = tmp_path / "known.toml"
    known.write_text("")
    codes = [
        in_process(capsys, "check", tmp_path, "--output", idle).code,
        in_process(capsys, "check", idle, "--baseline", known, "--output", known).code,
    ]

    assert codes == [2, 2]
    assert idle.read_bytes() == before


def test_report_is_not_lost(
    capsys: pytest.CaptureFixture[str], idle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report that cannot be written is printed; the older file stays, and the exit code is 2."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    old = tmp_path / "report.txt"
    old.write_text("old")
    monkeypatch.setattr("os.fsync", fail)
    ended = in_process(capsys, "check", idle, "--output", old)

    assert ended.code == 2
    assert ended.out.startswith("Judged 1 trace")
    assert "No space left on device; the report went to standard output" in ended.err
    assert old.read_text() == "old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["idle.jsonl", "report.txt"]


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    """A device is written to and not replaced by a file."""
    null = tmp_path / "null"
    null.symlink_to(os.devnull)
    deliver("report", str(null))

    assert null.is_symlink()
    assert not os.path.isfile(os.devnull)  # noqa: PTH113 - os.devnull is a str


@pytest.mark.slow
def test_closed_pipe_is_quiet() -> None:
    """A reader that goes away early, such as head, leaves no message; the exit code is that of the run."""
    with subprocess.Popen(
        [*COMMAND, "list", "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.read(1)
        run.stdout.close()
        said = run.stderr.read()

    assert (run.wait(), said) == (0, b"")


@pytest.mark.slow
def test_full_disk_behind_standard_output_is_named() -> None:
    """What cannot be printed is an error, not a silent success."""
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        done = subprocess.run([*COMMAND, "list"], stdout=full, stderr=subprocess.PIPE, check=False)

    assert done.returncode == 2
    assert done.stderr == b"error: standard output: cannot be written: No space left on device\n"


@pytest.mark.slow
def test_poor_encoding_of_standard_output(tmp_path: Path) -> None:
    """A terminal that knows ASCII alone gets codes in place of what it cannot show."""
    odd = tmp_path / "été.jsonl"
    odd.write_bytes(b"")
    ended = in_subprocess("check", odd, "--format", "json", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    explained = in_subprocess("explain", "WORK-06", PYTHONIOENCODING="ascii", PYTHONUTF8="0")

    assert (ended.code, explained.code) == (2, 0)
    assert r"1.26\u22601.32" in explained.out
    found: dict[str, Any] = json.loads(ended.out)
    assert found["unreadable"][0]["path"] == str(odd)


@pytest.mark.slow
def test_interrupt_ends_with_130(tmp_path: Path) -> None:
    """Ctrl-C ends with 130 and one word, and no traceback."""
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    with (
        subprocess.Popen([*COMMAND, "check", pipe], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run,
        pipe.open("wb") as writer,
    ):
        writer.write(trace(header=HEADER))
        writer.flush()
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)

    assert (run.returncode, out, err.strip()) == (130, b"", b"error: interrupted")


def test_unexpected_fault_is_one_line(
    capsys: pytest.CaptureFixture[str], idle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any other exception ends with 4 and one line that says how to report it; --debug shows where."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("by \x1b[31mzero")

    monkeypatch.setattr("kubelet_conformance.contract.judge.Judge.feed", fail)
    ended = in_process(capsys, "check", idle)
    debugged = in_process(capsys, "check", idle, "--debug")

    assert (ended.code, ended.out, debugged.code) == (4, "", 4)
    assert ended.err == (
        r"error: internal error, ZeroDivisionError: by \x1b[31mzero "
        f"(while judging {idle}, line 2); this is a mistake in kubelet-conformance: "
        "please report it with the trace and with what --debug prints\n"
    )
    assert "Traceback" in debugged.err


def test_contract_module_that_cannot_be_imported_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake in a module of contracts ends with 4 and names its file and line, for its author to mend."""
    module = tmp_path / "mine.py"
    module.write_text("import json\nfrom json import nothing_of_that_name\n")
    monkeypatch.setattr(contracts, "__path__", [str(tmp_path)])
    monkeypatch.setattr(contracts, "__file__", str(tmp_path / "__init__.py"))
    contracts.every_contract.cache_clear()
    try:
        ended = in_process(capsys, "explain", "RESTART-01")
    finally:
        contracts.every_contract.cache_clear()

    assert (ended.code, ended.out) == (4, "")
    assert ended.err.startswith(f"error: {module}:2: cannot be imported: ImportError: cannot import name ")
    assert "report it" not in ended.err


def test_interrupt_in_the_middle(
    capsys: pytest.CaptureFixture[str], idle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted run leaves an older report as it was."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kubelet_conformance.contract.judge.Judge.feed", interrupt)
    (tmp_path / "report.txt").write_text("old")
    ended = in_process(capsys, "check", idle, "--output", tmp_path / "report.txt")

    assert (ended.code, ended.err.strip()) == (130, "error: interrupted")
    assert (tmp_path / "report.txt").read_text() == "old"
