"""Removes dead containers from the runtime, with their logs (GC-06).

`RecordRemover` removes one container, or the init containers that a sync no longer needs. `ContainerDeletor`
runs in the background: as soon as an instance of a container has died, it removes the older ones (LOOP-10,
GC-10). The garbage collector does the same once a minute for what is left.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import grpc
from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools

_log = logging.getLogger("kubelet_reference.records")


class RecordRemover:
    """Removes dead containers and their logs; a failed removal is left to the next caller."""

    def __init__(self, tools: RuntimeTools) -> None:
        self._client = tools.client
        self._files = tools.files

    async def remove(self, container_id: str) -> None:
        """Remove one container, its logs first: without them gone it stays (GC-06)."""
        try:
            await self._remove_logs(container_id)
            await self._client.remove_container(container_id)
        except grpc.RpcError as error:
            _log.warning("container %s was not removed: %s", container_id, wrapped_text(error))
        except OSError as error:
            _log.warning("container %s was not removed, its log stays: %s", container_id, error)

    async def remove_record(self, container_id: str) -> str:
        """Remove one container and leave its logs, which go on counting its instances (RESTART-22).

        What is wrong if it is not removed, else "".
        """
        try:
            await self._client.remove_container(container_id)
        except grpc.RpcError as error:
            return wrapped_text(error)
        return ""

    async def prune_init_containers(self, pod: Pod, records: PodRecords) -> None:
        """Keep the newest dead instance of each init container, and remove the older ones (INIT-14)."""
        for one in pods.init_containers(pod):
            dead = [record for record in records.containers if record.name == one.name and _is_dead(record)]
            for record in dead[1:]:
                await self.remove(record.id)

    async def purge_init_containers(self, pod: Pod, records: PodRecords) -> None:
        """Remove all instances of all init containers, so that they run again from the first (SANDBOX-05)."""
        names = [one.name for one in pods.init_containers(pod)]
        for record in records.containers:
            if record.name in names:
                await self.remove(record.id)

    async def _remove_logs(self, container_id: str) -> None:
        status = await self._client.container_status(container_id)
        if status.log_path:
            self._files.remove_log(status.log_path)


def _is_dead(record: ContainerRecord) -> bool:
    return record.state in {ContainerState.EXITED, ContainerState.UNKNOWN}


KEPT = 1
"""How many dead instances of one container a desired pod keeps: the newest gives the last state."""


def superfluous(records: PodRecords, died_id: str, *, remove_all: bool) -> tuple[ContainerRecord, ...]:
    """The dead instances to remove after the container `died_id` has died, newest first.

    They are those of the same container but the newest; with `remove_all` every dead one of the pod.
    """
    dead = [record for record in records.containers if record.state is ContainerState.EXITED]
    if remove_all:
        return tuple(dead)
    died = next((record for record in records.containers if record.id == died_id), None)
    if died is None:
        return ()
    return tuple(record for record in dead if record.name == died.name)[KEPT:]


class ContainerDeletor:
    """Removes containers one after another, in the background: no caller waits for that."""

    def __init__(self, remove: Callable[[str], Awaitable[None]]) -> None:
        self._remove = remove
        self._due = asyncio.Queue[str]()

    def container_died(self, records: PodRecords, died_id: str, *, remove_all: bool) -> None:
        """Have the superfluous instances removed; `remove_all` says that the pod's content may go."""
        for record in superfluous(records, died_id, remove_all=remove_all):
            self._due.put_nowait(record.id)

    async def run(self) -> None:
        """Remove what is due, for ever; what fails is left to the garbage collector."""
        while True:
            await self._remove(await self._due.get())
