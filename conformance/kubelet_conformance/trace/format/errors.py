"""Errors in a trace: what is wrong, and where."""

from __future__ import annotations

from pathlib import Path


class TraceError(Exception):
    """A file that cannot be judged: names the file, the line, the problem and the remedy."""

    def __init__(self, path: Path | str, line: int | None, problem: str, remedy: str) -> None:
        self.path = path
        self.line = line
        self.problem = problem
        self.remedy = remedy
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {problem}; {remedy}")


class BodyError(Exception):
    """A record that no judge can read: its fields have wrong types, or it passes a bound."""

    def __init__(self, problem: str, remedy: str = "mend or cut the record") -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(problem)
