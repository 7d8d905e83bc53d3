"""The suite's own table of stops: how long a container has to stop, row by row."""

import pytest

from kubelet_conformance.contracts.tables.stop import Graces, Situation, stop_row, stop_timeouts

OLD, NEW = (1, 26), (1, 32)
GRACES = Graces(spec=30, asked=12, probe=50)


@pytest.mark.parametrize(
    ("situation", "base", "timeouts"),
    [
        ("deleted", 12, (12, 12, 12, 5)),
        ("orphan", 1, (1, 2, 1, 2)),
        ("ended", 30, (30, 30, 23, 23)),
        ("dead sandbox", 30, (30, 30, 23, 23)),
        ("lost cgroup", 30, (30, 30, 23, 23)),
        ("changed", 30, (30, 30, 23, 23)),
        ("unknown state", 30, (30, 30, 23, 23)),
        ("postStart failed", 30, (30, 30, 23, 23)),
        ("probe failed", 50, (50, 50, 43, 43)),
        ("probe failed for good", 30, (30, 30, 23, 23)),
        ("lost record", 12, (12, 12, 5, 5)),
    ],
)
def test_each_row(situation: Situation, base: int, timeouts: tuple[int, ...]) -> None:
    """Base, and the timeout in 1.26 and 1.32, at once and after a preStop hook of 7 s."""
    row = stop_row(situation)
    found = [stop_timeouts(row, base, waited, v) for waited in ((0, 0), (7, 7)) for v in (OLD, NEW)]

    assert row.seconds(GRACES) == base
    assert [list(one) for one in found] == [[seconds] for seconds in timeouts]
