"""What a probe worker does at one tick, and what it makes of an outcome."""

import pytest
from msgspec.structs import replace

from kubelet_reference.api.results import ProbeKind, ProbeOutcome
from kubelet_reference.prober.worker import (
    WITH_INSTANCE,
    WITHOUT_INSTANCE,
    ProbeFacts,
    ProbeState,
    ProbeTransition,
    Step,
    Tick,
    probe_transition,
    tick,
)
from kubelet_reference.util.versions import Behaviour

LIVENESS, READINESS, STARTUP = ProbeKind
SUCCESS, FAILURE, UNKNOWN = ProbeOutcome
SKIP, PROBE, END = Step

KNOWN = ProbeState("c1", last=FAILURE, count=2)
HELD = ProbeState("c1", on_hold=True)
WAITS = ProbeFacts(
    phase="Running",
    container_id="c1",
    running=False,
    terminated=False,
    started=False,
    age=0.0,
    initial_delay=0,
    restarts=True,
    proven=False,
)
STARTS = replace(WAITS, running=True)
RUNS = replace(STARTS, started=True)
ENDED = replace(WAITS, terminated=True)


@pytest.mark.parametrize(
    ("kind", "state", "facts", "decision"),
    [
        pytest.param(LIVENESS, KNOWN, replace(RUNS, phase="Failed"), Tick(END, KNOWN), id="failed"),
        pytest.param(READINESS, KNOWN, replace(RUNS, phase="Succeeded"), Tick(END, KNOWN), id="succeeded"),
        pytest.param(LIVENESS, KNOWN, replace(RUNS, container_id=""), Tick(SKIP, KNOWN), id="no-id"),
        pytest.param(
            LIVENESS,
            ProbeState(),
            RUNS,
            Tick(PROBE, ProbeState("c1"), (SUCCESS,)),
            id="first-instance-liveness",
        ),
        pytest.param(
            READINESS,
            replace(KNOWN, container_id="c0"),
            RUNS,
            Tick(PROBE, ProbeState("c1"), (FAILURE,)),
            id="new-instance-readiness",
        ),
        pytest.param(
            STARTUP,
            replace(HELD, container_id="c0"),
            STARTS,
            Tick(PROBE, ProbeState("c1"), (UNKNOWN,)),
            id="new-instance-clears-hold",
        ),
        pytest.param(LIVENESS, HELD, RUNS, Tick(SKIP, HELD), id="hold"),
        pytest.param(LIVENESS, HELD, ENDED, Tick(SKIP, HELD), id="hold-publishes-nothing"),
        pytest.param(READINESS, KNOWN, ENDED, Tick(SKIP, KNOWN, (FAILURE,)), id="exited"),
        pytest.param(READINESS, KNOWN, WAITS, Tick(SKIP, KNOWN, (FAILURE,)), id="waiting-with-id"),
        pytest.param(
            READINESS, KNOWN, replace(ENDED, restarts=False), Tick(END, KNOWN, (FAILURE,)), id="exited-never"
        ),
        pytest.param(
            READINESS,
            KNOWN,
            replace(WAITS, restarts=False),
            Tick(SKIP, KNOWN, (FAILURE,)),
            id="waiting-never",
        ),
        pytest.param(
            LIVENESS,
            ProbeState(),
            ENDED,
            Tick(SKIP, ProbeState("c1"), (SUCCESS, FAILURE)),
            id="new-instance-has-exited",
        ),
        pytest.param(
            LIVENESS, KNOWN, replace(RUNS, age=4.9, initial_delay=5), Tick(SKIP, KNOWN), id="too-young"
        ),
        pytest.param(
            LIVENESS, KNOWN, replace(RUNS, age=5.0, initial_delay=5), Tick(PROBE, KNOWN), id="old-enough"
        ),
        pytest.param(STARTUP, KNOWN, RUNS, Tick(SKIP, KNOWN), id="startup-is-over"),
        pytest.param(STARTUP, KNOWN, STARTS, Tick(PROBE, KNOWN), id="startup"),
        pytest.param(LIVENESS, KNOWN, STARTS, Tick(SKIP, KNOWN), id="liveness-before-start"),
        pytest.param(READINESS, KNOWN, STARTS, Tick(SKIP, KNOWN), id="readiness-before-start"),
        pytest.param(LIVENESS, KNOWN, RUNS, Tick(PROBE, KNOWN), id="liveness"),
        pytest.param(READINESS, KNOWN, RUNS, Tick(PROBE, KNOWN), id="readiness"),
    ],
)
def test_tick(kind: ProbeKind, state: ProbeState, facts: ProbeFacts, decision: Tick) -> None:
    """The first row that holds decides."""
    assert tick(kind, state, facts) == decision


def test_every_condition_of_the_table_is_a_row() -> None:
    """The tables in the code have the conditions that are stated here, in this order."""
    assert [row.name for row in (*WITHOUT_INSTANCE, *WITH_INSTANCE)] == [
        "pod phase terminal",
        "no container id yet",
        "on hold",
        "container terminated for good",
        "container not Running",
        "age < initialDelay",
        "started and type startup",
        "not started and type != startup",
        "otherwise",
    ]


FRESH = ProbeState("c1")


def _run(outcome: ProbeOutcome, count: int) -> ProbeState:
    return ProbeState("c1", last=outcome, count=count)


def _held(outcome: ProbeOutcome, count: int = 1) -> ProbeState:
    return ProbeState("c1", on_hold=True, last=outcome, count=count)


@pytest.mark.parametrize(
    ("kind", "state", "outcome", "threshold", "transition"),
    [
        pytest.param(
            READINESS, FRESH, FAILURE, 3, ProbeTransition(_run(FAILURE, 1), None), id="below-the-threshold"
        ),
        pytest.param(
            READINESS,
            _run(FAILURE, 2),
            FAILURE,
            3,
            ProbeTransition(_run(FAILURE, 3), FAILURE),
            id="threshold-reached",
        ),
        pytest.param(
            READINESS,
            _run(FAILURE, 2),
            SUCCESS,
            1,
            ProbeTransition(_run(SUCCESS, 1), SUCCESS),
            id="one-success",
        ),
        pytest.param(
            READINESS,
            _run(SUCCESS, 9),
            FAILURE,
            3,
            ProbeTransition(_run(FAILURE, 1), None),
            id="opposite-resets",
        ),
        pytest.param(
            READINESS, _run(SUCCESS, 9), SUCCESS, 1, ProbeTransition(_run(SUCCESS, 10), SUCCESS), id="goes-on"
        ),
        pytest.param(
            LIVENESS,
            _run(FAILURE, 2),
            FAILURE,
            3,
            ProbeTransition(_held(FAILURE, 3), FAILURE),
            id="liveness-holds",
        ),
        pytest.param(
            LIVENESS,
            FRESH,
            SUCCESS,
            1,
            ProbeTransition(_run(SUCCESS, 1), SUCCESS),
            id="liveness-success-goes-on",
        ),
        pytest.param(
            STARTUP, FRESH, FAILURE, 1, ProbeTransition(_held(FAILURE), FAILURE), id="startup-failure-holds"
        ),
        pytest.param(
            STARTUP,
            FRESH,
            FAILURE,
            2,
            ProbeTransition(_run(FAILURE, 1), None),
            id="startup-below-the-threshold",
        ),
        pytest.param(
            STARTUP, FRESH, SUCCESS, 1, ProbeTransition(_held(SUCCESS), SUCCESS), id="startup-success-holds"
        ),
    ],
)
def test_conclude(
    kind: ProbeKind, state: ProbeState, outcome: ProbeOutcome, threshold: int, transition: ProbeTransition
) -> None:
    """Only so many outcomes of a sort in a row change what is published; some lead to a hold (PROBE-06)."""
    assert probe_transition(kind, state, outcome, threshold, Behaviour.of()) == transition


def test_startup_success_does_not_hold_in_old_versions() -> None:
    """Before 1.28 only a failed startup probe rests (PROBE-08)."""
    old = Behaviour.of("1.26")

    assert probe_transition(STARTUP, FRESH, SUCCESS, 1, old) == ProbeTransition(_run(SUCCESS, 1), SUCCESS)
    assert probe_transition(STARTUP, FRESH, FAILURE, 1, old) == ProbeTransition(_held(FAILURE), FAILURE)
