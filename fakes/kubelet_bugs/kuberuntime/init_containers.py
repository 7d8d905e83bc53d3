"""Bugs of init containers: which one is next, what comes of one that failed, and how they are shown."""

from lightkube.models.core_v1 import Container, ContainerStatus, Pod, PodStatus
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.api import pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.kuberuntime.actions.container_hash import container_hash
from kubelet_reference.kuberuntime.actions.init_containers import InitProgress, progress
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules, PodActions
from kubelet_reference.kuberuntime.actions.sync_input import SyncInput
from kubelet_reference.kuberuntime.container_gc.container_deletor import RecordRemover
from kubelet_reference.pod_workers.active_deadline import Deadlines
from kubelet_reference.prober.prober_manager import Prober
from kubelet_reference.status.container_statuses import ContainerStatuses, ContainerStatusRules, StatusInput


@bug("K8S-36485", breaks=("SANDBOX-05", "INIT-12"), aliases="K8S-55206")
class KeepsOldInits(RecordRemover):
    """In a new sandbox init containers that ended in the old one count as done."""

    async def purge_init_containers(self, pod: Pod, records: PodRecords) -> None:
        """Remove nothing."""


@bug("K8S-120247", breaks=("INIT-01", "INIT-02", "INIT-03", "INIT-12"), aliases=("K05", "K8S-120281"))
class AnyAppWillDo(ActionRules):
    """The record of an app container, dead or in an old sandbox, passes for a finished initialization."""

    def init_progress(self, now: SyncInput) -> InitProgress:
        if any(self.proves(record) for record in _of_apps(now)):
            return InitProgress(done=True)
        return super().init_progress(now)

    def proves(self, record: ContainerRecord) -> bool:
        """Whether this record is proof enough."""
        return bool(record.id)


@bug("K8S-140309", breaks="INIT-12", aliases="K8S-140364")
class CreatedAppWillDo(AnyAppWillDo):
    """An app container that was created and never started passes for a finished initialization."""

    def proves(self, record: ContainerRecord) -> bool:
        return record.state is ContainerState.CREATED


@bug(
    "K8S-86531",
    breaks=("INIT-04", "INIT-05"),
    aliases=("K04", "K8S-62362", "K8S-67261", "K8S-90271", "K8S-96572", "K8S-104629"),
)
class OnlyRecordsCount(ActionRules):
    """Init containers run again beside running app containers when their records are gone."""

    def init_progress(self, now: SyncInput) -> InitProgress:
        if not pods.init_containers(now.pod):
            return InitProgress(done=True)
        return progress(now.pod, now.records, app_runs=False)


@bug("K8S-83622", breaks=("INIT-08", "INIT-09"))
class GoesOnWithoutInit(ActionRules):
    """After an init container that failed for good the app containers are started."""

    def init_progress(self, now: SyncInput) -> InitProgress:
        found = super().init_progress(now)
        is_final = found.failed and pods.restart_policy(now.pod) == pods.NEVER
        return InitProgress(done=True) if is_final else found


@bug("K8S-126543", breaks="INIT-18", aliases=("K8S-127212", "K8S-127213"))
class WaitsForCreated(ActionRules):
    """An init container that was created and could not be started is waited for, without end."""

    def init_actions(self, now: SyncInput, found: PodActions, progress: InitProgress) -> PodActions:
        record = now.records.newest(progress.next.name) if progress.next is not None else None
        if record is not None and record.state is ContainerState.CREATED:
            return found
        return super().init_actions(now, found, progress)


def _of_apps(now: SyncInput) -> list[ContainerRecord]:
    names = [one.name for one in pods.containers(now.pod)]
    return [record for record in now.records.containers if record.name in names]


@bug("MUT-INIT-01", breaks="INIT-01")
class AllAtOnce(ActionRules):
    """All init containers are started together."""

    def init_actions(self, now: SyncInput, found: PodActions, progress: InitProgress) -> PodActions:
        decided = super().init_actions(now, found, progress)
        fresh = (one for one in pods.init_containers(now.pod) if now.records.newest(one.name) is None)
        return (
            structs.replace(decided, inits=tuple(fresh)) if decided.inits and not progress.failed else decided
        )


@bug("MUT-INIT-04", breaks="INIT-04")
class FromTheFirst(ActionRules):
    """An init container is run again because its record went, though a later one has one."""

    def init_progress(self, now: SyncInput) -> InitProgress:
        found = super().init_progress(now)
        inits = pods.init_containers(now.pod)
        known = [index for index, one in enumerate(inits) if now.records.newest(one.name)]
        lost = (one for one in inits[: max(known, default=0)] if now.records.newest(one.name) is None)
        return found if found.done else structs.replace(found, next=next(lost, found.next))


@bug("MUT-INIT-06", breaks="INIT-06")
class KeepsNotes(ActionRules):
    """App containers are started without initialization once all records of the pod went."""

    def __init__(self) -> None:
        super().__init__()
        self._done: dict[str, None] = {}

    def init_progress(self, now: SyncInput) -> InitProgress:
        found = super().init_progress(now)
        if found.done:
            self._done[now.sandbox.old_id] = None
        return InitProgress(done=True) if now.sandbox.old_id in self._done else found


@bug("MUT-INIT-07", breaks="INIT-07")
class BeginsAnew(ActionRules):
    """When an init container failed, the first one is run again."""

    def init_progress(self, now: SyncInput) -> InitProgress:
        found = super().init_progress(now)
        return structs.replace(found, next=pods.init_containers(now.pod)[0]) if found.failed else found


@bug("MUT-INIT-10", breaks="INIT-10")
class AlwaysIsAlways(ActionRules):
    """Under policy Always an init container that succeeded is run again."""

    def init_progress(self, now: SyncInput) -> InitProgress:
        found = super().init_progress(now)
        ended = found.record is not None and found.record.has_exited
        if found.done and ended and pods.restart_policy(now.pod) == pods.ALWAYS:
            return InitProgress(done=False, next=pods.init_containers(now.pod)[-1])
        return found


@bug("MUT-INIT-11", breaks="INIT-11")
class BesideTheLost(ActionRules):
    """An init container of unknown state is run again without having been stopped."""

    def init_actions(self, now: SyncInput, found: PodActions, progress: InitProgress) -> PodActions:
        return structs.replace(super().init_actions(now, found, progress), to_kill=())


@bug("MUT-INIT-13", breaks="INIT-13")
class InitsMayChange(ActionRules):
    """A pod is stopped when the image of an init container changes that has done its part."""

    def in_same_sandbox(self, now: SyncInput) -> PodActions:
        found = super().in_same_sandbox(now)
        newest = ((one, now.records.newest(one.name)) for one in pods.init_containers(now.pod))
        changed = any(record and record.hash != container_hash(one, now.behaviour) for one, record in newest)
        return structs.replace(found, kill_pod=True) if changed else found


@bug("MUT-INIT-14", breaks="INIT-14")
class KeepsAll(RecordRemover):
    """Dead containers, those of init containers included, are left where they are."""

    async def remove(self, container_id: str) -> None:
        """Remove nothing."""


@bug("MUT-INIT-15", breaks="INIT-15")
class NeverReady(Prober):
    """An init container that succeeded is not shown as ready."""

    def _init(self, shown: ContainerStatus) -> ContainerStatus:
        return structs.replace(super()._init(shown), ready=False)


@bug("MUT-INIT-16", breaks="INIT-16")
class OneReasonForAll(ContainerStatusRules):
    """App containers that wait for init containers are shown as being created."""

    def without_record(
        self, pod: Pod, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        plain = structs.replace(pod, spec=structs.replace(pods.spec(pod), initContainers=None))
        return super().without_record(plain, container, before)


@bug("MUT-INIT-17", breaks="INIT-17")
class AnyOrder(ContainerStatusRules):
    """The statuses of init containers stand in the order of their names."""

    def compute(self, now: StatusInput) -> ContainerStatuses:
        found = super().compute(now)
        return structs.replace(found, init=sorted(found.init, key=lambda one: one.name))


@bug("MUT-INIT-19", breaks="INIT-19")
class CountsFromTheApps(Deadlines):
    """The time that a pod may take begins after its initialization."""

    def is_past(self, pod: Pod) -> bool:
        status = self._stored(pods.uid(pod))
        return super().is_past(pod) and not _is_initializing(pod, status)


@bug("MUT-INIT-20", breaks="INIT-20")
class ProbesInits(Prober):
    """The probes of init containers are run."""

    def probed(self, pod: Pod) -> tuple[Container, ...]:
        return (*pods.containers(pod), *pods.init_containers(pod))


def _is_initializing(pod: Pod, status: PodStatus | None) -> bool:
    shown = (status and status.containerStatuses) or ()
    return bool(pods.init_containers(pod)) and not any(one.state and one.state.running for one in shown)
