"""CSTAT: what a status says of each container, compared with the runtime's records."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Exit, Finding, Moment, Note, Pod, PodSpec, Terminated
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, broken, contract, kept_if, observer
from kubelet_conformance.contract.patterns import read_as, status
from kubelet_conformance.contracts.facts import status as statuses
from kubelet_conformance.contracts.facts.container import last_read_as
from kubelet_conformance.contracts.facts.static_pod import (
    end_is_made_up,
    ended_since_its_file_went,
    is_forgotten,
)
from kubelet_conformance.contracts.facts.timing import REACTION
from kubelet_conformance.contracts.tables.status import Recorded, may_be_shown, said, shown
from kubelet_conformance.trace.format.bodies import ContainerStatusReply
from kubelet_conformance.trace.format.records import Call
from kubelet_conformance.trace.world.kubelet_view import kubelet_view, receives_events

NEEDS = (STATUS, PODS, CRI)
NANOSECONDS = 10**9
UNKNOWN_END_CODE = 137


def _ends(m: Moment) -> bool:
    """At a pod's end containers without a record get an invented state."""
    return m.pod is None or m.pod.termination is not None or bool(m.status and m.status.terminal)


@contract("CSTAT-01", on=status(), needs=NEEDS)
def container_without_record_waits(m: Moment, pod: Pod, spec: PodSpec) -> Iterator[Finding]:
    """A container without a record waits with ContainerCreating, or PodInitializing in a pod with inits.

    The reason it could not be started for stands there instead, if there is one.
    """
    if not pod.born or _ends(m):
        return
    default = "PodInitializing" if spec.init_containers else "ContainerCreating"
    for entry in statuses.kubelets_entries(m):
        if not entry.without_record:
            continue
        name, waiting = entry.status.name, entry.status.state.waiting
        if end_is_made_up(m, pod, entry.status):
            continue
        if waiting is None:
            yield broken(f"{name} has no record and does not wait", pod.set_seq)
        elif entry.kind != "ephemeral" and waiting.reason not in {default, *statuses.START_ERRORS}:
            yield broken(f"{name} waits with reason {waiting.reason!r}, expected {default}", pod.set_seq)
        else:
            yield KEPT


def _wrong_end(said: Terminated, container: Container) -> str | None:
    """What a terminated state says wrongly of the record it names."""
    record, ended = container.record, container.exit
    if ended is None:
        return "is terminated, and the runtime has not said so"
    code = ended.code if record is None or ended.code is not None else record.exit_code
    if code is not None and said.exit_code != code:
        return f"has exitCode {said.exit_code}, it ended with {code}"
    if record is None or not record.finished_at:
        return None
    for name, nanoseconds in (("startedAt", record.started_at), ("finishedAt", record.finished_at)):
        stamp = statuses.seconds(said.started_at if name == "startedAt" else said.finished_at)
        if stamp is not None and stamp != nanoseconds // NANOSECONDS:
            return f"has {name} {stamp}, the runtime says {nanoseconds // NANOSECONDS}"
    return None


@contract("CSTAT-02", on=status(), needs=NEEDS)
def state_is_that_of_the_record(m: Moment) -> Iterator[Finding]:
    """A container whose record runs is shown running, an exited one terminated, with the record's data.

    These are its start, its end, its exit code and its id.
    """
    for entry in statuses.kubelets_entries(m):
        container, state, name = entry.container, entry.status.state, entry.status.name
        if container is None or not container.born:
            continue
        if state.running is not None:
            yield _running(m, entry, container)
        elif state.terminated is not None and state.terminated.container_id:
            if state.terminated.container_id != entry.status.container_id:
                yield broken(f"{name} is terminated as another container than it is", container.start)
                continue
            wrong = _wrong_end(state.terminated, container)
            yield broken(f"{name} {wrong}", _ended(container)) if wrong else KEPT


def _running(m: Moment, entry: statuses.Entry, container: Container) -> Finding:
    name, ended = entry.status.name, container.exit
    if container.start is None:
        return broken(f"{name} is shown running and was never started")
    if ended is not None and m.t - ended.t > REACTION and not statuses.is_unseen(m, entry, ended.t):
        return broken(f"{name} is shown running {m.t - ended.t:.1f} s after it exited", ended.seq)
    running, record = entry.status.state.running, container.record
    stamp = statuses.seconds(running.started_at) if running else None
    if stamp is not None and record is not None and record.started_at:
        real = record.started_at // NANOSECONDS
        if stamp != real:
            return broken(f"{name} has startedAt {stamp}, the runtime says {real}", container.start)
    return KEPT


def _ended(container: Container) -> Exit | Call | None:
    return container.exit or container.start


@state_is_that_of_the_record.clause("last state", on=statuses.END_SHOWN)
def last_state_is_that_of_its_record(m: Moment) -> Iterator[Finding]:
    """A terminated lastState has the data of the record that it names."""
    for entry in statuses.kubelets_entries(m):
        last, container = entry.status.last_state.terminated, entry.last
        if last is None or container is None or not container.born:
            continue
        wrong = _wrong_end(last, container)
        yield broken(f"lastState of {entry.status.name} {wrong}", _ended(container)) if wrong else KEPT


class _Read(Note):
    """The states in which the kubelet has read a container's record."""

    states: set[Recorded] = set()


_RECORDED: dict[str, Recorded] = {
    "CONTAINER_CREATED": "created",
    "CONTAINER_RUNNING": "running",
    "CONTAINER_EXITED": "exited",
    "CONTAINER_UNKNOWN": "unknown",
}


@observer(on=read_as("created", "running", "exited", "unknown"))
def _state_is_read(m: Moment) -> None:
    record = m.response(ContainerStatusReply).status
    state = _RECORDED.get(record.state) if record is not None else None
    if m.container is not None and state is not None:
        m.container.note(_Read).states.add(state)


@state_is_that_of_the_record.clause("as read", on=status())
def state_was_read(m: Moment, pod: Pod) -> Iterator[Finding]:
    """The state of a container in a status follows from a state that its record was read in."""
    if receives_events(m) or _ends(m) or not m.header.from_start:
        return  # Events of the runtime report states too.
    for entry in statuses.kubelets_entries(m):
        container = entry.container
        if container is None or not container.born or container.state == "removed":
            continue
        read = container.note(_Read).states
        if not read:
            continue
        if end_is_made_up(m, pod, entry.status):
            continue
        reported, before = shown(entry.status), said(entry.before)
        if reported in may_be_shown(read, before):
            yield KEPT
        else:
            text = f"{entry.status.name} is shown as {reported}, it was read as {', '.join(sorted(read))}"
            yield broken(text, container.start)


@contract("CSTAT-03", on=statuses.END_SHOWN, needs=NEEDS)
def only_the_newest_two_records_count(m: Moment) -> Iterator[Finding]:
    """State is of the newest record of a name, lastState of the one before it."""
    for entry in statuses.kubelets_entries(m):
        last = entry.status.last_state.terminated
        container = entry.container
        if last is None or not last.container_id or container is None:
            continue
        if entry.status.state.waiting is not None:
            continue
        before = entry.last
        if before is None or not before.born or not container.born:
            continue
        state = entry.status.state.terminated
        if before is container and state is not None and not state.container_id:
            continue  # It waited for a restart at its pod's end: this end is of no record.
        if _age(before) >= _age(container):
            yield broken(f"lastState of {container.name} is not of an earlier record", container.start)
        elif any(before.attempt < c.attempt < container.attempt for c in _records(m, container.name)):
            yield broken(f"lastState of {container.name} is of an older record than the last but one")
        else:
            yield KEPT


def _age(container: Container) -> tuple[float, int]:
    """What orders the containers of a pod by their creation, also those of one instant."""
    return container.created_t or 0.0, container.create.seq if container.create is not None else 0


def _records(m: Moment, name: str) -> list[Container]:
    return m.pod.containers.get(name, []) if m.pod else []


@contract("CSTAT-04", on=status(), needs=NEEDS)
def refused_restart_waits_after_its_end(m: Moment) -> Iterator[Finding]:
    """A container whose restart was refused waits with the reason, and its end moves to lastState.

    Without a recorded reason the terminated state stays.
    """
    for entry in statuses.kubelets_entries(m):
        container, said, waiting = entry.container, entry.status, entry.status.state.waiting
        if waiting is None or container is None or not container.born or not container.started_seq:
            continue
        if container.state == "unknown" or last_read_as(container, "UNKNOWN"):
            continue  # What it does is not known, so neither is that it ended.
        if container.state == "removed" and statuses.is_reset(m, said):
            continue  # That it was removed is shown in place of its end.
        if container.exit is not None and container.exit.t >= kubelet_view(m).made_since(m.t):
            continue  # The status was made before it ended, and is sent again.
        last = said.last_state.terminated
        if container.exit is None:
            yield broken(f"{said.name} waits, and its record has not ended", container.start)
        elif (last is None or last.container_id != said.container_id) and not _was_made_up(m, entry):
            yield broken(f"{said.name} waits, and its end is not in lastState", container.exit.seq)
        elif waiting.reason not in statuses.START_ERRORS:
            yield broken(f"{said.name} waits with reason {waiting.reason!r}, no start has failed")
        else:
            yield KEPT


def _was_made_up(m: Moment, entry: statuses.Entry) -> bool:
    """The end in lastState was invented when its static pod, now back, was terminated; no record is left."""
    last, container = entry.status.last_state.terminated, entry.container
    if last is None or last.reason != statuses.UNKNOWN_END or container is None:
        return False
    if container.state != "removed":
        return False
    return m.pod is not None and ended_since_its_file_went(m, m.pod)


@contract("CSTAT-05", on=status(), needs=NEEDS)
def finished_init_stays_terminated(m: Moment) -> Iterator[Finding]:
    """An init container whose newest record exited with 0 stays terminated, whatever the others do."""
    for entry in statuses.kubelets_entries(m):
        container = entry.container
        if entry.kind != "init" or container is None or container.exit is None or container.exit.code != 0:
            continue
        if container.state == "removed":
            continue  # It has to run again.
        if entry.status.state.waiting is not None:
            yield broken(f"init container {entry.status.name} ended with 0 and waits", container.exit.seq)
        elif entry.status.state.terminated is not None:
            yield KEPT


@contract("CSTAT-06", on=statuses.AGAIN, needs=NEEDS)
def vanished_record_leaves_its_trace(m: Moment, pod: Pod) -> Iterator[Finding]:
    """A running container whose record vanished gets the lastState ContainerStatusUnknown, exit code 137.

    It waits, and its restartCount goes up by one unless the pod is being deleted.
    """
    if _ends(m):
        return
    for entry in statuses.kubelets_entries(m):
        said, old = entry.status, entry.before
        gone = statuses.record_with(m, old.runtime_id) if old is not None else None
        if old is None or gone is None or not gone.vanished or said.container_id or entry.kind != "app":
            continue
        if old.state.running is None:
            continue
        last = said.last_state.terminated
        if last is None or last.reason != statuses.UNKNOWN_END or last.exit_code != UNKNOWN_END_CODE:
            yield broken(f"{said.name} has lost its record, and lastState does not say so", pod.status_seq)
        elif said.restart_count != old.restart_count + 1:
            yield broken(
                f"restartCount of {said.name} is {said.restart_count}, expected {old.restart_count + 1}"
            )
        else:
            yield KEPT


@contract("CSTAT-14", on=statuses.AGAIN, needs=NEEDS)
def last_state_goes_with_its_record(m: Moment) -> Iterator[Finding]:
    """LastState is of a record: it goes with that record once the status is built from the remaining one.

    The same holds for the end that was invented for a vanished record. restartCount stays. From 1.36 on
    lastState outlives its record, until there is an older record again.
    """
    for entry, older, removed_t in _last_states_without_record(m):
        name, last = entry.status.name, entry.status.last_state.terminated
        if statuses.carries_on(m):
            if last is not None or m.pod is None or not is_forgotten(m, m.pod):
                yield kept_if(last is not None, f"lastState of {name} has gone with its record")
        elif last is None or last.container_id != older.container_id:
            yield KEPT
        elif m.t - removed_t > REACTION and not kubelet_view(m).api_was_faulty(removed_t):
            seq = m.pod.status_seq if m.pod else None
            yield broken(f"lastState of {name} is of a record that is gone", seq)


def _last_states_without_record(m: Moment) -> Iterator[tuple[statuses.Entry, Terminated, float]]:
    """Containers whose lastState was of a record that is gone: the entry, that state, and since when."""
    for entry in statuses.kubelets_entries(m):
        said, container, old = entry.status, entry.container, entry.before
        older = old.last_state.terminated if old is not None else None
        if container is None or not container.born or old is None or older is None:
            continue
        if said.state.waiting or _ends(m) or old.container_id not in {"", said.container_id}:
            continue
        if end_is_made_up(m, m.pod, said):
            continue  # The rest of it stays as it was.
        if statuses.shows_probes_only(m) or statuses.shows_its_sandbox_only(m):
            continue
        gone = statuses.record_with(m, older.runtime_id)
        removed_t = (
            container.created_t if older.reason == statuses.UNKNOWN_END else gone.removed_t if gone else None
        )
        if removed_t is not None and container.removed_t is None:
            yield entry, older, removed_t


@contract("CSTAT-15", on=status(), needs=NEEDS)
def unstarted_record_waits(m: Moment) -> Iterator[Finding]:
    """A record that was created and never started is shown as waiting."""
    for entry in statuses.kubelets_entries(m):
        container, said = entry.container, entry.status
        if container is None or not container.born or container.started_seq or container.start is None:
            continue
        if not container.start_failed:
            continue
        if container.record is not None and container.record.state != "CONTAINER_CREATED":
            continue  # The start failed for the kubelet only: the runtime has done it.
        if statuses.is_lost(said) and (_ends(m) or end_is_made_up(m, m.pod, said)):
            continue
        if said.state.waiting is not None:
            yield KEPT
        else:
            yield broken(f"{said.name} was never started and does not wait", container.start)
