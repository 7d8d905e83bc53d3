"""Errors in a trace or another input: the place, the problem and the remedy."""

from pathlib import Path


class BadInputError(Exception):
    """What the user gave cannot be used; the message says why and what to do. It ends a command."""


class InputError(BadInputError):
    """A file that cannot be used: names the file, the line where known, the problem and the remedy."""

    def __init__(self, path: Path | str, line: int | None, problem: str, remedy: str) -> None:
        self.path = path
        self.line = line
        self.problem = problem
        self.remedy = remedy
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {problem}; {remedy}")


class TraceError(InputError):
    """A trace that cannot be judged."""


class TruncatedError(TraceError):
    """A trace that is cut off: it can be judged up to there."""


class BodyError(Exception):
    """A record that no judge can read: its fields have wrong types, or it passes a bound."""

    def __init__(self, problem: str, remedy: str = "mend or cut the record") -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(problem)
