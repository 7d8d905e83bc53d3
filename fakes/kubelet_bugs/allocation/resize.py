"""Bugs of resize in place: what is given, in which order, what is reported of it, and what is remembered."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from lightkube.models.core_v1 import Container, Pod, PodStatus
from msgspec.structs import replace as changed

from kubelet_bugs.bug import WrongParts, bug, parts_with
from kubelet_reference.allocation.allocation_manager import OLD_CHECKPOINT, Allocated, Allocations, Refusal
from kubelet_reference.allocation.resize_rules import ResourceChange, resource_changes
from kubelet_reference.api import pods
from kubelet_reference.api.records import ContainerRecord, PodRecords
from kubelet_reference.api.resources import MEMORY
from kubelet_reference.kuberuntime.actions.pod_actions import ActionRules
from kubelet_reference.kuberuntime.actions.sync_input import SyncInput
from kubelet_reference.kuberuntime.container.resize import Resizer
from kubelet_reference.pleg.generic import Pleg
from kubelet_reference.pod_workers.sync_pod import PodSyncer
from kubelet_reference.pod_workers.worker import Waits
from kubelet_reference.status.resize_status import with_resize
from kubelet_reference.util.versions import Behaviour


@bug("MUT-RESIZE-01", breaks=("RESIZE-01", "RESIZE-03"), kubernetes="1.33")
class AlwaysAnew(ActionRules):
    """A container that is to have other resources is made anew, whatever its resize policy."""

    def must_restart_to_resize(self, now: SyncInput, one: Container, record: ContainerRecord) -> bool:
        return bool(self.resizes(now, one, record))


@bug("MUT-RESIZE-03", breaks="RESIZE-03", kubernetes="1.33")
class NeverAnew(ActionRules):
    """A container is given other resources as it runs, though its resize policy asks for a restart."""

    def must_restart_to_resize(self, now: SyncInput, one: Container, record: ContainerRecord) -> bool:
        return False


@bug("K8S-126388", breaks="RESIZE-01", aliases="K8S-123441", kubernetes="1.33")
class LimitsOnly(ActionRules):
    """That a container is to ask for more goes unseen where it has no limits."""

    def resizes(self, now: SyncInput, one: Container, record: ContainerRecord) -> tuple[ResourceChange, ...]:
        found = super().resizes(now, one, record)
        return tuple(each for each in found if changed(each.new, cpu_shares=each.old.cpu_shares) != each.old)


@bug("MUT-RESIZE-04", breaks="RESIZE-04", kubernetes="1.33")
class GrowsFirst(ActionRules):
    """A container is given more before another one of its pod has given up what it has."""

    def in_order(self, resizes: Iterable[ResourceChange]) -> tuple[ResourceChange, ...]:
        return tuple(reversed(super().in_order(resizes)))


class _EvenStatic(ActionRules):
    """Compares the containers of static pods as well."""

    def resizes(self, now: SyncInput, one: Container, record: ContainerRecord) -> tuple[ResourceChange, ...]:
        return resource_changes(now.pod, one, record)


class _ListensToTheMirror(PodSyncer):
    """Takes the resources that the mirror of a static pod has."""

    async def sync_pod(self, pod: Pod, mirror: Pod | None, records: PodRecords, waits: Waits) -> bool:
        if mirror is not None:
            spec = changed(pods.spec(pod), containers=pods.containers(mirror))
            pod = changed(pod, spec=spec)
        return await super().sync_pod(pod, mirror, records, waits)


@bug("K8S-126033", breaks=("RESIZE-02", "RESIZE-07"), kubernetes="1.33")
class WantedIsGranted(Allocations):
    """What a pod wants is given to its containers though the node does not have it."""

    def applied(self, pod: Pod) -> Pod:
        return pod


@bug("MUT-RESIZE-02", breaks="RESIZE-02", kubernetes="1.33")
class AsksOnce(Allocations):
    """A resize that did not fit once is never tried again."""

    def refusal(self, pod: Pod) -> Refusal | None:
        return self.pending(pod) or super().refusal(pod)


@bug("MUT-RESTARTKUBELET-16", breaks="RESTARTKUBELET-16", kubernetes="1.33")
class Forgets(Allocations):
    """A kubelet that starts takes for allocated what the pods want."""

    def restored(self) -> dict[str, Allocated]:
        return {}


@bug("MUT-RESTARTKUBELET-19", breaks="RESTARTKUBELET-19")
class EndsOnOlderFile(Allocations):
    """A kubelet ends where it finds allocations in a file of an older version."""

    def keep_only(self, uids: Collection[str]) -> None:
        is_new = self.behaviour.tells_resize_by_condition
        if is_new and self.disk.kind(f"{self.settings.root_dir}/{OLD_CHECKPOINT}") is not None:
            raise SystemError("allocations of another version")
        super().keep_only(uids)


@bug("MUT-RESIZE-05", breaks="RESIZE-05", kubernetes="1.33")
class TakesWhatIsUsed(Resizer):
    """Memory is taken from a container that uses it."""

    async def refusal(self, change: ResourceChange) -> str:
        if change.resource == MEMORY and await self._client.memory_usage(change.record.id):
            return await super().refusal(replace(change, new=change.old))
        return ""


@bug("MUT-PLEG-17", breaks="PLEG-17", kubernetes="1.33")
class NeverDone(Pleg):
    """A pod that was resized is inspected each second for ever."""

    def _stop_watching(self, key: tuple[str, str]) -> None:
        """Go on."""


@bug("MUT-RESIZE-06", breaks="RESIZE-06", part="with_resize", kubernetes="1.33")
def echo(
    status: PodStatus, pod: Pod, records: PodRecords, refused: Refusal | None, behaviour: Behaviour
) -> PodStatus:
    """A status shows the resources that a container is to have as those that it has."""
    unseen = changed(records, containers=tuple(changed(one, actuated=None) for one in records.containers))
    return with_resize(status, pod, unseen, refused, behaviour)


@bug("MUT-COND-09", breaks="COND-09", part="with_resize", kubernetes="1.33")
def in_other_words(
    status: PodStatus, pod: Pod, records: PodRecords, refused: Refusal | None, behaviour: Behaviour
) -> PodStatus:
    """The state of a resize is reported in the words of another version."""
    other = replace(behaviour, tells_resize_by_condition=not behaviour.tells_resize_by_condition)
    return with_resize(status, pod, records, refused, other)


@bug("MUT-STATIC-24", breaks="STATIC-24", kubernetes="1.33")
def resizes_by_the_mirror() -> WrongParts:
    """A static pod is resized when its mirror is."""
    return parts_with(_EvenStatic, _ListensToTheMirror)
