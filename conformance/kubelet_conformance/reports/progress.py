"""How far a long judging has come, on standard error: one changing line, or now and then a line in a log."""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable

import click

from kubelet_conformance.reports.safe import safe

LOGGED_RECORDS = 2_000_000
"""How many records pass between two lines in a log."""
_PATH_CHARS = 60
_LOGGED_STEPS = 10
"""How many lines a log gets, and how many steps pass between two at least."""
_LOGGED_STEPS_MAX = 1000
"""How many steps pass between two lines at most, however many lines that makes."""


class Line:
    """One changing line on a terminal, or lines in a log; nothing where standard error is closed."""

    def __init__(self) -> None:
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._live = is_terminal and os.environ.get("TERM") != "dumb"

    def clear(self) -> None:
        """Leave no line behind, for a message or for the end."""
        if self._live:
            self._write("\r\x1b[2K", newline=False)

    def show(self, text: str, *, log: bool = False) -> None:
        """Show a text on a terminal, or where there is none in the log, if it is to be there."""
        if self._live:
            self._write(f"\r\x1b[2K{text[: shutil.get_terminal_size().columns - 1]}", newline=False)
        elif log:
            self._write(text, newline=True)

    def _write(self, text: str, *, newline: bool) -> None:
        with contextlib.suppress(OSError, ValueError):
            click.echo(text, err=True, nl=newline)


class Steps(Line):
    """Counts the things that are `done`, such as scenarios played, up to `total`."""

    def __init__(self, total: int, done: str) -> None:
        super().__init__()
        self._total = total
        self._done = done
        self._number = 0

    def begin(self, name: str) -> None:
        """The next one."""
        every = min(max(self._total // _LOGGED_STEPS, _LOGGED_STEPS), _LOGGED_STEPS_MAX)
        self.show(
            f"{self._number} of {self._total} {self._done}, now {safe(name)}",
            log=self._number % every == 0 and self._number > 0,
        )
        self._number += 1

    def advance(self, left: Callable[[], str]) -> None:
        """One more is done; `left` says what is left, and is asked on a terminal only."""
        self._number += 1
        if self._live:
            self.show(self._so_far(left()))

    def log(self, left: str) -> None:
        """A line of its own in a log: nothing may have been done for a while."""
        self.show(self._so_far(left), log=True)

    def _so_far(self, left: str) -> str:
        return f"{self._number} of {self._total} {self._done}, {left}"

    def announce(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        self._write(text, newline=True)


class Progress(Line):
    """Counts traces and the records within them; clears its line at the end."""

    def __init__(self, traces: int) -> None:
        super().__init__()
        self._traces = traces
        self._number = 0
        self._path = ""
        self._before = 0
        self._count = 0
        self._logged = 0

    def begin(self, path: str) -> None:
        """The next trace."""
        self._number += 1
        self._path = path
        self._before += self._count
        self._count = 0
        self._show_progress()

    def records(self, count: int) -> None:
        """So many records of this trace have been judged."""
        self._count = count
        self._show_progress()

    def _show_progress(self) -> None:
        every = self._before + self._count
        path = self._path if len(self._path) <= _PATH_CHARS else f"…{self._path[1 - _PATH_CHARS :]}"
        text = f"judging {safe(path)} ({self._number} of {self._traces}), {every:,} records so far"
        due = every - self._logged >= LOGGED_RECORDS
        self.show(text, log=due)
        if due and not self._live:
            self._logged = every
