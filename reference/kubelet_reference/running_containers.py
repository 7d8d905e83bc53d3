"""Why a container that runs is stopped: rows B9 to B15 of table 27.3.

`RUNNING` is tried from the top, and the first row that fits decides; where none fits the container is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from kubelet_reference.results import KillReason


class Running(msgspec.Struct, frozen=True):
    """What is known of a container that runs: whether it is as wanted, what its probes say, and its size."""

    has_changed: bool = False
    liveness_failed: bool = False
    startup_failed: bool = False
    needs_restart_to_resize: bool = False


@dataclass(frozen=True, slots=True)
class RunningRow:
    """A row of the table: where `when` holds the container is stopped for that reason.

    `comes_again` says that it is started again under every restart policy, and not only as that says.
    """

    name: str
    when: Callable[[Running], bool]
    reason: KillReason
    text: str
    comes_again: bool = False


RUNNING = (
    RunningRow("B9", lambda r: r.has_changed, KillReason.UNKNOWN, "definition changed", comes_again=True),
    RunningRow("B10, B11", lambda r: r.liveness_failed, KillReason.LIVENESS_PROBE, "failed liveness probe"),
    RunningRow("B12, B13", lambda r: r.startup_failed, KillReason.STARTUP_PROBE, "failed startup probe"),
    RunningRow(
        "B14",
        lambda r: r.needs_restart_to_resize,
        KillReason.UNKNOWN,
        "resize requires restart",
        comes_again=True,
    ),
)


def row_of(running: Running) -> RunningRow | None:
    """The row that stops the container; None where it is kept (B15)."""
    return next((row for row in RUNNING if row.when(running)), None)
