"""Bugs in what a container is asked to be, and in the steps of its start."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import grpc
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import EnvVarSource, Pod
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference import names
from kubelet_reference.cri_errors import wrapped_text
from kubelet_reference.environment import ConfigError, Environment
from kubelet_reference.image_volumes import ImageVolumes
from kubelet_reference.images import EnsuredImage
from kubelet_reference.pod_files import HOSTS_PATH, PodFiles
from kubelet_reference.pods import AnyContainer
from kubelet_reference.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.runtime_reader import RuntimeReader
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_result import StartError
from kubelet_reference.updates import SyncFailed

NANOSECONDS = 1_000_000_000


@bug("MUT-START-01", breaks="START-01")
class HookFirst(ContainerStarter):
    """The postStart hook runs in a container that has not been started."""

    async def _start(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        await self._run_hook(into, container, container_id)
        await super()._start(into, container, container_id)

    async def _run_hook(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        await super()._post_start(into, container, container_id)

    async def _post_start(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        pass


@bug("MUT-START-03", breaks="START-03")
class TellsTheWrapper(ContainerStarter):
    """Why a container could not be made is told with gRPC's words around it."""

    async def _create(self, into: PodToStart, container: AnyContainer, config: cri.ContainerConfig) -> str:
        try:
            return await super()._create(into, container, config)
        except StartError as error:
            cause = error.__cause__
            text = wrapped_text(cause) if isinstance(cause, grpc.RpcError) else str(error)
            raise StartError(error.reason, text) from cause


@bug("MUT-START-04", breaks="START-04")
class UsesTheOldOne(ContainerStarter):
    """A container that could not be started is started once more."""

    async def _create(self, into: PodToStart, container: AnyContainer, config: cri.ContainerConfig) -> str:
        newest = into.records.newest(container.name)
        if newest is not None and newest.state is ContainerState.CREATED:
            return newest.id
        return await super()._create(into, container, config)


@bug("MUT-IMAGE-20", breaks="IMAGE-20")
class NeedsAllImages(ImageVolumes):
    """An image that one container mounts and that is missing holds up the whole pod."""

    async def ready(self, into: PodToStart) -> PodToStart:
        found = await super().ready(into)
        if any(isinstance(one, StartError) for one in found.images.values()):
            # The pass fails, and no container has a reason to wait for.
            raise SyncFailed("an image volume is not ready")
        return found


@bug("MUT-START-08", breaks="START-08")
class SharedMessageFile(PodFiles):
    """All instances of a container have the same message file."""

    def _message_mount(self, pod: Pod, container: AnyContainer) -> cri.Mount:
        mount = super()._message_mount(pod, container)
        mount.host_path = f"{mount.host_path.rpartition('/')[0]}/message"
        return mount


@bug("MUT-START-10", breaks="START-10")
class HostsForAliases(PodFiles):
    """A pod without aliases gets no hosts file."""

    def mounts(
        self, pod: Pod, container: AnyContainer, pod_ips: tuple[str, ...], environment: Mapping[str, str]
    ) -> list[cri.Mount]:
        found = super().mounts(pod, container, pod_ips, environment)
        has_aliases = pod.spec is not None and pod.spec.hostAliases
        return found if has_aliases else [one for one in found if one.container_path != HOSTS_PATH]


@bug("MUT-START-13", breaks="START-13")
class NoAliases(PodFiles):
    """The hosts file of a pod lacks its aliases."""

    def _hosts_mount(self, pod: Pod, pod_ips: tuple[str, ...]) -> cri.Mount:
        mount = super()._hosts_mount(pod, pod_ips)
        lines = self._disk.read(mount.host_path).decode().splitlines()
        aliases = {one.ip for one in (pod.spec.hostAliases if pod.spec else None) or ()}
        kept = [line for line in lines if line.split("\t")[0] not in aliases]
        self._disk.write(mount.host_path, "\n".join(kept).encode())
        return mount


@bug("MUT-START-09", breaks="START-09")
class LeavesVariablesOut(Environment):
    """A container is made without the variables whose config map is missing."""

    async def _from_object(self, pod: Pod, source: EnvVarSource) -> str | None:
        with suppress(ConfigError):
            return await super()._from_object(pod, source)
        return None


@bug("MUT-START-12", breaks="START-12")
class TimesInSeconds(RuntimeReader):
    """When a container was started is told in other units than the runtime's."""

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        records = await super().pod_records(uid, name, namespace)
        return structs.replace(records, containers=tuple(_in_seconds(one) for one in records.containers))


def _in_seconds(record: ContainerRecord) -> ContainerRecord:
    return structs.replace(record, started_at=record.started_at // NANOSECONDS)


@bug("MUT-START-11", breaks="START-11")
class AlwaysLogs(RuntimeReader):
    """The end of a container is always told with the end of its log."""

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        records = await super().pod_records(uid, name, namespace)
        found = [await self._with_log(one) for one in records.containers]
        return structs.replace(records, containers=tuple(found))

    async def _with_log(self, record: ContainerRecord) -> ContainerRecord:
        if not record.has_exited:
            return record
        status = await self._client.container_status(record.id)
        status.annotations[names.TERMINATION_MESSAGE_PATH] = ""
        status.annotations[names.TERMINATION_MESSAGE_POLICY] = "FallbackToLogsOnError"
        status.exit_code = 1
        return structs.replace(record, message=self._messages.message(status))


class _AmendedConfig(ContainerStarter):
    """Asks for containers with one thing changed."""

    async def _config(
        self, into: PodToStart, container: AnyContainer, image: EnsuredImage
    ) -> cri.ContainerConfig:
        config = await super()._config(into, container, image)
        self.amend(config)
        return config

    def amend(self, config: cri.ContainerConfig) -> None:
        """Change what is asked for."""


@bug("MUT-START-05", breaks="START-05")
class WithoutPorts(_AmendedConfig):
    """Containers do not carry their ports."""

    def amend(self, config: cri.ContainerConfig) -> None:
        config.annotations.pop(names.CONTAINER_PORTS, None)


@bug("MUT-START-06", breaks=("START-05", "START-06"))
class WithoutHook(_AmendedConfig):
    """The grace and the preStop hook of a container are remembered by the kubelet alone."""

    def amend(self, config: cri.ContainerConfig) -> None:
        config.annotations.pop(names.CONTAINER_PRE_STOP, None)
        config.annotations.pop(names.POD_GRACE, None)


@bug("MUT-START-07", breaks=("START-07", "START-14"))
class OneLog(_AmendedConfig):
    """All instances of a container write the same log."""

    def amend(self, config: cri.ContainerConfig) -> None:
        config.log_path = f"{config.metadata.name}/{config.metadata.name}.log"


@bug("MUT-START-14", breaks=("START-07", "START-14"))
class NumbersLogsAhead(_AmendedConfig):
    """The number of a container's log is ahead of its attempt."""

    def amend(self, config: cri.ContainerConfig) -> None:
        config.log_path = f"{config.metadata.name}/{config.metadata.attempt + 1}.log"
