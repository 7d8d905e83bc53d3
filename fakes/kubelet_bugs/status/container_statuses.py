"""Bugs in what a status says of each container."""

from datetime import timedelta

from lightkube.models.core_v1 import (
    ContainerState,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodStatus,
)
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference.api import pods, records
from kubelet_reference.api.pods import AnyContainer
from kubelet_reference.api.records import ContainerRecord
from kubelet_reference.prober.prober_manager import Prober
from kubelet_reference.status.container_statuses import ContainerStatuses, ContainerStatusRules, StatusInput


def _waits_for(reason: str, message: str = "") -> ContainerState:
    return ContainerState(waiting=ContainerStateWaiting(reason=reason or None, message=message or None))


@bug("MUT-CSTAT-01", breaks="CSTAT-01")
class NoInits(ContainerStatusRules):
    """Containers that wait for init containers are said to be in the making."""

    def without_record(
        self, pod: Pod, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        found = super().without_record(pod, container, before)
        waits = found.state.waiting if found.state else None
        initializes = waits is not None and waits.reason == "PodInitializing"
        return structs.replace(found, state=_waits_for("ContainerCreating")) if initializes else found


@bug("MUT-CSTAT-04", breaks="CSTAT-04")
class WaitsAtOnce(ContainerStatusRules):
    """A container that has ended waits at once, before anything kept it from its restart."""

    def refused(self, now: StatusInput, container: AnyContainer, status: ContainerStatus) -> ContainerStatus:
        found = super().refused(now, container, status)
        again = pods.restart_policy(now.pod) == pods.ALWAYS and container in pods.containers(now.pod)
        if not again or found.state is None or found.state.terminated is None:
            return found
        return structs.replace(found, state=_waits_for("ContainerCreating"), lastState=found.state)


@bug("MUT-CSTAT-05", breaks="CSTAT-05")
class PodWideReason(ContainerStatusRules):
    """An init container that is done waits like the app container that crashes after it."""

    def init_status(
        self, now: StatusInput, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().init_status(now, container, before)
        found = [now.reasons.get(pods.uid(now.pod), one.name) for one in pods.containers(now.pod)]
        failure = next((one for one in found if one is not None), None)
        if failure is None or status.state is None or status.state.terminated is None:
            return status
        return structs.replace(
            status, state=_waits_for(failure.reason, failure.message), lastState=status.state
        )


@bug("MUT-CSTAT-11", breaks="CSTAT-11")
class OwnReasons(ContainerStatusRules):
    """Why a container ended is made up from its exit code."""

    def of_record(
        self, runtime: str, record: ContainerRecord, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().of_record(runtime, record, before)
        ended = status.state.terminated if status.state else None
        if ended is None:
            return status
        reason = "Error" if ended.exitCode else "Completed"
        return structs.replace(status, state=ContainerState(terminated=structs.replace(ended, reason=reason)))


@bug("MUT-CSTAT-12", breaks="CSTAT-12")
class AlwaysResources(ContainerStatusRules):
    """Container statuses report resources though nothing can be resized."""

    def status(
        self, now: StatusInput, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        return structs.replace(super().status(now, container, before), allocatedResources={"cpu": "0"})


@bug("MUT-CSTAT-14", breaks="CSTAT-14")
class KeepsLastState(ContainerStatusRules):
    """The last state of a container outlives its record."""

    def recorded(
        self, now: StatusInput, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().recorded(now, container, before)
        last = before.lastState if before else None
        return structs.replace(status, lastState=last) if status.lastState == ContainerState() else status


@bug("MUT-CSTAT-15", breaks=("CSTAT-02", "CSTAT-15"))
class EndsUnstarted(ContainerStatusRules):
    """A container that was never started has ended."""

    def of_record(
        self, runtime: str, record: ContainerRecord, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().of_record(runtime, record, before)
        if record.state is not records.ContainerState.CREATED:
            return status
        end = ContainerStateTerminated(exitCode=128, reason="StartError", containerID=status.containerID)
        return structs.replace(status, state=ContainerState(terminated=end))

    def refused(self, now: StatusInput, container: AnyContainer, status: ContainerStatus) -> ContainerStatus:
        ended = status.state.terminated if status.state else None
        is_made_up = ended is not None and ended.reason == "StartError"
        return status if is_made_up else super().refused(now, container, status)


@bug("MUT-CSTAT-03", breaks="CSTAT-03")
class OldestFirst(ContainerStatusRules):
    """The last state is that of a container's first instance."""

    def recorded(
        self, now: StatusInput, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().recorded(now, container, before)
        known = [record for record in now.records.containers if record.name == container.name]
        if len(known) > 1:
            status = structs.replace(status, lastState=self.of_record(now.runtime, known[-1], before).state)
        return status


@bug("MUT-CSTAT-07", breaks="CSTAT-07")
class CountsRecords(ContainerStatusRules):
    """A restart is forgotten with its record."""

    def recorded(
        self, now: StatusInput, container: AnyContainer, before: ContainerStatus | None
    ) -> ContainerStatus:
        known = [record for record in now.records.containers if record.name == container.name]
        status = super().recorded(now, container, before)
        return structs.replace(status, restartCount=max(0, len(known) - 1))


@bug("MUT-CSTAT-08", breaks="CSTAT-08")
class NamesTwice(ContainerStatusRules):
    """The id of an image is its name."""

    def of_record(
        self, runtime: str, record: ContainerRecord, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().of_record(runtime, record, before)
        return structs.replace(status, imageID=status.image)


@bug("MUT-CSTAT-13", breaks="CSTAT-13")
class Strangers(ContainerStatusRules):
    """Containers that the pod does not have stand in its status."""

    def compute(self, now: StatusInput) -> ContainerStatuses:
        found = super().compute(now)
        known = {one.name for one in (*found.init, *found.app, *found.ephemeral)}
        others = [record for record in now.records.containers if record.name not in known]
        extra = [self.of_record(now.runtime, record, None) for record in others]
        return structs.replace(found, app=[*found.app, *extra, *found.ephemeral])


@bug("MUT-CSTAT-09", breaks="CSTAT-09")
class NeverStarted(Prober):
    """Container statuses do not report whether a container has started."""

    def update_statuses(self, pod: Pod, status: PodStatus) -> PodStatus:
        found = super().update_statuses(pod, status)
        every = [structs.replace(one, started=None) for one in found.containerStatuses or ()]
        return structs.replace(found, containerStatuses=every)


@bug("MUT-CSTAT-10", breaks="CSTAT-10")
class ReadyWhenDone(Prober):
    """A container that has ended is ready."""

    def update_statuses(self, pod: Pod, status: PodStatus) -> PodStatus:
        found = super().update_statuses(pod, status)
        ended = (one.state.terminated if one.state else None for one in found.containerStatuses or ())
        every = [
            structs.replace(one, ready=True) if end is not None else one
            for one, end in zip(found.containerStatuses or (), ended, strict=True)
        ]
        return structs.replace(found, containerStatuses=every)


@bug("MUT-STATUS-11", breaks="STATUS-11")
class Fractions(ContainerStatusRules):
    """Times are reported as exactly as the runtime has them."""

    def of_record(
        self, runtime: str, record: ContainerRecord, before: ContainerStatus | None
    ) -> ContainerStatus:
        status = super().of_record(runtime, record, before)
        runs = status.state.running if status.state else None
        if runs is None or runs.startedAt is None:
            return status
        exact = runs.startedAt + timedelta(microseconds=record.started_at // 1000 % 1_000_000)
        return structs.replace(status, state=ContainerState(running=structs.replace(runs, startedAt=exact)))
