"""Syncs the sandbox and containers of a pod with its spec, in seven steps (SYNC-03).

One sync of a pod goes through these steps in order:

1. **Decide** what is to be done, from the records as they were before the sync. Nothing that happens in the
   sync changes the decision.
2. **Kill the pod** if its sandbox is of no more use, or if nothing of it is left to run: all containers, then
   all sandboxes. If it is to come back, its init containers are forgotten, so that they run again.
3. Otherwise **kill the containers** that may not stay as they are. Old dead init containers are removed.
   Those that are kept get other resources, where they are to have others (RESIZE-03).
4. **Create the sandbox** if there is none to use, and read its status: containers get its IPs.
5. Start **ephemeral** containers, each at most once.
6. Start the **init** containers that are due: the next regular one, for whose end the rest waits, and
   sidecars.
7. Start **app** containers, in the order of the spec.

A failed kill (2, 3), a failed sandbox (4) or a failed init container (6) ends the sync (SYNC-05, SYNC-06). A
failed ephemeral or app container or sidecar keeps no other from being tried (SYNC-04, SIDECAR-08). The sync
has failed if one of its actions has (SYNC-23).
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Pod, Secret
from msgspec.structs import replace

from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason
from kubelet_reference.api.metrics import APP, EPHEMERAL, INIT
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord, ContainerState, ListedPod, PodRecords
from kubelet_reference.api.results import ProbeOutcome
from kubelet_reference.api.sync_result import Action, ActionResult, StartError, SyncResult
from kubelet_reference.cri.labels import runtime_pod
from kubelet_reference.cri.runtime_reader import RuntimeReader
from kubelet_reference.kuberuntime.actions.pod_actions import PodActions
from kubelet_reference.kuberuntime.actions.sandbox_changed import SandboxChange
from kubelet_reference.kuberuntime.actions.sync_input import Kill, SyncInput
from kubelet_reference.kuberuntime.container.crash_backoff import CrashBackoff
from kubelet_reference.kuberuntime.container.kill_container import ContainerKill, ContainerKiller
from kubelet_reference.kuberuntime.container.resize import Resizer
from kubelet_reference.kuberuntime.container.start_container import (
    ContainerStarter,
    ImageVolumes,
    StartContext,
)
from kubelet_reference.kuberuntime.container_gc.container_deletor import RecordRemover
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.kuberuntime.sandbox import SandboxCreator, SandboxError, SandboxPutOffError
from kubelet_reference.util.settings import Settings


@dataclass(frozen=True, slots=True)
class RuntimeComponents:
    """What decides a sync, by pure functions and the outcomes of probes, and what carries it out."""

    liveness: Callable[[str], ProbeOutcome | None]
    startup: Callable[[str], ProbeOutcome | None]
    sandbox_changed: Callable[[Pod, PodRecords], SandboxChange]
    compute_actions: Callable[[SyncInput], PodActions]
    sandbox_config: Callable[[Pod, int, Settings], cri.PodSandboxConfig]
    image_volumes: ImageVolumes
    reader: RuntimeReader
    sandboxes: SandboxCreator
    starter: ContainerStarter
    container_killer: ContainerKiller
    backoff: CrashBackoff
    remover: RecordRemover
    resizer: Resizer
    sandbox_ready: Callable[[Pod], None] = lambda _: None
    """Called with each pod whose sandbox was just made, before anything is pulled for it."""


class _SyncEndedError(Exception):
    """Ends the sync after a failed step; its results say why."""


@dataclass(slots=True)
class PodSync:
    """One sync of a pod, and the results of its actions so far."""

    pod: Pod
    records: PodRecords
    secrets: Sequence[Secret]
    results: list[ActionResult] = field(default_factory=list[ActionResult])
    problem: str = ""

    def note(self, results: Iterable[ActionResult]) -> None:
        """Keep the results of kills; a failed one ends the sync."""
        before = len(self.results)
        self.results.extend(results)
        if any(result.reason is not None for result in self.results[before:]):
            raise _SyncEndedError

    def end_with(self, problem: str) -> None:
        """End the sync if there is a problem."""
        self.problem = problem
        if problem:
            raise _SyncEndedError

    def result(self) -> SyncResult:
        """What has become of it."""
        return SyncResult(tuple(self.results), self.problem)


@dataclass(eq=False)
class RuntimeManager:
    """Syncs and kills whole pods through the CRI."""

    tools: RuntimeTools
    components: RuntimeComponents

    async def sync_pod(
        self, pod: Pod, records: PodRecords, pull_secrets: Sequence[Secret] = ()
    ) -> SyncResult:
        """One sync of a pod that is meant to run; `records.ips` are the IPs that its status shows."""
        now = PodSync(pod, records, pull_secrets)
        with suppress(_SyncEndedError):
            await self._run_steps(now)
        return now.result()

    async def _run_steps(self, now: PodSync) -> None:
        actions = self.decide(now.pod, now.records)  # 1
        if actions.to_reset:
            await self._reset(now, actions.to_reset)
            actions = self.decide(now.pod, now.records)
        if actions.kill_pod:
            await self._kill_whole_pod(now, actions)  # 2
        else:
            await self._kill_containers(now, actions)  # 3
            now.problem = await self.components.resizer.resize(now.pod, actions.resizes)
        if self._has_work(actions):
            context = await self._ready_sandbox(now, actions)  # 4
            await self._start_each(now, context, actions.ephemeral, EPHEMERAL)  # 5
            await self._start_each(now, context, actions.inits, INIT)  # 6
            await self._start_each(now, context, actions.to_start, APP)  # 7

    # Step 1

    def decide(self, pod: Pod, records: PodRecords) -> PodActions:
        """What is to be done; a replaced sandbox is reported by an event (SANDBOX-09)."""
        change = self.components.sandbox_changed(pod, records)
        actions = self.components.compute_actions(
            SyncInput(
                pod, records, self.components.liveness, self.components.startup, self.tools.behaviour, change
            )
        )
        if actions.create_sandbox and actions.old_sandbox_id:
            text = "Pod sandbox changed, it will be killed and re-created."
            self.tools.recorder.normal(pod, Reason.SANDBOX_CHANGED, text)
        return actions

    def _has_work(self, actions: PodActions) -> bool:
        """Whether something is to be made: a pod that was killed for good gets nothing any more."""
        if actions.kill_pod:
            return actions.create_sandbox
        return bool(actions.ephemeral or actions.inits or actions.to_start)

    # Step 2

    async def _kill_whole_pod(self, now: PodSync, actions: PodActions) -> None:
        """Stop everything; only if that succeeded may a new sandbox come (SANDBOX-04, SYNC-24)."""
        killed = await self.kill_pod(now.pod, now.records, None)
        now.note(killed.results)
        if actions.create_sandbox:
            await self.components.remover.purge_init_containers(now.pod, now.records)

    # Step 3

    async def _kill_containers(self, now: PodSync, actions: PodActions) -> None:
        """Stop the containers that are not to go on as they are, one after another (RESTART-11)."""
        for kill in actions.to_kill:
            now.note([await self.components.container_killer.kill_container(_as_kill(now.pod, kill))])
        await self.components.remover.prune_init_containers(now.pod, now.records)

    async def _reset(self, now: PodSync, records: Sequence[ContainerRecord]) -> None:
        """Stop and remove one instance after another: the pod restarts. A failure ends the sync (RESTART-22).

        Neither hooks nor a grace period are for what comes back, and the logs stay: they count the instances.
        """
        for record in records:
            if not record.has_exited:
                kill = ContainerKill(now.pod, record.id, record.name, message="killing", grace_override=0)
                now.note([await self.components.container_killer.kill_container(kill)])
            now.end_with(await self.components.remover.remove_record(record.id))
        kept = tuple(record for record in now.records.containers if record not in records)
        now.records = replace(now.records, containers=kept)

    # Step 4

    async def _ready_sandbox(self, now: PodSync, actions: PodActions) -> StartContext:
        """The sandbox to start containers in, made if need be."""
        config = self.components.sandbox_config(now.pod, actions.attempt, self.tools.settings)
        sandbox_id, ips = actions.sandbox_id, now.records.ips
        if actions.create_sandbox:
            sandbox_id, ips = await self._new_sandbox(now, config)
        context = StartContext(now.pod, now.records, sandbox_id, config, ips, now.secrets)
        return await self.components.image_volumes.ready(context)

    async def _new_sandbox(self, now: PodSync, config: cri.PodSandboxConfig) -> tuple[str, tuple[str, ...]]:
        """Make a sandbox; its id, and the IPs for its containers (SYNC-12)."""
        try:
            sandbox_id = await self.components.sandboxes.make(now.pod, config)
            found = await self.components.sandboxes.ips(now.pod, sandbox_id)
        except SandboxError as error:
            now.problem = str(error)
            raise _SyncEndedError from error
        except SandboxPutOffError as error:
            raise _SyncEndedError from error
        self.components.sandbox_ready(now.pod)
        return sandbox_id, now.records.ips if pods.host_network(now.pod) else found

    # Steps 5 to 7

    async def _start_each(
        self, now: PodSync, context: StartContext, containers: Iterable[AnyContainer], kind: str
    ) -> None:
        """One after another, in the order of the spec.

        One that cannot be started keeps no other from being tried (SYNC-04, EPH-04, SIDECAR-08). A regular
        init container is the last one to start in a sync, whatever becomes of it (SYNC-05).
        """
        for container in containers:
            await self._start(now, context, container, kind)

    async def _start(self, now: PodSync, context: StartContext, container: AnyContainer, kind: str) -> None:
        """Start one container if its back-off allows it."""
        try:
            self.components.backoff.admit(now.pod, container, now.records)
            await self._counted_start(context, container, kind)
        except StartError as error:
            failed = ActionResult(
                Action.START_CONTAINER, container.name, error.reason, str(error), error.wait
            )
            now.results.append(failed)
        else:
            now.results.append(ActionResult(Action.START_CONTAINER, container.name))

    async def _counted_start(self, context: StartContext, container: AnyContainer, kind: str) -> None:
        """What the back-off has refused does not count as a start (METRIC-02)."""
        self.tools.metrics.started_containers.labels(kind).inc()
        try:
            await self.components.starter.start(context, container)
        except StartError as error:
            self.tools.metrics.started_containers_errors.labels(kind, error.reason).inc()
            raise

    # Beside the syncs

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        """Stop all running containers of a pod, then all its sandboxes; nothing is removed (SANDBOX-18).

        Without a pod there are only the names that the runtime has: no hooks are known then (WORK-24).
        """
        known = runtime_pod(running) if pod is None else pod
        kills = [
            ContainerKill(known, record.id, record.name, grace_override=grace_override)
            for record in running.containers
            if record.state is ContainerState.RUNNING
        ]
        sandbox_ids = [sandbox.id for sandbox in running.sandboxes]
        return SyncResult(await self.components.container_killer.kill_pod(known, kills, sandbox_ids))

    async def pod_records(self, uid: str, name: str, namespace: str) -> PodRecords:
        """Everything the runtime remembers of one pod; what is gone meanwhile is left out (PLEG-11)."""
        return await self.components.reader.pod_records(uid, name, namespace)


def _as_kill(pod: Pod, kill: Kill) -> ContainerKill:
    return ContainerKill(pod, kill.record.id, kill.container.name, kill.reason, kill.message)
