"""Bugs in how far the init containers of a pod are thought to have come."""

from __future__ import annotations

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.init_progress import InitProgress, progress_by_records
from kubelet_reference.pod_actions import ActionRules, Actions, Situation
from kubelet_reference.record_remover import RecordRemover
from kubelet_reference.records import ContainerRecord, ContainerState, PodRecords


@bug("K8S-36485", breaks=("SANDBOX-05", "INIT-12"), aliases="K8S-55206")
class KeepsOldInits(RecordRemover):
    """In a new sandbox init containers that ended in the old one count as done."""

    async def purge_init_containers(self, pod: Pod, records: PodRecords) -> None:
        """Remove nothing."""


@bug("K8S-120247", breaks=("INIT-01", "INIT-02", "INIT-03", "INIT-12"), aliases=("K05", "K8S-120281"))
class AnyAppWillDo(ActionRules):
    """The record of an app container, dead or in an old sandbox, passes for a finished initialization."""

    def init_progress(self, now: Situation) -> InitProgress:
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

    def init_progress(self, now: Situation) -> InitProgress:
        if not pods.init_containers(now.pod):
            return InitProgress(done=True)
        return progress_by_records(now.pod, now.records)


@bug("K8S-83622", breaks=("INIT-08", "INIT-09"))
class GoesOnWithoutInit(ActionRules):
    """After an init container that failed for good the app containers are started."""

    def init_progress(self, now: Situation) -> InitProgress:
        found = super().init_progress(now)
        is_final = found.failed and pods.restart_policy(now.pod) == pods.NEVER
        return InitProgress(done=True) if is_final else found


@bug("K8S-126543", breaks="INIT-18", aliases=("K8S-127212", "K8S-127213"))
class WaitsForCreated(ActionRules):
    """An init container that was created and could not be started is waited for, without end."""

    def init_actions(self, now: Situation, found: Actions, progress: InitProgress) -> Actions:
        record = now.records.newest(progress.next.name) if progress.next is not None else None
        if record is not None and record.state is ContainerState.CREATED:
            return found
        return super().init_actions(now, found, progress)


def _of_apps(now: Situation) -> list[ContainerRecord]:
    names = [one.name for one in pods.containers(now.pod)]
    return [record for record in now.records.containers if record.name in names]
