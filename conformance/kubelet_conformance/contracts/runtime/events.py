"""CRI: the stream of container events, and the timestamped statuses that an evented PLEG reads beside it."""

from msgspec import field

from kubelet_conformance.contract import Container, Moment, Note, Pattern, Sandbox
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, failed, happened, kubelet
from kubelet_conformance.contracts.facts.timing import REACTION
from kubelet_conformance.contracts.runtime.expected import judges_expectations
from kubelet_conformance.contracts.runtime.records import LEAST_NANOSECONDS
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.records import Message
from kubelet_conformance.trace.world.missed_updates import is_withheld
from kubelet_conformance.trace.world.readings import container_state
from kubelet_conformance.trace.world.runtime_reports import event_of
from kubelet_conformance.trace.world.views import Latest

GATE = "EventedPLEG"
_STREAM = "GetContainerEvents"
_ORDER = tuple(f"CONTAINER_{step}_EVENT" for step in ("CREATED", "STARTED", "STOPPED", "DELETED"))
_RUNS = {"CREATED": "CONTAINER_CREATED", "STARTED": "CONTAINER_RUNNING", "STOPPED": "CONTAINER_EXITED"}
_ENDS = done(_STREAM).either(failed(_STREAM))
_LEAVES = kubelet("started", "stopped", "killed", "ended")
"""Nobody reads the streams of a kubelet that has ended."""
_STATES = {"created": "CONTAINER_CREATED", "running": "CONTAINER_RUNNING", "exited": "CONTAINER_EXITED"}


class _Streams(Note):
    """The open event streams, and for each stream the last step of every record."""

    open: set[str] = set()
    steps: Latest[str, dict[str, tuple[int, int]]] = field(
        default_factory=Latest[str, dict[str, tuple[int, int]]]
    )
    """By record and stream: its last step, and the seq of that event."""


@contract("CRI-30", on=Pattern(frozenset({"message"})), gate=GATE)
def events_report_each_transition_once(m: Moment) -> Findings:
    """GetContainerEvents reports each transition of a sandbox and of a container once and in order.

    An event has an id, a time in nanoseconds, the status of the sandbox and those of its containers.
    """
    event = event_of(m)
    if event is None or not isinstance(m.record, Message) or is_withheld(m.node, _pod_uid(m, event)):
        return None
    if not event.container_id or event.created_at < LEAST_NANOSECONDS:
        return broken(f"an event has id {event.container_id[:12]!r} and created_at {event.created_at}")
    if event.container_event_type not in _ORDER:
        return broken(f"{event.container_event_type} is no type of an event")
    steps, at = m.node.note(_Streams).steps, _ORDER.index(event.container_event_type)
    of_record = steps.get(event.container_id, {})
    last, seq = of_record.get(m.record.id, (-1, 0))
    steps[event.container_id] = {**of_record, m.record.id: (at, m.seq)}
    if at <= last:
        return broken(f"{_ORDER[at]} of {event.container_id[:12]} comes after {_ORDER[last]}", seq)
    if event.pod_sandbox_status is None and at < len(_ORDER) - 1:
        return broken(f"{_ORDER[at]} of {event.container_id[:12]} has no status of the sandbox")
    return _misfit(m, event) or KEPT


def _pod_uid(m: Moment, event: bodies.ContainerEvent) -> str:
    """The sandbox of the pod that the event is about; it may be removed and forgotten when a late event
    comes.
    """
    if event.pod_sandbox_status is not None:
        return event.pod_sandbox_status.metadata.uid
    return m.pod.uid if m.pod is not None else ""


def _misfit(m: Moment, event: bodies.ContainerEvent) -> Findings:
    """How an event of a container contradicts the statuses that it carries; None if it does not."""
    due = _RUNS.get(event.container_event_type.split("_")[1])
    if due is None or event.container_id not in m.world.containers:
        return None
    statuses = {record.id: record for record in event.containers_statuses}
    record = statuses.get(event.container_id)
    if record is None:
        return broken(f"{event.container_event_type} of {event.container_id[:12]} comes without its status")
    if _RUNS_ORDER.index(record.state) < _RUNS_ORDER.index(due):
        return broken(f"{event.container_event_type} of {record.id[:12]} says that it is {record.state}")
    return None


_RUNS_ORDER = (*_RUNS.values(), "CONTAINER_UNKNOWN")


def _reports(container_id: str, step: str) -> Pattern:
    """An event of this container with this step."""

    def is_it(m: Moment) -> bool:
        event = event_of(m)
        return (
            event is not None
            and event.container_id == container_id
            and event.container_event_type == f"CONTAINER_{step}_EVENT"
        )

    return Pattern(frozenset({"message"})).where(is_it)


_STEPS = {
    "CreateContainer": "CREATED",
    "StartContainer": "STARTED",
    "StopContainer": "STOPPED",
    "RemoveContainer": "DELETED",
}


@events_report_each_transition_once.clause("each", on=done(*_STEPS))
def every_transition_is_reported(m: Moment) -> Findings:
    """While a stream is open, what a call did to a container is sent on it."""
    return _due(m, _changed(m), _STEPS[m.call.rpc])


@events_report_each_transition_once.clause("exit", on=happened("exited", "oom"))
def every_exit_is_reported(m: Moment, container: Container) -> Findings:
    """While a stream is open, the end of a process that no call has ended is sent on it too."""
    return _due(m, container.id, "STOPPED") if container.started_seq else None


def _due(m: Moment, container_id: str, step: str) -> Findings:
    """The event that an open stream owes; none where its container is not known."""
    streams = m.node.note(_Streams)
    if not streams.open or not container_id or is_withheld(m.node, m.pod.uid if m.pod is not None else ""):
        return None
    # The event may come before the answer, or before the exit is recorded.
    at = _ORDER.index(f"CONTAINER_{step}_EVENT")
    if any(reached >= at for reached, _ in streams.steps.get(container_id, {}).values()):
        return KEPT
    return answered(
        by=_reports(container_id, step),
        within=REACTION,
        unless=_ENDS.either(_LEAVES),
        text=f"{step} of {container_id[:12]} is sent on the open stream",
        whole_node=True,
    )


def _changed(m: Moment) -> str:
    """The container whose state the call has changed; empty where that is not known."""
    if m.call.rpc == "CreateContainer":
        return m.response(bodies.CreateContainerReply).container_id
    container = m.container
    if container is None or not container.born:
        return ""
    ended_before = m.call.rpc == "StopContainer" and container.state != "running"
    return "" if ended_before else container.id


@observer(on=call(_STREAM), gate=GATE)
def _(m: Moment) -> None:
    m.node.note(_Streams).open.add(m.call.id)


@observer(on=_ENDS, gate=GATE)
def _(m: Moment) -> None:
    m.node.note(_Streams).open.discard(m.call.id)


@observer(on=_LEAVES, gate=GATE)
def _(m: Moment) -> None:
    m.node.note(_Streams).open.clear()


judges_expectations(events_report_each_transition_once)


class _Stamped(Note):
    """The last time stamp of a sandbox's status."""

    timestamp: int = 0
    seq: int = 0


@contract("CRI-31", on=done("PodSandboxStatus"), gate=GATE)
def stamped_status_is_whole(m: Moment, sandbox: Sandbox) -> Findings:
    """A PodSandboxStatus with a timestamp has the statuses of all containers of the sandbox.

    The timestamp is in nanoseconds and never falls.
    """
    reply = m.response(bodies.PodSandboxStatusReply)
    if not reply.timestamp:
        statuses = bool(reply.containers_statuses)
        return broken("the statuses of containers come without a timestamp") if statuses else None
    if reply.timestamp < LEAST_NANOSECONDS:
        return broken(f"the timestamp is {reply.timestamp}, no nanoseconds since 1970")
    stamped = sandbox.note(_Stamped)
    if reply.timestamp < stamped.timestamp and stamped.seq < m.call.seq:
        return broken(f"the timestamp was {stamped.timestamp} and is {reply.timestamp}", stamped.seq)
    stamped.timestamp, stamped.seq = reply.timestamp, m.seq
    return _missing(m, reply, sandbox) or KEPT


def _missing(m: Moment, reply: bodies.PodSandboxStatusReply, sandbox: Sandbox) -> Findings:
    """A container of the sandbox has no status beside the timestamp, or a wrong one."""
    reported = {record.id: record for record in reply.containers_statuses}
    for container in sandbox.containers.values():
        record, created_t = reported.get(container.id), container.created_t
        if record is None and created_t is not None and created_t < m.call.t:
            return broken(
                f"{container.name} of the sandbox has no status beside the timestamp", container.create
            )
        due = _STATES.get(container_state(container, m.call))
        if record is None or due is None or record.state == due:
            continue
        if (due, record.state) != ("CONTAINER_RUNNING", "CONTAINER_EXITED"):
            return broken(f"{container.name} is {due}, and beside the timestamp it is {record.state}")
    return None
