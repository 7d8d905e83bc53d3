"""Reads pods from the runtime: all of them in two lists, or one with everything that is known of it."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TypeVar

import grpc
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
from kubelet_reference.cri.labels import (
    container_record,
    container_state,
    containers_of,
    sandbox_record,
    sandboxes_of,
)
from kubelet_reference.cri.termination_message import TerminationMessages

Record = TypeVar("Record", ListedRecord, SandboxRecord, ContainerRecord)


def listed_pods(
    sandboxes: cri.ListPodSandboxResponse, containers: cri.ListContainersResponse
) -> tuple[ListedPod, ...]:
    """The pods of two lists, matched by their labels; what carries none belongs to no pod (PLEG-04)."""
    found: dict[str, tuple[Mapping[str, str], list[ListedRecord], list[ListedRecord]]] = {}

    def of(labels: Mapping[str, str]) -> tuple[Mapping[str, str], list[ListedRecord], list[ListedRecord]]:
        return found.setdefault(labels.get(names.POD_UID, ""), (labels, [], []))

    for sandbox in sandboxes.items:
        of(sandbox.labels)[1].append(_sandbox(sandbox))
    for container in containers.containers:
        of(container.labels)[2].append(_container(container))
    found.pop("", None)
    return tuple(
        ListedPod(
            uid,
            labels.get(names.POD_NAME, ""),
            labels.get(names.POD_NAMESPACE, ""),
            _newest_first(of_sandboxes),
            _newest_first(of_containers),
        )
        for uid, (labels, of_sandboxes, of_containers) in found.items()
    )


def _sandbox(item: cri.PodSandbox) -> ListedRecord:
    state = ContainerState.RUNNING if item.state == cri.SANDBOX_READY else ContainerState.EXITED
    return ListedRecord(item.id, item.metadata.name, state, item.created_at)


def _container(item: cri.Container) -> ListedRecord:
    name = item.labels.get(names.CONTAINER_NAME, "")
    return ListedRecord(item.id, name, container_state(item.state), item.created_at)


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
        self._lists = (cri.ListPodSandboxResponse(), cri.ListContainersResponse())
        self._listed: tuple[ListedPod, ...] = ()

    async def list_pods(self) -> tuple[ListedPod, ...]:
        """All pods of which the runtime has records: the same object while nothing changes (PLEG-01)."""
        lists = (await self._client.list_sandboxes(), await self._client.list_containers())
        if lists != self._lists:
            self._lists, self._listed = lists, listed_pods(*lists)
        return self._listed

    async def list_running_pods(self) -> tuple[ListedPod, ...]:
        """The pods with a ready sandbox or a running container, and only these of each pod."""
        sandboxes = await self._client.list_sandboxes(_READY)
        containers = await self._client.list_containers(_RUNNING)
        return listed_pods(sandboxes, containers)

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
