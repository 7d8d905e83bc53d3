"""Bugs in the order of a sync: what ends it, what goes on after a failure, and what is remembered of it."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import ContainerStatus, Pod, PodStatus, Secret
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_bugs.kuberuntime.needed_containers import NeedsContainers
from kubelet_reference.allocation.dynamic_resources import DynamicResources, ResourcesError
from kubelet_reference.api import pods
from kubelet_reference.api.metrics import APP, EPHEMERAL, INIT
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import PodRecords
from kubelet_reference.api.results import KillReason
from kubelet_reference.api.sync_result import Action, Failure, SyncResult
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules, PodActions
from kubelet_reference.kuberuntime.actions.sync_input import Kill, SyncInput
from kubelet_reference.kuberuntime.container.start_container import StartContext
from kubelet_reference.kuberuntime.runtime_manager import PodSync, RuntimeManager
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.kuberuntime.sandbox import RuntimeClasses, SandboxCreator, SandboxError
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.pod_workers.worker import NetworkNotReady, SyncFailed, Waits
from kubelet_reference.status.container_statuses import ContainerStatuses, StatusInput, container_statuses
from kubelet_reference.status.phase import pod_phase
from kubelet_reference.status.status_manager import StatusManager
from kubelet_reference.util.versions import Behaviour

_FAILURES = frozenset({Failure.CREATE_CONTAINER, Failure.RUN_CONTAINER})


@bug("MUT-SYNC-02", breaks=("SYNC-02", "SYNC-09"))
class RunsWithoutNetwork(PodSyncer):
    """Pods that need the pod network are run while it is not ready."""

    def require_network(self, pod: Pod) -> None:
        with suppress(NetworkNotReady):
            super().require_network(pod)


@bug("MUT-SYNC-10", breaks=("SYNC-02", "SYNC-10"))
class RunsWithoutVolumes(PodSyncer):
    """A pod whose volumes are not there is run without them."""

    async def wait_for_volumes(self, pod: Pod, waits: Waits) -> None:
        with suppress(SyncFailed):
            await super().wait_for_volumes(pod, waits)


@bug("MUT-SYNC-11", breaks="SYNC-11")
class MakesNoFolders(PodSyncer):
    """The data folders of a pod are never made."""

    def make_folders(self, pod: Pod) -> None:
        pass


@bug("MUT-SYNC-08", breaks="SYNC-08")
class RunsToTheEnd(PodSyncer):
    """A pod that has ended goes through a whole sync once more."""

    async def sync_pod(self, pod: Pod, mirror: Pod | None, records: PodRecords, waits: Waits) -> bool:
        ended = await super().sync_pod(pod, mirror, records, waits)
        if ended:
            fresh = structs.replace(records, sandboxes=(), containers=())
            await self.runtime.sync_pod(pod, fresh)
        return ended


@bug("MUT-SYNC-17", breaks="SYNC-17")
class KillsForEver(PodSyncer):
    """A pod whose cgroup has vanished is killed again and again, for it gets no other."""

    async def ensure_cgroup(self, pod: Pod, records: PodRecords) -> None:
        cgroups = self.cgroups
        if cgroups is not None and records.running and not cgroups.exists(pods.uid(pod)):
            await self.kill(pod, records, None)
        elif not records.containers:
            await super().ensure_cgroup(pod, records)


@bug("MUT-SYNC-15", breaks="SYNC-15")
class KeepsReasons(PodSyncer):
    """The reason why a container could not be started is reported though it has been started since."""

    def remember_reasons(self, pod: Pod, result: SyncResult) -> None:
        failed = tuple(one for one in result.results if one.reason is not None)
        super().remember_reasons(pod, structs.replace(result, results=failed))


@bug("MUT-SYNC-23", breaks="SYNC-23")
class ForgivesStarts(PodSyncer):
    """A container that could not be started is tried again only with the next regular sync."""

    def raise_for(self, result: SyncResult) -> None:
        others = tuple(one for one in result.results if one.action is not Action.START_CONTAINER)
        super().raise_for(structs.replace(result, results=others))


@bug("MUT-TERM-27", breaks="TERM-27")
class GivesBackFirst(PodSyncer):
    """Resources are given back before the containers that use them have stopped."""

    async def kill(self, pod: Pod, records: PodRecords, grace: int | None) -> None:
        await self.unprepare_resources(pod)
        await super().kill(pod, records, grace)


@bug("MUT-SYNC-18", breaks=("SYNC-18", "SANDBOX-25"))
class StartsWithoutDevices(DynamicResources):
    """A pod is run although its resources could not be prepared."""

    async def prepare(self, pod: Pod) -> None:
        with suppress(ResourcesError):
            await super().prepare(pod)


@bug("MUT-SYNC-04", breaks="SYNC-04")
class StopsAtFirstFailure(NeedsContainers):
    """After an app container that could not be started no other one is tried."""

    def is_needed(self, container: AnyContainer, kind: str) -> bool:
        return kind == APP


@bug("MUT-SYNC-03", breaks="SYNC-03")
class AllAtOnce(RuntimeManager):
    """The app containers of a pod are started all at one time."""

    async def _start_each(
        self, now: PodSync, context: StartContext, containers: Iterable[AnyContainer], kind: str
    ) -> None:
        await asyncio.gather(
            *(super(AllAtOnce, self)._start_each(now, context, [c], kind) for c in containers)
        )


@bug("MUT-SYNC-03-EPH", breaks="SYNC-03")
class DebuggersLast(RuntimeManager):
    """Ephemeral containers are started after the app containers."""

    async def _start_each(
        self, now: PodSync, context: StartContext, containers: Iterable[AnyContainer], kind: str
    ) -> None:
        if kind != EPHEMERAL:
            await super()._start_each(now, context, containers, kind)
        if kind == APP:
            known = {record.name for record in now.records.containers}
            late = [one for one in pods.ephemeral_containers(now.pod) if one.name not in known]
            await super()._start_each(now, context, late, EPHEMERAL)


@bug("MUT-SYNC-13", breaks="SYNC-13")
class RestartsSiblings(ActionRules):
    """When one container comes again, those beside it are stopped as well."""

    def app_actions(self, now: SyncInput, found: PodActions) -> PodActions:
        actions = super().app_actions(now, found)
        if not actions.to_start:
            return actions
        known = {one.name: now.records.newest(one.name) for one in pods.containers(now.pod)}
        siblings = tuple(
            Kill(record, one, KillReason.UNKNOWN, f"Container {one.name} goes with its sibling")
            for one in pods.containers(now.pod)
            if (record := known[one.name]) is not None and record.is_running
        )
        return structs.replace(actions, to_kill=siblings)


@bug("MUT-SYNC-05", breaks="SYNC-05")
class AppsAnyway(RuntimeManager):
    """App containers are started when an init container could not be."""

    async def _start_each(
        self, now: PodSync, context: StartContext, containers: Iterable[AnyContainer], kind: str
    ) -> None:
        before = len(now.results)
        try:
            await super()._start_each(now, context, containers, kind)
        finally:
            if kind == INIT and any(one.reason is not None for one in now.results[before:]):
                await super()._start_each(now, context, pods.containers(now.pod), APP)


@bug("MUT-SYNC-24", breaks=("SYNC-06", "SYNC-24"))
class StartsBesideTheOld(RuntimeManager):
    """After a kill that failed another instance is started beside the old one."""

    async def _kill_containers(self, now: PodSync, actions: PodActions) -> None:
        for one in actions.to_kill:
            with suppress(Exception):
                await super()._kill_containers(now, structs.replace(actions, to_kill=(one,)))


@bug("MUT-SYNC-22", breaks=("SYNC-12", "SYNC-22"))
class TellsOldAddress(RuntimeManager):
    """The containers of a new sandbox get the address of the one before."""

    async def _new_sandbox(self, now: PodSync, config: cri.PodSandboxConfig) -> tuple[str, tuple[str, ...]]:
        sandbox_id, _ = await super()._new_sandbox(now, config)
        return sandbox_id, now.records.ips


@bug("MUT-SANDBOX-10", breaks="SANDBOX-10")
class ForgivesSandboxes(RuntimeManager):
    """A sandbox that could not be run is tried again only with the next regular sync."""

    async def sync_pod(
        self, pod: Pod, records: PodRecords, pull_secrets: Sequence[Secret] = ()
    ) -> SyncResult:
        result = await super().sync_pod(pod, records, pull_secrets)
        return structs.replace(result, problem="")


@bug("MUT-SYNC-07", breaks="SYNC-07")
class DoesNotRead(SandboxCreator):
    """Containers are made in a sandbox whose status was never read."""

    async def ips(self, pod: Pod, sandbox_id: str) -> tuple[str, ...]:
        return ()


@bug("MUT-SYNC-20", breaks=("SYNC-20", "SYNC-21"))
class NeedsNoAddress(SandboxCreator):
    """A new sandbox that could not be read is used without an address."""

    async def ips(self, pod: Pod, sandbox_id: str) -> tuple[str, ...]:
        try:
            return await super().ips(pod, sandbox_id)
        except SandboxError:
            return ()


@bug("MUT-SYNC-19", breaks=("SYNC-14", "SYNC-19"))
class TellsOfDeletedPods(SandboxCreator):
    """An event reports a failed sandbox of a pod that is terminating anyway."""

    def __init__(self, tools: RuntimeTools, classes: RuntimeClasses, _: object) -> None:
        super().__init__(tools, classes, lambda _: False)


@bug("MUT-SYNC-01", breaks="SYNC-01", part="pod_phase")
def running_at_once(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """The phase of a new pod is reported as it will be when all goes well."""
    phase = pod_phase(pod, status, behaviour, terminating=terminating)
    return pods.RUNNING if phase == pods.PENDING and not pods.init_containers(pod) else phase


@bug("MUT-SANDBOX-20", breaks="SANDBOX-20")
class ForgetsAddress(StatusManager):
    """The address of a pod is no longer reported when it has ended."""

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        if pods.is_terminal_phase(status.phase):
            status = structs.replace(status, podIP=None, podIPs=None)
        super().set_pod_status(pod, status)


def _reason(one: ContainerStatus | None) -> str | None:
    return one.state.waiting.reason if one is not None and one.state and one.state.waiting else None


@bug("MUT-SYNC-16", breaks="SYNC-16", part="container_statuses")
def reasons_of_before(now: StatusInput) -> ContainerStatuses:
    """A restarted kubelet takes from the last status why containers wait."""
    made = container_statuses(now)
    before = {one.name: one for one in now.stored.containerStatuses or ()}

    def kept(one: ContainerStatus) -> ContainerStatus:
        old = before.get(one.name)
        waits = _reason(one) is not None and _reason(old) in _FAILURES
        return structs.replace(one, state=old.state) if old is not None and waits else one

    return structs.replace(made, app=[kept(one) for one in made.app])
