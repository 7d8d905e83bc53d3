"""Bugs of ephemeral containers: taken for app containers, waited for, or forgotten."""

from collections.abc import Iterator, Sequence

from lightkube.models.core_v1 import Container, EphemeralContainer, Pod, PodCondition, PodStatus
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_bugs.kuberuntime.needed_containers import NeedsContainers
from kubelet_reference.api import pods
from kubelet_reference.api.metrics import EPHEMERAL
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord, ContainerState
from kubelet_reference.api.results import KillReason
from kubelet_reference.api.sync_result import ActionResult
from kubelet_reference.config import Op, classify_change
from kubelet_reference.kuberuntime.actions.container_hash import container_hash
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules, PodActions
from kubelet_reference.kuberuntime.actions.sync_input import Kill, SyncInput
from kubelet_reference.kuberuntime.container.kill_container import ContainerKill, ContainerKiller
from kubelet_reference.kuberuntime.container.start_container import ContainerStarter, StartContext
from kubelet_reference.prober.prober_manager import Prober
from kubelet_reference.status.conditions import pod_conditions
from kubelet_reference.status.container_statuses import ContainerStatuses, ContainerStatusRules, StatusInput
from kubelet_reference.util.versions import Behaviour


@bug("MUT-EPH-01", breaks=("EPH-01", "EPH-02"))
class RestartsThem(ActionRules):
    """An ephemeral container that ended is started again."""

    def ephemeral_to_start(self, now: SyncInput) -> tuple[EphemeralContainer, ...]:
        newest = [(one, now.records.newest(one.name)) for one in pods.ephemeral_containers(now.pod)]
        return tuple(one for one, record in newest if record is None or record.has_exited)


@bug("MUT-EPH-02", breaks="EPH-02")
class StopsThem(ActionRules):
    """An ephemeral container of unknown state is stopped."""

    def in_same_sandbox(self, now: SyncInput) -> PodActions:
        found = super().in_same_sandbox(now)
        kills = [
            Kill(record, one, KillReason.UNKNOWN, f"Container {one.name} will be restarted")
            for one, record in _newest(now)
            if self.is_wrong(now, one, record)
        ]
        again = tuple(one for one, record in _newest(now) if any(record is kill.record for kill in kills))
        return structs.replace(
            found, to_kill=(*found.to_kill, *kills), ephemeral=(*found.ephemeral, *self.started(again))
        )

    def is_wrong(self, now: SyncInput, one: EphemeralContainer, record: ContainerRecord) -> bool:
        """Whether it is stopped."""
        return record.state is ContainerState.UNKNOWN

    def started(self, stopped: tuple[EphemeralContainer, ...]) -> tuple[EphemeralContainer, ...]:
        """Which of those that are stopped are started again."""
        return stopped[:0]


@bug("MUT-EPH-10", breaks="EPH-10")
class ReplacesThem(StopsThem):
    """An ephemeral container is replaced when its definition changes."""

    def is_wrong(self, now: SyncInput, one: EphemeralContainer, record: ContainerRecord) -> bool:
        return record.is_running and record.hash != container_hash(one, now.behaviour)

    def started(self, stopped: tuple[EphemeralContainer, ...]) -> tuple[EphemeralContainer, ...]:
        return stopped


@bug("MUT-EPH-03", breaks=("EPH-03", "EPH-08"))
class InitComesFirst(ActionRules):
    """An ephemeral container waits until the pod is initialized."""

    def ephemeral_to_start(self, now: SyncInput) -> tuple[EphemeralContainer, ...]:
        return super().ephemeral_to_start(now) if self.init_progress(now).done else ()


@bug("MUT-EPH-05", breaks="EPH-05")
class TakesThemAlong(ActionRules):
    """Ephemeral containers are started again in a new sandbox."""

    def in_new_sandbox(self, now: SyncInput) -> PodActions:
        found = super().in_new_sandbox(now)
        every = tuple(pods.ephemeral_containers(now.pod))
        return structs.replace(found, ephemeral=every) if found.create_sandbox else found


@bug("MUT-EPH-04", breaks="EPH-04")
class TheyAreNeeded(NeedsContainers):
    """An ephemeral container that cannot be started holds up the rest of its pod."""

    def is_needed(self, container: AnyContainer, kind: str) -> bool:
        return kind == EPHEMERAL


@bug("MUT-EPH-07", breaks="EPH-07")
class LooksIntoNobody(ContainerStarter):
    """An ephemeral container does not see the processes of its target."""

    def target_id(self, context: StartContext, container: AnyContainer) -> str:
        return ""


@bug("MUT-EPH-09", breaks="EPH-09")
class LeavesThem(ContainerKiller):
    """Ephemeral containers are not stopped with their pod."""

    async def kill_pod(
        self, pod: Pod, kills: Sequence[ContainerKill], sandbox_ids: Sequence[str]
    ) -> tuple[ActionResult, ...]:
        names = {one.name for one in pods.ephemeral_containers(pod)}
        return await super().kill_pod(pod, [kill for kill in kills if kill.name not in names], sandbox_ids)


@bug("MUT-EPH-11", breaks="EPH-11")
class AsTheyWereAdded(ContainerStatusRules):
    """The statuses of ephemeral containers stand in the order in which they were added."""

    def compute(self, now: StatusInput) -> ContainerStatuses:
        found = super().compute(now)
        order = [one.name for one in pods.ephemeral_containers(now.pod)]
        return structs.replace(
            found, ephemeral=sorted(found.ephemeral, key=lambda one: order.index(one.name))
        )


@bug("MUT-EPH-12", breaks="EPH-12")
class TheyAreReady(Prober):
    """An ephemeral container that runs is shown as ready."""

    def update_statuses(self, pod: Pod, status: PodStatus) -> PodStatus:
        found = super().update_statuses(pod, status)
        ordered = [
            structs.replace(one, ready=True) if one.state and one.state.running else one
            for one in found.ephemeralContainerStatuses or ()
        ]
        return structs.replace(found, ephemeralContainerStatuses=ordered or None)


@bug("MUT-EPH-06", breaks="EPH-06", part="pod_conditions")
def ready_with_all(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """A pod is not ready unless its ephemeral containers are."""
    shown = [*(status.containerStatuses or ()), *(status.ephemeralContainerStatuses or ())]
    spec = pods.spec(pod)
    apps = [*spec.containers, *(Container(name=one.name) for one in pods.ephemeral_containers(pod))]
    whole = structs.replace(pod, spec=structs.replace(spec, containers=apps))
    changed = structs.replace(status, containerStatuses=shown)
    return pod_conditions(whole, changed, behaviour, sandbox_usable=sandbox_usable)


def _newest(now: SyncInput) -> Iterator[tuple[EphemeralContainer, ContainerRecord]]:
    for one in pods.ephemeral_containers(now.pod):
        record = now.records.newest(one.name)
        if record is not None:
            yield one, record


@bug("MUT-EPH-08", breaks=("EPH-08", "EPH-03"), part="classify_change")
def debugging_is_no_change(old: Pod | None, new: Pod) -> Op | None:
    """An ephemeral container that is added is noticed at the next resync."""
    if old is None:
        return classify_change(old, new)
    spec = structs.replace(pods.spec(new), ephemeralContainers=pods.spec(old).ephemeralContainers)
    return classify_change(old, structs.replace(new, spec=spec))
