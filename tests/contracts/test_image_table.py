"""The suite's table of what is done about an image: each row once, and its reasons."""

from __future__ import annotations

import pytest

from kubelet_conformance.contracts.image_table import IMAGE_ROWS, ImageFacts, image_row
from kubelet_conformance.contracts.written import START_ERRORS

CASES = [
    ("I1", ImageFacts("IfNotPresent", "error"), "refuse"),
    ("I1", ImageFacts("Never", "error", backing_off=True), "refuse"),
    ("I1", ImageFacts("Always", "error"), "refuse"),
    ("I2", ImageFacts("Always", "not asked", backing_off=True), "wait"),
    ("I3", ImageFacts("Always", "not asked"), "pull"),
    ("I3", ImageFacts("Always", "present"), "pull"),
    ("I4", ImageFacts("IfNotPresent", "present"), "use"),
    ("I4", ImageFacts("IfNotPresent", "present", backing_off=True), "use"),
    ("I4", ImageFacts("Never", "present"), "use"),
    ("I5", ImageFacts("Never", "absent"), "refuse"),
    ("I5", ImageFacts("Never", "present", unproven=True), "refuse"),
    ("I6", ImageFacts("IfNotPresent", "absent", backing_off=True), "wait"),
    ("I7", ImageFacts("IfNotPresent", "absent"), "pull"),
    ("I7", ImageFacts("IfNotPresent", "present", unproven=True), "pull"),
]


@pytest.mark.parametrize(("row", "facts", "step"), CASES)
def test_row(row: str, facts: ImageFacts, step: str) -> None:
    """The first row that fits decides (IMAGE-02, 06, 07, 21)."""
    found = image_row(facts)

    assert (found.row, found.step) == (row, step)


def test_every_row_is_tried() -> None:
    """No row is left out, and what a container waits for is a reason that statuses have."""
    assert [one.row for one in IMAGE_ROWS] == list(dict.fromkeys(row for row, _, _ in CASES))
    assert {one.reason for one in IMAGE_ROWS} - {""} <= START_ERRORS
