"""Carries a resize out: UpdateContainerResources for one change after another (RESIZE-01, RESIZE-05)."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import grpc
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod

from kubelet_reference.allocation.resize_rules import ResourceChange
from kubelet_reference.api import pods
from kubelet_reference.api.records import PodRecords
from kubelet_reference.api.resources import MEMORY, PERIOD
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools

WatchPod: TypeAlias = Callable[[str, str, Callable[[PodRecords], bool]], None]
"""Has a pod, by UID, inspected until something named holds of its records."""


class Resizer:
    """Changes running containers; `watch` has the pod looked at until the change shows (PLEG-17)."""

    def __init__(self, tools: RuntimeTools, watch: WatchPod) -> None:
        self._client = tools.client
        self._behaviour = tools.behaviour
        self._watch = watch

    async def resize(self, pod: Pod, changes: Iterable[ResourceChange]) -> str:
        """Make the changes in this order, up to the first that fails; why it does, "" if none does."""
        for change in changes:
            problem = await self._problem(change)
            if problem:
                return problem
            if self._behaviour.watches_resizes:
                self._watch(pods.uid(pod), f"{change.name}:{change.resource}", _shows(change))
        return ""

    async def _problem(self, change: ResourceChange) -> str:
        """Make one change; what is wrong with it, "" if it was made."""
        try:
            refusal = await self.refusal(change)
            if not refusal:
                await self._client.update_container_resources(change.record.id, _linux(change))
        except grpc.RpcError as error:
            return wrapped_text(error)
        return refusal

    async def refusal(self, change: ResourceChange) -> str:
        """Why memory cannot be taken from a container: it uses more than it would have (RESIZE-05)."""
        limit = change.new.memory_limit
        if change.resource != MEMORY or change.grows or not limit:
            return ""
        used = await self._client.memory_usage(change.record.id)
        if used < limit:
            return ""
        return (
            f"cannot decrease memory limits of container {change.name} to {limit}: its usage is {used} bytes"
        )


def _linux(change: ResourceChange) -> cri.LinuxContainerResources:
    """What is to be changed; what is not named stays as it is."""
    new = change.new
    if change.resource == MEMORY:
        return cri.LinuxContainerResources(memory_limit_in_bytes=new.memory_limit)
    return cri.LinuxContainerResources(cpu_period=PERIOD, cpu_quota=new.cpu_quota, cpu_shares=new.cpu_shares)


def _shows(change: ResourceChange) -> Callable[[PodRecords], bool]:
    """Whether the runtime shows the change, or the container is not there any more to show it."""

    def shows(records: PodRecords) -> bool:
        record = next((one for one in records.containers if one.id == change.record.id), None)
        if record is None or not record.is_running or record.actuated is None:
            return True
        if change.resource == MEMORY:
            return record.actuated.memory_limit == change.new.memory_limit
        cpu = record.actuated.cpu_shares, record.actuated.cpu_quota
        return cpu == (change.new.cpu_shares, change.new.cpu_quota)

    return shows
