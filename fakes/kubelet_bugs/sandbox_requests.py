"""Bugs in what a sandbox is asked to be, in which one counts, and in the addresses that it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, Pod
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.events import Reason
from kubelet_reference.pod_actions import ActionRules, Actions, Situation
from kubelet_reference.records import ListedPod, PodRecords
from kubelet_reference.runtime_classes import DEFAULT_HANDLER, UnknownClassError
from kubelet_reference.runtime_manager import RuntimeManager
from kubelet_reference.runtime_reader import RuntimeReader
from kubelet_reference.sandbox_changed import SandboxChange, sandbox_changed
from kubelet_reference.sandbox_config import hostname, sandbox_config
from kubelet_reference.sandbox_maker import SandboxMaker
from kubelet_reference.settings import Settings
from kubelet_reference.sync_result import ActionResult, SyncResult
from kubelet_reference.termination import ContainerKill, Terminator


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

    def is_done(self, now: Situation, container: Container) -> bool:
        return False


@bug("MUT-SANDBOX-09", breaks="SANDBOX-09")
class TellsOfEverySandbox(RuntimeManager):
    """An event tells of a changed sandbox when a pod gets its first one."""

    def decide(self, pod: Pod, records: PodRecords) -> Actions:
        actions = super().decide(pod, records)
        if actions.create_sandbox and not actions.old_sandbox_id:
            self._recorder.normal(pod, Reason.SANDBOX_CHANGED, "Pod sandbox changed")
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
class GivesUpAtContainers(Terminator):
    """A container that could not be stopped keeps its sandbox from being stopped."""

    async def kill_pod(
        self, pod: Pod, kills: Sequence[ContainerKill], sandbox_ids: Sequence[str]
    ) -> tuple[ActionResult, ...]:
        found = tuple(await self.kill_containers(kills, self.order(pod, kills)))
        if any(one.reason is not None for one in found):
            return found
        return (*found, *await self.stop_sandboxes(pod, sandbox_ids))


@bug("MUT-SANDBOX-16", breaks="SANDBOX-16")
class AnyHandler(SandboxMaker):
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
        told = records.sandboxes[0].ips if records.sandboxes and records.sandboxes[0].ready else ()
        return structs.replace(records, ips=told or ())


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
