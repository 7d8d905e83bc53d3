"""Reads pods from the runtime: all of them in two lists, or one with everything that is known of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

import grpc
from cri_api.v1 import api_pb2 as cri

from kubelet_reference.cri_client import CriClient
from kubelet_reference.cri_errors import is_not_found
from kubelet_reference.labels import container_record, containers_of, sandbox_record, sandboxes_of
from kubelet_reference.listing import Listing
from kubelet_reference.pod_news import NewsKind, PodNews
from kubelet_reference.records import ContainerRecord, ListedPod, PodRecords, SandboxRecord
from kubelet_reference.sandbox_ips import ips_of_newest
from kubelet_reference.termination_message import TerminationMessages

Record = TypeVar("Record", "SandboxRecord", "ContainerRecord")


_KINDS: dict[int, NewsKind] = {
    cri.CONTAINER_CREATED_EVENT: NewsKind.CREATED,
    cri.CONTAINER_STARTED_EVENT: NewsKind.STARTED,
    cri.CONTAINER_STOPPED_EVENT: NewsKind.STOPPED,
    cri.CONTAINER_DELETED_EVENT: NewsKind.DELETED,
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

    async def container_events(self) -> AsyncIterator[PodNews]:
        """What the runtime tells of pods by itself; what lacks the sandbox is left out (PLEG-16)."""
        async for event in self._client.container_events():
            if event.HasField("pod_sandbox_status") and event.pod_sandbox_status.HasField("metadata"):
                yield self._news(event)

    def _news(self, event: cri.ContainerEventResponse) -> PodNews:
        told = event.pod_sandbox_status
        containers = [
            container_record(status, self._messages.message(status)) for status in event.containers_statuses
        ]
        return PodNews(
            uid=told.metadata.uid,
            name=told.metadata.name,
            namespace=told.metadata.namespace,
            kind=_KINDS[event.container_event_type],
            record_id=event.container_id,
            created_at=event.created_at,
            sandbox=sandbox_record(told),
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


def _created_at(record: SandboxRecord | ContainerRecord) -> int:
    return record.created_at


def _newest_first(records: Iterable[Record]) -> tuple[Record, ...]:
    """By the time they were made, not by attempt or list order (SANDBOX-03, PLEG-12)."""
    return tuple(sorted(records, key=_created_at, reverse=True))
