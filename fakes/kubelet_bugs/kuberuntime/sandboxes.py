"""Bugs of sandboxes: when one is made or replaced, what it is asked to be, and its addresses."""

from collections.abc import Callable, Sequence
from functools import wraps

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, Pod
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ListedPod, PodRecords
from kubelet_reference.api.sync_result import ActionResult, SyncResult
from kubelet_reference.cri.runtime_reader import RuntimeReader
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules, PodActions
from kubelet_reference.kuberuntime.actions.sandbox_changed import SandboxChange, sandbox_changed
from kubelet_reference.kuberuntime.actions.sync_input import SyncInput
from kubelet_reference.kuberuntime.container.kill_container import ContainerKill, ContainerKiller
from kubelet_reference.kuberuntime.container.start_container import ContainerStarter, StartContext
from kubelet_reference.kuberuntime.runtime_manager import RuntimeManager
from kubelet_reference.kuberuntime.sandbox import DEFAULT_HANDLER, SandboxCreator, UnknownClassError
from kubelet_reference.kuberuntime.sandbox_config import hostname, sandbox_config
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.util.settings import Settings


@bug("K8S-35309", breaks="SANDBOX-06", aliases="K01")
class ComesBackAlways(ActionRules):
    """A pod that is not to be restarted is made again, all of it, when its sandbox dies."""

    def has_had_its_run(self, now: SyncInput) -> bool:
        return False


@bug("K8S-68980", breaks="SANDBOX-06")
class SandboxForNothing(ActionRules):
    """A pod that has had its run gets a new sandbox when the old one dies, with nothing to run in it."""

    def in_new_sandbox(self, now: SyncInput) -> PodActions:
        found = super().in_new_sandbox(now)
        return structs.replace(found, create_sandbox=True) if self.has_had_its_run(now) else found


@bug("K8S-79398", breaks="SANDBOX-06", aliases=("K02", "K8S-78125"))
class OneTry(ActionRules):
    """A sandbox that could not be run is not tried again for a pod that is not to be restarted."""

    def has_had_its_run(self, now: SyncInput) -> bool:
        return pods.restart_policy(now.pod) == pods.NEVER and now.sandbox.attempt != 0


@bug("K8S-42698", breaks="SANDBOX-02", part="runtime.sandbox_changed", aliases=("K13", "K8S-48510"))
def content_without_address(pod: Pod, records: PodRecords) -> SandboxChange:
    """A sandbox without an IP is used as if it had a network."""
    sandboxes = tuple(structs.replace(sandbox, ips=None) for sandbox in records.sandboxes)
    return sandbox_changed(pod, structs.replace(records, sandboxes=sandboxes))


@bug("K8S-109042", breaks="SYNC-13", part="runtime.sandbox_changed")
def address_whatever_network(pod: Pod, records: PodRecords) -> SandboxChange:
    """A sandbox without a reported network counts as one that has lost its address."""
    sandboxes = tuple(
        structs.replace(one, ips=one.ips or (), host_network=False) for one in records.sandboxes
    )
    spec = structs.replace(pods.spec(pod), hostNetwork=None)
    return sandbox_changed(structs.replace(pod, spec=spec), structs.replace(records, sandboxes=sandboxes))


@bug("CTRD-11029", breaks=("SANDBOX-18", "TERM-01"))
class LeavesSurvivors(RuntimeManager):
    """Containers that survived their sandbox go on beside those of the next one."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        if isinstance(running, PodRecords) and grace_override is None:
            running = structs.replace(running, containers=())
        return await super().kill_pod(pod, running, grace_override)


@bug("K8S-107730", breaks=("SANDBOX-04", "SANDBOX-08", "SANDBOX-19", "TERM-21", "RESTART-18"))
class SandboxOfContainers(RuntimeManager):
    """A pod of which no container runs any more keeps its sandbox."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        if isinstance(running, PodRecords) and not running.running:
            running = structs.replace(running, sandboxes=())
        return await super().kill_pod(pod, running, grace_override)


@bug("K8S-109596", breaks="SANDBOX-18", aliases="K8S-111901")
class OrphansKeepSandbox(PodSyncer):
    """Of a pod that only the runtime knows the containers are stopped and the sandbox is not."""

    async def sync_terminating_runtime_pod(self, running: ListedPod) -> None:
        await super().sync_terminating_runtime_pod(structs.replace(running, sandboxes=()))


@bug("K8S-32935", breaks="SANDBOX-01")
class StopsWhatNeverWas(ContainerKiller):
    """Before a new pod's sandbox is made one is stopped that never was."""

    async def stop_sandboxes(self, pod: Pod, sandbox_ids: Sequence[str]) -> Sequence[ActionResult]:
        return await super().stop_sandboxes(pod, sandbox_ids or [pods.uid(pod)])


@bug("K8S-4759", breaks="SANDBOX-17", aliases=("CTRD-13614", "CTRD-13654"))
class StartsInOldSandbox(ContainerStarter):
    """When a sandbox is replaced the containers are made in the one that was just stopped."""

    async def start(self, context: StartContext, container: AnyContainer) -> None:
        there = context.records.sandboxes
        await super().start(structs.replace(context, sandbox_id=there[0].id) if there else context, container)


@bug("CTRD-9545", breaks="RESTART-16")
class CountsInSandbox(ContainerStarter):
    """In a new sandbox the numbers of instances begin at 0 again."""

    def restarts(self, context: StartContext, container: AnyContainer) -> int:
        is_new = all(sandbox.id != context.sandbox_id for sandbox in context.records.sandboxes)
        return 0 if is_new else super().restarts(context, container)


@bug("MUT-SANDBOX-03", breaks="SANDBOX-03", part="runtime.sandbox_changed")
def first_one_counts(pod: Pod, records: PodRecords) -> SandboxChange:
    """Of several sandboxes the first counts, and not the one made last."""
    return sandbox_changed(pod, structs.replace(records, sandboxes=records.sandboxes[-1:]))


@bug("K8S-130551", breaks="SANDBOX-02", part="runtime.sandbox_changed", aliases=("K14", "K8S-83701"))
def newest_alone_counts(pod: Pod, records: PodRecords) -> SandboxChange:
    """A pod with two ready sandboxes keeps both."""
    return sandbox_changed(pod, structs.replace(records, sandboxes=records.sandboxes[:1]))


@bug("MUT-SANDBOX-07", breaks="SANDBOX-07")
class SuccessRunsAgain(ActionRules):
    """In a new sandbox everything runs again, though it has succeeded."""

    def is_done(self, now: SyncInput, container: Container) -> bool:
        return False


@bug("MUT-SANDBOX-09", breaks="SANDBOX-09")
class TellsOfEverySandbox(RuntimeManager):
    """An event reports a changed sandbox when a pod gets its first one."""

    def decide(self, pod: Pod, records: PodRecords) -> PodActions:
        actions = super().decide(pod, records)
        if actions.create_sandbox and not actions.old_sandbox_id:
            self.tools.recorder.normal(pod, Reason.SANDBOX_CHANGED, "Pod sandbox changed")
        return actions


@bug("MUT-SANDBOX-23", breaks="SANDBOX-23")
class LeavesGuests(RuntimeManager):
    """A pod is killed without its ephemeral containers."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        if pod is not None and isinstance(running, PodRecords):
            guests = {one.name for one in pods.ephemeral_containers(pod)}
            kept = tuple(one for one in running.containers if one.name not in guests)
            running = structs.replace(running, containers=kept)
        return await super().kill_pod(pod, running, grace_override)


@bug("MUT-SANDBOX-26", breaks="SANDBOX-26")
class GivesUpAtContainers(ContainerKiller):
    """A container that could not be stopped keeps its sandbox from being stopped."""

    async def kill_pod(
        self, pod: Pod, kills: Sequence[ContainerKill], sandbox_ids: Sequence[str]
    ) -> tuple[ActionResult, ...]:
        found = tuple(await self.kill_containers(kills, self.order(pod, kills)))
        if any(one.reason is not None for one in found):
            return found
        return (*found, *await self.stop_sandboxes(pod, sandbox_ids))


@bug("MUT-SANDBOX-16", breaks="SANDBOX-16")
class AnyHandler(SandboxCreator):
    """A pod of an unknown runtime class is run by the default handler."""

    async def runtime_handler(self, pod: Pod) -> str:
        try:
            return await super().runtime_handler(pod)
        except UnknownClassError:
            return DEFAULT_HANDLER


@bug("MUT-SANDBOX-21", breaks="SANDBOX-21")
class BelievesAddresses(RuntimeReader):
    """What the runtime gives as an address is shown as one though it is none."""

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        records = await super().pod_records(uid, name, namespace)
        ips = records.sandboxes[0].ips if records.sandboxes and records.sandboxes[0].ready else ()
        return structs.replace(records, ips=ips or ())


@bug("MUT-SANDBOX-22", breaks="SANDBOX-22", part="addresses_in_order")
def as_they_come(addresses: tuple[str, ...], node: str) -> list[str]:
    """A pod's addresses are shown in the order of the runtime."""
    del node
    return list(addresses)


def _amended(
    change: Callable[[Pod, cri.PodSandboxConfig], None],
) -> Callable[[Pod, int, Settings], cri.PodSandboxConfig]:
    """Asks for sandboxes with one thing changed."""

    @wraps(change)
    def asked(pod: Pod, attempt: int, settings: Settings) -> cri.PodSandboxConfig:
        config = sandbox_config(pod, attempt, settings)
        change(pod, config)
        return config

    return asked


@bug("MUT-SANDBOX-11", breaks="SANDBOX-11", part="sandbox_config")
@_amended
def unlabelled(pod: Pod, config: cri.PodSandboxConfig) -> None:
    """Sandboxes have the labels of the pod's identity and none of its own."""
    for name in pods.labels(pod):
        del config.labels[name]


@bug("MUT-SANDBOX-12", breaks="SANDBOX-12", part="sandbox_config")
@_amended
def logs_by_name(pod: Pod, config: cri.PodSandboxConfig) -> None:
    """Pods of one name share a folder for their logs."""
    config.log_directory = config.log_directory.removesuffix(f"_{pods.uid(pod)}")


@bug("MUT-SANDBOX-13", breaks="SANDBOX-13", part="sandbox_config")
@_amended
def always_named(pod: Pod, config: cri.PodSandboxConfig) -> None:
    """Pods on the host's network get a hostname of their own."""
    config.hostname = hostname(pod)


@bug("MUT-SANDBOX-14", breaks="SANDBOX-14", part="sandbox_config")
@_amended
def with_ports_of_inits(pod: Pod, config: cri.PodSandboxConfig) -> None:
    """The host ports of init containers are mapped."""
    for init in pods.init_containers(pod):
        for port in init.ports or ():
            config.port_mappings.add(container_port=port.containerPort, host_port=port.hostPort or 0)


@bug("MUT-SANDBOX-15", breaks="SANDBOX-15", part="sandbox_config")
@_amended
def with_shared_processes(pod: Pod, config: cri.PodSandboxConfig) -> None:
    """The containers of a pod share their processes without being asked to."""
    if not pods.spec(pod).hostPID:
        config.linux.security_context.namespace_options.pid = cri.POD


@bug("MUT-SANDBOX-24", breaks="SANDBOX-24", part="sandbox_config")
@_amended
def with_names_as_written(pod: Pod, config: cri.PodSandboxConfig) -> None:
    """Sysctls reach the runtime as they are written."""
    context = pods.spec(pod).securityContext
    config.linux.sysctls.clear()
    config.linux.sysctls.update({one.name: one.value for one in (context.sysctls if context else None) or ()})
