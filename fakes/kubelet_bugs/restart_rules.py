"""Bugs in whether a container comes again, beside which others, and after which delay."""

from __future__ import annotations

from asyncio import AbstractEventLoop, get_running_loop
from dataclasses import replace
from weakref import WeakKeyDictionary

from cri_api.v1 import api_pb2 as cri
from lightkube.models.core_v1 import Container, Pod
from msgspec import structs

from kubelet_bugs.bug import Bug
from kubelet_reference import names, pods
from kubelet_reference.backoff import Backoff
from kubelet_reference.container_hash import container_hash
from kubelet_reference.crash_backoff import CrashBackoff
from kubelet_reference.images import EnsuredImage
from kubelet_reference.parts import Parts
from kubelet_reference.pod_actions import ActionRules, Actions, Verdict
from kubelet_reference.pod_files import PodFiles
from kubelet_reference.pods import AnyContainer
from kubelet_reference.ports import Chance, Disk
from kubelet_reference.records import ContainerRecord, ContainerState, ListedPod, PodRecords
from kubelet_reference.results import KillReason
from kubelet_reference.runtime_manager import Decisions, Hands, RuntimeManager
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.runtime_tools import RuntimeTools
from kubelet_reference.settings import Settings
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_input import Kill, Situation
from kubelet_reference.sync_result import StartError, SyncResult
from kubelet_reference.termination import ContainerKill
from kubelet_reference.versions import Behaviour


class _MadeIsDone(ActionRules):
    """Takes a container that was made and never started for one that had its run."""

    def should_restart(self, now: Situation, one: Container, record: ContainerRecord | None) -> bool:
        is_made = record is not None and record.state is ContainerState.CREATED
        had_its_run = is_made and pods.restart_policy(now.pod) == pods.NEVER
        return not had_its_run and super().should_restart(now, one, record)


class _PolicyDecidesAll(ActionRules):
    """Asks the restart policy even where the definition has changed."""

    def verdict_on_running(self, now: Situation, one: Container, record: ContainerRecord) -> Verdict:
        found = super().verdict_on_running(now, one, record)
        return structs.replace(found, start=False) if pods.restart_policy(now.pod) == pods.NEVER else found


class _ComparesNames(ActionRules):
    """Does not see that an image changed."""

    def has_changed(self, now: Situation, one: Container, record: ContainerRecord) -> bool:
        return False


class _HashesNames(ContainerStarter):
    """Leaves the image out of the hash of a container's definition."""

    async def _config(
        self, into: PodToStart, container: AnyContainer, image: EnsuredImage
    ) -> cri.ContainerConfig:
        config = await super()._config(into, container, image)
        nameless = structs.replace(container, image="")
        config.annotations[names.CONTAINER_HASH] = container_hash(nameless, self._behaviour)
        return config


class _FailedOnlyWithACode(ActionRules):
    """Looks at the exit code, by policy OnFailure, of what it kills itself."""

    def verdict_on_running(self, now: Situation, one: Container, record: ContainerRecord) -> Verdict:
        found = super().verdict_on_running(now, one, record)
        is_probe = found.kill is not None and found.kill.reason is not KillReason.UNKNOWN
        if is_probe and pods.restart_policy(now.pod) == pods.ON_FAILURE:
            return structs.replace(found, start=False)
        return found


class _KillsFirst(ActionRules):
    """Kills in one sync, and starts in another."""

    def verdict_on_running(self, now: Situation, one: Container, record: ContainerRecord) -> Verdict:
        return structs.replace(super().verdict_on_running(now, one, record), start=False)

    def app_actions(self, now: Situation, found: Actions) -> Actions:
        actions = super().app_actions(now, found)
        return structs.replace(actions, kill_pod=False) if actions.to_kill else actions


class _AllForOne(ActionRules):
    """Starts all containers anew with the one that ended."""

    def app_actions(self, now: Situation, found: Actions) -> Actions:
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


class _OneByOne(RuntimeManager):
    """Stops one container of a pod, looks after the others, and then stops all of them."""

    async def kill_pod(
        self, pod: Pod | None, running: ListedPod | PodRecords, grace_override: int | None
    ) -> SyncResult:
        if pod is not None and isinstance(running, PodRecords) and len(running.running) > 1:
            first = running.running[0]
            kill = ContainerKill(pod, first.id, first.name, grace_override=grace_override)
            await self._hands.terminator.kill_container(kill)
            alive = structs.replace(pod, metadata=structs.replace(pods.metadata(pod), deletionTimestamp=None))
            fresh = await self.pod_records(pods.uid(pod), pods.name(pod), pods.namespace(pod))
            await self.sync_pod(alive, structs.replace(fresh, ips=running.ips))
        return await super().kill_pod(pod, running, grace_override)


class _KilledHasEnded(CrashBackoff):
    """Makes a container wait that it has killed itself."""

    def __init__(self, tools: RuntimeTools) -> None:
        super().__init__(tools)
        self._clock = tools.clock

    def admit(self, pod: Pod, container: AnyContainer, records: PodRecords) -> None:
        newest = records.newest(container.name)
        if newest is not None and newest.is_running:
            now = self._clock.wall_ns()
            self._backoff.next(self.key(pod, container), now)
            ended = structs.replace(newest, state=ContainerState.EXITED, finished_at=now)
            records = structs.replace(records, containers=(ended, *records.containers))
        super().admit(pod, container, records)


class _CountsTries(CrashBackoff):
    """Measures the delay from the last try."""

    def __init__(self, tools: RuntimeTools) -> None:
        super().__init__(tools)
        self._clock = tools.clock
        self._tried: dict[str, int] = {}

    def admit(self, pod: Pod, container: AnyContainer, records: PodRecords) -> None:
        try:
            super().admit(pod, container, records)
        except StartError:
            self._tried[container.name] = self._clock.wall_ns()
            raise

    def newest_exited(self, container: AnyContainer, records: PodRecords) -> ContainerRecord | None:
        found = super().newest_exited(container, records)
        tried = self._tried.get(container.name, 0)
        return found and structs.replace(found, finished_at=max(found.finished_at, tried))


class _KeepsForAnyImage(CrashBackoff):
    """Holds back a container that was mended."""

    def key(self, pod: Pod, container: AnyContainer) -> str:
        return f"{pods.uid(pod)}_{container.name}"


class _OneForThePod(CrashBackoff):
    """Holds back all containers of a pod for one."""

    def key(self, pod: Pod, container: AnyContainer) -> str:
        return pods.uid(pod)


_KEPT: WeakKeyDictionary[AbstractEventLoop, Backoff] = WeakKeyDictionary()
"""What outlives a kubelet, by the loop of its node."""


class _Remembers(CrashBackoff):
    """Finds the delays of the kubelet before it."""

    def __init__(self, tools: RuntimeTools) -> None:
        super().__init__(tools)
        self._backoff = _KEPT.setdefault(get_running_loop(), self._backoff)


class _InitsAreFree(CrashBackoff):
    """Holds back app containers only."""

    def admit(self, pod: Pod, container: AnyContainer, records: PodRecords) -> None:
        if container.name not in {one.name for one in pods.init_containers(pod)}:
            super().admit(pod, container, records)


class _UsualDelays(CrashBackoff):
    """Does not look at what the node is configured with."""

    def __init__(self, tools: RuntimeTools) -> None:
        super().__init__(tools)
        self._backoff = Backoff(tools.clock)


class _CountsAnyFile(PodFiles):
    """Takes any number in the name of a file for that of a log, or none where it should."""

    def __init__(self, disk: Disk, chance: Chance, settings: Settings, behaviour: Behaviour) -> None:
        super().__init__(disk, chance, settings, replace(behaviour, log_names_are_anchored=False))


class _InitsAnew(RuntimeManager):
    """Initializes each pod that it sees for the first time, whether or not it runs."""

    def __init__(self, tools: RuntimeTools, hands: Hands, decisions: Decisions) -> None:
        super().__init__(tools, hands, decisions)
        self._seen: set[str] = set()

    def decide(self, pod: Pod, records: PodRecords) -> Actions:
        actions = super().decide(pod, records)
        is_new = pods.uid(pod) not in self._seen
        self._seen.add(pods.uid(pod))
        inits = pods.init_containers(pod)
        if not (is_new and inits and records.containers and actions.sandbox_id):
            return actions
        return structs.replace(actions, inits=(inits[0],))


def _deciding(rules: ActionRules) -> Parts:
    return Parts(runtime=RuntimeParts(compute_actions=rules.compute))


def _holding_back(backoff: type[CrashBackoff]) -> Parts:
    return Parts(runtime=RuntimeParts(crash_backoff=backoff))


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-RESTART-03",
        "A container that could not be started is not made again by policy Never.",
        lambda: _deciding(_MadeIsDone()),
        ("RESTART-03",),
    ),
    Bug(
        "MUT-RESTART-06",
        "While a pod is being stopped, what has ended of it is started again.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_OneByOne)),
        ("RESTART-06",),
    ),
    Bug(
        "MUT-RESTART-07",
        "A container whose image was changed is stopped and, by policy Never, not made again.",
        lambda: _deciding(_PolicyDecidesAll()),
        ("RESTART-07",),
    ),
    Bug(
        "MUT-RESTART-08",
        "The hash of a container does not change with its image.",
        lambda: Parts(runtime=RuntimeParts(compute_actions=_ComparesNames().compute, starter=_HashesNames)),
        ("RESTART-08",),
    ),
    Bug(
        "MUT-RESTART-09",
        "A container killed for its probe is not run again by policy OnFailure.",
        lambda: _deciding(_FailedOnlyWithACode()),
        ("RESTART-09",),
    ),
    Bug(
        "MUT-RESTART-11",
        "A container that is killed waits for the next relist to be run again.",
        lambda: _deciding(_KillsFirst()),
        ("RESTART-11",),
    ),
    Bug(
        "MUT-RESTART-12",
        "The kill of a container counts as its end for the back-off.",
        lambda: _holding_back(_KilledHasEnded),
        ("RESTART-12",),
    ),
    Bug(
        "MUT-RESTART-17",
        "The restart of one container restarts all of its pod.",
        lambda: _deciding(_AllForOne()),
        ("RESTART-17",),
    ),
    Bug(
        "MUT-BACKOFF-02",
        "The delay of a restart counts from the last try, so that it never ends.",
        lambda: _holding_back(_CountsTries),
        ("BACKOFF-02",),
    ),
    Bug(
        "MUT-BACKOFF-05",
        "A container with another image is held back for the crashes of the old one.",
        lambda: _holding_back(_KeepsForAnyImage),
        ("BACKOFF-05",),
    ),
    Bug(
        "MUT-BACKOFF-07",
        "A container is held back for the crashes of another one of its pod.",
        lambda: _holding_back(_OneForThePod),
        ("BACKOFF-07",),
    ),
    Bug(
        "MUT-BACKOFF-08",
        "Back-offs outlive the kubelet.",
        lambda: _holding_back(_Remembers),
        ("BACKOFF-08",),
    ),
    Bug(
        "MUT-BACKOFF-10",
        "Init containers that fail are tried again without delay.",
        lambda: _holding_back(_InitsAreFree),
        ("BACKOFF-10",),
    ),
    Bug(
        "MUT-BACKOFF-11",
        "The longest delay that the node is configured with is not looked at.",
        lambda: _holding_back(_UsualDelays),
        ("BACKOFF-11",),
        kubernetes="1.35",
    ),
    Bug(
        "MUT-RESTART-15",
        "A foreign file among a container's logs tells its number.",
        lambda: Parts(pod_files=_CountsAnyFile),
        ("RESTART-15",),
    ),
    Bug(
        "MUT-RESTARTKUBELET-12",
        "A kubelet that starts runs the init containers of its pods again.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_InitsAnew)),
        ("RESTARTKUBELET-12",),
    ),
)
