"""What becomes of an app container in a sandbox that stays (decision table 27.3), as far as a trace shows it.

Rows are tried from the top, the first that fits decides, and each says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from kubelet_conformance.contracts.state_table import Recorded

AppAct: TypeAlias = Literal["start", "nothing", "stop", "stop and start"]


class AppSeen(NamedTuple):
    """What decides: the state of the newest record, the policy, and how the container ended, if it did.

    `changed` says that another definition is wanted than that of the instance, `given_up` that its liveness
    or startup probe failed too often.
    """

    record: Recorded
    policy: str
    code: int | None = None
    changed: bool = False
    given_up: bool = False
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class AppRow:
    """Where `when` holds, `act` is what is done."""

    row: str
    when: Callable[[AppSeen], bool]
    act: AppAct
    why: str


APPS: tuple[AppRow, ...] = (
    AppRow("B9", lambda c: c.record == "running" and c.changed, "stop and start", "another one is wanted"),
    AppRow(
        "B11, B13",
        lambda c: c.record == "running" and c.given_up and c.policy == "Never",
        "stop",
        "its probe gave it up, and it has had its run",
    ),
    AppRow(
        "B10, B12",
        lambda c: c.record == "running" and c.given_up,
        "stop and start",
        "its probe gave it up",
    ),
    AppRow("B15", lambda c: c.record == "running", "nothing", "it runs as it should"),
    AppRow("B2", lambda c: c.deleting, "nothing", "the pod goes"),
    AppRow("B1", lambda c: c.record == "none", "start", "it has to be made"),
    AppRow("B3", lambda c: c.record == "created", "start", "it was made and never started"),
    AppRow("B4", lambda c: c.record == "unknown", "stop and start", "nobody knows whether it runs"),
    AppRow("B5", lambda c: c.policy == "Always", "start", "it always comes again"),
    AppRow("B7", lambda c: c.policy == "OnFailure" and c.code == 0, "nothing", "it has succeeded"),
    AppRow("B6", lambda c: c.policy == "OnFailure", "start", "it has failed"),
    AppRow("B8", lambda _: True, "nothing", "it has had its run"),
)


@lru_cache(maxsize=1024)
def app_row(seen: AppSeen) -> AppRow:
    """The row that decides."""
    return next(row for row in APPS if row.when(seen))
