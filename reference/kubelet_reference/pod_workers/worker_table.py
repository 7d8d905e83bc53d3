"""The pod worker's state machine: one table, with prose above it and a diagram made from it.

A pod worker drives one pod UID inside the kubelet. Its states go one way:

    waiting -> sync -> terminating -> terminated -> finished -> forgotten

`sync`         The pod is desired. Each sync compares it with the runtime and starts what is missing.
`waiting`      A static pod whose full name (name and namespace) another UID still holds (STATIC-18).
`terminating`  The pod must end, and nothing leads back (WORK-04). Each sync stops what still runs, until
               a new reading of the runtime shows that nothing does (WORK-11).
`terminated`   Nothing runs and the final status is known. A sync cleans up: volumes, secrets, cgroup.
`finished`     There is nothing left to do, but the UID is remembered, so that a late update, from a stale
               list or a watch, cannot start it again (WORK-14).
`none`         Never seen, or forgotten by housekeeping, when no source wants the pod any more, or when
               it was created anew while its former instance was ending (WORK-22).

Three kinds of event drive it:

- updates of the pod. What is created or updated goes into the one place for the next sync, where it
  replaces what lay there (WORK-02). A termination changes the state, not only the update, and that is why
  no later update can take a kill back (WORK-03). Once it was asked for, only the grace period can still
  change, and it can only shrink (WORK-07).
- the end of a sync. A sync that reports that the pod has ended, or that nothing of it runs, leads on at
  once, any other one is repeated: late when it went well, soon when it failed. A sync that an update
  overtook (the state is no longer the one it began in) decides nothing: its successor is queued already.
- housekeeping, which compares the workers with the pods that the sources want.

A pod that only the runtime knows has no spec: it can be killed and nothing else (WORK-24).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum, auto

from kubelet_reference.util.decision_table import taken
from kubelet_reference.util.versions import Behaviour


class State(StrEnum):
    """Where a pod's worker stands."""

    NONE = auto()
    WAITING = auto()
    SYNC = auto()
    TERMINATING = auto()
    TERMINATED = auto()
    FINISHED = auto()


class Event(StrEnum):
    """What happens to a worker."""

    CREATE = "created anew"
    """A source has the pod again while its worker is ending."""
    UPDATE = "update"
    """The pod, live, is new, changed or is due for another sync."""
    TERMINATE = "termination asked"
    """A kill or eviction; or the pod has a deletion timestamp or a terminal phase; or the runtime runs a pod
    that no source knows."""
    NAME_FREE = "name is free"
    """No other static pod of that full name is left."""
    DONE = "sync done"
    ENDED = "pod has ended"
    """A sync found that the pod will never run again by itself, or nothing of what only the runtime knew is
    left."""
    FAILED = "sync failed"
    UNWANTED = "in no source"
    """Housekeeping does not find the pod among those that the sources want."""
    RESTART = "restart due"
    """Housekeeping sees that the pod was created anew while it was ending."""


class Guard(StrEnum):
    """A condition that a row may have besides state and event."""

    STATIC = "static pod"
    ENDED_BEFORE = "terminal phase, nothing runs"


class Action(StrEnum):
    """What `PodWorkers` does when it takes a row, in the row's order."""

    QUEUE = "queue the update"
    """Make it the pending one, and wake the worker."""
    QUEUE_AGAIN = "go on at once"
    """Queue the last update anew, unless a newer one is pending."""
    SET_GRACE = "set the grace"
    CANCEL_WAITS = "cancel waits"
    """End what a sync in flight waits for, where it can be ended (WORK-06)."""
    RESYNC_LATER = "again in 60-90 s"
    RETRY_SOON = "again in 10-15 s"
    REMEMBER_RESTART = "remember the restart"
    TAKE_NAME = "take the name"
    RELEASE_NAME = "release the name"
    RELEASE_KILLERS = "release who waits for the kill"
    MARK_DELETED = "mark as deleted"
    FORGET = "forget the worker"


@dataclass(frozen=True, slots=True)
class Row:
    """In `state`, when `event` happens and `guard` holds: go to `next` and do `actions`."""

    state: State
    event: Event
    next: State
    actions: tuple[Action, ...] = ()
    guard: Guard | None = None


def _rows(state: State, events: Iterable[Event], to: State, *actions: Action) -> Iterator[Row]:
    return (Row(state, event, to, actions) for event in events)


#: Of the rows for a state and an event the first whose guard holds counts. What is ignored is a row without
#: actions; an event that a state has no row for is a mistake.
ROWS: tuple[Row, ...] = (
    # --- none: the first time that a UID is seen, a create is no restart (WORK-22)
    Row(State.NONE, Event.UPDATE, State.WAITING, (Action.QUEUE,), Guard.STATIC),
    Row(State.NONE, Event.UPDATE, State.SYNC, (Action.QUEUE,)),
    # A pod that was over before this kubelet first saw it is only cleaned up (WORK-29); if something of it
    # still runs, that is stopped first (WORK-30).
    Row(State.NONE, Event.TERMINATE, State.TERMINATED, (Action.QUEUE,), Guard.ENDED_BEFORE),
    Row(State.NONE, Event.TERMINATE, State.FINISHED, (Action.RELEASE_KILLERS,), Guard.STATIC),
    Row(State.NONE, Event.TERMINATE, State.TERMINATING, (Action.SET_GRACE, Action.QUEUE)),
    # --- waiting: nothing was started, so nothing has to be stopped (WORK-28)
    Row(State.WAITING, Event.UPDATE, State.WAITING, (Action.QUEUE,)),
    Row(State.WAITING, Event.NAME_FREE, State.SYNC, (Action.TAKE_NAME,)),
    Row(State.WAITING, Event.TERMINATE, State.FINISHED, (Action.RELEASE_KILLERS,)),
    Row(State.WAITING, Event.UNWANTED, State.NONE, (Action.FORGET,)),
    # --- sync
    Row(State.SYNC, Event.UPDATE, State.SYNC, (Action.QUEUE,)),
    Row(
        State.SYNC,
        Event.TERMINATE,
        State.TERMINATING,
        (Action.SET_GRACE, Action.QUEUE, Action.CANCEL_WAITS),
    ),
    Row(State.SYNC, Event.DONE, State.SYNC, (Action.RESYNC_LATER,)),
    Row(State.SYNC, Event.FAILED, State.SYNC, (Action.RETRY_SOON,)),
    Row(State.SYNC, Event.ENDED, State.TERMINATING, (Action.QUEUE_AGAIN,)),
    # The source dropped the pod and sent no removal (WORK-27).
    Row(
        State.SYNC,
        Event.UNWANTED,
        State.TERMINATING,
        (Action.MARK_DELETED, Action.QUEUE_AGAIN, Action.CANCEL_WAITS),
    ),
    # --- terminating
    Row(State.TERMINATING, Event.CREATE, State.TERMINATING, (Action.REMEMBER_RESTART,)),
    *_rows(
        State.TERMINATING,
        (Event.UPDATE, Event.TERMINATE),
        State.TERMINATING,
        Action.SET_GRACE,
        Action.QUEUE,
    ),
    # A pod that was known through the runtime alone leaves nothing to clean up (WORK-24).
    Row(State.TERMINATING, Event.ENDED, State.NONE, (Action.RELEASE_KILLERS, Action.FORGET)),
    Row(State.TERMINATING, Event.DONE, State.TERMINATED, (Action.RELEASE_KILLERS, Action.QUEUE_AGAIN)),
    Row(State.TERMINATING, Event.FAILED, State.TERMINATING, (Action.RETRY_SOON,)),
    # No source will send it again: housekeeping keeps the kill going (WORK-10).
    Row(State.TERMINATING, Event.UNWANTED, State.TERMINATING, (Action.MARK_DELETED, Action.QUEUE_AGAIN)),
    # The restart waits for the end of the former instance (WORK-22).
    Row(State.TERMINATING, Event.RESTART, State.TERMINATING),
    # --- terminated
    Row(State.TERMINATED, Event.CREATE, State.TERMINATED, (Action.REMEMBER_RESTART,)),
    Row(State.TERMINATED, Event.UPDATE, State.TERMINATED, (Action.QUEUE,)),
    Row(State.TERMINATED, Event.TERMINATE, State.TERMINATED, (Action.RELEASE_KILLERS, Action.QUEUE)),
    Row(State.TERMINATED, Event.DONE, State.FINISHED, (Action.RELEASE_NAME,)),
    Row(State.TERMINATED, Event.FAILED, State.TERMINATED, (Action.RETRY_SOON,)),
    Row(State.TERMINATED, Event.UNWANTED, State.TERMINATED, (Action.MARK_DELETED, Action.QUEUE_AGAIN)),
    Row(State.TERMINATED, Event.RESTART, State.TERMINATED),
    # --- finished
    Row(State.FINISHED, Event.CREATE, State.FINISHED, (Action.REMEMBER_RESTART,)),
    Row(State.FINISHED, Event.UPDATE, State.FINISHED),
    Row(State.FINISHED, Event.TERMINATE, State.FINISHED, (Action.RELEASE_KILLERS,)),
    *_rows(State.FINISHED, (Event.UNWANTED, Event.RESTART), State.NONE, Action.RELEASE_NAME, Action.FORGET),
)


class WorkerTable:
    """The rows, indexed by state and event."""

    def __init__(self, rows: Iterable[Row] = ROWS) -> None:
        self.rows = tuple(rows)
        index: dict[tuple[State, Event], tuple[Row, ...]] = {}
        for row in self.rows:
            index[row.state, row.event] = (*index.get((row.state, row.event), ()), row)
        self._index = index

    def find(self, state: State, event: Event, holds: Callable[[Guard], bool]) -> Row:
        """The row that counts; `LookupError` where the state does not know the event."""
        for row in self._index.get((state, event), ()):
            if row.guard is None or holds(row.guard):
                taken[row] += 1
                return row
        raise LookupError(f"a worker in state {state!r} does not know the event {event!r}")


def worker_table(behaviour: Behaviour) -> WorkerTable:
    """The table of a Kubernetes version."""
    rows: Iterable[Row] = ROWS
    if not behaviour.terminal_first_seen_gets_terminated_sync:
        rows = (
            replace(row, next=State.FINISHED, actions=(Action.RELEASE_KILLERS,))
            if row.guard is Guard.ENDED_BEFORE
            else row
            for row in rows
        )
    if not behaviour.adopts_known_pods:
        # Before 1.27 housekeeping only forgets; what config dropped in silence is found as an orphan.
        rows = (
            replace(row, next=row.state, actions=())
            if row.event is Event.UNWANTED and row.state is not State.FINISHED
            else row
            for row in rows
        )
    return WorkerTable(rows)
