"""The suite's tables 27.2 to 27.5: what becomes of sandboxes, app and init containers, row by row."""

from __future__ import annotations

import pytest

from kubelet_conformance.contracts.app_table import APPS, AppRow, AppSeen, app_row
from kubelet_conformance.contracts.init_table import INITS, InitRow, InitSeen, init_row

#: Containers that each row decides about, with all that the rows below it look at.
APPS_SEEN = {
    "B9": [AppSeen("running", "Never", changed=True, given_up=True)],
    "B11, B13": [AppSeen("running", "Never", given_up=True)],
    "B10, B12": [
        AppSeen("running", "Always", given_up=True),
        AppSeen("running", "OnFailure", given_up=True),
    ],
    "B15": [AppSeen("running", "Always"), AppSeen("running", "Always", deleting=True)],
    "B2": [AppSeen("none", "Always", deleting=True), AppSeen("exited", "Always", 1, deleting=True)],
    "B1": [AppSeen("none", "Never")],
    "B3": [AppSeen("created", "Never")],
    "B4": [AppSeen("unknown", "Never")],
    "B5": [AppSeen("exited", "Always", 0), AppSeen("exited", "Always", 1)],
    "B7": [AppSeen("exited", "OnFailure", 0)],
    "B6": [AppSeen("exited", "OnFailure", 1), AppSeen("exited", "OnFailure")],
    "B8": [AppSeen("exited", "Never", 0), AppSeen("exited", "Never", 1)],
}
APP_ACTS = {
    "start": {"B1", "B3", "B5", "B6"},
    "stop and start": {"B4", "B9", "B10, B12"},
    "stop": {"B11, B13"},
    "nothing": {"B2", "B7", "B8", "B15"},
}
INITS_SEEN = {
    "N1": [InitSeen("none", "Never"), InitSeen("none", "Always", sidecar=True)],
    "N2": [InitSeen("created", "Never")],
    "N3": [InitSeen("running", "Never", sidecar=True, started=True, given_up=True)],
    "N4": [InitSeen("running", "Never", sidecar=True, started=True)],
    "N5": [InitSeen("running", "Never"), InitSeen("running", "Always", sidecar=True)],
    "N6": [
        InitSeen("exited", "Never", sidecar=True, failed=True),
        InitSeen("exited", "OnFailure", sidecar=True),
    ],
    "N7": [InitSeen("exited", "Never"), InitSeen("exited", "Always")],
    "N8": [InitSeen("exited", "Never", failed=True), InitSeen("unknown", "Never")],
    "N9": [InitSeen("exited", "OnFailure", failed=True), InitSeen("exited", "Always", failed=True)],
    "N10": [InitSeen("unknown", "OnFailure"), InitSeen("unknown", "Never", sidecar=True)],
}
INIT_ACTS = {
    "start": {"N1", "N2", "N6", "N9"},
    "stop and start": {"N3", "N10"},
    "go on": {"N4", "N7"},
    "wait": {"N5"},
    "end the pod": {"N8"},
}


@pytest.mark.parametrize("row", APPS, ids=lambda row: row.row)
def test_row_of_app_containers(row: AppRow) -> None:
    """The first row that fits decides (RESTART-01 to RESTART-10)."""
    assert {app_row(seen) for seen in APPS_SEEN[row.row]} == {row}
    assert row.row in APP_ACTS[row.act]


@pytest.mark.parametrize("row", INITS, ids=lambda row: row.row)
def test_row_of_init_containers(row: InitRow) -> None:
    """The first row that fits decides (INIT-01, INIT-07 to INIT-11, SIDECAR-05, SIDECAR-07)."""
    assert {init_row(seen) for seen in INITS_SEEN[row.row]} == {row}
    assert row.row in INIT_ACTS[row.act]
