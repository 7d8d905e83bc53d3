"""Bugs in the life of a pod's sandbox: when a new one is made, what goes before it, what goes with it."""

from __future__ import annotations

from collections.abc import Sequence

from lightkube.models.core_v1 import Pod
from msgspec import structs

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.parts import Parts
from kubelet_reference.pod_actions import ActionRules, Actions
from kubelet_reference.pods import AnyContainer
from kubelet_reference.records import ListedPod, PodRecords
from kubelet_reference.runtime_manager import RuntimeManager
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.sandbox_changed import SandboxChange, sandbox_changed
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_input import Situation
from kubelet_reference.sync_pod import PodSyncer
from kubelet_reference.sync_result import ActionResult, SyncResult
from kubelet_reference.termination import Terminator


class _ComesBackAlways(ActionRules):
    """Makes a new sandbox whatever the restart policy says."""

    def has_had_its_run(self, now: Situation) -> bool:
        return False


class _SandboxForNothing(ActionRules):
    """Makes a new sandbox for a pod of which nothing will run again."""

    def in_new_sandbox(self, now: Situation) -> Actions:
        found = super().in_new_sandbox(now)
        return structs.replace(found, create_sandbox=True) if self.has_had_its_run(now) else found


class _OneTry(ActionRules):
    """Takes a sandbox that could not be run for a pod that has run."""

    def has_had_its_run(self, now: Situation) -> bool:
        return pods.restart_policy(now.pod) == pods.NEVER and now.sandbox.attempt != 0


def _content_without_address(pod: Pod, records: PodRecords) -> SandboxChange:
    """Does not ask whether the sandbox has an IP."""
    sandboxes = tuple(structs.replace(sandbox, ips=None) for sandbox in records.sandboxes)
    return sandbox_changed(pod, structs.replace(records, sandboxes=sandboxes))


def _address_whatever_network(pod: Pod, records: PodRecords) -> SandboxChange:
    """Asks every sandbox for an address of its own, whether it has a network of its own or not."""
    sandboxes = tuple(
        structs.replace(one, ips=one.ips or (), host_network=False) for one in records.sandboxes
    )
    spec = structs.replace(pods.spec(pod), hostNetwork=None)
    return sandbox_changed(structs.replace(pod, spec=spec), structs.replace(records, sandboxes=sandboxes))


class _LeavesSurvivors(RuntimeManager):
    """Stops only the sandbox before it makes another one."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        if isinstance(running, PodRecords) and grace_override is None:
            running = structs.replace(running, containers=())
        return await super().kill_pod(pod, running, grace_override)


class _SandboxOfContainers(RuntimeManager):
    """Finds the sandboxes to stop through the containers that run in them."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        if isinstance(running, PodRecords) and not running.running:
            running = structs.replace(running, sandboxes=())
        return await super().kill_pod(pod, running, grace_override)


class _OrphansKeepSandbox(PodSyncer):
    """Stops the containers of an orphan and not its sandbox."""

    async def sync_terminating_runtime_pod(self, running: ListedPod) -> None:
        await super().sync_terminating_runtime_pod(structs.replace(running, sandboxes=()))


class _StopsWhatNeverWas(Terminator):
    """Asks for the stop of a sandbox by the pod's UID where there is none yet."""

    async def stop_sandboxes(self, pod: Pod, sandbox_ids: Sequence[str]) -> Sequence[ActionResult]:
        return await super().stop_sandboxes(pod, sandbox_ids or [pods.uid(pod)])


class _StartsInOldSandbox(ContainerStarter):
    """Starts containers in the sandbox that was there when the sync began."""

    async def start(self, into: PodToStart, container: AnyContainer) -> None:
        there = into.records.sandboxes
        await super().start(structs.replace(into, sandbox_id=there[0].id) if there else into, container)


class _CountsInSandbox(ContainerStarter):
    """Numbers the instances of a container anew in each sandbox."""

    def restarts(self, into: PodToStart, container: AnyContainer) -> int:
        is_new = all(sandbox.id != into.sandbox_id for sandbox in into.records.sandboxes)
        return 0 if is_new else super().restarts(into, container)


def _deciding(rules: ActionRules) -> Parts:
    return Parts(runtime=RuntimeParts(compute_actions=rules.compute))


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-35309",
        "A pod that is not to be restarted is made again, all of it, when its sandbox dies.",
        lambda: _deciding(_ComesBackAlways()),
        ("SANDBOX-06",),
        ("K01",),
    ),
    Bug(
        "K8S-68980",
        "A pod that has had its run gets a new sandbox when the old one dies, with nothing to run in it.",
        lambda: _deciding(_SandboxForNothing()),
        ("SANDBOX-06",),
    ),
    Bug(
        "K8S-79398",
        "A sandbox that could not be run is not tried again for a pod that is not to be restarted.",
        lambda: _deciding(_OneTry()),
        ("SANDBOX-06",),
        ("K02", "K8S-78125"),
    ),
    Bug(
        "K8S-42698",
        "A sandbox without an IP is used as if it had a network.",
        lambda: Parts(runtime=RuntimeParts(sandbox_changed=_content_without_address)),
        ("SANDBOX-02",),
        ("K13", "K8S-48510"),
    ),
    Bug(
        "K8S-109042",
        "A sandbox of which no network is told counts as one that has lost its address.",
        lambda: Parts(runtime=RuntimeParts(sandbox_changed=_address_whatever_network)),
        ("SYNC-13",),
    ),
    Bug(
        "CTRD-11029",
        "Containers that survived their sandbox go on beside those of the next one.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_LeavesSurvivors)),
        ("SANDBOX-18", "TERM-01"),
    ),
    Bug(
        "K8S-107730",
        "A pod of which no container runs any more keeps its sandbox.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_SandboxOfContainers)),
        ("SANDBOX-04", "SANDBOX-08", "SANDBOX-19", "TERM-21", "RESTART-18"),
    ),
    Bug(
        "K8S-109596",
        "Of a pod that only the runtime knows the containers are stopped and the sandbox is not.",
        lambda: Parts(pod_syncer=_OrphansKeepSandbox),
        ("SANDBOX-18",),
        ("K8S-111901",),
    ),
    Bug(
        "K8S-32935",
        "Before a new pod's sandbox is made one is stopped that never was.",
        lambda: Parts(runtime=RuntimeParts(terminator=_StopsWhatNeverWas)),
        ("SANDBOX-01",),
    ),
    Bug(
        "K8S-4759",
        "When a sandbox is replaced the containers are made in the one that was just stopped.",
        lambda: Parts(runtime=RuntimeParts(starter=_StartsInOldSandbox)),
        ("SANDBOX-17",),
        ("CTRD-13614", "CTRD-13654"),
    ),
    Bug(
        "CTRD-9545",
        "In a new sandbox the numbers of instances begin at 0 again.",
        lambda: Parts(runtime=RuntimeParts(starter=_CountsInSandbox)),
        ("RESTART-16",),
    ),
)
