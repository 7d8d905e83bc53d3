"""What becomes of an init container whose turn it is (decision tables 27.4 and 27.5), as a trace shows it.

Rows are tried from the top, the first that fits decides, and each says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from kubelet_conformance.contracts.state_table import Recorded

InitAct: TypeAlias = Literal["start", "wait", "go on", "stop and start", "end the pod"]
"""`go on` is to leave it, for it has done its part: the one after it is next, or else the app containers."""


class InitSeen(NamedTuple):
    """What decides: the state of the newest record, the pod's policy, and how the container fared.

    `failed` is said of one that has ended, `started` and `given_up` by its probe of a sidecar that runs.
    """

    record: Recorded
    policy: str
    sidecar: bool = False
    failed: bool = False
    started: bool = False
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class InitRow:
    """Where `when` holds, `act` is what is done."""

    row: str
    when: Callable[[InitSeen], bool]
    act: InitAct
    why: str


INITS: tuple[InitRow, ...] = (
    InitRow("N1", lambda c: c.record == "none", "start", "it has to be made"),
    InitRow("N2", lambda c: c.record == "created", "start", "it was made and never started"),
    InitRow(
        "N3",
        lambda c: c.record == "running" and c.sidecar and c.given_up,
        "stop and start",
        "its probe gave it up, and a sidecar always comes again",
    ),
    InitRow(
        "N4", lambda c: c.record == "running" and c.sidecar and c.started, "go on", "a sidecar runs beside"
    ),
    InitRow("N5", lambda c: c.record == "running", "wait", "it has not done its part"),
    InitRow("N6", lambda c: c.record == "exited" and c.sidecar, "start", "a sidecar always comes again"),
    InitRow("N7", lambda c: c.record == "exited" and not c.failed, "go on", "it has succeeded"),
    InitRow(
        "N8", lambda c: c.policy == "Never" and not c.sidecar, "end the pod", "it failed, and had its run"
    ),
    InitRow("N9", lambda c: c.record == "exited", "start", "it failed, and is tried again"),
    InitRow("N10", lambda c: c.record == "unknown", "stop and start", "nobody knows whether it runs"),
)


@lru_cache(maxsize=1024)
def init_row(seen: InitSeen) -> InitRow:
    """The row that decides."""
    return next(row for row in INITS if row.when(seen))
