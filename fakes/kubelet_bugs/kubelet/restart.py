"""Bugs of a kubelet that starts again: what it takes for granted, and what it makes anew."""

from collections.abc import Sequence
from typing import Any

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod, PodStatus, Secret
from msgspec import structs

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_reference.api import pods
from kubelet_reference.api.records import PodRecords
from kubelet_reference.api.results import ProbeKind, ProbeOutcome
from kubelet_reference.api.sync_result import SyncResult
from kubelet_reference.config.mirror_client import MirrorClient
from kubelet_reference.kubelet.pod_handlers import PodHandlers
from kubelet_reference.kuberuntime.actions.sandbox_changed import SandboxChange, sandbox_changed
from kubelet_reference.kuberuntime.container.start_container import ContainerStarter, StartContext
from kubelet_reference.kuberuntime.runtime_manager import RuntimeManager
from kubelet_reference.pod_workers.worker import SyncFailed
from kubelet_reference.prober.worker import ProbeState, ProbeTransition, probe_transition
from kubelet_reference.status.status_manager import StatusManager
from kubelet_reference.util.ports import ApiError, ApiServer
from kubelet_reference.util.versions import Behaviour


@bug("MUT-RESTARTKUBELET-02", breaks="RESTARTKUBELET-02")
class RunningIsAdmitted(PodHandlers):
    """Pods that run when the kubelet starts are not admitted again."""

    def needs_admission(self, pod: Pod) -> bool:
        return super().needs_admission(pod) and pods.phase(pod) != pods.RUNNING


@bug("MUT-RESTARTKUBELET-08", breaks="RESTARTKUBELET-08", part="probe_transition")
def first_failure_counts(
    kind: ProbeKind, state: ProbeState, outcome: ProbeOutcome, threshold: int, behaviour: Behaviour
) -> ProbeTransition:
    """The first failure of a liveness probe after the kubelet's start kills the container."""
    is_first = state.last is None and kind is ProbeKind.LIVENESS and outcome is ProbeOutcome.FAILURE
    return probe_transition(kind, state, outcome, 1 if is_first else threshold, behaviour)


@bug("MUT-RESTARTKUBELET-15", breaks="RESTARTKUBELET-15")
class FreshMirrors(MirrorClient):
    """A kubelet that starts deletes the mirror pods it finds and creates them anew."""

    def __init__(self, api: ApiServer | None, node_name: str) -> None:
        super().__init__(api, node_name)
        self._made: set[str] = set()

    async def keep(self, static: Pod, mirror: Pod | None) -> None:
        if mirror is not None and pods.uid(static) not in self._made:
            await self.delete(mirror)
            mirror = None
        await super().keep(static, mirror)

    async def create(self, static: Pod) -> None:
        self._made.add(pods.uid(static))
        await super().create(static)


@bug("MUT-STATIC-14", breaks="STATIC-14")
class ThereIsWrong(MirrorClient):
    """A mirror pod that is there already makes the sync of its static pod fail."""

    def _not_created(self, static: Pod, error: ApiError) -> None:
        raise SyncFailed(str(error))


@bug("MUT-RESTARTKUBELET-11", breaks="RESTARTKUBELET-11")
class ForgetsStored(StatusManager):
    """A kubelet that starts dates its pods anew, for it does not look at the statuses that they have."""

    def _before(self, pod: Pod) -> PodStatus:
        return self.get(pods.uid(pod)) or PodStatus()

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        super().set_pod_status(pod, structs.replace(status, startTime=None))


@bug("MUT-RESTARTKUBELET-13", breaks="RESTARTKUBELET-13", part="runtime.sandbox_changed")
def same_number(pod: Pod, records: PodRecords) -> SandboxChange:
    """The sandbox that replaces a dead one is numbered as if it were the first."""
    change = sandbox_changed(pod, records)
    return structs.replace(change, attempt=0) if change.changed else change


class _HookOfTheRunning(ContainerStarter):
    """Can run the postStart hooks of containers that run already."""

    async def greet(self, pod: Pod, records: PodRecords, config: cri.PodSandboxConfig) -> None:
        """Run the hooks of all that runs of the pod."""
        context = StartContext(pod, records, "", config, records.ips)
        wanted = {one.name: one for one in pods.containers(pod)}
        for record in records.running:
            if record.name in wanted:
                await self._post_start(context, wanted[record.name], record.id)


class _HooksAnew(RuntimeManager):
    """Runs the postStart hooks of what it finds running, for it has no memory of them."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._met: dict[str, None] = {}

    async def sync_pod(
        self, pod: Pod, records: PodRecords, pull_secrets: Sequence[Secret] = ()
    ) -> SyncResult:
        starter = self.components.starter
        if isinstance(starter, _HookOfTheRunning) and pods.uid(pod) not in self._met:
            self._met[pods.uid(pod)] = None
            await starter.greet(pod, records, self.components.sandbox_config(pod, 0, self.tools.settings))
        return await super().sync_pod(pod, records, pull_secrets)


@bug("MUT-RESTARTKUBELET-14", breaks="RESTARTKUBELET-14")
def runs_hooks_again() -> WrongParts:
    """A kubelet that starts runs the postStart hooks of containers that run already."""
    return parts_with(_HooksAnew, _HookOfTheRunning)
