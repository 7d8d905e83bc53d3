"""Bugs in the life of a pod's sandbox: when a new one is made, what goes before it, what goes with it."""

from __future__ import annotations

from collections.abc import Sequence

from lightkube.models.core_v1 import Pod
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.pod_actions import ActionRules, Actions, Situation
from kubelet_reference.pods import AnyContainer
from kubelet_reference.records import ListedPod, PodRecords
from kubelet_reference.runtime_manager import RuntimeManager
from kubelet_reference.sandbox_changed import SandboxChange, sandbox_changed
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_pod import PodSyncer
from kubelet_reference.sync_result import ActionResult, SyncResult
from kubelet_reference.termination import Terminator


@bug("K8S-35309", breaks="SANDBOX-06", aliases="K01")
class ComesBackAlways(ActionRules):
    """A pod that is not to be restarted is made again, all of it, when its sandbox dies."""

    def has_had_its_run(self, now: Situation) -> bool:
        return False


@bug("K8S-68980", breaks="SANDBOX-06")
class SandboxForNothing(ActionRules):
    """A pod that has had its run gets a new sandbox when the old one dies, with nothing to run in it."""

    def in_new_sandbox(self, now: Situation) -> Actions:
        found = super().in_new_sandbox(now)
        return structs.replace(found, create_sandbox=True) if self.has_had_its_run(now) else found


@bug("K8S-79398", breaks="SANDBOX-06", aliases=("K02", "K8S-78125"))
class OneTry(ActionRules):
    """A sandbox that could not be run is not tried again for a pod that is not to be restarted."""

    def has_had_its_run(self, now: Situation) -> bool:
        return pods.restart_policy(now.pod) == pods.NEVER and now.sandbox.attempt != 0


@bug("K8S-42698", breaks="SANDBOX-02", part="runtime.sandbox_changed", aliases=("K13", "K8S-48510"))
def content_without_address(pod: Pod, records: PodRecords) -> SandboxChange:
    """A sandbox without an IP is used as if it had a network."""
    sandboxes = tuple(structs.replace(sandbox, ips=None) for sandbox in records.sandboxes)
    return sandbox_changed(pod, structs.replace(records, sandboxes=sandboxes))


@bug("K8S-109042", breaks="SYNC-13", part="runtime.sandbox_changed")
def address_whatever_network(pod: Pod, records: PodRecords) -> SandboxChange:
    """A sandbox of which no network is told counts as one that has lost its address."""
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
class StopsWhatNeverWas(Terminator):
    """Before a new pod's sandbox is made one is stopped that never was."""

    async def stop_sandboxes(self, pod: Pod, sandbox_ids: Sequence[str]) -> Sequence[ActionResult]:
        return await super().stop_sandboxes(pod, sandbox_ids or [pods.uid(pod)])


@bug("K8S-4759", breaks="SANDBOX-17", aliases=("CTRD-13614", "CTRD-13654"))
class StartsInOldSandbox(ContainerStarter):
    """When a sandbox is replaced the containers are made in the one that was just stopped."""

    async def start(self, into: PodToStart, container: AnyContainer) -> None:
        there = into.records.sandboxes
        await super().start(structs.replace(into, sandbox_id=there[0].id) if there else into, container)


@bug("CTRD-9545", breaks="RESTART-16")
class CountsInSandbox(ContainerStarter):
    """In a new sandbox the numbers of instances begin at 0 again."""

    def restarts(self, into: PodToStart, container: AnyContainer) -> int:
        is_new = all(sandbox.id != into.sandbox_id for sandbox in into.records.sandboxes)
        return 0 if is_new else super().restarts(into, container)
