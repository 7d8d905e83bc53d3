"""Bugs in whether a container is restarted, beside which others, after which delay, and with which number."""

from asyncio import AbstractEventLoop, get_running_loop
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, Pod
from msgspec import structs

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_reference.api import names, pods
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord, ContainerState, ListedPod, PodRecords
from kubelet_reference.api.results import KillReason
from kubelet_reference.api.sync_result import StartError, SyncResult
from kubelet_reference.images.image_manager import EnsuredImage
from kubelet_reference.kuberuntime.actions.container_hash import container_hash
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules, ContainerDecision, PodActions
from kubelet_reference.kuberuntime.actions.sync_input import Kill, SyncInput
from kubelet_reference.kuberuntime.container.crash_backoff import CrashBackoff
from kubelet_reference.kuberuntime.container.kill_container import ContainerKill
from kubelet_reference.kuberuntime.container.start_container import ContainerStarter, StartContext
from kubelet_reference.kuberuntime.pod_files import PodFiles
from kubelet_reference.kuberuntime.runtime_manager import RuntimeComponents, RuntimeManager
from kubelet_reference.kuberuntime.runtime_tools import RuntimeTools
from kubelet_reference.util.backoff import Backoff
from kubelet_reference.util.ports import Disk, Random
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

_KEPT: WeakKeyDictionary[AbstractEventLoop, Backoff] = WeakKeyDictionary()
"""What outlives a kubelet, by the loop of its node."""


@bug("K8S-73802", breaks="RESTART-04", aliases=("K18", "K8S-69060"))
class UnknownIsDead(ActionRules):
    """A container of unknown state is replaced without having been stopped."""

    def app_decision(self, now: SyncInput, one: Container) -> ContainerDecision:
        return (
            structs.replace(super().app_decision(now, one), kill=None)
            if self._is_lost(now, one)
            else (super().app_decision(now, one))
        )

    def _is_lost(self, now: SyncInput, one: Container) -> bool:
        record = now.records.newest(one.name)
        return record is not None and not record.is_running


@bug("K8S-13103", breaks="RESTART-13", aliases=("K16", "K8S-13320", "K8S-13542", "K8S-12485", "K8S-13517"))
class CountsTheDead(ContainerStarter):
    """The restart count falls when dead instances are cleaned up."""

    def restarts(self, context: StartContext, container: AnyContainer) -> int:
        return sum(
            record.name == container.name and record.has_exited for record in context.records.containers
        )


@bug("K8S-99748", breaks="RESTART-14", aliases="K8S-105614")
class IgnoresLogs(PodFiles):
    """After the loss of all records instances are numbered from 0, and old logs are written over."""

    def restarts_in_logs(self, pod: Pod, container: str) -> int:
        return 0


@bug("K8S-21008", breaks="BACKOFF-04", aliases="K8S-57291")
class GoodEndsAreFree(CrashBackoff):
    """A container that keeps ending well is restarted without any delay."""

    def newest_exited(self, container: AnyContainer, records: PodRecords) -> ContainerRecord | None:
        found = super().newest_exited(container, records)
        return found if found is not None and found.exit_code != 0 else None


@bug("K8S-22240", breaks=("BACKOFF-01", "BACKOFF-03"))
class OldestCounts(CrashBackoff):
    """The delay of a restart counts from an older instance than the last."""

    def newest_exited(self, container: AnyContainer, records: PodRecords) -> ContainerRecord | None:
        return super().newest_exited(
            container, structs.replace(records, containers=tuple(reversed(records.containers)))
        )


@bug(
    "K8S-84443",
    breaks="RESTARTKUBELET-01",
    aliases=("K45", "K8S-53644", "K8S-124220", "K8S-129385", "K8S-72296", "K8S-23104", "K8S-122760"),
)
class HashesAnew(RuntimeManager):
    """A new kubelet takes every container for changed and restarts it."""

    def __init__(self, *parts: Any) -> None:  # noqa: ANN401 - as its parent's
        super().__init__(*parts)
        self._seen: dict[str, None] = {}

    def decide(self, pod: Pod, records: PodRecords) -> PodActions:
        if pods.uid(pod) not in self._seen:
            self._seen[pods.uid(pod)] = None
            found = tuple(structs.replace(record, hash=f"old-{record.hash}") for record in records.containers)
            records = structs.replace(records, containers=found)
        return super().decide(pod, records)


@bug("MUT-RESTARTKUBELET-17", breaks=("RESTARTKUBELET-01", "RESTARTKUBELET-17"))
class TrustsNoOlderHash(HashesAnew):
    """A newer kubelet takes for changed what an older one has left running."""

    def decide(self, pod: Pod, records: PodRecords) -> PodActions:
        is_new = self.tools.behaviour.minor > Behaviour.of().minor
        return super().decide(pod, records) if is_new else RuntimeManager.decide(self, pod, records)


@bug("MUT-RESTARTKUBELET-18", breaks="RESTARTKUBELET-18")
class TrustsEveryHash(RuntimeManager):
    """A container that runs is never taken for changed, whatever its hash."""

    def decide(self, pod: Pod, records: PodRecords) -> PodActions:
        hashes = {one.name: container_hash(one, self.tools.behaviour) for one in pods.containers(pod)}
        found = tuple(
            structs.replace(record, hash=hashes.get(record.name, record.hash))
            for record in records.containers
        )
        return super().decide(pod, structs.replace(records, containers=found))


@bug("MUT-RESTART-03", breaks="RESTART-03")
class MadeIsDone(ActionRules):
    """A container that could not be started is not made again by policy Never."""

    def should_restart(self, now: SyncInput, one: Container, record: ContainerRecord | None) -> bool:
        is_made = record is not None and record.state is ContainerState.CREATED
        had_its_run = is_made and pods.restart_policy(now.pod) == pods.NEVER
        return not had_its_run and super().should_restart(now, one, record)


@bug("MUT-RESTART-07", breaks="RESTART-07")
class PolicyDecidesAll(ActionRules):
    """A container whose image was changed is stopped and, by policy Never, not made again."""

    def running_decision(self, now: SyncInput, one: Container, record: ContainerRecord) -> ContainerDecision:
        found = super().running_decision(now, one, record)
        return structs.replace(found, start=False) if pods.restart_policy(now.pod) == pods.NEVER else found


class _ComparesNames(ActionRules):
    """Does not see that an image changed."""

    def has_changed(self, now: SyncInput, one: Container, record: ContainerRecord) -> bool:
        return False


class _HashesNames(ContainerStarter):
    """Leaves the image out of the hash of a container's definition."""

    async def _config(
        self, context: StartContext, container: AnyContainer, image: EnsuredImage
    ) -> cri.ContainerConfig:
        config = await super()._config(context, container, image)
        nameless = structs.replace(container, image="")
        config.annotations[names.CONTAINER_HASH] = container_hash(nameless, self.tools.behaviour)
        return config


@bug("MUT-RESTART-09", breaks="RESTART-09")
class FailedOnlyWithACode(ActionRules):
    """A container killed for its probe is not run again by policy OnFailure."""

    def running_decision(self, now: SyncInput, one: Container, record: ContainerRecord) -> ContainerDecision:
        found = super().running_decision(now, one, record)
        is_probe = found.kill is not None and found.kill.reason is not KillReason.UNKNOWN
        if is_probe and pods.restart_policy(now.pod) == pods.ON_FAILURE:
            return structs.replace(found, start=False)
        return found


@bug("MUT-RESTART-11", breaks="RESTART-11")
class KillsFirst(ActionRules):
    """A container that is killed waits for the next relist to be run again."""

    def running_decision(self, now: SyncInput, one: Container, record: ContainerRecord) -> ContainerDecision:
        return structs.replace(super().running_decision(now, one, record), start=False)

    def app_actions(self, now: SyncInput, found: PodActions) -> PodActions:
        actions = super().app_actions(now, found)
        return structs.replace(actions, kill_pod=False) if actions.to_kill else actions


@bug("MUT-RESTART-17", breaks="RESTART-17")
class AllForOne(ActionRules):
    """The restart of one container restarts all of its pod."""

    def app_actions(self, now: SyncInput, found: PodActions) -> PodActions:
        actions = super().app_actions(now, found)
        if not actions.to_start or not any(record.has_exited for record in now.records.containers):
            return actions
        beside = [
            (one, record)
            for one in pods.containers(now.pod)
            if (record := now.records.newest(one.name)) is not None and record.is_running
        ]
        running = [
            Kill(record, one, KillReason.UNKNOWN, f"Container {one.name} is restarted with the others")
            for one, record in beside
        ]
        to_start = (*actions.to_start, *(one for one, _ in beside))
        return structs.replace(actions, to_kill=(*actions.to_kill, *running), to_start=to_start)


@bug("MUT-RESTART-06", breaks="RESTART-06")
class OneByOne(RuntimeManager):
    """While a pod is being stopped, what has ended of it is started again."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        if pod is not None and isinstance(running, PodRecords) and len(running.running) > 1:
            first = running.running[0]
            kill = ContainerKill(pod, first.id, first.name, grace_override=grace_override)
            await self.components.container_killer.kill_container(kill)
            alive = structs.replace(pod, metadata=structs.replace(pods.metadata(pod), deletionTimestamp=None))
            fresh = await self.pod_records(pods.uid(pod), pods.name(pod), pods.namespace(pod))
            await self.sync_pod(alive, structs.replace(fresh, ips=running.ips))
        return await super().kill_pod(pod, running, grace_override)


@bug("MUT-RESTART-12", breaks="RESTART-12")
class KilledHasEnded(CrashBackoff):
    """The kill of a container counts as its end for the back-off."""

    def admit(self, pod: Pod, container: AnyContainer, records: PodRecords) -> None:
        newest = records.newest(container.name)
        if newest is not None and newest.is_running:
            now = self.tools.clock.wall_ns()
            self._backoff.next(self.key(pod, container), now)
            ended = structs.replace(newest, state=ContainerState.EXITED, finished_at=now)
            records = structs.replace(records, containers=(ended, *records.containers))
        super().admit(pod, container, records)


@bug("MUT-BACKOFF-02", breaks="BACKOFF-02")
class CountsTries(CrashBackoff):
    """The delay of a restart counts from the last try, so that it never ends."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._tried: dict[str, int] = {}

    def admit(self, pod: Pod, container: AnyContainer, records: PodRecords) -> None:
        try:
            super().admit(pod, container, records)
        except StartError:
            self._tried[container.name] = self.tools.clock.wall_ns()
            raise

    def newest_exited(self, container: AnyContainer, records: PodRecords) -> ContainerRecord | None:
        found = super().newest_exited(container, records)
        tried = self._tried.get(container.name, 0)
        return found and structs.replace(found, finished_at=max(found.finished_at, tried))


@bug("MUT-BACKOFF-05", breaks="BACKOFF-05")
class KeepsForAnyImage(CrashBackoff):
    """A container with another image is held back for the crashes of the old one."""

    def key(self, pod: Pod, container: AnyContainer) -> str:
        return f"{pods.uid(pod)}_{container.name}"


@bug("MUT-BACKOFF-07", breaks="BACKOFF-07")
class OneForThePod(CrashBackoff):
    """A container is held back for the crashes of another one of its pod."""

    def key(self, pod: Pod, container: AnyContainer) -> str:
        return pods.uid(pod)


@bug("MUT-BACKOFF-08", breaks="BACKOFF-08")
class Remembers(CrashBackoff):
    """Back-offs outlive the kubelet."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._backoff = _KEPT.setdefault(get_running_loop(), self._backoff)


@bug("MUT-BACKOFF-10", breaks="BACKOFF-10")
class InitsAreFree(CrashBackoff):
    """Init containers that fail are tried again without delay."""

    def admit(self, pod: Pod, container: AnyContainer, records: PodRecords) -> None:
        if container.name not in {one.name for one in pods.init_containers(pod)}:
            super().admit(pod, container, records)


@bug("MUT-BACKOFF-11", breaks="BACKOFF-11", kubernetes="1.35")
class UsualDelays(CrashBackoff):
    """The longest delay that the node is configured with is not looked at."""

    def __post_init__(self) -> None:
        self._backoff = Backoff(self.tools.clock)


@bug("MUT-RESTART-15", breaks="RESTART-15")
class CountsAnyFile(PodFiles):
    """A foreign file among a container's logs sets its restart count."""

    def __init__(self, disk: Disk, random: Random, settings: Settings, behaviour: Behaviour) -> None:
        super().__init__(disk, random, settings, replace(behaviour, log_names_are_anchored=False))


@bug("MUT-RESTARTKUBELET-12", breaks="RESTARTKUBELET-12")
class InitsAnew(RuntimeManager):
    """A kubelet that starts runs the init containers of its pods again."""

    def __init__(self, tools: RuntimeTools, components: RuntimeComponents) -> None:
        super().__init__(tools, components)
        self._seen: set[str] = set()

    def decide(self, pod: Pod, records: PodRecords) -> PodActions:
        actions = super().decide(pod, records)
        is_new = pods.uid(pod) not in self._seen
        self._seen.add(pods.uid(pod))
        inits = pods.init_containers(pod)
        if not (is_new and inits and records.containers and actions.sandbox_id):
            return actions
        return structs.replace(actions, inits=(inits[0],))


@bug("MUT-RESTART-08", breaks="RESTART-08")
def hashes_names_alone() -> WrongParts:
    """The hash of a container does not change with its image."""
    return parts_with(_ComparesNames, _HashesNames)
