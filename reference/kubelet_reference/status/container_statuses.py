"""The container statuses of a pod: the runtime's records, in the words of the API.

Both tables are tried from the top, and the first row that fits decides. `STATES` goes by the newest record
and by what was said before, `REFUSALS` by what comes of a start that could not be made.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum, auto

import msgspec
from lightkube.models.core_v1 import ContainerState as State
from lightkube.models.core_v1 import (
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodStatus,
)
from msgspec.structs import replace

from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import NANOSECONDS, ContainerRecord, ContainerState, PodRecords
from kubelet_reference.api.restart_policy import should_restart
from kubelet_reference.status.reason_cache import ReasonCache
from kubelet_reference.util.decision_table import Row, Table
from kubelet_reference.util.versions import Behaviour


class Before(Enum):
    """What the status before said; where there was none the container waits."""

    WAITING = auto()
    RUNNING = auto()
    TERMINATED = auto()


class Shown(StrEnum):
    """What the status says now; lastState and the restart count go with it."""

    WAITS = "it waits to be created, the rest as before"
    AS_BEFORE = "all as before"
    VANISHED = "it waits to be created, after an end that was not observed"
    RECORD = "what the records say"
    LOST = "an end that was not observed"


class Seen(msgspec.Struct, frozen=True):
    """What decides; `state` is that of the record, None where there is none."""

    state: ContainerState | None
    before: Before


STATES = Table[Seen, Row[Seen, Shown]](
    Row("ended and gone", lambda s: s.state is None and s.before is Before.TERMINATED, Shown.AS_BEFORE),
    Row("vanished", lambda s: s.state is None and s.before is Before.RUNNING, Shown.VANISHED),
    Row("not made yet", lambda s: s.state is None, Shown.WAITS),
    Row("lost", lambda s: s.state is ContainerState.UNKNOWN and s.before is Before.RUNNING, Shown.LOST),
    Row("on record", lambda _: True, Shown.RECORD),
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A container whose last start failed: whether it is due to start again, and is shown as ended."""

    due: bool
    ended: bool


@dataclass(frozen=True, slots=True)
class RefusedRow(Row[Refused, bool]):
    """Whether the container waits for the failure (`then`), and its end becomes lastState."""

    end_is_last: bool = False


REFUSALS = Table[Refused, RefusedRow](
    RefusedRow("not due", lambda r: not r.due, then=False),
    RefusedRow("ended", lambda r: r.ended, then=True, end_is_last=True),
    RefusedRow("not ended", lambda _: True, then=True),
)


def shown(state: ContainerState | None, before: ContainerStatus | None) -> Shown:
    """What the status says of a container with a record in that state, and of which that was said before."""
    return STATES.row(Seen(state, _said(before))).then


def _said(before: ContainerStatus | None) -> Before:
    state = (before.state if before is not None else None) or State()
    if state.terminated is not None:
        return Before.TERMINATED
    return Before.WAITING if state.running is None else Before.RUNNING


STATUS_UNKNOWN = "ContainerStatusUnknown"
KILLED = 137
"""The exit code of a container whose end was not observed."""
LOST_WHILE_RUNNING = (
    "The container could not be located when the pod was deleted.  The container used to be Running"
)
LOST_AT_THE_END = "The container could not be located when the pod was terminated"


class ContainerStatuses(msgspec.Struct, frozen=True):
    """The three lists of a pod's status: inits in the order of the spec, the others by name (INIT-17)."""

    init: list[ContainerStatus]
    app: list[ContainerStatus]
    ephemeral: list[ContainerStatus]


class StatusInput(msgspec.Struct, frozen=True):
    """What container statuses are made from.

    `stored` is the status before; `runtime` the runtime's name, the scheme of container ids.
    """

    pod: Pod
    records: PodRecords
    stored: PodStatus
    reasons: ReasonCache
    runtime: str
    behaviour: Behaviour


class ContainerStatusRules:
    """What the rows of `STATES` and `REFUSALS` mean, each rule a method that a subclass may override."""

    def compute(self, now: StatusInput) -> ContainerStatuses:
        """What a pod's status says of each container of its spec; others are left out (CSTAT-13)."""
        pod, stored = now.pod, now.stored
        inits = _by_name(stored.initContainerStatuses)
        apps = _by_name(stored.containerStatuses)
        ephemeral = _by_name(stored.ephemeralContainerStatuses)
        return ContainerStatuses(
            init=[self.init_status(now, one, inits.get(one.name)) for one in pods.init_containers(pod)],
            app=_sorted(self.status(now, one, apps.get(one.name)) for one in pods.containers(pod)),
            ephemeral=_sorted(
                self.status(now, one, ephemeral.get(one.name)) for one in pods.ephemeral_containers(pod)
            ),
        )

    def init_status(
        self, now: StatusInput, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        """An init container whose newest record succeeded stays shown so, whatever failed before (CSTAT-05).

        One that has lost its record has to run again, and waits like any other where it cannot (PHASE-10).
        """
        status = self.recorded(now, container, before)
        newest = now.records.newest(container.name)
        done = newest is not None and newest.has_exited and newest.exit_code == 0
        return status if done else self.refused(now, container, status)

    def status(
        self, now: StatusInput, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        """By the records, and by why the last start failed."""
        return self.refused(now, container, self.recorded(now, container, before))

    def recorded(
        self, now: StatusInput, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        """The newest record gives the state, the one before it lastState (CSTAT-03, CSTAT-14).

        Where a container may restart its whole pod, the status before speaks for records that are gone.
        """
        records = [record for record in now.records.containers if record.name == container.name]
        if not records:
            return self.without_record(now.pod, container, before)
        status = replace(self.of_record(now.runtime, records[0], before), lastState=State())
        if before is not None and now.behaviour.restarts_all_containers:
            status = self.carried_on(status, before)
        if len(records) > 1:
            return replace(status, lastState=self.of_record(now.runtime, records[1], before).state)
        return status

    def carried_on(self, status: ContainerStatus, before: ContainerStatus) -> ContainerStatus:
        """The count does not fall and lastState stays, though the records they are from are gone (CSTAT-14).

        A new instance after an end counts as a restart. An end that was not observed was counted with it, and
        no more once the container is there again.
        """
        is_next, ended = before.containerID != status.containerID, _end(before.state)
        was_lost = ended is not None and ended.reason == STATUS_UNKNOWN
        count = before.restartCount - (was_lost and not is_next)
        if is_next and ended and not was_lost and status.state and status.state.running:
            count += 1
        last = before.state if is_next and ended else before.lastState
        end = _end(last)
        if last is None or (end is not None and end.containerID == status.containerID):
            last = State()
        return replace(status, restartCount=max(count, status.restartCount), lastState=last)

    def refused(self, now: StatusInput, container: AnyContainer, status: ContainerStatus) -> ContainerStatus:
        """A container that is due to start, and could not, waits for that reason (CSTAT-04)."""
        failure = now.reasons.get(pods.uid(now.pod), container.name)
        if failure is None:
            return status
        record = now.records.newest(container.name)
        due = should_restart(now.pod, container, record, now.behaviour)
        ended = status.state is not None and status.state.terminated is not None
        row = REFUSALS.row(Refused(due, ended))
        if not row.then:
            return status
        last = status.state if row.end_is_last else status.lastState
        return replace(status, state=_waiting(failure.reason, failure.message), lastState=last)

    def without_record(
        self, pod: Pod, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        """Nothing is there: the container waits to be created, unless it had ended (CSTAT-01)."""
        waits, says = _to_be_created(pod, container), shown(None, before)
        if before is None:
            return waits
        if says is Shown.AS_BEFORE:
            return before
        if says is Shown.VANISHED:
            return self.vanished(pod, waits, before)
        return replace(waits, restartCount=before.restartCount, lastState=before.lastState or State())

    def vanished(self, pod: Pod, waits: ContainerStatus, before: ContainerStatus) -> ContainerStatus:
        """Its record went while it ran: an end is put in its place, and it counts as a restart (CSTAT-06)."""
        restarts = before.restartCount + (0 if pods.deletion_asked(pod) else 1)
        return replace(waits, restartCount=restarts, lastState=unknown_end(LOST_WHILE_RUNNING))

    def of_record(
        self, runtime: str, record: ContainerRecord, before: ContainerStatus | None
    ) -> ContainerStatus:
        """What one record says of its container (CSTAT-02, CSTAT-07, CSTAT-08)."""
        lost = before if shown(record.state, before) is Shown.LOST else None
        return ContainerStatus(
            name=record.name,
            image=record.image,
            imageID=record.image_ref,
            containerID=f"{runtime}://{record.id}",
            ready=False,
            restartCount=lost.restartCount + 1 if lost else record.restart_count,
            state=unknown_end(LOST_AT_THE_END) if lost else _state(runtime, record),
            stopSignal=record.stop_signal or None,
        )


def container_statuses(now: StatusInput) -> ContainerStatuses:
    """What a pod's status says of each of its containers, by the rules as they are."""
    return _RULES.compute(now)


_RULES = ContainerStatusRules()


def _by_name(statuses: list[ContainerStatus] | None) -> dict[str, ContainerStatus]:
    return {status.name: status for status in statuses or ()}


def _sorted(statuses: Iterable[ContainerStatus]) -> list[ContainerStatus]:
    return sorted(statuses, key=lambda status: status.name)


def _to_be_created(pod: Pod, container: AnyContainer) -> ContainerStatus:
    return ContainerStatus(
        name=container.name,
        image=container.image or "",
        imageID="",
        ready=False,
        restartCount=0,
        state=_waiting("PodInitializing" if pods.init_containers(pod) else "ContainerCreating"),
        lastState=State(),
    )


def unknown_end(message: str) -> State:
    """The state of a container that must have ended, though its end was not observed (CSTAT-02, TERM-17)."""
    return State(terminated=ContainerStateTerminated(exitCode=KILLED, reason=STATUS_UNKNOWN, message=message))


def _end(state: State | None) -> ContainerStateTerminated | None:
    return state.terminated if state is not None else None


def _state(runtime: str, record: ContainerRecord) -> State:
    if record.is_running:
        return State(running=ContainerStateRunning(startedAt=stamp(record.started_at)))
    if record.has_exited:
        ended = ContainerStateTerminated(
            exitCode=record.exit_code,
            reason=record.reason or None,
            message=record.message or None,
            startedAt=stamp(record.started_at),
            finishedAt=stamp(record.finished_at),
            containerID=f"{runtime}://{record.id}",
        )
        return State(terminated=ended)
    return _waiting()


def _waiting(reason: str = "", message: str = "") -> State:
    return State(waiting=ContainerStateWaiting(reason=reason or None, message=message or None))


def stamp(nanoseconds: int) -> datetime | None:
    """A time as the API has it, in whole seconds (STATUS-11); None for 0, which is no time (START-12)."""
    return whole_second(nanoseconds) if nanoseconds else None


def whole_second(nanoseconds: int) -> datetime:
    """The second that began last, of a time in nanoseconds since the epoch."""
    return datetime.fromtimestamp(nanoseconds // NANOSECONDS, UTC)
