"""What a pod's status says of a container: table 27.8.

Both tables are tried from the top, and the first row that fits decides. `STATES` goes by the newest record
and by what was said before, `REFUSALS` by what comes of a start that could not be made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import msgspec
from lightkube.models.core_v1 import ContainerStatus

from kubelet_reference.records import ContainerState


class Before(StrEnum):
    """What the status before said."""

    NOTHING = "nothing"
    WAITING = "Waiting"
    RUNNING = "Running"
    TERMINATED = "Terminated"


class Shown(StrEnum):
    """What the status says now; lastState and the restart count go with it."""

    NEW = "it waits to be created"
    WAITS = "it waits to be created, the rest as before"
    AS_BEFORE = "all as before"
    VANISHED = "it waits to be created, after an end that nobody saw"
    RECORD = "what the records say"
    LOST = "an end that nobody saw"


class Seen(msgspec.Struct, frozen=True):
    """What decides; `state` is that of the record, None where there is none."""

    state: ContainerState | None
    before: Before


@dataclass(frozen=True, slots=True)
class StateRow:
    """A row of the table: where `when` holds, `says` is what the status says."""

    name: str
    when: Callable[[Seen], bool]
    says: Shown


STATES = (
    StateRow("first sight", lambda s: s.state is None and s.before is Before.NOTHING, Shown.NEW),
    StateRow("ended and gone", lambda s: s.state is None and s.before is Before.TERMINATED, Shown.AS_BEFORE),
    StateRow("vanished", lambda s: s.state is None and s.before is Before.RUNNING, Shown.VANISHED),
    StateRow("not made yet", lambda s: s.state is None, Shown.WAITS),
    StateRow("lost", lambda s: s.state is ContainerState.UNKNOWN and s.before is Before.RUNNING, Shown.LOST),
    StateRow("on record", lambda _: True, Shown.RECORD),
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A container whose last start failed: whether it is due to start again, and is shown as ended."""

    due: bool
    ended: bool


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row of the table: whether the container waits for the failure, and its end becomes lastState."""

    name: str
    when: Callable[[Refused], bool]
    waits: bool = True
    end_is_last: bool = False


REFUSALS = (
    RefusedRow("not due", lambda r: not r.due, waits=False),
    RefusedRow("ended", lambda r: r.ended, end_is_last=True),
    RefusedRow("not ended", lambda _: True),
)


def shown(state: ContainerState | None, before: ContainerStatus | None) -> Shown:
    """What the status says of a container with a record in that state, and of which that was said before."""
    seen = Seen(state, _said(before))
    return next(row.says for row in STATES if row.when(seen))


def refused_row(refused: Refused) -> RefusedRow:
    """The row that decides."""
    return next(row for row in REFUSALS if row.when(refused))


def _said(before: ContainerStatus | None) -> Before:
    if before is None or before.state is None:
        return Before.NOTHING
    if before.state.terminated is not None:
        return Before.TERMINATED
    return Before.WAITING if before.state.running is None else Before.RUNNING
