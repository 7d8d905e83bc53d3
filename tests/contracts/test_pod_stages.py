"""The suite's own table 27.6: how far a pod's life is, row by row, and what may be done to it then."""

from __future__ import annotations

from itertools import product

import pytest

from kubelet_conformance.contracts.pod_stages import STAGES, Stage, StageSeen, stage_of


@pytest.mark.parametrize(
    ("seen", "row", "stage"),
    [
        (StageSeen(asked=True, runs=True), "S1", "terminating"),
        (StageSeen(wanted=False, runs=True), "S1", "terminating"),
        (StageSeen(ended=True, runs=True), "S2", "terminating"),
        (StageSeen(wanted=False), "S3", "forgotten"),
        (StageSeen(wanted=False, asked=True), "S3", "forgotten"),
        (StageSeen(asked=True), "S4", "terminated"),
        (StageSeen(ended=True), "S4", "terminated"),
        (StageSeen(runs=True), "S5", "wanted"),
        (StageSeen(), "S5", "wanted"),
    ],
)
def test_each_row(seen: StageSeen, row: str, stage: Stage) -> None:
    """Each row decides where nothing above it does."""
    found = stage_of(seen)

    assert (found.row, found.stage) == (row, stage)


def test_every_row_decides_something() -> None:
    """No row is hidden by those above it."""
    every = (StageSeen(*flags) for flags in product((False, True), repeat=4))

    assert {stage_of(seen).row for seen in every} == {row.row for row in STAGES}
