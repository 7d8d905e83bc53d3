"""Bugs of init containers: which one is next, what comes of one that failed, and how they are shown."""

from __future__ import annotations

from lightkube.models.core_v1 import Container, ContainerStatus, Pod, PodStatus
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.container_hash import container_hash
from kubelet_reference.container_statuses import ContainerStatuses, ContainerStatusRules, Told
from kubelet_reference.deadline import Deadlines
from kubelet_reference.init_progress import InitProgress
from kubelet_reference.parts import Parts
from kubelet_reference.pod_actions import ActionRules, Actions
from kubelet_reference.pod_status import StatusDecisions
from kubelet_reference.pods import AnyContainer
from kubelet_reference.prober import Prober
from kubelet_reference.record_remover import RecordRemover
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.sync_input import Situation


class _AllAtOnce(ActionRules):
    """Starts all init containers together."""

    def init_actions(self, now: Situation, found: Actions, progress: InitProgress) -> Actions:
        decided = super().init_actions(now, found, progress)
        fresh = (one for one in pods.init_containers(now.pod) if now.records.newest(one.name) is None)
        return replace(decided, inits=tuple(fresh)) if decided.inits and not progress.failed else decided


class _FromTheFirst(ActionRules):
    """Runs an init container of which there is no record, though there is one of a later one."""

    def init_progress(self, now: Situation) -> InitProgress:
        found = super().init_progress(now)
        inits = pods.init_containers(now.pod)
        known = [index for index, one in enumerate(inits) if now.records.newest(one.name)]
        lost = (one for one in inits[: max(known, default=0)] if now.records.newest(one.name) is None)
        return found if found.done else replace(found, next=next(lost, found.next))


class _KeepsNotes(ActionRules):
    """Remembers which sandboxes have been initialized, and asks no more."""

    def __init__(self) -> None:
        super().__init__()
        self._done: dict[str, None] = {}

    def init_progress(self, now: Situation) -> InitProgress:
        found = super().init_progress(now)
        if found.done:
            self._done[now.sandbox.old_id] = None
        return InitProgress(done=True) if now.sandbox.old_id in self._done else found


class _BeginsAnew(ActionRules):
    """Begins with the first init container again when one failed."""

    def init_progress(self, now: Situation) -> InitProgress:
        found = super().init_progress(now)
        return replace(found, next=pods.init_containers(now.pod)[0]) if found.failed else found


class _AlwaysIsAlways(ActionRules):
    """Runs the last init container again and again under Always."""

    def init_progress(self, now: Situation) -> InitProgress:
        found = super().init_progress(now)
        ended = found.record is not None and found.record.has_exited
        if found.done and ended and pods.restart_policy(now.pod) == pods.ALWAYS:
            return InitProgress(done=False, next=pods.init_containers(now.pod)[-1])
        return found


class _BesideTheLost(ActionRules):
    """Starts another instance of an init container beside one of which nobody knows whether it runs."""

    def init_actions(self, now: Situation, found: Actions, progress: InitProgress) -> Actions:
        return replace(super().init_actions(now, found, progress), to_kill=())


class _InitsMayChange(ActionRules):
    """Makes a pod again when the image of an init container changed."""

    def in_same_sandbox(self, now: Situation) -> Actions:
        found = super().in_same_sandbox(now)
        newest = ((one, now.records.newest(one.name)) for one in pods.init_containers(now.pod))
        changed = any(record and record.hash != container_hash(one, now.behaviour) for one, record in newest)
        return replace(found, kill_pod=True) if changed else found


class _KeepsAll(RecordRemover):
    """Leaves every dead container where it is."""

    async def remove(self, container_id: str) -> bool:
        return False


class _NeverReady(Prober):
    """Tells of a completed init container as of one that does not run."""

    def _init(self, shown: ContainerStatus) -> ContainerStatus:
        return replace(super()._init(shown), ready=False)


class _OneReasonForAll(ContainerStatusRules):
    """Says of every container that waits that it is about to be created."""

    def without_record(
        self, pod: Pod, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        plain = replace(pod, spec=replace(pods.spec(pod), initContainers=None))
        return super().without_record(plain, container, before)


class _AnyOrder(ContainerStatusRules):
    """Sorts the statuses of init containers by name, and lists those of apps as they come."""

    def tell(self, told: Told) -> ContainerStatuses:
        found = super().tell(told)
        return replace(found, init=sorted(found.init, key=lambda one: one.name))


class _CountsFromTheApps(Deadlines):
    """Lets the time of a pod begin when its app containers run."""

    def is_past(self, pod: Pod) -> bool:
        status = self._stored(pods.uid(pod))
        return super().is_past(pod) and not _is_initializing(pod, status)


class _ProbesInits(Prober):
    """Probes whatever has a probe."""

    def probed(self, pod: Pod) -> tuple[Container, ...]:
        return (*pods.containers(pod), *pods.init_containers(pod))


def _is_initializing(pod: Pod, status: PodStatus | None) -> bool:
    told = (status and status.containerStatuses) or ()
    return bool(pods.init_containers(pod)) and not any(one.state and one.state.running for one in told)


def _deciding(rules: ActionRules) -> Parts:
    return Parts(runtime=RuntimeParts(compute_actions=rules.compute))


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-INIT-01",
        "All init containers are started together.",
        lambda: _deciding(_AllAtOnce()),
        ("INIT-01", "INIT-03"),
    ),
    Bug(
        "MUT-INIT-04",
        "An init container is run again because its record went, though a later one has one.",
        lambda: _deciding(_FromTheFirst()),
        ("INIT-04",),
    ),
    Bug(
        "MUT-INIT-06",
        "App containers are started without initialization once all records of the pod went.",
        lambda: _deciding(_KeepsNotes()),
        ("INIT-06",),
    ),
    Bug(
        "MUT-INIT-07",
        "When an init container failed, the first one is run again.",
        lambda: _deciding(_BeginsAnew()),
        ("INIT-07",),
    ),
    Bug(
        "MUT-INIT-10",
        "Under policy Always an init container that succeeded is run again.",
        lambda: _deciding(_AlwaysIsAlways()),
        ("INIT-10",),
    ),
    Bug(
        "MUT-INIT-11",
        "An init container of unknown state is run again without having been stopped.",
        lambda: _deciding(_BesideTheLost()),
        ("INIT-11",),
    ),
    Bug(
        "MUT-INIT-13",
        "A pod is stopped when the image of an init container changes that has done its part.",
        lambda: _deciding(_InitsMayChange()),
        ("INIT-13",),
    ),
    Bug(
        "MUT-INIT-14",
        "Dead containers, those of init containers included, are left where they are.",
        lambda: Parts(runtime=RuntimeParts(record_remover=_KeepsAll)),
        ("INIT-14",),
    ),
    Bug(
        "MUT-INIT-15",
        "An init container that succeeded is not shown as ready.",
        lambda: Parts(prober=_NeverReady),
        ("INIT-15",),
    ),
    Bug(
        "MUT-INIT-16",
        "App containers that wait for init containers are shown as being created.",
        lambda: Parts(status=StatusDecisions(container_statuses=_OneReasonForAll().tell)),
        ("INIT-16",),
    ),
    Bug(
        "MUT-INIT-17",
        "The statuses of init containers stand in the order of their names.",
        lambda: Parts(status=StatusDecisions(container_statuses=_AnyOrder().tell)),
        ("INIT-17",),
    ),
    Bug(
        "MUT-INIT-19",
        "The time that a pod may take begins after its initialization.",
        lambda: Parts(deadlines=_CountsFromTheApps),
        ("INIT-19",),
    ),
    Bug(
        "MUT-INIT-20",
        "The probes of init containers are run.",
        lambda: Parts(prober=_ProbesInits),
        ("INIT-20",),
    ),
)
