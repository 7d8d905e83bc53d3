"""What becomes of a pod whose sandbox is of no more use: table 27.2.

`NEW_SANDBOX` is tried from the top, and the first row that fits decides. In any case the pod is stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Next(Enum):
    """How a stopped pod goes on."""

    NOTHING = "it stays stopped"
    INIT = "a new sandbox, and the first init container in it"
    APPS = "a new sandbox, and the app containers that are left to run"


@dataclass(frozen=True, slots=True)
class Stopped:
    """What decides how a stopped pod goes on.

    `had_its_run`: it is not to be restarted, and has had containers. `has_more`: an app container is left to
    run. `initialized`: its init containers were through. `has_inits`: it has init containers.
    """

    had_its_run: bool
    has_more: bool
    initialized: bool
    has_inits: bool


@dataclass(frozen=True, slots=True)
class NextRow:
    """A row of the table; `name` is that of the rows of table 27.2 that it stands for."""

    name: str
    when: Callable[[Stopped], bool]
    then: Next


NEW_SANDBOX = (
    NextRow("A1", lambda s: s.had_its_run, Next.NOTHING),
    NextRow("A4", lambda s: not s.has_more and s.initialized, Next.NOTHING),
    NextRow("A3, A5, A7", lambda s: s.has_inits, Next.INIT),
    NextRow("A2, A6", lambda _: True, Next.APPS),
)


def next_of(stopped: Stopped) -> Next:
    """How the pod goes on."""
    return next(row.then for row in NEW_SANDBOX if row.when(stopped))
