"""The handlers of pod changes (LOOP-14 to LOOP-16).

Upstream: HandlePodAdditions, HandlePodUpdates, HandlePodRemoves, HandlePodReconcile and HandlePodSyncs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lightkube.models.core_v1 import Pod, PodStatus

from kubelet_reference.allocation.admission import Admission, Rejection, freed_by
from kubelet_reference.api import pods
from kubelet_reference.api.events import Reason, Recorder
from kubelet_reference.api.resources import qos_class
from kubelet_reference.config.pod_manager import PodManager
from kubelet_reference.eviction.preemption import Preemption
from kubelet_reference.pod_workers.pod_state_queries import PodActivity
from kubelet_reference.pod_workers.pod_workers import PodWorkers
from kubelet_reference.pod_workers.worker import Update, UpdateKind
from kubelet_reference.status import conditions
from kubelet_reference.status.pod_status import observed_generation
from kubelet_reference.status.status_manager import StatusManager
from kubelet_reference.util.versions import Behaviour

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(eq=False)
class PodHandlers:
    """Updates the pod manager, admits new pods, and dispatches each change to the pod's worker.

    `all_sources_seen` says whether every source was seen; `remove_dead_containers` removes all dead
    containers of a pod, by UID; `allocated` gives a pod with the resources that were allocated to it.
    """

    manager: PodManager
    workers: PodWorkers
    activity: PodActivity
    admission: Admission
    statuses: StatusManager
    preemption: Preemption
    recorder: Recorder
    behaviour: Behaviour
    all_sources_seen: Callable[[], bool]
    remove_dead_containers: Callable[[str], None]
    allocated: Callable[[Pod], Pod]

    async def add(self, added: Iterable[Pod]) -> None:
        """New pods, the oldest first: the first to come gets the room (LOOP-14).

        Where a critical pod has to make room, nothing else goes on here until it has it (ADMIT-08).
        """
        for pod in sorted(added, key=_created):
            # All pods but this one: what is already there was there before it.
            others = self.manager.pods()
            self.manager.update(pod)
            if pods.is_mirror(pod):
                self._dispatch_static(pod)
            elif self.needs_admission(pod) and (rejection := await self.rejection(pod, others)) is not None:
                self.reject(pod, rejection)
            else:
                self._dispatch(pod, UpdateKind.CREATE)

    def update(self, changed: Iterable[Pod]) -> None:
        """Pods that changed, those whose deletion was asked for among them (LOOP-15, ADMIT-01)."""
        for pod in changed:
            self.manager.update(pod)
            self._dispatch_any(pod)

    def remove(self, gone: Iterable[Pod]) -> None:
        """Pods that their source wants no more: they are killed (CONFIG-17)."""
        for pod in gone:
            self.manager.remove(pod)
            if pods.is_mirror(pod):
                self._dispatch_static(pod)
            elif self.may_remove():
                self._dispatch(pod, UpdateKind.KILL)

    def reconcile(self, reported: Iterable[Pod]) -> None:
        """Pods of which only the status at the API server changed (CONFIG-16)."""
        for pod in reported:
            self.manager.update(pod)
            if self.readiness_differs(pod):
                self._dispatch_any(pod, UpdateKind.SYNC)
            if pod.status is not None and pod.status.reason == Reason.EVICTED:
                self.remove_dead_containers(pods.uid(pod))

    def sync(self, uids: Iterable[str]) -> None:
        """Sync these pods; those that are no longer desired are skipped (LOOP-09)."""
        for uid in uids:
            pod = self.manager.by_uid(uid)
            if pod is not None:
                self._dispatch(pod, UpdateKind.SYNC)

    def needs_admission(self, pod: Pod) -> bool:
        """Whether the pod may be refused: not one that is over or ending anyway (ADMIT-05)."""
        is_ending = self.workers.is_termination_requested(pods.uid(pod))
        return not is_ending and not pods.is_terminal_phase(pods.phase(pod))

    async def rejection(self, pod: Pod, others: Sequence[Pod]) -> Rejection | None:
        """Why the pod cannot run beside the others that are active (ADMIT-04).

        Pods that had to make room count no more, whether they are gone by now or not.
        """
        active = list(others)
        while (
            rejection := self.admission.admit(
                self.allocated(pod),
                [*map(self.allocated, active)],
                self.activity.is_active,
            )
        ) is not None:
            victims = self.victims(pod, active, rejection)
            if not victims:
                break
            for victim in victims:
                await self.preemption.end(victim)
                active.remove(victim)
        return rejection

    def victims(self, pod: Pod, others: Sequence[Pod], rejection: Rejection) -> Sequence[Pod]:
        """Which pods have to go so that the pod fits; none where that does not help (ADMIT-08)."""
        insufficient = rejection.insufficient
        if insufficient is None:
            return ()
        active = [other for other in others if self.activity.is_active(other)]
        return self.preemption.victims(
            pod, active, insufficient.missing, lambda other: freed_by(other, insufficient.resource)
        )

    def reject(self, pod: Pod, rejection: Rejection) -> None:
        """Fail the pod for good; no worker gets an update, so nothing of it is ever started (ADMIT-02)."""
        self.recorder.warning(pod, rejection.reason, rejection.message)
        status = PodStatus(
            phase=pods.FAILED,
            reason=rejection.reason,
            message=f"Pod was rejected: {rejection.message}",
            qosClass=qos_class(pod),
            observedGeneration=observed_generation(pod, self.behaviour),
        )
        self.statuses.set_pod_status(pod, status)

    def may_remove(self) -> bool:
        """Whether pods may be killed for not being desired; if not, housekeeping does it later (LOOP-08)."""
        return self.all_sources_seen()

    def readiness_differs(self, pod: Pod) -> bool:
        """Whether readiness gates make the Ready condition another one than the API server shows."""
        status = pod.status
        if status is None or not pods.spec(pod).readinessGates:
            return False
        shown = conditions.condition(status.conditions, conditions.READY)
        expected = conditions.ready(pod, status)
        return shown is not None and (shown.status, shown.message) != (expected.status, expected.message)

    def _dispatch_any(self, pod: Pod, kind: UpdateKind = UpdateKind.UPDATE) -> None:
        if pods.is_mirror(pod):
            self._dispatch_static(pod, kind)
        else:
            self._dispatch(pod, kind)

    def _dispatch_static(self, mirror: Pod, kind: UpdateKind = UpdateKind.UPDATE) -> None:
        """A mirror pod is never run: its static pod is synced instead (CONFIG-15)."""
        pod = self.manager.static_of(mirror)
        if pod is not None:
            self._dispatch(pod, kind)

    def _dispatch(self, pod: Pod, kind: UpdateKind) -> None:
        mirror = self.manager.mirror_of(pod)
        self.workers.update_pod(Update(kind, pod, mirror))


def _created(pod: Pod) -> datetime:
    created = pods.metadata(pod).creationTimestamp
    return created if isinstance(created, datetime) else _LONG_AGO
