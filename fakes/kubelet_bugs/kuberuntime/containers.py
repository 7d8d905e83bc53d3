"""Bugs in what a container is asked to be, in the steps of its start, and in starts that fail."""

from collections.abc import Mapping
from contextlib import suppress

import grpc
from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import EnvVarSource, Pod, PodStatus
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.api import names, pods
from kubelet_reference.api.expansion import ConfigError
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.api.sync_result import Failure, StartError
from kubelet_reference.cri.errors import wrapped_text
from kubelet_reference.cri.runtime_reader import RuntimeReader
from kubelet_reference.images.image_manager import EnsuredImage
from kubelet_reference.kuberuntime.container.crash_backoff import CrashBackoff
from kubelet_reference.kuberuntime.container.environment import Environment
from kubelet_reference.kuberuntime.container.hooks import HookError
from kubelet_reference.kuberuntime.container.start_container import (
    ContainerStarter,
    ImageVolumes,
    StartContext,
    StartParts,
)
from kubelet_reference.kuberuntime.pod_files import HOSTS_PATH, PodFiles
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.pod_workers.worker import SyncFailed
from kubelet_reference.status.phase import pod_phase
from kubelet_reference.util.backoff import Backoff
from kubelet_reference.util.versions import Behaviour

_PULL_FAILURES = frozenset({Failure.ERR_IMAGE_PULL, Failure.IMAGE_PULL_BACK_OFF})

NANOSECONDS = 1_000_000_000


@bug("MUT-START-01", breaks="START-01")
class HookFirst(ContainerStarter):
    """The postStart hook runs in a container that has not been started."""

    async def _start(self, context: StartContext, container: AnyContainer, container_id: str) -> None:
        await self._run_hook(context, container, container_id)
        await super()._start(context, container, container_id)

    async def _run_hook(self, context: StartContext, container: AnyContainer, container_id: str) -> None:
        await super()._post_start(context, container, container_id)

    async def _post_start(self, context: StartContext, container: AnyContainer, container_id: str) -> None:
        pass


@bug("MUT-START-03", breaks="START-03")
class TellsTheWrapper(ContainerStarter):
    """The reason why a container could not be created is reported with gRPC's words around it."""

    async def _create(
        self, context: StartContext, container: AnyContainer, config: cri.ContainerConfig
    ) -> str:
        try:
            return await super()._create(context, container, config)
        except StartError as error:
            cause = error.__cause__
            text = wrapped_text(cause) if isinstance(cause, grpc.RpcError) else str(error)
            raise StartError(error.reason, text) from cause


@bug("MUT-START-04", breaks="START-04")
class UsesTheOldOne(ContainerStarter):
    """A container that could not be started is started once more."""

    async def _create(
        self, context: StartContext, container: AnyContainer, config: cri.ContainerConfig
    ) -> str:
        newest = context.records.newest(container.name)
        if newest is not None and newest.state is ContainerState.CREATED:
            return newest.id
        return await super()._create(context, container, config)


@bug("MUT-IMAGE-20", breaks="IMAGE-20")
class NeedsAllImages(ImageVolumes):
    """An image that one container mounts and that is missing holds up the whole pod."""

    async def ready(self, context: StartContext) -> StartContext:
        found = await super().ready(context)
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


@bug("MUT-START-15", breaks="START-15")
class NamespaceIsTheName(Environment):
    """A variable with the pod's namespace has its name instead."""

    def _field(self, pod: Pod, path: str, pod_ips: tuple[str, ...]) -> str:
        return super()._field(pod, path.replace("metadata.namespace", "metadata.name"), pod_ips)


@bug("MUT-START-12", breaks="START-12")
class TimesInSeconds(RuntimeReader):
    """The start time of a container is reported in other units than the runtime's."""

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        records = await super().pod_records(uid, name, namespace)
        return structs.replace(records, containers=tuple(_in_seconds(one) for one in records.containers))


def _in_seconds(record: ContainerRecord) -> ContainerRecord:
    return structs.replace(record, started_at=record.started_at // NANOSECONDS)


@bug("MUT-START-11", breaks="START-11")
class AlwaysLogs(RuntimeReader):
    """The end of a container is always reported with the end of its log."""

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        records = await super().pod_records(uid, name, namespace)
        found = [await self._with_log(one) for one in records.containers]
        return structs.replace(records, containers=tuple(found))

    async def _with_log(self, record: ContainerRecord) -> ContainerRecord:
        if not record.has_exited:
            return record
        status = cri.ContainerStatus()
        status.CopyFrom(await self._client.container_status(record.id))
        status.annotations[names.TERMINATION_MESSAGE_PATH] = ""
        status.annotations[names.TERMINATION_MESSAGE_POLICY] = "FallbackToLogsOnError"
        status.exit_code = 1
        return structs.replace(record, message=self._messages.message(status))


class _AmendedConfig(ContainerStarter):
    """Asks for containers with one thing changed."""

    async def _config(
        self, context: StartContext, container: AnyContainer, image: EnsuredImage
    ) -> cri.ContainerConfig:
        config = await super()._config(context, container, image)
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


@bug("K8S-60053", breaks="HOOK-01", aliases="K8S-122803")
class HookOnce(ContainerStarter):
    """Only the first instance of a container has its postStart hook run."""

    async def _post_start(self, context: StartContext, container: AnyContainer, container_id: str) -> None:
        if self.restarts(context, container) == 0:
            await super()._post_start(context, container, container_id)


@bug("K8S-100608", breaks="HOOK-03")
class HookForNothing(ContainerStarter):
    """A container whose postStart hook failed goes on."""

    async def _post_start(self, context: StartContext, container: AnyContainer, container_id: str) -> None:
        handler = container.lifecycle.postStart if container.lifecycle else None
        if handler is not None:
            with suppress(HookError):
                await self.parts.hooks.run(context.pod, container, container_id, handler)


@bug("K8S-20117", breaks="START-02")
class MustStillRun(ContainerStarter):
    """A container that has ended right after its start counts as one that could not be started."""

    async def _start(self, context: StartContext, container: AnyContainer, container_id: str) -> None:
        await super()._start(context, container, container_id)
        status = await self.tools.client.container_status(container_id)
        if status.finished_at:
            raise StartError(Failure.RUN_CONTAINER, f"container {container.name} is not running")


@bug("K8S-35423", breaks="PHASE-02", part="pod_phase", aliases="K8S-66828")
def no_image_no_pod(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """A pod that is not to be restarted has failed when its image cannot be pulled."""
    waits = (one.state.waiting for one in status.containerStatuses or () if one.state)
    failed = any(waiting and waiting.reason in _PULL_FAILURES for waiting in waits)
    if failed and pods.restart_policy(pod) == pods.NEVER:
        return pods.FAILED
    return pod_phase(pod, status, behaviour, terminating=terminating)


@bug("MUT-RESTART-24", breaks=("RESTART-24", "RESTARTKUBELET-03"))
class CountsTries(ContainerStarter):
    """Instances are numbered by the tries of this kubelet, failed ones and none of former kubelets."""

    def __init__(self, tools: RuntimeTools, parts: StartParts) -> None:
        super().__init__(tools, parts)
        self._tries: dict[tuple[str, str], int] = {}

    def restarts(self, context: StartContext, container: AnyContainer) -> int:
        key = pods.uid(context.pod), container.name
        self._tries[key] = self._tries.get(key, -1) + 1
        return self._tries[key]


@bug("MUT-BACKOFF-13", breaks="BACKOFF-13")
class EveryTryCounts(CrashBackoff):
    """A container that could not be created is held up as if it had crashed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._tried = Backoff(self.tools.clock, base=40)

    def admit(self, pod: Pod, container: AnyContainer, records: PodRecords) -> None:
        super().admit(pod, container, records)
        key = self.key(pod, container)
        if self._tried.is_in_backoff_since_update(key):
            raise StartError(Failure.CREATE_CONTAINER, "tried a moment ago")
        self._tried.next(key, self.tools.clock.wall_ns())


@bug("MUT-BACKOFF-06", breaks="BACKOFF-06")
class SaysLittle(CrashBackoff):
    """The status of a container that is held up names neither the delay nor the container."""

    def admit(self, pod: Pod, container: AnyContainer, records: PodRecords) -> None:
        try:
            super().admit(pod, container, records)
        except StartError as error:
            raise StartError(error.reason, "back-off restarting failed container", error.wait) from error
