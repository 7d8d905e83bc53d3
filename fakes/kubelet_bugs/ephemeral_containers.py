"""Bugs of ephemeral containers: taken for app containers, waited for, or forgotten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lightkube.models.core_v1 import Container, EphemeralContainer, Pod, PodCondition, PodStatus
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.conditions import pod_conditions
from kubelet_reference.config import Op, classify_change
from kubelet_reference.container_hash import container_hash
from kubelet_reference.container_statuses import ContainerStatuses, ContainerStatusRules, Told
from kubelet_reference.parts import Parts
from kubelet_reference.pod_actions import ActionRules, Actions
from kubelet_reference.pod_status import StatusDecisions
from kubelet_reference.pods import AnyContainer
from kubelet_reference.prober import Prober
from kubelet_reference.records import ContainerRecord, ContainerState
from kubelet_reference.results import KillReason
from kubelet_reference.runtime_manager import EPHEMERAL, RuntimeManager
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.start_container import ContainerStarter, PodToStart
from kubelet_reference.sync_input import Kill, Situation
from kubelet_reference.sync_result import ActionResult
from kubelet_reference.termination import ContainerKill, Terminator
from kubelet_reference.versions import Behaviour


class _RestartsThem(ActionRules):
    """Starts an ephemeral container again that ended."""

    def ephemeral_to_start(self, now: Situation) -> tuple[EphemeralContainer, ...]:
        newest = [(one, now.records.newest(one.name)) for one in pods.ephemeral_containers(now.pod)]
        return tuple(one for one, record in newest if record is None or record.has_exited)


class _StopsThem(ActionRules):
    """Stops ephemeral containers for reasons that are no reasons for them."""

    def in_same_sandbox(self, now: Situation) -> Actions:
        found = super().in_same_sandbox(now)
        kills = [
            Kill(record, one, KillReason.UNKNOWN, f"Container {one.name} will be restarted")
            for one, record in _newest(now)
            if self.is_wrong(now, one, record)
        ]
        again = tuple(one for one, record in _newest(now) if any(record is kill.record for kill in kills))
        return replace(
            found, to_kill=(*found.to_kill, *kills), ephemeral=(*found.ephemeral, *self.started(again))
        )

    def is_wrong(self, now: Situation, one: EphemeralContainer, record: ContainerRecord) -> bool:
        """Whether it is stopped."""
        del now, one
        return record.state is ContainerState.UNKNOWN

    def started(self, stopped: tuple[EphemeralContainer, ...]) -> tuple[EphemeralContainer, ...]:
        """Which of those that are stopped are started again."""
        return stopped[:0]


class _ReplacesThem(_StopsThem):
    """Runs an ephemeral container with its new definition."""

    def is_wrong(self, now: Situation, one: EphemeralContainer, record: ContainerRecord) -> bool:
        return record.is_running and record.hash != container_hash(one, now.behaviour)

    def started(self, stopped: tuple[EphemeralContainer, ...]) -> tuple[EphemeralContainer, ...]:
        return stopped


class _InitComesFirst(ActionRules):
    """Starts ephemeral containers once the pod is initialized."""

    def ephemeral_to_start(self, now: Situation) -> tuple[EphemeralContainer, ...]:
        return super().ephemeral_to_start(now) if self.init_progress(now).done else ()


class _TakesThemAlong(ActionRules):
    """Starts all ephemeral containers in a new sandbox too."""

    def in_new_sandbox(self, now: Situation) -> Actions:
        found = super().in_new_sandbox(now)
        every = tuple(pods.ephemeral_containers(now.pod))
        return replace(found, ephemeral=every) if found.create_sandbox else found


class _TheyAreNeeded(RuntimeManager):
    """Starts nothing more when an ephemeral container could not be."""

    def is_needed(self, container: AnyContainer, kind: str) -> bool:
        return kind == EPHEMERAL or super().is_needed(container, kind)


class _LooksIntoNobody(ContainerStarter):
    """Gives every container processes of its own, whoever is to be looked into."""

    def target_id(self, into: PodToStart, container: AnyContainer) -> str:
        return ""


class _LeavesThem(Terminator):
    """Stops the containers that are in the manifest, and leaves the others to their sandbox."""

    async def kill_pod(
        self, pod: Pod, kills: Sequence[ContainerKill], sandbox_ids: Sequence[str]
    ) -> tuple[ActionResult, ...]:
        names = {one.name for one in pods.ephemeral_containers(pod)}
        return await super().kill_pod(pod, [kill for kill in kills if kill.name not in names], sandbox_ids)


class _AsTheyWereAdded(ContainerStatusRules):
    """Tells of ephemeral containers in the order of the manifest."""

    def tell(self, told: Told) -> ContainerStatuses:
        found = super().tell(told)
        order = [one.name for one in pods.ephemeral_containers(told.pod)]
        return replace(found, ephemeral=sorted(found.ephemeral, key=lambda one: order.index(one.name)))


class _TheyAreReady(Prober):
    """Tells of ephemeral containers as of app containers."""

    def update_statuses(self, pod: Pod, status: PodStatus) -> PodStatus:
        found = super().update_statuses(pod, status)
        told = [
            replace(one, ready=True) if one.state and one.state.running else one
            for one in found.ephemeralContainerStatuses or ()
        ]
        return replace(found, ephemeralContainerStatuses=told or None)


def _ready_with_all(
    pod: Pod, status: PodStatus, behaviour: Behaviour, *, sandbox_usable: bool
) -> list[PodCondition]:
    """Count ephemeral containers for readiness too."""
    shown = [*(status.containerStatuses or ()), *(status.ephemeralContainerStatuses or ())]
    spec = pods.spec(pod)
    apps = [*spec.containers, *(Container(name=one.name) for one in pods.ephemeral_containers(pod))]
    whole = replace(pod, spec=replace(spec, containers=apps))
    told = replace(status, containerStatuses=shown)
    return pod_conditions(whole, told, behaviour, sandbox_usable=sandbox_usable)


def _newest(now: Situation) -> Iterator[tuple[EphemeralContainer, ContainerRecord]]:
    for one in pods.ephemeral_containers(now.pod):
        record = now.records.newest(one.name)
        if record is not None:
            yield one, record


def _debugging_is_no_change(old: Pod | None, new: Pod | None) -> Op | None:
    if old is None or new is None:
        return classify_change(old, new)
    spec = replace(pods.spec(new), ephemeralContainers=pods.spec(old).ephemeralContainers)
    return classify_change(old, replace(new, spec=spec))


def _deciding(rules: ActionRules) -> Parts:
    return Parts(runtime=RuntimeParts(compute_actions=rules.compute))


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-EPH-01",
        "An ephemeral container that ended is started again.",
        lambda: _deciding(_RestartsThem()),
        ("EPH-01", "EPH-02"),
    ),
    Bug(
        "MUT-EPH-02",
        "An ephemeral container of unknown state is stopped.",
        lambda: _deciding(_StopsThem()),
        ("EPH-02",),
    ),
    Bug(
        "MUT-EPH-03",
        "An ephemeral container waits until the pod is initialized.",
        lambda: _deciding(_InitComesFirst()),
        ("EPH-03", "EPH-08"),
    ),
    Bug(
        "MUT-EPH-04",
        "An ephemeral container that cannot be started holds up the rest of its pod.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_TheyAreNeeded)),
        ("EPH-04",),
    ),
    Bug(
        "MUT-EPH-05",
        "Ephemeral containers are started again in a new sandbox.",
        lambda: _deciding(_TakesThemAlong()),
        ("EPH-05",),
    ),
    Bug(
        "MUT-EPH-06",
        "A pod is not ready unless its ephemeral containers are.",
        lambda: Parts(status=StatusDecisions(pod_conditions=_ready_with_all)),
        ("EPH-06",),
    ),
    Bug(
        "MUT-EPH-07",
        "An ephemeral container does not see the processes of its target.",
        lambda: Parts(runtime=RuntimeParts(starter=_LooksIntoNobody)),
        ("EPH-07",),
    ),
    Bug(
        "MUT-EPH-08",
        "An ephemeral container that is added is noticed at the next resync.",
        lambda: Parts(classify_change=_debugging_is_no_change),
        ("EPH-08", "EPH-03"),
    ),
    Bug(
        "MUT-EPH-09",
        "Ephemeral containers are not stopped with their pod.",
        lambda: Parts(runtime=RuntimeParts(terminator=_LeavesThem)),
        ("EPH-09",),
    ),
    Bug(
        "MUT-EPH-10",
        "An ephemeral container is replaced when its definition changes.",
        lambda: _deciding(_ReplacesThem()),
        ("EPH-10",),
    ),
    Bug(
        "MUT-EPH-11",
        "The statuses of ephemeral containers stand in the order in which they were added.",
        lambda: Parts(status=StatusDecisions(container_statuses=_AsTheyWereAdded().tell)),
        ("EPH-11",),
    ),
    Bug(
        "MUT-EPH-12",
        "An ephemeral container that runs is shown as ready.",
        lambda: Parts(prober=_TheyAreReady),
        ("EPH-12",),
    ),
)
