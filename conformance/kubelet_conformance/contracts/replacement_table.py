"""What becomes of a pod whose sandbox is of no more use (decision table 27.2), as far as a trace shows it.

Rows are tried from the top, the first that fits decides, and each says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

Successor: TypeAlias = Literal["none", "with the first init container", "with the app containers"]
"""Whether another sandbox is run, and what is made in it first."""


class Stopped(NamedTuple):
    """What decides: the policy, whether a container was made, and what there is to run.

    `more` says that some app container is left to run, `inits` that the pod has init containers.
    """

    policy: str
    made: bool
    more: bool = True
    inits: bool = False


@dataclass(frozen=True, slots=True)
class SuccessorRow:
    """Where `when` holds, this is the sandbox that follows."""

    row: str
    when: Callable[[Stopped], bool]
    then: Successor
    why: str


SUCCESSORS: tuple[SuccessorRow, ...] = (
    SuccessorRow("A1", lambda s: s.policy == "Never" and s.made, "none", "the pod has had its run"),
    SuccessorRow("A4", lambda s: not s.more, "none", "all of it has succeeded"),
    SuccessorRow(
        "A3, A5, A7", lambda s: s.inits, "with the first init container", "initialization begins anew"
    ),
    SuccessorRow("A2, A6", lambda _: True, "with the app containers", "some of them are left to run"),
)


def successor_row(stopped: Stopped) -> SuccessorRow:
    """The row that decides."""
    return next(row for row in SUCCESSORS if row.when(stopped))
