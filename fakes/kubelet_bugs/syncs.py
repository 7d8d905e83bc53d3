"""Bugs in the order of a sync: what ends it, what goes on after a failure, and what is remembered of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import ContainerStatus, Pod, PodStatus, Secret
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.container_statuses import ContainerStatuses, Told, container_statuses
from kubelet_reference.dynamic_resources import DynamicResources, ResourcesError
from kubelet_reference.parts import Parts
from kubelet_reference.phase import pod_phase
from kubelet_reference.pod_actions import ActionRules, Actions
from kubelet_reference.pod_status import StatusDecisions
from kubelet_reference.pods import AnyContainer
from kubelet_reference.records import PodRecords
from kubelet_reference.results import KillReason
from kubelet_reference.runtime_classes import RuntimeClasses
from kubelet_reference.runtime_manager import (
    APP,
    INIT,
    RuntimeManager,
    _Pass,  # pyright: ignore[reportPrivateUsage]
)
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.runtime_tools import RuntimeTools
from kubelet_reference.sandbox_maker import SandboxError, SandboxMaker
from kubelet_reference.start_container import PodToStart
from kubelet_reference.status_manager import StatusManager
from kubelet_reference.sync_input import Kill, Situation
from kubelet_reference.sync_pod import PodSyncer
from kubelet_reference.sync_result import Action, Failure, SyncResult
from kubelet_reference.updates import NetworkNotReady, SyncFailed, Update, Waits
from kubelet_reference.versions import Behaviour

_FAILURES = frozenset({Failure.CREATE_CONTAINER, Failure.RUN_CONTAINER})


class _RunsWithoutNetwork(PodSyncer):
    """Tells that there is no network, and goes on."""

    def require_network(self, pod: Pod) -> None:
        with suppress(NetworkNotReady):
            super().require_network(pod)


class _RunsWithoutVolumes(PodSyncer):
    """Tells that volumes are not there, and goes on."""

    async def wait_for_volumes(self, pod: Pod, waits: Waits) -> None:
        with suppress(SyncFailed):
            await super().wait_for_volumes(pod, waits)


class _MakesNoFolders(PodSyncer):
    """Leaves it to whoever writes a file to make the folder for it."""

    def make_folders(self, pod: Pod) -> None:
        pass


class _RunsToTheEnd(PodSyncer):
    """Takes a pod that has ended through the whole sync once more."""

    async def sync_pod(self, update: Update, records: PodRecords, waits: Waits) -> bool:
        pod = update.pod
        ended = await super().sync_pod(update, records, waits)
        if ended and pod is not None:
            fresh = replace(records, sandboxes=(), containers=())
            await self._tools.runtime.sync_pod(pod, fresh)
        return ended


class _KillsForEver(PodSyncer):
    """Kills a pod that has no cgroup, and does not make one."""

    async def keep_cgroup(self, pod: Pod, records: PodRecords) -> None:
        cgroups = self._tools.cgroups
        if cgroups is not None and records.running and not cgroups.exists(pods.uid(pod)):
            await self.kill(pod, records, None)
        elif not records.containers:
            await super().keep_cgroup(pod, records)


class _KeepsReasons(PodSyncer):
    """Does not forget why a container could not be started when it could."""

    def remember_reasons(self, pod: Pod, result: SyncResult) -> None:
        failed = tuple(one for one in result.results if one.reason is not None)
        super().remember_reasons(pod, replace(result, results=failed))


class _ForgivesStarts(PodSyncer):
    """Counts a pass as good in which a container could not be started."""

    def raise_for(self, result: SyncResult) -> None:
        others = tuple(one for one in result.results if one.action is not Action.START_CONTAINER)
        super().raise_for(replace(result, results=others))


class _GivesBackFirst(PodSyncer):
    """Gives resources back before the containers that use them have stopped."""

    async def kill(self, pod: Pod, records: PodRecords, grace: int | None) -> None:
        await self.give_back_resources(pod)
        await super().kill(pod, records, grace)


class _StartsWithoutDevices(DynamicResources):
    """Does not mind that resources could not be prepared."""

    async def prepare(self, pod: Pod) -> None:
        with suppress(ResourcesError):
            await super().prepare(pod)


class _StopsAtFirstFailure(RuntimeManager):
    """Tries no app container after one that could not be started."""

    def is_needed(self, container: AnyContainer, kind: str) -> bool:
        return kind == APP or super().is_needed(container, kind)


class _AllAtOnce(RuntimeManager):
    """Starts the app containers of a pod all at one time."""

    async def _start_each(
        self, now: _Pass, into: PodToStart, containers: Iterable[AnyContainer], kind: str
    ) -> None:
        await asyncio.gather(*(super(_AllAtOnce, self)._start_each(now, into, [c], kind) for c in containers))


class _RestartsSiblings(ActionRules):
    """Restarts the whole pod, in its sandbox, when one of its containers has to come again."""

    def app_actions(self, now: Situation, found: Actions) -> Actions:
        actions = super().app_actions(now, found)
        if not actions.to_start:
            return actions
        known = {one.name: now.records.newest(one.name) for one in pods.containers(now.pod)}
        siblings = tuple(
            Kill(record, one, KillReason.UNKNOWN, f"Container {one.name} goes with its sibling")
            for one in pods.containers(now.pod)
            if (record := known[one.name]) is not None and record.is_running
        )
        return replace(actions, to_kill=siblings)


class _AppsAnyway(RuntimeManager):
    """Starts the app containers when an init container could not be started."""

    async def _start_each(
        self, now: _Pass, into: PodToStart, containers: Iterable[AnyContainer], kind: str
    ) -> None:
        before = len(now.results)
        try:
            await super()._start_each(now, into, containers, kind)
        finally:
            if kind == INIT and any(one.reason is not None for one in now.results[before:]):
                await super()._start_each(now, into, pods.containers(now.pod), APP)


class _StartsBesideTheOld(RuntimeManager):
    """Goes on when a container could not be killed."""

    async def _kill_containers(self, now: _Pass, actions: Actions) -> None:
        for one in actions.to_kill:
            with suppress(Exception):
                await super()._kill_containers(now, replace(actions, to_kill=(one,)))


class _TellsOldAddress(RuntimeManager):
    """Gives the containers of a new sandbox the address that the status shows."""

    async def _new_sandbox(self, now: _Pass, config: cri.PodSandboxConfig) -> tuple[str, tuple[str, ...]]:
        sandbox_id, _ = await super()._new_sandbox(now, config)
        return sandbox_id, now.records.ips


class _ForgivesSandboxes(RuntimeManager):
    """Counts a pass as good in which no sandbox could be run."""

    async def sync_pod(
        self, pod: Pod, records: PodRecords, pull_secrets: Sequence[Secret] = ()
    ) -> SyncResult:
        result = await super().sync_pod(pod, records, pull_secrets)
        kept = tuple(one for one in result.results if one.reason is not Failure.CREATE_SANDBOX)
        return replace(result, results=kept)


class _DoesNotRead(SandboxMaker):
    """Does not ask for the address of a new sandbox."""

    async def ips(self, pod: Pod, sandbox_id: str) -> tuple[str, ...]:
        del pod, sandbox_id
        return ()


class _NeedsNoAddress(SandboxMaker):
    """Goes on with no address where a new sandbox could not be read."""

    async def ips(self, pod: Pod, sandbox_id: str) -> tuple[str, ...]:
        try:
            return await super().ips(pod, sandbox_id)
        except SandboxError:
            return ()


class _TellsOfDeletedPods(SandboxMaker):
    """Does not ask whether anybody wants the pod any more."""

    def __init__(self, tools: RuntimeTools, classes: RuntimeClasses, _: object) -> None:
        super().__init__(tools, classes, lambda _: False)


def _running_at_once(pod: Pod, status: PodStatus, behaviour: Behaviour, *, terminating: bool = False) -> str:
    """The phase as it will be when all goes well."""
    phase = pod_phase(pod, status, behaviour, terminating=terminating)
    return pods.RUNNING if phase == pods.PENDING and not pods.init_containers(pod) else phase


class _ForgetsAddress(StatusManager):
    """Writes no address of a pod that has ended: it has none any more."""

    def set_pod_status(self, pod: Pod, status: PodStatus) -> None:
        if pods.is_terminal_phase(status.phase):
            status = replace(status, podIP=None, podIPs=None)
        super().set_pod_status(pod, status)


def _reason(one: ContainerStatus | None) -> str | None:
    return one.state.waiting.reason if one is not None and one.state and one.state.waiting else None


def _reasons_of_before(told: Told) -> ContainerStatuses:
    """Takes over from the last status why containers wait, as if nothing had been restarted."""
    made = container_statuses(told)
    before = {one.name: one for one in told.stored.containerStatuses or ()}

    def kept(one: ContainerStatus) -> ContainerStatus:
        old = before.get(one.name)
        waits = _reason(one) is not None and _reason(old) in _FAILURES
        return replace(one, state=old.state) if old is not None and waits else one

    return replace(made, app=[kept(one) for one in made.app])


def _in(part: type[PodSyncer]) -> Parts:
    return Parts(pod_syncer=part)


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-SYNC-01",
        "The phase of a new pod is told as it will be when all goes well.",
        lambda: Parts(status=StatusDecisions(pod_phase=_running_at_once)),
        ("SYNC-01",),
    ),
    Bug(
        "MUT-SYNC-02",
        "Pods that need the pod network are run while it is not ready.",
        lambda: _in(_RunsWithoutNetwork),
        ("SYNC-02", "SYNC-09"),
    ),
    Bug(
        "MUT-SYNC-03",
        "The app containers of a pod are started all at one time.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_AllAtOnce)),
        ("SYNC-03",),
    ),
    Bug(
        "MUT-SYNC-04",
        "After an app container that could not be started no other one is tried.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_StopsAtFirstFailure)),
        ("SYNC-04",),
    ),
    Bug(
        "MUT-SYNC-05",
        "App containers are started when an init container could not be.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_AppsAnyway)),
        ("SYNC-05",),
    ),
    Bug(
        "MUT-SYNC-07",
        "Containers are made in a sandbox whose status was never read.",
        lambda: Parts(runtime=RuntimeParts(sandbox_maker=_DoesNotRead)),
        ("SYNC-07",),
    ),
    Bug(
        "MUT-SYNC-08",
        "A pod that has ended goes through a whole sync once more.",
        lambda: _in(_RunsToTheEnd),
        ("SYNC-08",),
    ),
    Bug(
        "MUT-SYNC-10",
        "A pod whose volumes are not there is run without them.",
        lambda: _in(_RunsWithoutVolumes),
        ("SYNC-02", "SYNC-10"),
    ),
    Bug(
        "MUT-SYNC-11",
        "Nobody makes the data folders of a pod.",
        lambda: _in(_MakesNoFolders),
        ("SYNC-11",),
    ),
    Bug(
        "MUT-SYNC-13",
        "When one container comes again, those beside it are stopped as well.",
        lambda: Parts(runtime=RuntimeParts(compute_actions=_RestartsSiblings().compute)),
        ("SYNC-13",),
    ),
    Bug(
        "MUT-SYNC-15",
        "Why a container could not be started is told though it has been started since.",
        lambda: _in(_KeepsReasons),
        ("SYNC-15",),
    ),
    Bug(
        "MUT-SYNC-16",
        "A restarted kubelet takes from the last status why containers wait.",
        lambda: Parts(status=StatusDecisions(container_statuses=_reasons_of_before)),
        ("SYNC-16",),
    ),
    Bug(
        "MUT-SYNC-17",
        "A pod whose cgroup has vanished is killed again and again, for it gets no other.",
        lambda: _in(_KillsForEver),
        ("SYNC-17",),
    ),
    Bug(
        "MUT-SYNC-18",
        "A pod is run although its resources could not be prepared.",
        lambda: Parts(dynamic_resources=_StartsWithoutDevices),
        ("SYNC-18", "SANDBOX-25"),
    ),
    Bug(
        "MUT-SYNC-19",
        "An event tells of a sandbox that failed for a pod which is to go anyway.",
        lambda: Parts(runtime=RuntimeParts(sandbox_maker=_TellsOfDeletedPods)),
        ("SYNC-14", "SYNC-19"),
    ),
    Bug(
        "MUT-SYNC-20",
        "A new sandbox that could not be read is used without an address.",
        lambda: Parts(runtime=RuntimeParts(sandbox_maker=_NeedsNoAddress)),
        ("SYNC-20", "SYNC-21"),
    ),
    Bug(
        "MUT-SYNC-22",
        "The containers of a new sandbox are told the address of the one before.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_TellsOldAddress)),
        ("SYNC-12", "SYNC-22"),
    ),
    Bug(
        "MUT-SYNC-23",
        "A container that could not be started is tried again only with the next regular sync.",
        lambda: _in(_ForgivesStarts),
        ("SYNC-23",),
    ),
    Bug(
        "MUT-SYNC-24",
        "After a kill that failed another instance is started beside the old one.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_StartsBesideTheOld)),
        ("SYNC-06", "SYNC-24"),
    ),
    Bug(
        "MUT-SANDBOX-10",
        "A sandbox that could not be run is tried again only with the next regular sync.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_ForgivesSandboxes)),
        ("SANDBOX-10",),
    ),
    Bug(
        "MUT-SANDBOX-20",
        "The address of a pod is no longer told when it has ended.",
        lambda: Parts(status_manager=_ForgetsAddress),
        ("SANDBOX-20",),
    ),
    Bug(
        "MUT-TERM-27",
        "Resources are given back before the containers that use them have stopped.",
        lambda: _in(_GivesBackFirst),
        ("TERM-27",),
    ),
)
