"""Bugs in what a sandbox is asked to be, in which one counts, and in the addresses that it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, Pod
from msgspec import structs

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.events import Reason
from kubelet_reference.parts import Parts
from kubelet_reference.pod_actions import ActionRules, Actions
from kubelet_reference.pod_status import StatusDecisions
from kubelet_reference.records import ListedPod, PodRecords
from kubelet_reference.runtime_classes import DEFAULT_HANDLER, UnknownClassError
from kubelet_reference.runtime_manager import RuntimeManager
from kubelet_reference.runtime_reader import RuntimeReader
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.sandbox_changed import SandboxChange, sandbox_changed
from kubelet_reference.sandbox_config import hostname, sandbox_config
from kubelet_reference.sandbox_maker import SandboxMaker
from kubelet_reference.settings import Settings
from kubelet_reference.sync_input import Situation
from kubelet_reference.sync_result import ActionResult, SyncResult
from kubelet_reference.termination import ContainerKill, Terminator


def _first_one_counts(pod: Pod, records: PodRecords) -> SandboxChange:
    """Judges a pod by the first of its sandboxes."""
    return sandbox_changed(pod, structs.replace(records, sandboxes=records.sandboxes[-1:]))


def _newest_alone_counts(pod: Pod, records: PodRecords) -> SandboxChange:
    """Does not mind a second ready sandbox."""
    return sandbox_changed(pod, structs.replace(records, sandboxes=records.sandboxes[:1]))


class _SuccessRunsAgain(ActionRules):
    """Starts everything in a new sandbox, whatever has succeeded."""

    def is_done(self, now: Situation, container: Container) -> bool:
        return False


class _TellsOfEverySandbox(RuntimeManager):
    """Tells of a new pod's sandbox as of one that has changed."""

    def decide(self, pod: Pod, records: PodRecords) -> Actions:
        actions = super().decide(pod, records)
        if actions.create_sandbox and not actions.old_sandbox_id:
            self._recorder.normal(pod, Reason.SANDBOX_CHANGED, "Pod sandbox changed")
        return actions


class _LeavesGuests(RuntimeManager):
    """Stops a pod without its ephemeral containers."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        if pod is not None and isinstance(running, PodRecords):
            guests = {one.name for one in pods.ephemeral_containers(pod)}
            kept = tuple(one for one in running.containers if one.name not in guests)
            running = structs.replace(running, containers=kept)
        return await super().kill_pod(pod, running, grace_override)


class _GivesUpAtContainers(Terminator):
    """Leaves the sandboxes alone when a container could not be stopped."""

    async def kill_pod(
        self, pod: Pod, kills: Sequence[ContainerKill], sandbox_ids: Sequence[str]
    ) -> tuple[ActionResult, ...]:
        found = tuple(await self.kill_containers(kills, self.order(pod, kills)))
        if any(one.reason is not None for one in found):
            return found
        return (*found, *await self.stop_sandboxes(pod, sandbox_ids))


class _AnyHandler(SandboxMaker):
    """Takes the default handler for a runtime class that nobody knows."""

    async def runtime_handler(self, pod: Pod) -> str:
        try:
            return await super().runtime_handler(pod)
        except UnknownClassError:
            return DEFAULT_HANDLER


class _BelievesAddresses(RuntimeReader):
    """Takes for an address whatever the runtime gives as one."""

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        records = await super().pod_records(uid, name, namespace)
        told = records.sandboxes[0].ips if records.sandboxes and records.sandboxes[0].ready else ()
        return structs.replace(records, ips=told or ())


def _as_they_come(addresses: tuple[str, ...], node: str) -> list[str]:
    """Shows a pod's addresses in the order of the runtime."""
    del node
    return list(addresses)


def _asking(change: Callable[[Pod, cri.PodSandboxConfig], None]) -> Parts:
    """A kubelet that asks for sandboxes with one thing changed."""

    def asked(pod: Pod, attempt: int, settings: Settings) -> cri.PodSandboxConfig:
        config = sandbox_config(pod, attempt, settings)
        change(pod, config)
        return config

    return Parts(runtime=RuntimeParts(sandbox_config=asked))


def _unlabelled(pod: Pod, config: cri.PodSandboxConfig) -> None:
    for name in pods.labels(pod):
        del config.labels[name]


def _logs_by_name(pod: Pod, config: cri.PodSandboxConfig) -> None:
    config.log_directory = config.log_directory.removesuffix(f"_{pods.uid(pod)}")


def _always_named(pod: Pod, config: cri.PodSandboxConfig) -> None:
    config.hostname = hostname(pod)


def _with_ports_of_inits(pod: Pod, config: cri.PodSandboxConfig) -> None:
    for init in pods.init_containers(pod):
        for port in init.ports or ():
            config.port_mappings.add(container_port=port.containerPort, host_port=port.hostPort or 0)


def _with_shared_processes(pod: Pod, config: cri.PodSandboxConfig) -> None:
    if not pods.spec(pod).hostPID:
        config.linux.security_context.namespace_options.pid = cri.POD


def _with_names_as_written(pod: Pod, config: cri.PodSandboxConfig) -> None:
    context = pods.spec(pod).securityContext
    config.linux.sysctls.clear()
    config.linux.sysctls.update({one.name: one.value for one in (context.sysctls if context else None) or ()})


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-130551",
        "A pod with two ready sandboxes keeps both.",
        lambda: Parts(runtime=RuntimeParts(sandbox_changed=_newest_alone_counts)),
        ("SANDBOX-02",),
        ("K14", "K8S-83701"),
    ),
    Bug(
        "MUT-SANDBOX-03",
        "Of several sandboxes the first counts, and not the one made last.",
        lambda: Parts(runtime=RuntimeParts(sandbox_changed=_first_one_counts)),
        ("SANDBOX-03",),
    ),
    Bug(
        "MUT-SANDBOX-07",
        "In a new sandbox everything runs again, though it has succeeded.",
        lambda: Parts(runtime=RuntimeParts(compute_actions=_SuccessRunsAgain().compute)),
        ("SANDBOX-07",),
    ),
    Bug(
        "MUT-SANDBOX-09",
        "An event tells of a changed sandbox when a pod gets its first one.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_TellsOfEverySandbox)),
        ("SANDBOX-09",),
    ),
    Bug(
        "MUT-SANDBOX-11",
        "Sandboxes have the labels of the pod's identity and none of its own.",
        lambda: _asking(_unlabelled),
        ("SANDBOX-11",),
    ),
    Bug(
        "MUT-SANDBOX-12",
        "Pods of one name share a folder for their logs.",
        lambda: _asking(_logs_by_name),
        ("SANDBOX-12",),
    ),
    Bug(
        "MUT-SANDBOX-13",
        "Pods on the host's network get a hostname of their own.",
        lambda: _asking(_always_named),
        ("SANDBOX-13",),
    ),
    Bug(
        "MUT-SANDBOX-14",
        "The host ports of init containers are mapped.",
        lambda: _asking(_with_ports_of_inits),
        ("SANDBOX-14",),
    ),
    Bug(
        "MUT-SANDBOX-15",
        "The containers of a pod share their processes without being asked to.",
        lambda: _asking(_with_shared_processes),
        ("SANDBOX-15",),
    ),
    Bug(
        "MUT-SANDBOX-16",
        "A pod of an unknown runtime class is run by the default handler.",
        lambda: Parts(runtime=RuntimeParts(sandbox_maker=_AnyHandler)),
        ("SANDBOX-16",),
    ),
    Bug(
        "MUT-SANDBOX-21",
        "What the runtime gives as an address is shown as one though it is none.",
        lambda: Parts(runtime=RuntimeParts(reader=_BelievesAddresses)),
        ("SANDBOX-21",),
    ),
    Bug(
        "MUT-SANDBOX-22",
        "A pod's addresses are shown in the order of the runtime.",
        lambda: Parts(status=StatusDecisions(addresses_in_order=_as_they_come)),
        ("SANDBOX-22",),
    ),
    Bug(
        "MUT-SANDBOX-23",
        "A pod is killed without its ephemeral containers.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_LeavesGuests)),
        ("SANDBOX-23",),
    ),
    Bug(
        "MUT-SANDBOX-24",
        "Sysctls reach the runtime as they are written.",
        lambda: _asking(_with_names_as_written),
        ("SANDBOX-24",),
    ),
    Bug(
        "MUT-SANDBOX-26",
        "A container that could not be stopped keeps its sandbox from being stopped.",
        lambda: Parts(runtime=RuntimeParts(terminator=_GivesUpAtContainers)),
        ("SANDBOX-26",),
    ),
)
