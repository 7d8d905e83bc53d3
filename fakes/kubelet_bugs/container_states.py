"""Bugs in what a status says of each container."""

from __future__ import annotations

from datetime import timedelta

from lightkube.models.core_v1 import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodStatus,
)
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import pods, records
from kubelet_reference.container_statuses import ContainerStatuses, ContainerStatusRules, Told
from kubelet_reference.parts import Parts
from kubelet_reference.pod_status import StatusDecisions
from kubelet_reference.pods import AnyContainer
from kubelet_reference.prober import Prober
from kubelet_reference.records import ContainerRecord


def _waits_for(reason: str, message: str = "") -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason or None, message=message or None))


def _parts(rules: ContainerStatusRules) -> Parts:
    """The parts of a kubelet that tells containers by these rules."""
    return Parts(status=StatusDecisions(container_statuses=rules.tell))


class _NoInits(ContainerStatusRules):
    """Does not tell a pod whose init containers run from one whose containers are made."""

    def without_record(
        self, pod: Pod, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        found = super().without_record(pod, container, before)
        waits = found.state.waiting if found.state else None
        initializes = waits is not None and waits.reason == "PodInitializing"
        return replace(found, state=_waits_for("ContainerCreating")) if initializes else found


class _WaitsAtOnce(ContainerStatusRules):
    """Shows a container as waiting as soon as it has ended and is to come again."""

    def refused(self, told: Told, container: AnyContainer, status: ContainerStatus) -> ContainerStatus:
        found = super().refused(told, container, status)
        again = pods.restart_policy(told.pod) == pods.ALWAYS and container in pods.containers(told.pod)
        if not again or found.state is None or found.state.terminated is None:
            return found
        return replace(found, state=_waits_for("ContainerCreating"), lastState=found.state)


class _PodWideReason(ContainerStatusRules):
    """Gives an init container the reason for which any container of its pod waits."""

    def init_status(
        self, told: Told, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().init_status(told, container, before)
        found = [told.reasons.get(pods.uid(told.pod), one.name) for one in pods.containers(told.pod)]
        failure = next((one for one in found if one is not None), None)
        if failure is None or status.state is None or status.state.terminated is None:
            return status
        return replace(status, state=_waits_for(failure.reason, failure.message), lastState=status.state)


class _OwnReasons(ContainerStatusRules):
    """Says itself why a container has ended, by its exit code."""

    def of_record(
        self, runtime: str, record: ContainerRecord, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().of_record(runtime, record, before)
        ended = status.state.terminated if status.state else None
        if ended is None:
            return status
        reason = "Error" if ended.exitCode else "Completed"
        return replace(status, state=ContainerState(terminated=replace(ended, reason=reason)))


class _AlwaysResources(ContainerStatusRules):
    """Says which resources a container has, gate or no gate."""

    def status(self, told: Told, container: AnyContainer, before: ContainerStatus | None) -> ContainerStatus:
        return replace(super().status(told, container, before), allocatedResources={"cpu": "0"})


class _KeepsLastState(ContainerStatusRules):
    """Keeps telling the end before, though its record is gone."""

    def recorded(
        self, told: Told, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().recorded(told, container, before)
        last = before.lastState if before else None
        return replace(status, lastState=last) if status.lastState == ContainerState() else status


class _EndsUnstarted(ContainerStatusRules):
    """Takes a container that was made and never started for one that has ended."""

    def of_record(
        self, runtime: str, record: ContainerRecord, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().of_record(runtime, record, before)
        if record.state is not records.ContainerState.CREATED:
            return status
        end = ContainerStateTerminated(exitCode=128, reason="StartError", containerID=status.containerID)
        return replace(status, state=ContainerState(terminated=end))

    def refused(self, told: Told, container: AnyContainer, status: ContainerStatus) -> ContainerStatus:
        ended = status.state.terminated if status.state else None
        is_made_up = ended is not None and ended.reason == "StartError"
        return status if is_made_up else super().refused(told, container, status)


class _OldestFirst(ContainerStatusRules):
    """Tells of the oldest instance where the one before the newest is asked for."""

    def recorded(
        self, told: Told, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().recorded(told, container, before)
        known = [record for record in told.records.containers if record.name == container.name]
        if len(known) > 1:
            status = replace(status, lastState=self.of_record(told.runtime, known[-1], before).state)
        return status


class _CountsRecords(ContainerStatusRules):
    """Counts as restarts what is recorded, and nothing that was removed."""

    def recorded(
        self, told: Told, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        known = [record for record in told.records.containers if record.name == container.name]
        status = super().recorded(told, container, before)
        return replace(status, restartCount=max(0, len(known) - 1))


class _NamesTwice(ContainerStatusRules):
    """Gives the name of an image for its id."""

    def of_record(
        self, runtime: str, record: ContainerRecord, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().of_record(runtime, record, before)
        return replace(status, imageID=status.image)


class _Strangers(ContainerStatusRules):
    """Tells of everything that is recorded for a pod, be it in its spec or not."""

    def tell(self, told: Told) -> ContainerStatuses:
        found = super().tell(told)
        known = {one.name for one in (*found.init, *found.app, *found.ephemeral)}
        others = [record for record in told.records.containers if record.name not in known]
        extra = [self.of_record(told.runtime, record, None) for record in others]
        return replace(found, app=[*found.app, *extra, *found.ephemeral])


class _NeverStarted(Prober):
    """Does not tell whether containers have started."""

    def update_statuses(self, pod: Pod, status: PodStatus) -> PodStatus:
        found = super().update_statuses(pod, status)
        every = [replace(one, started=None) for one in found.containerStatuses or ()]
        return replace(found, containerStatuses=every)


class _ReadyWhenDone(Prober):
    """Takes a container that has done its work for ready."""

    def update_statuses(self, pod: Pod, status: PodStatus) -> PodStatus:
        found = super().update_statuses(pod, status)
        ended = (one.state.terminated if one.state else None for one in found.containerStatuses or ())
        every = [
            replace(one, ready=True) if end is not None else one
            for one, end in zip(found.containerStatuses or (), ended, strict=True)
        ]
        return replace(found, containerStatuses=every)


class _Fractions(ContainerStatusRules):
    """Tells times as exactly as the runtime does."""

    def of_record(
        self, runtime: str, record: ContainerRecord, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().of_record(runtime, record, before)
        runs = status.state.running if status.state else None
        if runs is None or runs.startedAt is None:
            return status
        exact = runs.startedAt + timedelta(microseconds=record.started_at // 1000 % 1_000_000)
        return replace(status, state=ContainerState(running=replace(runs, startedAt=exact)))


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-CSTAT-01",
        "Containers that wait for init containers are said to be in the making.",
        lambda: _parts(_NoInits()),
        ("CSTAT-01",),
    ),
    Bug(
        "MUT-CSTAT-03",
        "The last state is that of a container's first instance.",
        lambda: _parts(_OldestFirst()),
        ("CSTAT-03",),
    ),
    Bug(
        "MUT-CSTAT-07",
        "A restart is forgotten with its record.",
        lambda: _parts(_CountsRecords()),
        ("CSTAT-07",),
    ),
    Bug(
        "MUT-CSTAT-08",
        "The id of an image is its name.",
        lambda: _parts(_NamesTwice()),
        ("CSTAT-08",),
    ),
    Bug(
        "MUT-CSTAT-09",
        "It is not told whether a container has started.",
        lambda: Parts(prober=_NeverStarted),
        ("CSTAT-09",),
    ),
    Bug(
        "MUT-CSTAT-10",
        "A container that has ended is ready.",
        lambda: Parts(prober=_ReadyWhenDone),
        ("CSTAT-10",),
    ),
    Bug(
        "MUT-CSTAT-13",
        "Containers that the pod does not have stand in its status.",
        lambda: _parts(_Strangers()),
        ("CSTAT-13",),
    ),
    Bug(
        "MUT-CSTAT-04",
        "A container that has ended waits at once, before anything kept it from its restart.",
        lambda: _parts(_WaitsAtOnce()),
        ("CSTAT-04",),
    ),
    Bug(
        "MUT-CSTAT-05",
        "An init container that is done waits like the app container that crashes after it.",
        lambda: _parts(_PodWideReason()),
        ("CSTAT-05",),
    ),
    Bug(
        "MUT-CSTAT-11",
        "Why a container ended is made up from its exit code.",
        lambda: _parts(_OwnReasons()),
        ("CSTAT-11",),
    ),
    Bug(
        "MUT-CSTAT-12",
        "Container statuses tell resources though nothing can be resized.",
        lambda: _parts(_AlwaysResources()),
        ("CSTAT-12",),
    ),
    Bug(
        "MUT-CSTAT-14",
        "The last state of a container outlives its record.",
        lambda: _parts(_KeepsLastState()),
        ("CSTAT-14",),
    ),
    Bug(
        "MUT-CSTAT-15",
        "A container that was never started has ended.",
        lambda: _parts(_EndsUnstarted()),
        ("CSTAT-02", "CSTAT-15"),
    ),
    Bug(
        "MUT-STATUS-11",
        "Times are told as exactly as the runtime has them.",
        lambda: _parts(_Fractions()),
        ("STATUS-11",),
    ),
)
