"""Updates from the runtime's lists and its stream of container events."""

from msgspec.structs import replace

from kubelet_conformance.trace.format.bodies import (
    ContainerEvent,
    ContainerRecord,
    ListContainersReply,
    ListContainersRequest,
    ListPodSandboxReply,
    ListPodSandboxRequest,
    SandboxRecord,
)
from kubelet_conformance.trace.format.records import Body, Message
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Container

CONTAINER_STATES = {
    "CONTAINER_CREATED": "created",
    "CONTAINER_RUNNING": "running",
    "CONTAINER_EXITED": "exited",
    "CONTAINER_UNKNOWN": "unknown",
}
"""The states of the runtime's records, as the views have them."""
_STAGES = ("CONTAINER_CREATED", "CONTAINER_RUNNING", "CONTAINER_EXITED")


def event_of(moment: Moment) -> ContainerEvent | None:
    """The event that the record is, None if it is something else; read once a moment."""
    record = moment.record
    if not isinstance(record, Message) or record.rpc != "GetContainerEvents":
        return None
    if not isinstance(moment.memo, ContainerEvent):
        moment.memo = Body(record.message).view(ContainerEvent)
    event: ContainerEvent = moment.memo
    return event


def news_of_containers(moment: Moment) -> list[tuple[Container, ContainerRecord]]:
    """The known containers that the event reports, each with its record, unless that is older news."""
    event, known = event_of(moment), moment.world.containers
    if event is None:
        return []
    reported = [(known[each.id], each) for each in event.containers_statuses if each.id in known]
    return [(container, each) for container, each in reported if not _is_older(each, container.record)]


def reported_sandbox(moment: Moment) -> SandboxRecord | None:
    """The status of its sandbox that an event has; None where the record is something else."""
    event = event_of(moment)
    return event.pod_sandbox_status if event is not None else None


def records_are_reported(moment: Moment) -> None:
    """Update a sandbox from an event, and drop records that it says are gone."""
    _sandbox_is_reported(moment)
    _removals_are_reported(moment)


def _sandbox_is_reported(moment: Moment) -> None:
    """An event makes a sandbox known, without its status and without the reply of RunPodSandbox."""
    status, world = reported_sandbox(moment), moment.world
    if status is None or world.went_since(status.id, 0):
        return
    sandbox = world.found_sandbox(status)
    if sandbox.record is None:
        sandbox.record = status
        sandbox.ip = status.network.ip if status.network is not None else ""
        if sandbox.state == "unseen":
            sandbox.state = "ready" if status.state == "SANDBOX_READY" else "notready"


def containers_are_reported(moment: Moment) -> None:
    """An event makes a container known, even if its CreateContainer returned an error."""
    event, world = event_of(moment), moment.world
    if event is None or event.pod_sandbox_status is None:
        return
    for each in event.containers_statuses:
        record = replace(each, pod_sandbox_id=event.pod_sandbox_status.id)
        is_new = each.id not in world.containers and not world.went_since(each.id, 0)
        if is_new and world.is_in_the_making(record):
            world.found_container(record).state = "created"


def _removals_are_reported(moment: Moment) -> None:
    """A removed record is known to be gone, even if its removal was not answered."""
    event = event_of(moment)
    if event is None or event.container_event_type != "CONTAINER_DELETED_EVENT":
        return
    container, sandbox = (
        moment.world.containers.get(event.container_id),
        moment.world.sandboxes.get(event.container_id),
    )
    if container is not None:
        moment.world.drop_container(container, moment.t)
    elif sandbox is not None:
        moment.world.drop_sandbox(sandbox, moment.t)


def _is_older(reported: ContainerRecord, known: ContainerRecord | None) -> bool:
    if known is None or reported.state not in _STAGES or known.state not in _STAGES:
        return False
    return _STAGES.index(reported.state) < _STAGES.index(known.state)


def containers_listed(moment: Moment) -> None:
    """All containers, or some, are listed; one that is missing in a whole list has vanished."""
    world, node = moment.world, moment.node
    node.listing_failed = False
    if node.relisted_t is None and moment.request(ListContainersRequest).everything:
        node.relisted_t = moment.t
    if moment.reply.same:
        return  # A listing that equals the last one changes nothing else.
    records = moment.response(ListContainersReply).containers
    for record in records:
        known = world.containers.get(record.id)
        if known is not None and record.state == "CONTAINER_EXITED":
            known.listed_exited = True
        if (known is not None and known.state != "unseen") or world.went_since(record.id, moment.call.t):
            continue
        container = world.found_container(record)
        if container.state == "unseen":
            container.state = CONTAINER_STATES.get(record.state, "unknown")  # type: ignore[assignment]
    if not moment.request(ListContainersRequest).everything:
        return
    node.listed = True
    listed = {record.id for record in records}
    began = moment.call.t
    for container in [c for c in world.containers.values() if c.id not in listed]:
        if container.created_t is None or container.created_t < began:
            world.drop_container(container, moment.t, vanished=True)


def sandboxes_listed(moment: Moment) -> None:
    """All sandboxes, or some, are listed; one that is missing in a whole list has vanished."""
    moment.node.listing_failed = False
    if moment.reply.same:
        return
    world = moment.world
    records = moment.response(ListPodSandboxReply).items
    for record in records:
        known = world.sandboxes.get(record.id)
        if (known is not None and known.state != "unseen") or world.went_since(record.id, moment.call.t):
            continue
        sandbox = world.found_sandbox(record)
        if sandbox.state == "unseen":
            sandbox.state = "notready" if record.state == "SANDBOX_NOTREADY" else "ready"
    if not moment.request(ListPodSandboxRequest).everything:
        return
    listed = {record.id for record in records}
    began = moment.call.t
    for sandbox in [s for s in world.sandboxes.values() if s.id not in listed]:
        if sandbox.ready_t is None or sandbox.ready_t < began:
            world.drop_sandbox(sandbox, moment.t, vanished=True)
