"""The syncs of a pod worker, step by step: sync, terminating sync, terminated sync.

A **sync** computes the status from what the runtime shows now, and publishes it before it acts
(SYNC-01). If the pod has ended, that is all. Otherwise it goes on, and each step may end the sync
(SYNC-02): network, cgroup, mirror pod, data folders, volumes, pull secrets, probes, and last the runtime,
which starts and stops containers.

A **terminating sync** publishes the status as it is, stops liveness and startup probes, kills everything,
reads the runtime again past the cache, unprepares dynamic resources, and publishes the final status
(TERM-01).

A **terminated sync** publishes the final status once more, waits until the volumes are gone, and marks the
status as the last one, so that the pod may be deleted from the API server.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lightkube.models.core_v1 import Pod, PodStatus, Secret
from msgspec.structs import replace

from kubelet_reference.allocation.dynamic_resources import DynamicResources, ResourcesError
from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason, Recorder
from kubelet_reference.api.records import ListedPod, PodRecords
from kubelet_reference.api.sync_result import Action, SyncResult
from kubelet_reference.config.mirror_client import MirrorClient
from kubelet_reference.cri.labels import runtime_pod
from kubelet_reference.kuberuntime.runtime_manager import RuntimeManager
from kubelet_reference.pod_workers.worker import NetworkNotReady, SyncFailed, Waits
from kubelet_reference.prober.prober_manager import Prober
from kubelet_reference.status.reason_cache import ReasonCache
from kubelet_reference.status.status_manager import StatusManager
from kubelet_reference.util.ports import Cgroups, Disk
from kubelet_reference.volumemanager import Volumes, VolumesNotReady, pod_folder

ORPHAN_GRACE_SECONDS = 1
"""What a pod gets that only the runtime knows (WORK-24)."""
FOLDER_MODE = 0o750
FAILED_FOLDERS = "FailedToMakePodDataDirectories"
NETWORK_NOT_READY = "network is not ready"


class GenerateStatus(Protocol):
    """Makes a pod's status; `terminal` says that it is the last one."""

    def __call__(self, pod: Pod, records: PodRecords, *, terminal: bool) -> PodStatus:
        """The status, from these records."""
        ...


@dataclass(eq=False)
class PodSyncer:
    """Runs the syncs; each step is a method of its own.

    `network_error` says why pods get no network now, None if they do; `allocate` gives a pod the resources it
    is to have, which are those that it wants if the node can give them.
    """

    generate: GenerateStatus
    statuses: StatusManager
    runtime: RuntimeManager
    prober: Prober
    mirrors: MirrorClient
    volumes: Volumes
    disk: Disk
    recorder: Recorder
    reasons: ReasonCache
    root_dir: str
    network_error: Callable[[], str | None]
    pull_secrets: Callable[[Pod], Awaitable[Sequence[Secret]]]
    allocate: Callable[[Pod], Pod]
    resources: DynamicResources | None = None
    cgroups: Cgroups | None = None

    # --- sync

    async def sync_pod(self, pod: Pod, mirror: Pod | None, records: PodRecords, waits: Waits) -> bool:
        """Bring the pod nearer to its spec; returns True if it has ended by itself (SYNC-08)."""
        pod = self.allocate(pod)
        status = self.publish_status(pod, records)
        if pods.is_terminal_phase(status.phase):
            return True
        self.require_network(pod)
        await self.ensure_cgroup(pod, records)
        await self.ensure_mirror(pod, mirror)
        self.make_folders(pod)
        await self.wait_for_volumes(pod, waits)
        credentials = await self.pull_secrets(pod)
        self.prober.add_pod(pod)
        result = await self.runtime.sync_pod(pod, self.with_ips(records, status), credentials)
        self.remember_reasons(pod, result)
        self.raise_for(result)
        return False

    def publish_status(self, pod: Pod, records: PodRecords) -> PodStatus:
        """Compute the status from the records as they are, and set it at the status manager (SYNC-01)."""
        status = self.generate(pod, records, terminal=False)
        self.statuses.set_pod_status(pod, status)
        return status

    def require_network(self, pod: Pod) -> None:
        """End the sync of a pod that needs a network which is not there (SYNC-09, LOOP-04)."""
        error = self.network_error()
        if error is None or pods.host_network(pod):
            return
        message = f"{NETWORK_NOT_READY}: {error}"
        self.recorder.warning(pod, Reason.NETWORK_NOT_READY, message)
        raise NetworkNotReady(message)

    async def ensure_cgroup(self, pod: Pod, records: PodRecords) -> None:
        """Create the pod's cgroup if it is missing; what runs without one is killed first (SYNC-17)."""
        cgroups, uid = self.cgroups, pods.uid(pod)
        if cgroups is None or cgroups.exists(uid):
            return
        if records.running:
            await self.kill(pod, records, None)
        if not records.running or pods.restart_policy(pod) != pods.NEVER:
            cgroups.make(uid)

    async def ensure_mirror(self, pod: Pod, mirror: Pod | None) -> None:
        """Create or replace a static pod's mirror, if the API server can be reached (STATIC-12)."""
        if pods.is_static(pod):
            await self.mirrors.keep(pod, mirror)

    def make_folders(self, pod: Pod) -> None:
        """Make the pod's data folders (SYNC-11)."""
        try:
            folder = pod_folder(self.root_dir, pods.uid(pod))
            for name in (folder, f"{folder}/volumes", f"{folder}/plugins"):
                self.disk.make_folder(name, FOLDER_MODE)
        except OSError as error:
            message = f"error making pod data directories: {error}"
            self.recorder.warning(pod, FAILED_FOLDERS, message)
            raise

    async def wait_for_volumes(self, pod: Pod, waits: Waits) -> None:
        """Wait until the volumes are there, or the pod's termination is asked for (SYNC-10, WORK-06)."""
        if not pods.spec(pod).volumes:
            return
        try:
            await waits.wait(self.volumes.wait(pod))
        except VolumesNotReady as error:
            message = f"Unable to attach or mount volumes: {error}"
            self.recorder.warning(pod, Reason.FAILED_MOUNT, message)
            raise SyncFailed(message) from error

    def with_ips(self, records: PodRecords, status: PodStatus) -> PodRecords:
        """The records with the status's IPs: containers get these, unless the sandbox is new (SYNC-12)."""
        return replace(records, ips=tuple(one.ip for one in status.podIPs or () if one.ip))

    def remember_reasons(self, pod: Pod, result: SyncResult) -> None:
        """Keep why containers could not be started, for the next status (SYNC-15)."""
        uid, reasons = pods.uid(pod), self.reasons
        for one in result.results:
            if one.action is not Action.START_CONTAINER:
                continue
            if one.reason is None:
                reasons.remove(uid, one.target)
            else:
                reasons.add(uid, one.target, one.reason, one.message)

    def raise_for(self, result: SyncResult) -> None:
        """Fail the sync if any action failed, one that only backs off included (WORK-16)."""
        error = result.error
        if error is not None:
            raise SyncFailed(error, result.wait)

    # --- terminating

    async def sync_terminating_pod(
        self,
        pod: Pod,
        records: PodRecords,
        grace: int | None,
        change_status: Callable[[PodStatus], PodStatus] | None,
    ) -> None:
        """Stop everything of the pod within `grace` seconds (None: those of the spec)."""
        status = self.generate(pod, records, terminal=False)
        if change_status is not None:
            status = change_status(status)
        self.statuses.set_pod_status(pod, status)
        self.prober.stop_liveness_and_startup(pod)
        await self.kill(pod, records, grace)
        self.prober.remove_pod(pod)
        stopped = await self.refresh_records(pod, records)
        self.require_stopped(stopped)
        await self.unprepare_resources(pod)
        self.publish_final_status(pod, stopped)

    async def kill(self, pod: Pod, records: PodRecords, grace: int | None) -> None:
        """Kill what runs."""
        self.require_killed(pod, await self.runtime.kill_pod(pod, records, grace))

    def require_killed(self, pod: Pod, result: SyncResult) -> None:
        """Fail the sync if anything could not be stopped, and report it by an event (TERM-25)."""
        if result.error is not None:
            self.recorder.warning(pod, Reason.FAILED_KILL_POD, f"error killing pod: {result.error}")
            raise SyncFailed(result.error)

    async def refresh_records(self, pod: Pod, before: PodRecords) -> PodRecords:
        """Read the records anew from the runtime, past the cache; the IPs stay what they were."""
        uid, name, namespace = pods.uid(pod), pods.name(pod), pods.namespace(pod)
        return replace(await self.runtime.pod_records(uid, name, namespace), ips=before.ips)

    def require_stopped(self, records: PodRecords) -> None:
        """Fail if the runtime shows a running container although it stopped all of them (WORK-11)."""
        running = [record.name for record in records.running]
        if running:
            raise SyncFailed(f"detected running containers after a successful kill: {', '.join(running)}")

    async def unprepare_resources(self, pod: Pod) -> None:
        """Unprepare the pod's claims: nothing of it runs, and its last status is still to come (TERM-27)."""
        if self.resources is None:
            return
        try:
            await self.resources.unprepare(pod)
        except ResourcesError as error:
            raise SyncFailed(str(error)) from error

    def publish_final_status(self, pod: Pod, records: PodRecords) -> None:
        """Publish how everything ended, while the runtime still knows it (WORK-13)."""
        self.statuses.set_pod_status(pod, self.generate(pod, records, terminal=True))

    async def sync_terminating_runtime_pod(self, running: ListedPod) -> None:
        """Stop everything of a pod of which only the runtime knows: no hooks, no status (WORK-24)."""
        result = await self.runtime.kill_pod(None, running, ORPHAN_GRACE_SECONDS)
        self.require_killed(runtime_pod(running), result)

    # --- terminated

    async def sync_terminated_pod(self, pod: Pod, records: PodRecords, waits: Waits) -> None:
        """Clean up behind the pod, and call its status the last one (WORK-12)."""
        self.publish_final_status(pod, records)
        if pods.spec(pod).volumes:
            await waits.wait(self.volumes.unmount(pod))
        if self.cgroups is not None:
            self.cgroups.remove(pods.uid(pod))
        self.statuses.terminate_pod(pod)
