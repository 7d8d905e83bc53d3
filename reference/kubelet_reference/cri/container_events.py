"""Container events of the runtime, and the records of a pod after one of them."""

from collections.abc import Callable
from enum import Enum, auto

import msgspec
from msgspec.structs import replace

from kubelet_reference.api.records import ContainerRecord, PodRecords, SandboxRecord, ips_of_newest


class ContainerEventType(Enum):
    """What happened to a container or a sandbox, in the words of the CRI."""

    CREATED = auto()
    STARTED = auto()
    STOPPED = auto()
    DELETED = auto()


class ContainerEvent(msgspec.Struct, frozen=True):
    """One event of the runtime's stream: it happened to `record_id`, a container or the sandbox itself.

    `created_at` is nanoseconds since the epoch; `sandbox` and `containers`, all of this sandbox, are what
    they were then.
    """

    uid: str
    name: str
    namespace: str
    kind: ContainerEventType
    record_id: str
    created_at: int
    sandbox: SandboxRecord
    containers: tuple[ContainerRecord, ...]

    @property
    def sandbox_is_gone(self) -> bool:
        """The record of the sandbox itself was removed."""
        return self.kind is ContainerEventType.DELETED and self.record_id == self.sandbox.id


def with_event(known: PodRecords, event: ContainerEvent, is_its_own: Callable[[str], bool]) -> PodRecords:
    """The records with what an event reports of one sandbox; those of the pod's other sandboxes stay.

    `is_its_own` says of a container's id that it was reported as one of this sandbox before.
    """
    reported = {one.id for one in event.containers} | {event.record_id}
    others = (one for one in known.containers if one.id not in reported and not is_its_own(one.id))
    sandboxes = [one for one in known.sandboxes if one.id != event.sandbox.id]
    containers = list(others)
    if not event.sandbox_is_gone:
        sandboxes.append(event.sandbox)
        containers += event.containers
    sandboxes.sort(key=lambda one: -one.created_at)
    containers.sort(key=lambda one: -one.created_at)
    return replace(
        known,
        name=event.name,
        namespace=event.namespace,
        ips=ips_of_newest(sandboxes),
        sandboxes=tuple(sandboxes),
        containers=tuple(containers),
    )
