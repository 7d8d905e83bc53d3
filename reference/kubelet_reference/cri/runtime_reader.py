"""Reads pods from the runtime: all of them in two lists, or one with everything that is known of it.

Lists are read with as little work as they differ from the last ones. Equal lists give the very same pods, and
a pod of which nothing differs is the same object as before: comparing it with itself costs nothing.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from itertools import chain
from typing import Generic, TypeVar

import grpc
import msgspec
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import names, pods
from kubelet_reference.api.records import (
    ContainerRecord,
    ContainerState,
    ListedPod,
    ListedRecord,
    PodRecords,
    SandboxRecord,
    ips_of_newest,
)
from kubelet_reference.cri.client import CriClient
from kubelet_reference.cri.container_events import ContainerEvent, ContainerEventType
from kubelet_reference.cri.errors import is_not_found
from kubelet_reference.cri.labels import container_record, containers_of, sandbox_record, sandboxes_of
from kubelet_reference.cri.termination_message import TerminationMessages

Item = TypeVar("Item", cri.PodSandbox, cri.Container)
Record = TypeVar("Record", ListedRecord, SandboxRecord, ContainerRecord)

_STATES: dict[int, ContainerState] = {
    cri.CONTAINER_CREATED: ContainerState.CREATED,
    cri.CONTAINER_RUNNING: ContainerState.RUNNING,
    cri.CONTAINER_EXITED: ContainerState.EXITED,
}


class _Seen(msgspec.Struct, frozen=True):
    """One item of a list, read; `uid` is "" where it carries no pod's labels."""

    uid: str
    name: str
    namespace: str
    record: ListedRecord
    is_sandbox: bool


class Listing:
    """Remembers the last two lists and the pods in them."""

    def __init__(self) -> None:
        self._sandboxes = cri.ListPodSandboxResponse()
        self._containers = cri.ListContainersResponse()
        self._read_sandboxes = _Reader[cri.PodSandbox](_sandbox)
        self._read_containers = _Reader[cri.Container](_container)
        self._by_uid: dict[str, tuple[list[_Seen], ListedPod]] = {}
        self._pods: tuple[ListedPod, ...] = ()

    def pods(
        self, sandboxes: cri.ListPodSandboxResponse, containers: cri.ListContainersResponse
    ) -> tuple[ListedPod, ...]:
        """The pods of the lists, matched by their labels; what carries none belongs to no pod (PLEG-04)."""
        if not (_same(sandboxes, self._sandboxes) and _same(containers, self._containers)):
            seen = chain(
                self._read_sandboxes.read(sandboxes.items), self._read_containers.read(containers.containers)
            )
            self._pods = self._gathered(seen)
        self._sandboxes, self._containers = sandboxes, containers
        return self._pods

    def _gathered(self, everything: Iterable[_Seen]) -> tuple[ListedPod, ...]:
        gathered: dict[str, list[_Seen]] = {}
        for one in everything:
            gathered.setdefault(one.uid, []).append(one)
        gathered.pop("", None)
        self._by_uid = {uid: self._pod(uid, seen) for uid, seen in gathered.items()}
        return tuple(pod for _, pod in self._by_uid.values())

    def _pod(self, uid: str, seen: list[_Seen]) -> tuple[list[_Seen], ListedPod]:
        """The pod as it was if it consists of what it was, else anew."""
        last = self._by_uid.get(uid)
        if last is not None and last[0] == seen:
            return last
        sandboxes = _newest_first(one.record for one in seen if one.is_sandbox)
        containers = _newest_first(one.record for one in seen if not one.is_sandbox)
        return seen, ListedPod(uid, seen[0].name, seen[0].namespace, sandboxes, containers)


class _Reader(Generic[Item]):
    """Reads the items of one list; what equals the item of the last list with its id is not read again."""

    def __init__(self, read: Callable[[Item], _Seen]) -> None:
        self._read: Callable[[Item], _Seen] = read
        self._last: dict[str, tuple[Item, _Seen]] = {}

    def read(self, items: Iterable[Item]) -> list[_Seen]:
        last, self._last = self._last, {}
        for item in items:
            key = item.id
            known = last.get(key)
            # The newest item is kept even if it is equal: the old one would keep all of its list alive.
            self._last[key] = (item, known[1] if known is not None and known[0] == item else self._read(item))
        return [seen for _, seen in self._last.values()]


def _same(new: object, old: object) -> bool:
    """Whether two replies say the same; a runtime in process may give the very same object."""
    return new == old


def _sandbox(item: cri.PodSandbox) -> _Seen:
    state = ContainerState.RUNNING if item.state == cri.SANDBOX_READY else ContainerState.EXITED
    return _of(
        item.labels, ListedRecord(item.id, item.metadata.name, state, item.created_at), is_sandbox=True
    )


def _container(item: cri.Container) -> _Seen:
    record = ListedRecord(
        item.id,
        item.labels.get(names.CONTAINER_NAME, ""),
        _STATES.get(item.state, ContainerState.UNKNOWN),
        item.created_at,
        item.annotations.get(names.CONTAINER_HASH, ""),
    )
    return _of(item.labels, record, is_sandbox=False)


def _of(labels: Mapping[str, str], record: ListedRecord, *, is_sandbox: bool) -> _Seen:
    uid = labels.get(names.POD_UID, "")
    return _Seen(uid, labels.get(names.POD_NAME, ""), labels.get(names.POD_NAMESPACE, ""), record, is_sandbox)


_KINDS: dict[int, ContainerEventType] = {
    cri.CONTAINER_CREATED_EVENT: ContainerEventType.CREATED,
    cri.CONTAINER_STARTED_EVENT: ContainerEventType.STARTED,
    cri.CONTAINER_STOPPED_EVENT: ContainerEventType.STOPPED,
    cri.CONTAINER_DELETED_EVENT: ContainerEventType.DELETED,
}


_READY = cri.PodSandboxFilter(state=cri.PodSandboxStateValue(state=cri.SANDBOX_READY))
_RUNNING = cri.ContainerFilter(state=cri.ContainerStateValue(state=cri.CONTAINER_RUNNING))


class RuntimeReader:
    """Reads from the runtime and changes nothing there; every method raises the runtime's error."""

    def __init__(self, client: CriClient, messages: TerminationMessages) -> None:
        self._client = client
        self._messages = messages
        self._everything = Listing()
        self._running = Listing()

    async def list_pods(self) -> tuple[ListedPod, ...]:
        """All pods of which the runtime has records: the same object while nothing changes (PLEG-01)."""
        sandboxes = await self._client.list_sandboxes()
        containers = await self._client.list_containers()
        return self._everything.pods(sandboxes, containers)

    async def list_running_pods(self) -> tuple[ListedPod, ...]:
        """The pods with a ready sandbox or a running container, and only these of each pod."""
        sandboxes = await self._client.list_sandboxes(_READY)
        containers = await self._client.list_containers(_RUNNING)
        return self._running.pods(sandboxes, containers)

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        """Everything the runtime remembers of one pod; what is gone meanwhile is left out (PLEG-11)."""
        sandboxes = await self._sandboxes(uid)
        containers = await self._containers(uid)
        return PodRecords(uid, name, namespace, ips_of_newest(sandboxes), sandboxes, containers)

    async def pod_ip(self, pod: Pod) -> str:
        """The pod's first IP now, "" if it has none, or it cannot be read (HOOK-08, HOOK-10)."""
        try:
            found = await self.pod_records(pods.uid(pod), pods.name(pod), pods.namespace(pod))
        except grpc.RpcError:
            return ""
        return found.ips[0] if found.ips else ""

    async def container_events(self) -> AsyncIterator[ContainerEvent]:
        """The runtime's container events; one that lacks the sandbox is left out (PLEG-16)."""
        async for event in self._client.container_events():
            if event.HasField("pod_sandbox_status") and event.pod_sandbox_status.HasField("metadata"):
                yield self._news(event)

    def _news(self, event: cri.ContainerEventResponse) -> ContainerEvent:
        sandbox = event.pod_sandbox_status
        containers = [
            container_record(status, self._messages.message(status)) for status in event.containers_statuses
        ]
        return ContainerEvent(
            uid=sandbox.metadata.uid,
            name=sandbox.metadata.name,
            namespace=sandbox.metadata.namespace,
            kind=_KINDS[event.container_event_type],
            record_id=event.container_id,
            created_at=event.created_at,
            sandbox=sandbox_record(sandbox),
            containers=tuple(containers),
        )

    async def _sandboxes(self, uid: str) -> tuple[SandboxRecord, ...]:
        listed = await self._client.list_sandboxes(sandboxes_of(uid))
        found: list[SandboxRecord] = []
        for sandbox in listed.items:
            try:
                found.append(sandbox_record(await self._client.sandbox_status(sandbox.id)))
            except grpc.RpcError as error:
                if not is_not_found(error):
                    raise
        return _newest_first(found)

    async def _containers(self, uid: str) -> tuple[ContainerRecord, ...]:
        listed = await self._client.list_containers(containers_of(uid))
        found: list[ContainerRecord] = []
        for container in listed.containers:
            try:
                status = await self._client.container_status(container.id)
            except grpc.RpcError as error:
                if not is_not_found(error):
                    raise
                continue
            found.append(container_record(status, self._messages.message(status)))
        return _newest_first(found)


def _created_at(record: ListedRecord | SandboxRecord | ContainerRecord) -> int:
    return record.created_at


def _newest_first(records: Iterable[Record]) -> tuple[Record, ...]:
    """By the time they were made, not by attempt or list order (SANDBOX-03, PLEG-12)."""
    return tuple(sorted(records, key=_created_at, reverse=True))
