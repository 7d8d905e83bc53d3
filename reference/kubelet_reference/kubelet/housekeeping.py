"""Housekeeping: every two seconds it compares which pods are desired, have a worker, and run (CLEANUP-01).

    desired  worker   runs
      x        x               fine
      x                        it came back while its former instance ended: start it again
      x                        deleted, over, and never sent to a worker: finish it
               x               no source wants it: the worker is led to its end
                        x      only the runtime knows it: kill it

Before this kubelet has seen all sources none of that can be known, and nothing is done (LOOP-08). Nothing
here waits for a container to stop (LOOP-13).
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lightkube.models.core_v1 import Pod

from kubelet_reference.api import pods
from kubelet_reference.api.go_text import quoted
from kubelet_reference.api.metrics import Metrics
from kubelet_reference.api.records import ListedPod
from kubelet_reference.config.mirror_client import MirrorClient
from kubelet_reference.config.pod_manager import PodManager
from kubelet_reference.pod_workers.pod_state_queries import PodActivity
from kubelet_reference.pod_workers.pod_workers import PodWorkers
from kubelet_reference.pod_workers.worker import Update, UpdateKind, Worker
from kubelet_reference.status.status_manager import StatusManager
from kubelet_reference.util.ports import Cgroups, Disk
from kubelet_reference.util.versions import Behaviour
from kubelet_reference.volumemanager import Volumes

_log = logging.getLogger("kubelet_reference.housekeeping")


@dataclass(eq=False)
class Housekeeping:
    """Compares desired pods, workers and running pods, and cleans up: one method for each step of `run_once`.

    `list_running` asks the runtime for the pods of which something runs, and raises its error;
    `forget_expired` is called at the end: it lets what is over be forgotten.
    """

    manager: PodManager
    workers: PodWorkers
    activity: PodActivity
    statuses: StatusManager
    mirrors: MirrorClient
    volumes: Volumes
    disk: Disk
    metrics: Metrics
    behaviour: Behaviour
    root_dir: str
    list_running: Callable[[], Awaitable[Sequence[ListedPod]]]
    forget_expired: Callable[[], None]
    cgroups: Cgroups | None = None

    async def run_once(self) -> None:
        """Do all of it; an error of the runtime ends it, with nothing killed (CLEANUP-06)."""
        wanted = self.manager.pods()
        known = self.workers.sync_known_pods(wanted)
        running = await self.list_running()
        if not self.behaviour.adopts_known_pods:
            self.kill_unknown(running, known)
        self.drop_orphan_statuses(wanted)
        self.remove_orphan_folders(wanted, running, known)
        await self.delete_orphan_mirrors()
        self.restart_forgotten(wanted, known)
        if self.behaviour.adopts_known_pods:
            self.finish_deleted(wanted, running, known)
            self.kill_unknown(running, known)
        self.remove_orphan_cgroups(wanted, running, known)
        self.metrics.set_working_pods(
            {uid: (worker.state, worker.known_spec) for uid, worker in known.items()}, wanted
        )
        self.forget_expired()

    def drop_orphan_statuses(self, wanted: Sequence[Pod]) -> None:
        """Forget the statuses of pods that no source has (STATUS-14)."""
        mirrors = self.manager.mirrors()
        self.statuses.remove_orphans({pods.uid(pod) for pod in (*wanted, *mirrors)})

    def remove_orphan_folders(
        self, wanted: Sequence[Pod], running: Sequence[ListedPod], known: Mapping[str, Worker]
    ) -> None:
        """Remove the folders of unknown pods of which nothing runs, their volumes first (CLEANUP-03).

        A folder stays, and is tried again, as long as something in it is mounted.
        """
        root = f"{self.root_dir}/pods"
        try:
            found = self.disk.names(root)
        except FileNotFoundError:
            return
        for uid in _unknown(found, wanted, running, known):
            self._remove_folder(uid, f"{root}/{uid}")

    def _remove_folder(self, uid: str, folder: str) -> None:
        try:
            self.volumes.clear(uid)
            self.disk.remove(folder)
        except OSError as error:
            _log.warning("orphaned pod %s found, but its folder stays: %s", quoted(uid), error)

    def remove_orphan_cgroups(
        self, wanted: Sequence[Pod], running: Sequence[ListedPod], known: Mapping[str, Worker]
    ) -> None:
        """Remove the cgroups of unknown pods of which nothing runs (CLEANUP-05).

        As long as volumes are left the memory that they take is charged to it: it stays, with little CPU.
        """
        cgroups = self.cgroups
        if cgroups is None:
            return
        for uid in _unknown(cgroups.uids(), wanted, running, known):
            if self._may_have_volumes(uid):
                cgroups.reduce(uid)
            else:
                cgroups.remove(uid)

    def _may_have_volumes(self, uid: str) -> bool:
        try:
            return self.volumes.is_mounted(uid)
        except OSError:
            return True  # It cannot be known.

    async def delete_orphan_mirrors(self) -> None:
        """Delete mirrors without a static pod, but not while that pod is being stopped (STATIC-15)."""
        for mirror in self.manager.orphaned_mirrors():
            if not self.workers.is_static_pod_ending(pods.full_name(mirror)):
                await self.mirrors.delete(mirror)

    def restart_forgotten(self, wanted: Sequence[Pod], known: dict[str, Worker]) -> None:
        """Start again the desired pods that have no worker and are not over (WORK-22, CLEANUP-07)."""
        for pod in wanted:
            uid = pods.uid(pod)
            if uid in known or not self.may_restart(pod):
                continue
            mirror = self.manager.mirror_of(pod)
            self.dispatch(Update(UpdateKind.CREATE, pod, mirror), known)
            self.metrics.restarted_pods.labels(str(pods.is_static(pod)).lower()).inc()

    def may_restart(self, pod: Pod) -> bool:
        """Whether the pod is not over."""
        return self.activity.is_active(pod)

    def finish_deleted(
        self, wanted: Sequence[Pod], running: Sequence[ListedPod], known: dict[str, Worker]
    ) -> None:
        """Finish pods that are over and deleted, and that no worker knows: rejected ones (WORK-34)."""
        alive = {pod.uid for pod in running}
        for pod in wanted:
            is_over = pods.deletion_asked(pod) and pods.is_terminal_phase(pods.phase(pod))
            if is_over and pods.uid(pod) not in known and pods.uid(pod) not in alive:
                self.dispatch(Update(UpdateKind.KILL, pod), known)

    def kill_unknown(self, running: Sequence[ListedPod], known: dict[str, Worker]) -> None:
        """Kill what runs although no worker knows of it (WORK-24)."""
        for pod in running:
            if self.is_unknown(pod, known):
                self.metrics.orphaned_runtime_pods.inc()
                self.dispatch(Update(UpdateKind.KILL, running=pod), known)

    def is_unknown(self, pod: ListedPod, known: Mapping[str, Worker]) -> bool:
        """Whether the pod has no worker."""
        return pod.uid not in known

    def dispatch(self, update: Update, known: dict[str, Worker]) -> None:
        """Send an update to a worker, and add the worker to `known` for the rest of this run."""
        self.workers.update_pod(update)
        known.update(self.workers.all())


def _unknown(
    uids: Iterable[str], wanted: Sequence[Pod], running: Sequence[ListedPod], known: Mapping[str, Worker]
) -> list[str]:
    """Those of pods that have no worker, that no source wants and of which nothing runs."""
    kept = {*known, *(pods.uid(pod) for pod in wanted), *(pod.uid for pod in running)}
    return [uid for uid in uids if uid not in kept]
