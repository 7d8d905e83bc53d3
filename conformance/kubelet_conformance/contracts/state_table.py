"""What a status says of a container (decision table 27.8), by its newest record and by what was said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

from kubelet_conformance.trace.manifests import ContainerStatus

Recorded: TypeAlias = Literal["none", "created", "running", "exited", "unknown"]
"""The state of the newest record, as the runtime tells it."""
Said: TypeAlias = Literal["nothing", "waiting", "running", "terminated"]
"""The state that the status before had."""
Shown: TypeAlias = Literal["waiting", "running", "terminated", "lost"]
"""What the status says now; `lost` is an end that was made up, for nobody has seen it."""

_LOST = "ContainerStatusUnknown"


class StateRow(NamedTuple):
    """With a newest record in state `record`, and one of `before` said before, one of `shown` is said."""

    row: str
    record: Recorded
    before: tuple[Said, ...]
    shown: tuple[Shown, ...]
    why: str


STATES: tuple[StateRow, ...] = (
    StateRow("C1", "none", ("nothing", "waiting"), ("waiting",), "it has to be made"),
    StateRow("C2", "none", ("terminated",), ("terminated", "waiting"), "it stays ended till its start fails"),
    StateRow("C3", "none", ("running",), ("waiting",), "its record vanished, and it has to be made again"),
    StateRow(
        "C4",
        "created",
        ("nothing", "waiting", "running", "terminated"),
        ("waiting",),
        "it was made and never started",
    ),
    StateRow("C5", "running", ("nothing", "waiting", "running", "terminated"), ("running",), "it runs"),
    StateRow(
        "C6",
        "exited",
        ("nothing", "waiting", "running", "terminated"),
        ("terminated", "waiting"),
        "it has ended, and waits once its next start was refused",
    ),
    StateRow("C7", "unknown", ("running",), ("lost", "waiting"), "nobody knows how it has ended"),
    StateRow(
        "C8",
        "unknown",
        ("nothing", "waiting", "terminated"),
        ("waiting", "lost"),
        "nobody knows its state",
    ),
)
_SHOWN = {(row.record, before): row.shown for row in STATES for before in row.before}


def said(status: ContainerStatus | None) -> Said:
    """What a status said of a container; None is a status that did not name it."""
    if status is None:
        return "nothing"
    state = status.state
    if state.running is not None:
        return "running"
    return "terminated" if state.terminated is not None else "waiting"


def shown(status: ContainerStatus) -> Shown:
    """What a status says of a container."""
    ended = status.state.terminated
    if ended is not None:
        return "lost" if ended.reason == _LOST else "terminated"
    return "running" if status.state.running is not None else "waiting"


def may_be_shown(records: Iterable[Recorded], before: Said) -> set[Shown]:
    """What a status may say that was made from one of these states of the newest record."""
    return {one for record in records for one in _SHOWN[record, before]}
