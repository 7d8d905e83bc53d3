"""Bugs of resize in place: what is given, in which order, what is told of it, and what is remembered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lightkube.models.core_v1 import Container, Pod, PodStatus
from msgspec.structs import replace as changed

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.allocation import Allocated, Allocations, Refusal
from kubelet_reference.parts import Parts
from kubelet_reference.pleg import Pleg
from kubelet_reference.pod_actions import ActionRules
from kubelet_reference.pod_status import StatusDecisions
from kubelet_reference.records import ContainerRecord, PodRecords
from kubelet_reference.resize_status import with_resize
from kubelet_reference.resizer import Resizer
from kubelet_reference.resizing import CapsChange, changes_of
from kubelet_reference.resources import MEMORY
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.sync_input import Situation
from kubelet_reference.sync_pod import PodSyncer
from kubelet_reference.updates import Update, Waits
from kubelet_reference.versions import Behaviour


class _AlwaysAnew(ActionRules):
    """Makes every container anew that is to have other resources, whatever its policy."""

    def must_restart_to_resize(self, now: Situation, one: Container, record: ContainerRecord) -> bool:
        return bool(self.resizes(now, one, record))


class _NeverAnew(ActionRules):
    """Gives every container other resources as it runs, whatever its policy."""

    def must_restart_to_resize(self, now: Situation, one: Container, record: ContainerRecord) -> bool:
        return False


class _LimitsOnly(ActionRules):
    """Sees that limits differ, and not that requests do."""

    def resizes(self, now: Situation, one: Container, record: ContainerRecord) -> tuple[CapsChange, ...]:
        found = super().resizes(now, one, record)
        return tuple(each for each in found if changed(each.new, cpu_shares=each.old.cpu_shares) != each.old)


class _GrowsFirst(ActionRules):
    """Gives before it takes."""

    def in_order(self, resizes: Iterable[CapsChange]) -> tuple[CapsChange, ...]:
        return tuple(reversed(super().in_order(resizes)))


class _EvenStatic(ActionRules):
    """Compares the containers of static pods as well."""

    def resizes(self, now: Situation, one: Container, record: ContainerRecord) -> tuple[CapsChange, ...]:
        return changes_of(now.pod, one, record)


class _ListensToTheMirror(PodSyncer):
    """Takes the resources that the mirror of a static pod has."""

    async def sync_pod(self, update: Update, records: PodRecords, waits: Waits) -> bool:
        if update.pod is not None and update.mirror is not None:
            containers = pods.spec(update.mirror).containers
            spec = changed(pods.spec(update.pod), containers=containers)
            update = changed(update, pod=changed(update.pod, spec=spec))
        return await super().sync_pod(update, records, waits)


class _WantedIsGranted(Allocations):
    """Goes by what a pod wants, whether it was allocated or not."""

    def applied(self, pod: Pod) -> Pod:
        return pod


class _AsksOnce(Allocations):
    """Does not ask again whether a resize fits that did not fit once."""

    def refusal(self, pod: Pod) -> Refusal | None:
        return self.pending(pod) or super().refusal(pod)


class _Forgets(Allocations):
    """Begins without knowing what was allocated before."""

    def restored(self) -> dict[str, Allocated]:
        return {}


class _TakesWhatIsUsed(Resizer):
    """Compares the memory in use with the limit that the container has, not with the one it would get."""

    async def refusal(self, change: CapsChange) -> str | None:
        if change.resource == MEMORY and await self._client.memory_usage(change.record.id):
            return await super().refusal(replace(change, new=change.old))
        return None


class _NeverDone(Pleg):
    """Goes on inspecting a pod whose resize has long been seen."""

    def _stop_watching(self, key: tuple[str, str]) -> None:
        """Go on."""


def _echo(
    status: PodStatus, pod: Pod, records: PodRecords, refused: Refusal | None, behaviour: Behaviour
) -> PodStatus:
    """Tells what was allocated as if the containers had it."""
    unseen = changed(records, containers=tuple(changed(one, caps=None) for one in records.containers))
    return with_resize(status, pod, unseen, refused, behaviour)


def _in_other_words(
    status: PodStatus, pod: Pod, records: PodRecords, refused: Refusal | None, behaviour: Behaviour
) -> PodStatus:
    """Tells how a resize stands as versions before 1.33 do, or as they do not."""
    other = replace(behaviour, tells_resize_by_condition=not behaviour.tells_resize_by_condition)
    return with_resize(status, pod, records, refused, other)


def _acting(rules: ActionRules) -> Parts:
    return Parts(runtime=RuntimeParts(compute_actions=rules.compute))


BUGS: tuple[Bug, ...] = (
    Bug(
        "MUT-RESIZE-01",
        "A container that is to have other resources is made anew, whatever its resize policy.",
        lambda: _acting(_AlwaysAnew()),
        ("RESIZE-01", "RESIZE-03"),
        kubernetes="1.33",
    ),
    Bug(
        "MUT-RESIZE-03",
        "A container is given other resources as it runs, though its resize policy asks for a restart.",
        lambda: _acting(_NeverAnew()),
        ("RESIZE-03",),
        kubernetes="1.33",
    ),
    Bug(
        "K8S-126388",
        "That a container is to ask for more goes unseen where it has no limits.",
        lambda: _acting(_LimitsOnly()),
        ("RESIZE-01",),
        ("K8S-123441",),
        kubernetes="1.33",
    ),
    Bug(
        "K8S-126033",
        "What a pod wants is given to its containers though the node does not have it.",
        lambda: Parts(allocations=_WantedIsGranted),
        ("RESIZE-02", "RESIZE-07"),
        kubernetes="1.33",
    ),
    Bug(
        "MUT-RESIZE-02",
        "A resize that did not fit once is never tried again.",
        lambda: Parts(allocations=_AsksOnce),
        ("RESIZE-02",),
        kubernetes="1.33",
    ),
    Bug(
        "MUT-RESIZE-04",
        "A container is given more before another one of its pod has given up what it has.",
        lambda: _acting(_GrowsFirst()),
        ("RESIZE-04",),
        kubernetes="1.33",
    ),
    Bug(
        "MUT-RESIZE-05",
        "Memory is taken from a container that uses it.",
        lambda: Parts(runtime=RuntimeParts(resizer=_TakesWhatIsUsed)),
        ("RESIZE-05",),
        kubernetes="1.33",
    ),
    Bug(
        "MUT-RESIZE-06",
        "A status shows the resources that a container is to have as those that it has.",
        lambda: Parts(status=StatusDecisions(with_resize=_echo)),
        ("RESIZE-06",),
        kubernetes="1.33",
    ),
    Bug(
        "MUT-COND-09",
        "How a resize stands is told in the words of another version.",
        lambda: Parts(status=StatusDecisions(with_resize=_in_other_words)),
        ("COND-09",),
        kubernetes="1.33",
    ),
    Bug(
        "MUT-RESTARTKUBELET-16",
        "A kubelet that starts takes for allocated what the pods want.",
        lambda: Parts(allocations=_Forgets),
        ("RESTARTKUBELET-16",),
        kubernetes="1.33",
    ),
    Bug(
        "MUT-STATIC-24",
        "A static pod is resized when its mirror is.",
        lambda: replace(_acting(_EvenStatic()), pod_syncer=_ListensToTheMirror),
        ("STATIC-24",),
        kubernetes="1.33",
    ),
    Bug(
        "MUT-PLEG-17",
        "A pod that was resized is inspected each second for ever.",
        lambda: Parts(pleg=_NeverDone),
        ("PLEG-17",),
        kubernetes="1.33",
    ),
)
