"""How far many steps have come: one changing line in a terminal, a few lines in a log."""

import io
import sys

import pytest

from kubelet_conformance.reports.progress import Steps


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def reported(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, total: int) -> str:
    """What is written of so many steps."""
    monkeypatch.setattr(sys, "stderr", stream)
    steps = Steps(total, "scenarios played")
    for number in range(total):
        steps.begin(f"a.{number}")
    steps.clear()
    return stream.getvalue()


def test_log_gets_ten_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log gets ten lines, more where the work is very long, and no line for what is done soon."""
    long, longer, short = (reported(monkeypatch, io.StringIO(), total) for total in (300, 20_000, 9))

    assert long.splitlines()[0] == "30 of 300 scenarios played, now a.30"
    assert len(long.splitlines()) == 9
    assert len(longer.splitlines()) == 19
    assert "\r" not in long
    assert short == ""


def test_terminal_has_one_changing_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal each step overwrites the one before, and the end leaves nothing behind."""
    monkeypatch.setenv("TERM", "xterm")
    text = reported(monkeypatch, Terminal(), 3)

    assert text.split("\r\x1b[2K") == [
        "",
        "0 of 3 scenarios played, now a.0",
        "1 of 3 scenarios played, now a.1",
        "2 of 3 scenarios played, now a.2",
        "",
    ]


def test_dumb_terminal_is_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that cannot move its cursor is written to like a log."""
    monkeypatch.setenv("TERM", "dumb")

    assert "\r" not in reported(monkeypatch, Terminal(), 30)


def test_closed_stream_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where standard error is closed, nothing is reported and nothing fails."""
    monkeypatch.setattr(sys, "stderr", None)
    steps = Steps(30, "scenarios played")
    for number in range(30):
        steps.begin(str(number))
    steps.clear()

    assert sys.stderr is None
