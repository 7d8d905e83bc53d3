"""Removes the records of dead containers, with their logs."""

from __future__ import annotations

import logging

import grpc
from lightkube.models.core_v1 import Pod

from kubelet_reference import pods
from kubelet_reference.cri_errors import is_not_found, wrapped_text
from kubelet_reference.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.runtime_tools import RuntimeTools

_log = logging.getLogger("kubelet_reference.records")


class RecordRemover:
    """Removes containers; what fails is tried again by whoever comes next."""

    def __init__(self, tools: RuntimeTools) -> None:
        self._client = tools.client
        self._files = tools.files

    async def remove(self, container_id: str) -> bool:
        """Remove one container, its logs first: without them gone it stays (GC-06). Whether it went."""
        try:
            await self._remove_logs(container_id)
            await self._client.remove_container(container_id)
        except grpc.RpcError as error:
            if is_not_found(error):
                return True  # Another cleaner was faster: nothing is left to do.
            _log.warning("container %s was not removed: %s", container_id, wrapped_text(error))
            return False
        except OSError as error:
            _log.warning("container %s was not removed, its log stays: %s", container_id, error)
            return False
        return True

    async def remove_record(self, container_id: str) -> None:
        """Remove one container and leave its logs, which go on counting its instances (RESTART-22)."""
        try:
            await self._client.remove_container(container_id)
        except grpc.RpcError as error:
            if not is_not_found(error):
                _log.warning("container %s was not removed: %s", container_id, wrapped_text(error))

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
