"""The suite's decision tables, row by row: what is seen, the row that decides, and what it says."""

from typing import Any, TypeAlias

import pytest
from trace_builder import PodHandle, TraceBuilder

from kubelet_conformance.contracts.facts.sandbox import REPLACEMENTS, why_replaced
from kubelet_conformance.contracts.tables.container import APPS, IMAGES, INITS, AppSeen, ImageSeen, InitSeen
from kubelet_conformance.contracts.tables.pod import CHANGES, ManifestChange, ManifestParts, manifest_parts
from kubelet_conformance.contracts.tables.status import PHASES, STATES, Counts, StateSeen
from kubelet_conformance.contracts.tables.table import Table

Json = dict[str, Any]
Case: TypeAlias = tuple[str, Any, Any]
"""A row, what it decides about with all that the rows below it look at, and what it says."""
DELETED = "2030-01-01T00:00:00Z"


def said(about: Json) -> ManifestParts:
    """A manifest with these parts, those of its metadata among them."""
    parts = {key: about[key] for key in about.keys() & {"spec", "status"}}
    return manifest_parts({"metadata": {key: about[key] for key in about.keys() - parts.keys()}, **parts})


def words(old: Json, new: Json) -> ManifestChange:
    """What was said last, and what is said now."""
    return ManifestChange(said(old), said(new))


#: RESTART-01 to RESTART-10.
OF_APPS: list[Case] = [
    ("B9", AppSeen("running", "Never", changed=True, given_up=True), "stop and start"),
    ("B11, B13", AppSeen("running", "Never", given_up=True), "stop"),
    ("B10, B12", AppSeen("running", "Always", given_up=True), "stop and start"),
    ("B10, B12", AppSeen("running", "OnFailure", given_up=True), "stop and start"),
    ("B15", AppSeen("running", "Always"), "nothing"),
    ("B5", AppSeen("exited", "Always", 0), "start"),
    ("B5", AppSeen("exited", "Always", 1), "start"),
    ("B7", AppSeen("exited", "OnFailure", 0), "nothing"),
    ("B6", AppSeen("exited", "OnFailure", 1), "start"),
    ("B6", AppSeen("exited", "OnFailure"), "start"),
    ("B8", AppSeen("exited", "Never", 0), "nothing"),
    ("B8", AppSeen("exited", "Never", 1), "nothing"),
]
#: INIT-01, INIT-07 to INIT-11, SIDECAR-05, SIDECAR-07.
OF_INITS: list[Case] = [
    ("N3", InitSeen("running", "Never", sidecar=True, started=True, given_up=True), "stop and start"),
    ("N4", InitSeen("running", "Never", sidecar=True, started=True), "go on"),
    ("N5", InitSeen("running", "Never"), "wait"),
    ("N5", InitSeen("running", "Always", sidecar=True), "wait"),
    ("N6", InitSeen("exited", "Never", sidecar=True, failed=True), "start"),
    ("N6", InitSeen("exited", "OnFailure", sidecar=True), "start"),
    ("N7", InitSeen("exited", "Never"), "go on"),
    ("N7", InitSeen("exited", "Always"), "go on"),
    ("N8", InitSeen("exited", "Never", failed=True), "end the pod"),
    ("N8", InitSeen("unknown", "Never"), "end the pod"),
    ("N9", InitSeen("exited", "OnFailure", failed=True), "start"),
    ("N9", InitSeen("exited", "Always", failed=True), "start"),
    ("N10", InitSeen("unknown", "OnFailure"), "stop and start"),
    ("N10", InitSeen("unknown", "Never", sidecar=True), "stop and start"),
]
#: IMAGE-02, IMAGE-06, IMAGE-07, IMAGE-21.
OF_IMAGES: list[Case] = [
    ("I3", ImageSeen("Always", present=False), "pull"),
    ("I3", ImageSeen("Always", present=True), "pull"),
    ("I4", ImageSeen("IfNotPresent", present=True), "use"),
    ("I4", ImageSeen("Never", present=True), "use"),
    ("I5", ImageSeen("Never", present=False), "refuse"),
    ("I5", ImageSeen("Never", present=True, unproven=True), "refuse"),
    ("I7", ImageSeen("IfNotPresent", present=False), "pull"),
    ("I7", ImageSeen("IfNotPresent", present=True, unproven=True), "pull"),
]
#: CONFIG-05, CONFIG-07, CONFIG-08.
OF_CHANGES: list[Case] = [
    ("M5", words({}, {}), "reconciled"),
    ("M5", words({"resourceVersion": "1"}, {"resourceVersion": "2"}), "reconciled"),
    ("M5", words({"annotations": {"kubernetes.io/config.seen": "x"}}, {}), "reconciled"),
    ("M5", words({"labels": {}}, {}), "reconciled"),
    ("M5", words({}, {"status": {"phase": "Running"}}), "reconciled"),
    (
        "M5",
        words({"deletionTimestamp": DELETED}, {"deletionTimestamp": DELETED, "status": {"phase": "Running"}}),
        "reconciled",
    ),
    ("M6", words({}, {"deletionTimestamp": DELETED}), "deleted"),
    ("M6", words({}, {"deletionTimestamp": DELETED, "labels": {"a": "b"}}), "deleted"),
    (
        "M6",
        words(
            {"deletionTimestamp": DELETED, "deletionGracePeriodSeconds": 30},
            {"deletionTimestamp": DELETED, "deletionGracePeriodSeconds": 5},
        ),
        "deleted",
    ),
    ("M7", words({}, {"spec": {"hostNetwork": True}}), "updated"),
    ("M7", words({}, {"labels": {"a": "b"}}), "updated"),
    ("M7", words({}, {"annotations": {"a": "b"}}), "updated"),
    ("M7", words({}, {"labels": {"a": "b"}, "status": {"phase": "Running"}}), "updated"),
]
OF_STATES: list[Case] = [
    ("C4", StateSeen("created", "running"), {"waiting"}),
    ("C5", StateSeen("running", "terminated"), {"running"}),
    ("C6", StateSeen("exited", "running"), {"terminated", "waiting"}),
    ("C7", StateSeen("unknown", "running"), {"lost", "waiting"}),
    ("C8", StateSeen("unknown", "waiting"), {"waiting", "lost"}),
]
OF_PHASES: list[Case] = [
    ("P1", Counts(policy="Never", failed_init=1, pending_init=1), "Failed"),
    ("P2", Counts(policy="Always", failed_init=1, pending_init=1), "Pending"),
    ("P3", Counts(pending_sidecar=1, running=1), "Pending"),
    ("P4", Counts(pending_sidecar=1, app_was_up=True, waiting=1, running=1), "Pending"),
    ("P5", Counts(running=1, stopped=1), "Running"),
    ("P6", Counts(final=True, stopped=2, succeeded=2), "Succeeded"),
    ("P7", Counts(final=True, stopped=2, succeeded=1), "Failed"),
    ("P8", Counts(stopped=1, succeeded=1), "Running"),
    ("P9", Counts(policy="OnFailure", stopped=1, succeeded=1), "Succeeded"),
    ("P10", Counts(policy="Never", stopped=1), "Failed"),
    ("P11", Counts(policy="OnFailure", stopped=1), "Running"),
]
EVERY: list[tuple[Table[Any, Any], list[Case]]] = [
    (APPS, OF_APPS),
    (INITS, OF_INITS),
    (IMAGES, OF_IMAGES),
    (CHANGES, OF_CHANGES),
    (STATES, OF_STATES),
    (PHASES, OF_PHASES),
]


@pytest.mark.parametrize(
    ("table", "row", "seen", "says"), [(table, *case) for table, cases in EVERY for case in cases]
)
def test_first_row_that_fits_decides(table: Table[Any, Any], row: str, seen: object, says: object) -> None:
    """No row above it fits, and it says what is to be done."""
    found = table.row(seen)

    assert found.name == row
    assert (set(found.then) if isinstance(says, set) else found.then) == says
    assert table.decide(seen) is found.then


@pytest.mark.parametrize(("table", "cases"), EVERY)
def test_every_row_has_a_case(table: Table[Any, Any], cases: list[Case]) -> None:
    """No row is left out, and none is there twice."""
    assert [row.name for row in table] == list(dict.fromkeys(row for row, _, _ in cases))


def test_table_that_leaves_something_open_says_so() -> None:
    """A question that no row fits is a mistake of the table's."""
    with pytest.raises(LookupError, match="no row fits 5"):
        Table[int, str]().decide(5)


def tell(s: TraceBuilder, web: PodHandle, row: str) -> None:
    """What leads to this row of `REPLACEMENTS`, if anything does."""
    if row == "it has none":
        return
    first = s.run_sandbox(web)
    match row:
        case "the newest is not ready":
            s.wait(5).sandbox_died(first)
        case "more than one is ready":
            s.wait(5).run_sandbox(web, 1)
        case "its network namespace is another one":
            web.manifest["spec"]["hostNetwork"] = True
            s.set(web)
        case "it has no IP":
            s.wait(5).sandbox_status(first, network={})
        case _:
            s.wait(5).sandbox_status(first)


@pytest.mark.parametrize("row", [row.why for row in REPLACEMENTS])
def test_why_a_sandbox_is_replaced(row: str) -> None:
    """Each row is the first that fits where it is meant to, and none is where nothing is wrong."""
    s = TraceBuilder()
    web = s.pod()
    tell(s, web, row)

    assert why_replaced(s.world().pods.get(web.uid) or next(iter(s.world().names.values()))) == (row or None)
