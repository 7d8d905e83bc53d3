"""The suite's table of what is done about an image: each row once, and its reasons."""

from __future__ import annotations

import pytest

from kubelet_conformance.contracts.image_table import ImageFacts, image_row

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
