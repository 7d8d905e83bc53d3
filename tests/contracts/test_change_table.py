"""The suite's table 27.10: what a source's new word on a pod is, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from kubelet_conformance.contracts.change_table import CHANGES, ChangeRow, Word, change_row, word

Json = dict[str, Any]
DELETED = "2030-01-01T00:00:00Z"
#: The changes that each row decides: what was said last, what is said now, and what that is called.
CASES: dict[str, list[tuple[Json | None, Json | None, str]]] = {
    "M1": [(None, None, "nothing")],
    "M2": [({}, None, "removed")],
    "M3": [(None, {}, "added"), (None, {"deletionTimestamp": DELETED}, "added")],
    "M4": [
        ({}, {}, "nothing"),
        ({"resourceVersion": "1"}, {"resourceVersion": "2"}, "nothing"),
        ({"annotations": {"kubernetes.io/config.seen": "x"}}, {}, "nothing"),
        ({"labels": {}}, {}, "nothing"),
    ],
    "M5": [
        ({}, {"status": {"phase": "Running"}}, "reconciled"),
        (
            {"deletionTimestamp": DELETED},
            {"deletionTimestamp": DELETED, "status": {"phase": "Running"}},
            "reconciled",
        ),
    ],
    "M6": [
        ({}, {"deletionTimestamp": DELETED}, "deleted"),
        ({}, {"deletionTimestamp": DELETED, "labels": {"a": "b"}}, "deleted"),
        (
            {"deletionTimestamp": DELETED, "deletionGracePeriodSeconds": 30},
            {"deletionTimestamp": DELETED, "deletionGracePeriodSeconds": 5},
            "deleted",
        ),
    ],
    "M7": [
        ({}, {"spec": {"hostNetwork": True}}, "updated"),
        ({}, {"labels": {"a": "b"}}, "updated"),
        ({}, {"annotations": {"a": "b"}}, "updated"),
        ({}, {"labels": {"a": "b"}, "status": {"phase": "Running"}}, "updated"),
    ],
}


def said(about: Json | None) -> Word | None:
    """A manifest with these parts, those of its metadata among them; None is no word."""
    if about is None:
        return None
    parts = {key: about[key] for key in about.keys() & {"spec", "status"}}
    return word({"metadata": {key: about[key] for key in about.keys() - parts.keys()}, **parts})


@pytest.mark.parametrize("row", CHANGES, ids=lambda row: row.row)
def test_each_row(row: ChangeRow) -> None:
    """The first row that fits decides (CONFIG-05, CONFIG-07, CONFIG-08)."""
    for old, new, change in CASES[row.row]:
        found = change_row(said(old), said(new))

        assert (found, found.change) == (row, change)
