"""The suite's decision tables, row by row: what is seen, the row that decides, and what it says."""

from itertools import product
from typing import Any, TypeAlias

import pytest
from trace_builder import PodHandle, TraceBuilder

from kubelet_conformance.contracts.facts.sandbox import REPLACEMENTS, why_replaced
from kubelet_conformance.contracts.facts.status import START_ERRORS
from kubelet_conformance.contracts.tables.container import (
    APPS,
    IMAGES,
    INITS,
    TICKS,
    AppSeen,
    ImageSeen,
    InitSeen,
    ProbeSeen,
)
from kubelet_conformance.contracts.tables.pod import (
    ALLOWED,
    CHANGES,
    STAGES,
    SUCCESSORS,
    ManifestChange,
    ManifestParts,
    Stage,
    StageSeen,
    Stopped,
    manifest_parts,
)
from kubelet_conformance.contracts.tables.status import PHASES, STATES, Counts, StateSeen
from kubelet_conformance.contracts.tables.table import Table

Json = dict[str, Any]
Case: TypeAlias = tuple[str, Any, Any]
"""A row, what it decides about with all that the rows below it look at, and what it says."""
DELETED = "2030-01-01T00:00:00Z"


def said(about: Json | None) -> ManifestParts | None:
    """A manifest with these parts, those of its metadata among them; None is no word."""
    if about is None:
        return None
    parts = {key: about[key] for key in about.keys() & {"spec", "status"}}
    return manifest_parts({"metadata": {key: about[key] for key in about.keys() - parts.keys()}, **parts})


def words(old: Json | None, new: Json | None) -> ManifestChange:
    """What was said last, and what is said now."""
    return ManifestChange(said(old), said(new))


#: SANDBOX-05 to SANDBOX-08.
OF_SANDBOXES: list[Case] = [
    ("A1", Stopped("Never", made=True, inits=True), "none"),
    ("A1", Stopped("Never", made=True, more=False), "none"),
    ("A4", Stopped("OnFailure", made=True, more=False, inits=True), "none"),
    ("A3, A5, A7", Stopped("Never", made=False, inits=True), "with the first init container"),
    ("A3, A5, A7", Stopped("Always", made=True, inits=True), "with the first init container"),
    ("A2, A6", Stopped("Never", made=False), "with the app containers"),
    ("A2, A6", Stopped("OnFailure", made=True), "with the app containers"),
]
#: RESTART-01 to RESTART-10.
OF_APPS: list[Case] = [
    ("B9", AppSeen("running", "Never", changed=True, given_up=True), "stop and start"),
    ("B11, B13", AppSeen("running", "Never", given_up=True), "stop"),
    ("B10, B12", AppSeen("running", "Always", given_up=True), "stop and start"),
    ("B10, B12", AppSeen("running", "OnFailure", given_up=True), "stop and start"),
    ("B15", AppSeen("running", "Always"), "nothing"),
    ("B15", AppSeen("running", "Always", deleting=True), "nothing"),
    ("B2", AppSeen("none", "Always", deleting=True), "nothing"),
    ("B2", AppSeen("exited", "Always", 1, deleting=True), "nothing"),
    ("B1", AppSeen("none", "Never"), "start"),
    ("B3", AppSeen("created", "Never"), "start"),
    ("B4", AppSeen("unknown", "Never"), "stop and start"),
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
    ("N1", InitSeen("none", "Never"), "start"),
    ("N1", InitSeen("none", "Always", sidecar=True), "start"),
    ("N2", InitSeen("created", "Never"), "start"),
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
    ("I1", ImageSeen("IfNotPresent", "error"), ("refuse", "ImageInspectError")),
    ("I1", ImageSeen("Never", "error", backing_off=True), ("refuse", "ImageInspectError")),
    ("I1", ImageSeen("Always", "error"), ("refuse", "ImageInspectError")),
    ("I2", ImageSeen("Always", "not asked", backing_off=True), ("wait", "ImagePullBackOff")),
    ("I3", ImageSeen("Always", "not asked"), ("pull", "ErrImagePull")),
    ("I3", ImageSeen("Always", "present"), ("pull", "ErrImagePull")),
    ("I4", ImageSeen("IfNotPresent", "present"), ("use", "")),
    ("I4", ImageSeen("IfNotPresent", "present", backing_off=True), ("use", "")),
    ("I4", ImageSeen("Never", "present"), ("use", "")),
    ("I5", ImageSeen("Never", "absent"), ("refuse", "ErrImageNeverPull")),
    ("I5", ImageSeen("Never", "present", unproven=True), ("refuse", "ErrImageNeverPull")),
    ("I6", ImageSeen("IfNotPresent", "absent", backing_off=True), ("wait", "ImagePullBackOff")),
    ("I7", ImageSeen("IfNotPresent", "absent"), ("pull", "ErrImagePull")),
    ("I7", ImageSeen("IfNotPresent", "present", unproven=True), ("pull", "ErrImagePull")),
]
OF_TICKS: list[Case] = [
    ("T1", ProbeSeen("readiness", ended=True), "wait"),
    ("T2", ProbeSeen("liveness", given_up=True), "wait"),
    ("T2", ProbeSeen("startup", given_up=True, started=False), "wait"),
    ("T3", ProbeSeen("readiness", running=False), "wait"),
    ("T4", ProbeSeen("liveness", going=True), "wait"),
    ("T5", ProbeSeen("readiness", age=3, delay=5), "wait"),
    ("T6", ProbeSeen("startup"), "wait"),
    ("T7", ProbeSeen("liveness", started=False), "wait"),
    ("T8", ProbeSeen("liveness", age=5, delay=5), "execute"),
    ("T8", ProbeSeen("readiness", going=True, given_up=True), "execute"),
    ("T8", ProbeSeen("startup", started=False), "execute"),
]
OF_STAGES: list[Case] = [
    ("S1", StageSeen(asked=True, runs=True), "terminating"),
    ("S1", StageSeen(wanted=False, runs=True), "terminating"),
    ("S2", StageSeen(ended=True, runs=True), "terminating"),
    ("S3", StageSeen(wanted=False), "forgotten"),
    ("S3", StageSeen(wanted=False, asked=True), "forgotten"),
    ("S4", StageSeen(asked=True), "terminated"),
    ("S4", StageSeen(ended=True), "terminated"),
    ("S5", StageSeen(runs=True), "wanted"),
    ("S5", StageSeen(), "wanted"),
]
#: CONFIG-05, CONFIG-07, CONFIG-08.
OF_CHANGES: list[Case] = [
    ("M1", words(None, None), "nothing"),
    ("M2", words({}, None), "removed"),
    ("M3", words(None, {}), "added"),
    ("M3", words(None, {"deletionTimestamp": DELETED}), "added"),
    ("M4", words({}, {}), "nothing"),
    ("M4", words({"resourceVersion": "1"}, {"resourceVersion": "2"}), "nothing"),
    ("M4", words({"annotations": {"kubernetes.io/config.seen": "x"}}, {}), "nothing"),
    ("M4", words({"labels": {}}, {}), "nothing"),
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
    ("C1", StateSeen("none", "nothing"), {"waiting"}),
    ("C1", StateSeen("none", "waiting"), {"waiting"}),
    ("C2", StateSeen("none", "terminated"), {"terminated", "waiting"}),
    ("C3", StateSeen("none", "running"), {"waiting"}),
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
    ("P12", Counts(running=1, unknown=1), "Pending"),
    ("P12", Counts(), "Pending"),
]
EVERY: list[tuple[Table[Any, Any], list[Case]]] = [
    (SUCCESSORS, OF_SANDBOXES),
    (APPS, OF_APPS),
    (INITS, OF_INITS),
    (IMAGES, OF_IMAGES),
    (TICKS, OF_TICKS),
    (STAGES, OF_STAGES),
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

    assert found.row == row
    assert (set(found.then) if isinstance(says, set) else found.then) == says
    assert table.decide(seen) is found.then


@pytest.mark.parametrize(("table", "cases"), EVERY)
def test_every_row_has_a_case(table: Table[Any, Any], cases: list[Case]) -> None:
    """No row is left out, and none is there twice."""
    assert [row.row for row in table] == list(dict.fromkeys(row for row, _, _ in cases))


def test_table_that_leaves_something_open_says_so() -> None:
    """A question that no row fits is a mistake of the table's."""
    with pytest.raises(LookupError, match="no row fits 5"):
        Table[int, str]().decide(5)


def test_reasons_are_those_of_statuses() -> None:
    """What a container waits for is a reason that statuses have."""
    assert {row.then.reason for row in IMAGES} - {""} <= START_ERRORS


@pytest.mark.parametrize(
    ("stage", "allowed"),
    [
        ("wanted", {"make"}),
        ("terminating", set[str]()),
        ("terminated", {"remove volumes", "remove folder"}),
        ("forgotten", {"remove volumes", "remove folder"}),
    ],
)
def test_what_a_stage_allows(stage: Stage, allowed: set[str]) -> None:
    """Volumes and folders go only when nothing runs any more, and then nothing is made."""
    assert ALLOWED[stage] == allowed


def test_life_goes_one_way() -> None:
    """Once a pod is asked to go, neither an end nor its removal lets anything of it be made again."""
    asked = (
        StageSeen(asked=True, ended=ended, runs=runs) for ended, runs in product((False, True), repeat=2)
    )

    assert all("make" not in ALLOWED[STAGES.decide(seen)] for seen in asked)


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
