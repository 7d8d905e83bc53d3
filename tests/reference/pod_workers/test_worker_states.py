"""The pod worker's table: one way only, nothing left out, and drawn in the guide as it is."""

from pathlib import Path

import pytest
from worker_pages import diagram, markdown_table

from kubelet_reference.pod_workers.worker_table import (
    ROWS,
    Action,
    Event,
    Guard,
    Row,
    State,
    WorkerTable,
    worker_table,
)
from kubelet_reference.util.versions import Behaviour

PAGE = Path(__file__).resolve().parents[3] / "docs" / "pod-worker.md"
LIFE = [State.WAITING, State.SYNC, State.TERMINATING, State.TERMINATED, State.FINISHED]
UPDATES = [Event.UPDATE, Event.TERMINATE]
WITH_ROUNDS = [State.SYNC, State.TERMINATING, State.TERMINATED]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.state}-{row.event}-{row.guard}")
def test_life_goes_one_way(row: Row) -> None:
    """No row leads back; only what nothing runs of, or no spec is known of, is forgotten."""
    if row.next is State.NONE:
        may_forget = row.state in {State.WAITING, State.FINISHED} or row.event is Event.ENDED

        assert may_forget
    elif row.state is not State.NONE:
        assert LIFE.index(row.next) >= LIFE.index(row.state)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", UPDATES)
def test_every_update_has_a_row_without_condition(state: State, event: Event) -> None:
    """Whatever update a worker gets, in whatever state, the table says what follows."""
    assert WorkerTable().find(state, event, lambda _: False) is not None


@pytest.mark.parametrize("state", WITH_ROUNDS)
@pytest.mark.parametrize("event", [Event.DONE, Event.FAILED])
def test_every_round_has_a_successor(state: State, event: Event) -> None:
    """After a round the worker goes on at once, or knows when it looks again, or is finished."""
    row = WorkerTable().find(state, event, lambda _: False)

    assert row is not None
    going_on = {Action.QUEUE_AGAIN, Action.RESYNC_LATER, Action.RETRY_SOON}
    assert row.next is State.FINISHED or going_on & set(row.actions)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.state}-{row.event}-{row.guard}")
def test_who_waits_for_a_kill_is_released(row: Row) -> None:
    """When nothing runs any more those who wait for it go on (WORK-32)."""
    stops = row.state in {State.TERMINATING, State.WAITING, State.NONE}
    is_end = row.next in {State.TERMINATED, State.FINISHED} and stops and row.guard is not Guard.ENDED_BEFORE

    assert not is_end or Action.RELEASE_KILLERS in row.actions


def test_first_row_that_holds_counts() -> None:
    """A row with a condition comes before the one for all other cases."""
    table = WorkerTable()
    static = table.find(State.NONE, Event.UPDATE, lambda guard: guard is Guard.STATIC)
    other = table.find(State.NONE, Event.UPDATE, lambda _: False)

    assert static is not None
    assert other is not None
    assert (static.next, other.next) == (State.WAITING, State.SYNC)


def test_before_1_27() -> None:
    """1.26 finishes at once what was over before, and leaves dropped pods to the search for orphans."""
    table = worker_table(Behaviour.of("1.26"))
    ended_before = table.find(State.NONE, Event.TERMINATE, lambda guard: guard is Guard.ENDED_BEFORE)

    assert ended_before is not None
    assert ended_before.next is State.FINISHED
    assert table.find(State.SYNC, Event.UNWANTED, lambda _: False) == Row(
        State.SYNC, Event.UNWANTED, State.SYNC
    )
    assert table.find(State.FINISHED, Event.UNWANTED, lambda _: False) is not None


def test_unknown_event_raises() -> None:
    """What a state does not know is a mistake, and nothing that is passed over."""
    with pytest.raises(LookupError, match="does not know"):
        WorkerTable().find(State.WAITING, Event.DONE, lambda _: True)


def test_guide_shows_the_table() -> None:
    """The page in the guide has the diagram and the rows that the code has."""
    page = PAGE.read_text(encoding="utf-8")

    assert f"```mermaid\n{diagram()}```\n" in page
    assert markdown_table() in page
