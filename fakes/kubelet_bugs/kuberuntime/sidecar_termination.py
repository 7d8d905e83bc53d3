"""Bugs of sidecars at the end of their pod, and in its status."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from lightkube.models.core_v1 import Pod, PodCondition, PodStatus
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ListedPod, PodRecords
from kubelet_reference.api.sync_result import ActionResult, SyncResult
from kubelet_reference.kuberuntime.container.kill_container import (
    ContainerKill,
    ContainerKiller,
    TerminationOrder,
)
from kubelet_reference.kuberuntime.runtime_manager import RuntimeManager
from kubelet_reference.status.conditions import containers_ready, pod_conditions, put, ready
from kubelet_reference.status.phase import PHASES, count
from kubelet_reference.util.versions import Behaviour


@bug("K8S-120620", breaks="SIDECAR-12")
class NoOrder(ContainerKiller):
    """Sidecars are stopped together with the app containers."""

    def order(self, pod: Pod, kills: Sequence[ContainerKill]) -> TerminationOrder | None:
        return None


@bug("K8S-125935", breaks="SIDECAR-16", aliases="K8S-126331")
class WaitsForAll(ContainerKiller):
    """Sidecars wait for containers that never ran, until their grace is over."""

    def order(self, pod: Pod, kills: Sequence[ContainerKill]) -> TerminationOrder | None:
        every = (one.name for one in pods.all_containers(pod))
        return TerminationOrder(pod, every) if pods.has_sidecars(pod) else None


class _Forward(TerminationOrder):
    """Lets a sidecar go after the one before it."""

    def ahead(self, pod: Pod) -> dict[str, list[str]]:
        apps, names = [one.name for one in pods.containers(pod)], [one.name for one in pods.sidecars(pod)]
        return {name: [*apps, *names[max(index - 1, 0) : index]] for index, name in enumerate(names)}


@bug("MUT-SIDECAR-12", breaks="SIDECAR-12")
class InSpecOrder(ContainerKiller):
    """Sidecars are stopped in the order in which they were started."""

    def order(self, pod: Pod, kills: Sequence[ContainerKill]) -> TerminationOrder | None:
        usual = super().order(pod, kills)
        return usual and _Forward(pod, (kill.name for kill in kills))


@bug("K8S-129036", breaks="SIDECAR-13")
class HooksInTurn(ContainerKiller):
    """The preStop hooks of sidecars begin only when it is their turn to stop."""

    async def prepare(
        self, kill: ContainerKill, container: AnyContainer, grace: int, order: TerminationOrder | None
    ) -> float:
        began = self.tools.clock.monotonic()
        if order is not None:
            await order.wait_for_turn(kill.name, grace)
        waited = self.tools.clock.monotonic() - began
        return waited + await super().prepare(kill, container, max(grace - int(waited), 0), None)


@bug("MUT-SIDECAR-27", breaks="SIDECAR-27")
class ToldInTurn(ContainerKiller):
    """The kill of a sidecar is reported only when its turn has come."""

    async def prepare(
        self, kill: ContainerKill, container: AnyContainer, grace: int, order: TerminationOrder | None
    ) -> float:
        waited = await super().prepare(kill, container, grace, order)
        if pods.is_sidecar(container):
            super().report_killing(kill)
        return waited

    def report_killing(self, kill: ContainerKill) -> None:
        container = pods.container(kill.pod, kill.name)
        if container is not None and not pods.is_sidecar(container):
            super().report_killing(kill)


@bug("MUT-SIDECAR-14", breaks="SIDECAR-14")
class TurnsAreFree(ContainerKiller):
    """A sidecar that waited for its turn has its whole grace again."""

    async def prepare(
        self, kill: ContainerKill, container: AnyContainer, grace: int, order: TerminationOrder | None
    ) -> float:
        waited = await super().prepare(kill, container, grace, order)
        return waited if order is None or not pods.is_sidecar(container) else 0.0


@bug("MUT-SIDECAR-15", breaks="SIDECAR-15")
class EverybodyHasATurn(ContainerKiller):
    """A sidecar that is stopped to be made again waits for the rest of its pod to end."""

    async def kill_container(
        self, kill: ContainerKill, order: TerminationOrder | None = None
    ) -> ActionResult:
        every = (one.name for one in pods.all_containers(kill.pod))
        return await super().kill_container(kill, order or TerminationOrder(kill.pod, every))


@bug("MUT-SIDECAR-24", breaks=("SIDECAR-24", "SIDECAR-25"))
class SyncsOnWhileItKills(RuntimeManager):
    """Sidecars of a pod that is being stopped are probed, stopped and made again as ever."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        if pod is None or not pods.has_sidecars(pod):
            return await super().kill_pod(pod, running, grace_override)
        killing = asyncio.ensure_future(super().kill_pod(pod, running, grace_override))
        while not (await asyncio.wait((killing,), timeout=1))[0]:
            now = await self.pod_records(pods.uid(pod), pods.name(pod), pods.namespace(pod))
            apps = {one.name for one in pods.containers(pod)}
            if any(record.is_running and record.name in apps for record in now.containers):
                await self.sync_pod(pod, now)
        return await killing


@bug("MUT-SIDECAR-17", breaks="SIDECAR-17", part="pod_conditions")
def ready_without_sidecars(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """The readiness of sidecars does not count for their pod's."""
    found = pod_conditions(pod, status, behaviour, sandbox_usable=sandbox_usable)
    spec = structs.replace(pods.spec(pod), initContainers=None)
    apps = structs.replace(pod, spec=spec)
    return put(put(found, containers_ready(apps, status)), ready(apps, status))


@bug("MUT-SIDECAR-18", breaks="SIDECAR-18", part="pod_conditions")
def initialized_by_inits_alone(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """A pod is not initialized any more when one of its sidecars starts again."""
    strict = replace(behaviour, app_proves_initialized=False)
    return pod_conditions(pod, status, strict, sandbox_usable=sandbox_usable)


@bug("MUT-SIDECAR-19", breaks="SIDECAR-19", part="pod_phase")
def pending_with_its_sidecars(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """A pod is Pending again when one of its sidecars starts again."""
    final = terminating and behaviour.terminal_phase_before_deletion
    counts = structs.replace(count(pod, status, behaviour, final=final), app_was_up=False)
    return PHASES.row(counts).then


@bug("MUT-SIDECAR-11-PHASE", breaks="SIDECAR-11", part="pod_phase")
def failed_with_its_sidecars(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False
) -> str:
    """A pod fails for the exit codes of its sidecars."""
    final = terminating and behaviour.terminal_phase_before_deletion
    counts, ended = count(pod, status, behaviour, final=final), _ended(status)
    counts = structs.replace(
        counts, stopped=counts.stopped + len(ended), succeeded=counts.succeeded + ended.count(0)
    )
    return PHASES.row(counts).then


def _ended(status: PodStatus) -> list[int]:
    """The exit codes of the init containers that ended."""
    ends = (one.state.terminated for one in status.initContainerStatuses or () if one.state)
    return [one.exitCode for one in ends if one is not None]
