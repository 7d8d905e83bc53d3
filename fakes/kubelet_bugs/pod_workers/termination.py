"""Bugs of the pod workers and of housekeeping: ends that are forgotten, made up, or never come."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lightkube.models.core_v1 import Pod, PodStatus
from msgspec import structs

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_bugs.pod_workers.wrong_rows import with_row
from kubelet_reference.api import pods
from kubelet_reference.api.records import ListedPod, PodRecords
from kubelet_reference.api.sync_result import SyncResult
from kubelet_reference.kubelet.housekeeping import Housekeeping
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.kuberuntime.runtime_manager import RuntimeManager
from kubelet_reference.pod_workers.pod_workers import PodWorkers
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.pod_workers.worker import SyncFailed, Update, Worker
from kubelet_reference.pod_workers.worker_table import (
    Action,
    Event,
    Guard,
    Row,
    State,
    WorkerTable,
    worker_table,
)
from kubelet_reference.status.status_manager import Kept, StatusManager
from kubelet_reference.util.versions import Behaviour


@bug("MUT-WORK-23", breaks="WORK-23")
class RunsAgain(Housekeeping):
    """A static pod that is over is run again when its manifest comes back."""

    def may_restart(self, pod: Pod) -> bool:
        others = [one for one in self.manager.pods() if pods.uid(one) != pods.uid(pod)]
        self.drop_orphan_statuses(others)
        return True


@bug("K8S-107733", breaks="WORK-22", aliases=("K8S-107695", "K8S-107761"))
class OnlyWhatRan(Housekeeping):
    """A static pod comes back only if the runtime still has something of it."""

    def __init__(self, **parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(**parts)
        self._running: frozenset[str] = frozenset()

    def remove_orphan_folders(
        self, wanted: Sequence[Pod], running: Sequence[ListedPod], known: Mapping[str, Worker]
    ) -> None:
        self._running = frozenset(pod.uid for pod in running)
        super().remove_orphan_folders(wanted, running, known)

    def may_restart(self, pod: Pod) -> bool:
        return pods.uid(pod) in self._running and super().may_restart(pod)


class _LooksBack(Housekeeping):
    """Kills by what ran two rounds ago, and takes a finished worker for none."""

    def __init__(self, **parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(**parts)
        self._seen: deque[Sequence[ListedPod]] = deque(((), ()), maxlen=2)

    def kill_unknown(self, running: Sequence[ListedPod], known: dict[str, Worker]) -> None:
        super().kill_unknown(self._seen[0], known)
        self._seen.append(running)

    def is_unknown(self, pod: ListedPod, known: Mapping[str, Worker]) -> bool:
        worker = known.get(pod.uid)
        return worker is None or worker.state in {State.TERMINATED, State.FINISHED}


class _EndsOnceMore(PodWorkers):
    """A kill of what the runtime alone knows brings a pod that has ended back to life."""

    def update_pod(self, update: Update) -> None:
        worker = self._workers.get(update.uid)
        if update.pod is None and worker is not None and worker.state is State.FINISHED:
            worker.state = State.SYNC
        super().update_pod(update)


class _StopsNothing(RuntimeManager):
    """Stops the sandbox of a pod that has none."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        if pod is not None and not running.sandboxes:
            await self.components.container_killer.stop_sandboxes(pod, ("",))
        return await super().kill_pod(pod, running, grace_override)


def _ends_what_never_began(behaviour: Behaviour) -> WorkerTable:
    """A pod that waits for its name is ended as any other."""
    row = Row(State.WAITING, Event.TERMINATE, State.TERMINATING, (Action.SET_GRACE, Action.QUEUE))
    return with_row(worker_table(behaviour), row)


@bug("MUT-WORK-34", breaks=("WORK-34", "TERM-24", "ADMIT-10"), part="worker_table")
def knows_nothing_of_it(behaviour: Behaviour) -> WorkerTable:
    """A pod that was refused stays when it is deleted."""
    table = worker_table(behaviour)
    for guard in (Guard.ENDED_BEFORE, None):
        table = with_row(table, Row(State.NONE, Event.TERMINATE, State.NONE, guard=guard))
    return table


@bug("K8S-88402", breaks=("WORK-27", "CONFIG-17"), part="worker_table")
def forgets_the_removal(behaviour: Behaviour) -> WorkerTable:
    """A pod whose manifest went before all sources were seen stays for ever."""
    return with_row(worker_table(behaviour), Row(State.SYNC, Event.UNWANTED, State.SYNC))


@bug("MUT-TERM-23", breaks="TERM-23", part="worker_table")
def ended_long_ago(behaviour: Behaviour) -> WorkerTable:
    """A kubelet that comes back does not stop a pod whose deletion it finds under way."""
    return with_row(
        worker_table(behaviour), Row(State.NONE, Event.TERMINATE, State.TERMINATED, (Action.QUEUE,))
    )


@bug("MUT-WORK-29", breaks="WORK-29")
class OldPodsAreNew(PodHandlers):
    """A pod that has ended for the API server is new to a kubelet that receives it for the first time."""

    async def add(self, added: Iterable[Pod]) -> None:
        await super().add([self.renewed(pod) for pod in added])

    def renewed(self, pod: Pod) -> Pod:
        """The pod without its past, if it is over."""
        return structs.replace(pod, status=None) if pods.is_terminal_phase(pods.phase(pod)) else pod


@bug("K8S-19666", breaks="WORK-24", aliases="K8S-28992")
class NeedsASpec(PodSyncer):
    """A pod that only the runtime knows cannot be stopped, since its kill needs a spec."""

    async def sync_terminating_runtime_pod(self, running: ListedPod) -> None:
        raise SyncFailed(f"no spec of {running.name}")


@bug("K8S-137309", breaks="STATIC-16")
class FirstMirror(StatusManager):
    """The status of a static pod is written to the first of its mirrors, and to no later one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._mirrors: dict[str, Pod] = {}

    def _in_api(self, uid: str, kept: Kept) -> Pod | None:
        shown = super()._in_api(uid, kept)
        if shown is None or not pods.is_static(kept.pod):
            return shown
        return self._mirrors.setdefault(uid, shown)


@bug("MUT-WORK-31", breaks="WORK-31")
class UnmountsFirst(PodSyncer):
    """The volumes of a pod are taken away while its containers still run."""

    async def sync_terminating_pod(
        self,
        pod: Pod,
        records: PodRecords,
        grace: int | None,
        change_status: Callable[[PodStatus], PodStatus] | None,
    ) -> None:
        await self.volumes.unmount(pod)
        await super().sync_terminating_pod(pod, records, grace, change_status)


@bug("MUT-WORK-28", breaks="WORK-28")
def stops_what_never_began() -> WrongParts:
    """For a static pod that was never begun a sandbox without an id is stopped."""
    return parts_with(_StopsNothing, worker_table=_ends_what_never_began)


@bug("K8S-103668", breaks="WORK-14", aliases=("K20", "K8S-103625"))
def ends_once_more() -> WrongParts:
    """A pod that has ended is ended once more, by a view of the runtime that is out of date."""
    return parts_with(_LooksBack, _EndsOnceMore)
