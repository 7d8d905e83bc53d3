"""What listings of containers and sandboxes teach."""

from __future__ import annotations

from kubelet_conformance.trace.bodies import (
    ListContainersReply,
    ListContainersRequest,
    ListPodSandboxReply,
    ListPodSandboxRequest,
)
from kubelet_conformance.trace.moment import Moment

CONTAINER_STATES = {
    "CONTAINER_CREATED": "created",
    "CONTAINER_RUNNING": "running",
    "CONTAINER_EXITED": "exited",
    "CONTAINER_UNKNOWN": "unknown",
}
"""The states of the runtime's records, as the views have them."""


def containers_listed(moment: Moment) -> None:
    """All containers, or some, are listed; one that is missing in a whole list has vanished."""
    world, node = moment.world, moment.node
    node.listing_failed = False
    if node.relisted_t is None and moment.request(ListContainersRequest).everything:
        node.relisted_t = moment.t
    if moment.reply.same:
        return  # A listing that is like the last one teaches nothing else.
    records = moment.response(ListContainersReply).containers
    for record in records:
        known = world.containers.get(record.id)
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
