"""The suite's table of when a probe may be executed: each row once."""

from __future__ import annotations

import pytest

from kubelet_conformance.contracts.tick_table import Sight, may_be_probed, tick_row

CASES = [
    ("T1", Sight("readiness", ended=True)),
    ("T2", Sight("liveness", given_up=True)),
    ("T2", Sight("startup", given_up=True, started=False)),
    ("T3", Sight("readiness", running=False)),
    ("T4", Sight("liveness", going=True)),
    ("T5", Sight("readiness", age=3, delay=5)),
    ("T6", Sight("startup")),
    ("T7", Sight("liveness", started=False)),
    ("T8", Sight("liveness", age=5, delay=5)),
    ("T8", Sight("readiness", going=True, given_up=True)),
    ("T8", Sight("startup", started=False)),
]


@pytest.mark.parametrize(("row", "sight"), CASES)
def test_row(row: str, sight: Sight) -> None:
    """The first row that fits decides, and only the last has the probe executed."""
    assert tick_row(sight).row == row
    assert may_be_probed(sight) is (row == "T8")
