"""Bugs of sidecars: when they start and come back, and what waits for them."""

from collections.abc import Iterator
from dataclasses import replace

from lightkube.models.core_v1 import Container, LifecycleHandler, Pod, PodStatus
from msgspec import structs

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_bugs.kuberuntime.needed_containers import NeedsContainers
from kubelet_reference.api import pods
from kubelet_reference.api.metrics import INIT
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.api.restart_policy import restarts_on_failure
from kubelet_reference.api.results import KillReason, ProbeKind, ProbeOutcome
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules, PodActions
from kubelet_reference.kuberuntime.actions.sidecars import (
    InitContainerFacts,
    SidecarProgress,
    SidecarRow,
    SidecarRules,
    Step,
)
from kubelet_reference.kuberuntime.actions.sync_input import SyncInput
from kubelet_reference.kuberuntime.container.hooks import Hooks
from kubelet_reference.prober.prober_manager import Prober
from kubelet_reference.prober.worker import ProbeWorker
from kubelet_reference.status.status_manager import StatusManager
from kubelet_reference.status.status_rules import illegal_transition


@bug("K8S-120269", breaks="SIDECAR-26")
class ExitedAppsAreProof(SidecarRules):
    """App containers that ended pass for a finished initialization of a pod with sidecars."""

    def is_proven(self, pod: Pod, records: PodRecords) -> bool:
        names = {one.name for one in pods.containers(pod)}
        return any(record.name in names for record in records.containers)


@bug("MUT-SIDECAR-02", breaks=("SIDECAR-02", "SIDECAR-04", "SIDECAR-05"))
class StartedIsEnough(SidecarRules):
    """What comes after a sidecar does not wait for its startup probe."""

    def facts(self, now: SyncInput, index: int, *, decided: bool) -> InitContainerFacts:
        return structs.replace(super().facts(now, index, decided=decided), has_startup=False)


@bug("MUT-SIDECAR-04", breaks="SIDECAR-04")
class UnprobedHasFailed(SidecarRules):
    """A sidecar is stopped because its startup probe has not been run yet."""

    def facts(self, now: SyncInput, index: int, *, decided: bool) -> InitContainerFacts:
        seen = super().facts(now, index, decided=decided)
        unknown = seen.startup in {None, ProbeOutcome.UNKNOWN}
        return structs.replace(seen, startup=ProbeOutcome.FAILURE) if unknown else seen


@bug("MUT-SIDECAR-05", breaks=("SIDECAR-02", "SIDECAR-05"))
class FailureIsAnAnswer(SidecarRules):
    """A sidecar whose startup probe failed counts as started."""

    def facts(self, now: SyncInput, index: int, *, decided: bool) -> InitContainerFacts:
        seen = super().facts(now, index, decided=decided)
        failed = seen.startup is ProbeOutcome.FAILURE
        return structs.replace(seen, startup=ProbeOutcome.SUCCESS) if failed else seen


@bug("MUT-SIDECAR-06", breaks="SIDECAR-06")
class PodGoesWithItsSidecar(SidecarRules):
    """The whole pod is killed when a sidecar fails its liveness probe."""

    def progress(self, now: SyncInput) -> SidecarProgress:
        found = super().progress(now)
        failed = any(kill.reason is KillReason.LIVENESS_PROBE for kill in found.to_kill)
        return SidecarProgress(kill_pod=True) if failed else found


class _Without(SidecarRules):
    """Knows the table but for some rows, which do nothing."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def rows_for(self, facts: InitContainerFacts) -> Iterator[SidecarRow]:
        for row in super().rows_for(facts):
            if row.name not in self._names:
                yield row
            elif Step.DECIDED in row.then:
                yield replace(row, then=Step.DECIDED)


@bug("MUT-SIDECAR-07", breaks="SIDECAR-07")
class PolicyOfThePod(SidecarRules):
    """The restart policy of the pod is applied to its sidecars."""

    def rows_for(self, facts: InitContainerFacts) -> Iterator[SidecarRow]:
        for row in super().rows_for(facts):
            over = row.name == "S13" and (facts.never or not facts.failed)
            yield replace(row, then=Step.DECIDED) if over else row


@bug("MUT-SIDECAR-10", breaks="SIDECAR-10")
class BesideAppsOnly(SidecarRules):
    """A sidecar that ends during the initialization comes back only after it."""

    def progress(self, now: SyncInput) -> SidecarProgress:
        found = super().progress(now)
        if found.initialized:
            return found
        known = {record.name for record in now.records.containers if record.has_exited}
        left = (one for one in found.to_start if not (pods.is_sidecar(one) and one.name in known))
        return structs.replace(found, to_start=tuple(left))


@bug("MUT-SIDECAR-20", breaks="SIDECAR-20")
class ChangesAreForApps(SidecarRules):
    """A sidecar runs on with its old image."""

    def has_changed(self, now: SyncInput, one: Container, record: ContainerRecord) -> bool:
        return False


@bug("MUT-SIDECAR-22", breaks="SIDECAR-22")
class SidecarBesideTheLost(SidecarRules):
    """A sidecar of unknown state is replaced without having been stopped."""

    def rows_for(self, facts: InitContainerFacts) -> Iterator[SidecarRow]:
        for row in super().rows_for(facts):
            yield replace(row, then=row.then & ~Step.KILL) if row.name == "S17" else row


@bug("MUT-SIDECAR-11", breaks="SIDECAR-11")
class SidecarsKeepThePod(ActionRules):
    """A pod whose app containers are done goes on for as long as its sidecars do."""

    def with_sidecars(self, now: SyncInput, found: PodActions) -> PodActions:
        decided = super().with_sidecars(now, found)
        progress = self.sidecars.progress(now)
        if not decided.kill_pod or progress.kill_pod:
            return decided
        return structs.replace(found, inits=progress.to_start, to_kill=progress.to_kill)


@bug("MUT-SIDECAR-23", breaks="SIDECAR-23")
class NeverInitialized(ActionRules):
    """A pod with sidecars that has had its run gets another sandbox when that of its last one died."""

    def was_initialized(self, now: SyncInput) -> bool:
        return not pods.has_sidecars(now.pod) and super().was_initialized(now)


@bug("MUT-SIDECAR-23-ORDER", breaks="SIDECAR-23")
class BeginsWithTheApps(ActionRules):
    """A new sandbox begins with the regular init containers, without the sidecars before them."""

    def in_new_sandbox(self, now: SyncInput) -> PodActions:
        found = super().in_new_sandbox(now)
        regular = tuple(one for one in pods.init_containers(now.pod) if not pods.is_sidecar(one))
        return structs.replace(found, inits=regular[:1]) if found.inits and regular else found


@bug("K8S-136969", breaks="RESTART-05", aliases=("K8S-137146", "K8S-137885"))
class NoAppAfterTheFirst(ActionRules):
    """App containers are not run again beside a running sidecar once all of them have ended."""

    def with_sidecars(self, now: SyncInput, found: PodActions) -> PodActions:
        decided = super().with_sidecars(now, found)
        apps = [now.records.newest(one.name) for one in pods.containers(now.pod)]
        unproven = any(apps) and not any(one and one.state is ContainerState.RUNNING for one in apps)
        return structs.replace(decided, to_start=()) if unproven else decided


@bug("MUT-SIDECAR-08", breaks="SIDECAR-08")
class EverySidecarIsNeeded(NeedsContainers):
    """A sidecar that cannot be started holds up all that come after it."""

    def is_needed(self, container: AnyContainer, kind: str) -> bool:
        return kind == INIT


@bug("MUT-SIDECAR-03", breaks="SIDECAR-03")
class HooksInPassing(Hooks):
    """What comes after a sidecar does not wait for its postStart hook."""

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler
    ) -> None:
        hook = super().run(pod, container, container_id, handler)
        is_post_start = container.lifecycle is not None and handler is container.lifecycle.postStart
        if pods.is_sidecar(container) and is_post_start:
            self.tools.spawn(hook)
        else:
            await hook


class _EndsWithThePolicy(ProbeWorker):
    """Ends when a container ended in a pod that runs once, though a sidecar comes again."""

    def restarts(self) -> bool:
        return restarts_on_failure(self.pod)


@bug("K8S-132826", breaks="SIDECAR-04", aliases=("K8S-133072", "K8S-134800"))
class ProbesByPolicy(Prober):
    """The startup probe of a sidecar is not run again for its next instance in a pod that runs once."""

    worker_type = _EndsWithThePolicy

    def _forget(self, key: tuple[str, str, ProbeKind]) -> None:
        """Take the worker for one that goes on."""


@bug("K8S-123323", breaks="SIDECAR-04", aliases="K8S-123709")
class EndsAreForEver(StatusManager):
    """The status of a sidecar stays at its first end in a pod that runs once."""

    def _illegal_transition(self, pod: Pod, before: PodStatus, status: PodStatus) -> str | None:
        plain = [structs.replace(one, restartPolicy=None) for one in pods.init_containers(pod)]
        spec = structs.replace(pods.spec(pod), initContainers=plain)
        return illegal_transition(structs.replace(pod, spec=spec), before, status, self.behaviour)


@bug("MUT-SIDECAR-09", breaks="SIDECAR-09")
def lost_sidecar_stays_lost() -> WrongParts:
    """A sidecar whose record was lost is not made again."""
    return parts_with(_Without("S1"))


@bug("MUT-SIDECAR-21", breaks="SIDECAR-21")
def created_sidecar_stays_so() -> WrongParts:
    """A sidecar that was created and could not be started is left so."""
    return parts_with(_Without("S4"))
