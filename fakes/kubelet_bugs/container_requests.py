"""Bugs in what a container is asked to be, and in the steps of its start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import grpc
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import EnvVarSource, Pod
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import names
from kubelet_reference.cri_errors import wrapped_text
from kubelet_reference.environment import Environment
from kubelet_reference.expansion import ConfigError
from kubelet_reference.images import EnsuredImage
from kubelet_reference.parts import Parts
from kubelet_reference.pod_files import HOSTS_PATH, PodFiles
from kubelet_reference.pods import AnyContainer
from kubelet_reference.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.runtime_reader import RuntimeReader
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.start_container import ContainerStarter, ImageVolumes, PodToStart
from kubelet_reference.sync_result import StartError
from kubelet_reference.updates import SyncFailed

NANOSECONDS = 1_000_000_000


class _HookFirst(ContainerStarter):
    """Runs the postStart hook before the container is started."""

    async def _start(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        await self._run_hook(into, container, container_id)
        await super()._start(into, container, container_id)

    async def _run_hook(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        await super()._post_start(into, container, container_id)

    async def _post_start(self, into: PodToStart, container: AnyContainer, container_id: str) -> None:
        pass


class _TellsTheWrapper(ContainerStarter):
    """Tells the error of a call as gRPC wraps it."""

    async def _create(self, into: PodToStart, container: AnyContainer, config: cri.ContainerConfig) -> str:
        try:
            return await super()._create(into, container, config)
        except StartError as error:
            cause = error.__cause__
            text = wrapped_text(cause) if isinstance(cause, grpc.RpcError) else str(error)
            raise StartError(error.reason, text) from cause


class _UsesTheOldOne(ContainerStarter):
    """Starts once more what was made and could not be started."""

    async def _create(self, into: PodToStart, container: AnyContainer, config: cri.ContainerConfig) -> str:
        newest = into.records.newest(container.name)
        if newest is not None and newest.state is ContainerState.CREATED:
            return newest.id
        return await super()._create(into, container, config)


class _NeedsAllImages(ImageVolumes):
    """Starts nothing of a pod while an image is missing that one of its containers mounts."""

    async def ready(self, into: PodToStart) -> PodToStart:
        found = await super().ready(into)
        if any(isinstance(one, StartError) for one in found.images.values()):
            # The pass fails, and no container has a reason to wait for.
            raise SyncFailed("an image volume is not ready")
        return found


class _SharedMessageFile(PodFiles):
    """Mounts the same message file into each instance of a container."""

    def _message_mount(self, pod: Pod, container: AnyContainer) -> cri.Mount:
        mount = super()._message_mount(pod, container)
        mount.host_path = f"{mount.host_path.rpartition('/')[0]}/message"
        return mount


class _HostsForAliases(PodFiles):
    """Mounts a hosts file only where there is something in it that the pod has asked for."""

    def mounts(
        self, pod: Pod, container: AnyContainer, pod_ips: tuple[str, ...], environment: Mapping[str, str]
    ) -> list[cri.Mount]:
        found = super().mounts(pod, container, pod_ips, environment)
        has_aliases = pod.spec is not None and pod.spec.hostAliases
        return found if has_aliases else [one for one in found if one.container_path != HOSTS_PATH]


class _NoAliases(PodFiles):
    """Leaves the pod's aliases out of its hosts file."""

    def _hosts_mount(self, pod: Pod, pod_ips: tuple[str, ...]) -> cri.Mount:
        mount = super()._hosts_mount(pod, pod_ips)
        lines = self._disk.read(mount.host_path).decode().splitlines()
        aliases = {one.ip for one in (pod.spec.hostAliases if pod.spec else None) or ()}
        kept = [line for line in lines if line.split("\t")[0] not in aliases]
        self._disk.write(mount.host_path, "\n".join(kept).encode())
        return mount


class _LeavesVariablesOut(Environment):
    """Makes a container without the variables whose sources are missing."""

    async def _from_object(self, pod: Pod, source: EnvVarSource) -> str | None:
        with suppress(ConfigError):
            return await super()._from_object(pod, source)
        return None


class _TimesInSeconds(RuntimeReader):
    """Takes the runtime's nanoseconds for seconds' fractions of another size."""

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        records = await super().pod_records(uid, name, namespace)
        return replace(records, containers=tuple(_in_seconds(one) for one in records.containers))


def _in_seconds(record: ContainerRecord) -> ContainerRecord:
    return replace(record, started_at=record.started_at // NANOSECONDS)


class _AlwaysLogs(RuntimeReader):
    """Tells the end of the log with every end of a container, whatever its policy."""

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        records = await super().pod_records(uid, name, namespace)
        found = [await self._with_log(one) for one in records.containers]
        return replace(records, containers=tuple(found))

    async def _with_log(self, record: ContainerRecord) -> ContainerRecord:
        if not record.has_exited:
            return record
        status = await self._client.container_status(record.id)
        status.annotations[names.TERMINATION_MESSAGE_PATH] = ""
        status.annotations[names.TERMINATION_MESSAGE_POLICY] = "FallbackToLogsOnError"
        status.exit_code = 1
        return replace(record, message=self._messages.message(status))


def _asking(change: Callable[[cri.ContainerConfig], None]) -> Parts:
    """A kubelet that asks for containers with one thing changed."""

    class Changed(ContainerStarter):
        """Changes each config before it is sent."""

        async def _config(
            self, into: PodToStart, container: AnyContainer, image: EnsuredImage
        ) -> cri.ContainerConfig:
            config = await super()._config(into, container, image)
            change(config)
            return config

    return Parts(runtime=RuntimeParts(starter=Changed))


def _without_ports(config: cri.ContainerConfig) -> None:
    config.annotations.pop(names.CONTAINER_PORTS, None)


def _without_hook(config: cri.ContainerConfig) -> None:
    config.annotations.pop(names.CONTAINER_PRE_STOP, None)
    config.annotations.pop(names.POD_GRACE, None)


def _with_one_log(config: cri.ContainerConfig) -> None:
    config.log_path = f"{config.metadata.name}/{config.metadata.name}.log"


def _with_next_log(config: cri.ContainerConfig) -> None:
    config.log_path = f"{config.metadata.name}/{config.metadata.attempt + 1}.log"


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-IMAGE-20",
        "An image that one container mounts and that is missing holds up the whole pod.",
        lambda: Parts(runtime=RuntimeParts(image_volumes=_NeedsAllImages)),
        ("IMAGE-20",),
    ),
    Bug(
        "MUT-START-01",
        "The postStart hook runs in a container that has not been started.",
        lambda: Parts(runtime=RuntimeParts(starter=_HookFirst)),
        ("START-01",),
    ),
    Bug(
        "MUT-START-03",
        "Why a container could not be made is told with gRPC's words around it.",
        lambda: Parts(runtime=RuntimeParts(starter=_TellsTheWrapper)),
        ("START-03",),
    ),
    Bug(
        "MUT-START-04",
        "A container that could not be started is started once more.",
        lambda: Parts(runtime=RuntimeParts(starter=_UsesTheOldOne)),
        ("START-04",),
    ),
    Bug(
        "MUT-START-05",
        "Containers do not carry their ports.",
        lambda: _asking(_without_ports),
        ("START-05",),
    ),
    Bug(
        "MUT-START-06",
        "The grace and the preStop hook of a container are remembered by the kubelet alone.",
        lambda: _asking(_without_hook),
        ("START-05", "START-06"),
    ),
    Bug(
        "MUT-START-07",
        "All instances of a container write the same log.",
        lambda: _asking(_with_one_log),
        ("START-07", "START-14"),
    ),
    Bug(
        "MUT-START-08",
        "All instances of a container have the same message file.",
        lambda: Parts(pod_files=_SharedMessageFile),
        ("START-08",),
    ),
    Bug(
        "MUT-START-09",
        "A container is made without the variables whose config map is missing.",
        lambda: Parts(runtime=RuntimeParts(environment=_LeavesVariablesOut)),
        ("START-09",),
    ),
    Bug(
        "MUT-START-10",
        "A pod without aliases gets no hosts file.",
        lambda: Parts(pod_files=_HostsForAliases),
        ("START-10",),
    ),
    Bug(
        "MUT-START-11",
        "The end of a container is always told with the end of its log.",
        lambda: Parts(runtime=RuntimeParts(reader=_AlwaysLogs)),
        ("START-11",),
    ),
    Bug(
        "MUT-START-12",
        "When a container was started is told in other units than the runtime's.",
        lambda: Parts(runtime=RuntimeParts(reader=_TimesInSeconds)),
        ("START-12",),
    ),
    Bug(
        "MUT-START-13",
        "The hosts file of a pod lacks its aliases.",
        lambda: Parts(pod_files=_NoAliases),
        ("START-13",),
    ),
    Bug(
        "MUT-START-14",
        "The number of a container's log is ahead of its attempt.",
        lambda: _asking(_with_next_log),
        ("START-07", "START-14"),
    ),
)
