"""Bugs in how far the init containers of a pod are thought to have come."""

from __future__ import annotations

from lightkube.models.core_v1 import Pod

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.init_progress import InitProgress, progress_by_records
from kubelet_reference.parts import Parts
from kubelet_reference.pod_actions import ActionRules, Actions
from kubelet_reference.record_remover import RecordRemover
from kubelet_reference.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.sync_input import Situation


class _KeepsOldInits(RecordRemover):
    """Leaves the init containers of the sandbox before, which then count as done."""

    async def purge_init_containers(self, pod: Pod, records: PodRecords) -> None:
        """Remove nothing."""


class _AnyAppWillDo(ActionRules):
    """Takes an app container of any state and any sandbox as a proof that initialization is over."""

    def init_progress(self, now: Situation) -> InitProgress:
        if any(self.proves(record) for record in _of_apps(now)):
            return InitProgress(done=True)
        return super().init_progress(now)

    def proves(self, record: ContainerRecord) -> bool:
        """Whether this record is proof enough."""
        return bool(record.id)


class _CreatedAppWillDo(_AnyAppWillDo):
    """Takes one that was created, and never started, as a proof."""

    def proves(self, record: ContainerRecord) -> bool:
        return record.state is ContainerState.CREATED


class _OnlyRecordsCount(ActionRules):
    """Looks at the records of init containers alone, though app containers run."""

    def init_progress(self, now: Situation) -> InitProgress:
        if not pods.init_containers(now.pod):
            return InitProgress(done=True)
        return progress_by_records(now.pod, now.records)


class _GoesOnWithoutInit(ActionRules):
    """Goes on after an init container that failed for good."""

    def init_progress(self, now: Situation) -> InitProgress:
        found = super().init_progress(now)
        is_final = found.failed and pods.restart_policy(now.pod) == pods.NEVER
        return InitProgress(done=True) if is_final else found


class _WaitsForCreated(ActionRules):
    """Waits for an init container that was created and could not be started."""

    def init_actions(self, now: Situation, found: Actions, progress: InitProgress) -> Actions:
        record = now.records.newest(progress.next.name) if progress.next is not None else None
        if record is not None and record.state is ContainerState.CREATED:
            return found
        return super().init_actions(now, found, progress)


def _of_apps(now: Situation) -> list[ContainerRecord]:
    names = [one.name for one in pods.containers(now.pod)]
    return [record for record in now.records.containers if record.name in names]


def _deciding(rules: ActionRules) -> Parts:
    return Parts(runtime=RuntimeParts(compute_actions=rules.compute))


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-36485",
        "In a new sandbox init containers that ended in the old one count as done.",
        lambda: Parts(runtime=RuntimeParts(record_remover=_KeepsOldInits)),
        ("SANDBOX-05", "INIT-12"),
        ("K8S-55206",),
    ),
    Bug(
        "K8S-120247",
        "The record of an app container, dead or in an old sandbox, passes for a finished initialization.",
        lambda: _deciding(_AnyAppWillDo()),
        ("INIT-01", "INIT-02", "INIT-03", "INIT-12"),
        ("K05", "K8S-120281"),
    ),
    Bug(
        "K8S-140309",
        "An app container that was created and never started passes for a finished initialization.",
        lambda: _deciding(_CreatedAppWillDo()),
        ("INIT-12",),
        ("K8S-140364",),
    ),
    Bug(
        "K8S-86531",
        "Init containers run again beside running app containers when their records are gone.",
        lambda: _deciding(_OnlyRecordsCount()),
        ("INIT-04", "INIT-05"),
        ("K04", "K8S-62362", "K8S-67261", "K8S-90271", "K8S-96572", "K8S-104629"),
    ),
    Bug(
        "K8S-83622",
        "After an init container that failed for good the app containers are started.",
        lambda: _deciding(_GoesOnWithoutInit()),
        ("INIT-08", "INIT-09"),
    ),
    Bug(
        "K8S-126543",
        "An init container that was created and could not be started is waited for, without end.",
        lambda: _deciding(_WaitsForCreated()),
        ("INIT-18",),
        ("K8S-127212", "K8S-127213"),
    ),
)
