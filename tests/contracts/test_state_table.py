"""Table 27.8: what a status says of a container, by its newest record and by what was said before."""

from __future__ import annotations

from typing import Any

import pytest
from pod_status import ended, runs, tell_status, waits
from running import BROKEN, KEPT, running

from kubelet_conformance.contract.verdicts import Verdict
from kubelet_conformance.contracts.state_table import STATES, Recorded, Said, Shown, may_be_shown

CASES: list[tuple[str, Recorded, Said, set[Shown]]] = [
    ("C1", "none", "nothing", {"waiting"}),
    ("C1", "none", "waiting", {"waiting"}),
    ("C2", "none", "terminated", {"terminated", "waiting"}),
    ("C3", "none", "running", {"waiting"}),
    ("C4", "created", "running", {"waiting"}),
    ("C5", "running", "terminated", {"running"}),
    ("C6", "exited", "running", {"terminated", "waiting"}),
    ("C7", "unknown", "running", {"lost", "waiting"}),
    ("C8", "unknown", "waiting", {"waiting", "lost"}),
]


@pytest.mark.parametrize(("row", "record", "before", "allowed"), CASES)
def test_row(row: str, record: Recorded, before: Said, allowed: set[Shown]) -> None:
    """Each row decides as it stands."""
    (found,) = (each for each in STATES if each.record == record and before in each.before)

    assert found.row == row
    assert may_be_shown([record], before) == allowed


def test_every_case_has_one_row() -> None:
    """Whatever is recorded and was said before, one row decides."""
    cases = [(row.record, before) for row in STATES for before in row.before]

    assert len(set(cases)) == len(cases) == 5 * 4
    assert {row for row, *_ in CASES} == {row.row for row in STATES}


@pytest.mark.parametrize(("said", "verdict"), [("runs", KEPT), ("ended", BROKEN), ("waits", BROKEN)])
def test_state_was_read(said: str, verdict: Verdict) -> None:
    """CSTAT-02: of a container that was read as running nothing else is said."""
    s, web, _, c1 = running()
    told: dict[str, dict[str, Any]] = {
        "runs": runs(c1),
        "ended": ended(0, c1),
        "waits": waits("", c1),
    }
    tell_status(s, web, "Running", [told[said]])

    assert s.judge("CSTAT-02").verdict is verdict
