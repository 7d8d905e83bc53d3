"""Bugs in what a kubelet makes of the pods that its sources name, above all after a restart."""

from __future__ import annotations

from collections.abc import Iterable

from lightkube.models.core_v1 import Pod
from msgspec import structs

from kubelet_bugs.bug import bug
from kubelet_reference import pods
from kubelet_reference.config import Mux, Source
from kubelet_reference.pod_activity import PodActivity
from kubelet_reference.pod_handlers import PodHandlers


@bug("K8S-104531", breaks=("CLEANUP-07", "WORK-14"), aliases=("K26", "K8S-104798"))
class AllAreNew(PodHandlers):
    """A pod that the API server shows as ended is started by a kubelet that comes back."""

    async def add(self, added: Iterable[Pod]) -> None:
        found = [structs.replace(pod, status=None) if self.forgets(pods.phase(pod)) else pod for pod in added]
        await super().add(found)

    def forgets(self, phase: str) -> bool:
        """Whether a pod of this phase is taken for a new one."""
        return pods.is_terminal_phase(phase)


@bug("K8S-7250", breaks=("WORK-14", "RESTARTKUBELET-05"))
class SucceededAreNew(AllAreNew):
    """A pod that succeeded is run again by a kubelet that comes back and finds no records of it."""

    def forgets(self, phase: str) -> bool:
        return phase == pods.SUCCEEDED


@bug("K8S-104577", breaks="ADMIT-04", aliases=("K8S-105523", "K8S-105527"))
class DoneTakeRoom(PodActivity):
    """Pods that are over still take up room on the node, and new ones are refused."""

    def is_active(self, pod: Pod) -> bool:
        return bool(pods.uid(pod))


@bug("K8S-68738", breaks=("WORK-05", "CONFIG-04"))
class SourceMayForget(Mux):
    """A pod that its source no longer names, without a word of its removal, goes on running."""

    def set_pods(self, source: Source, wanted: Iterable[Pod]) -> None:
        named = {pods.uid(pod): pod for pod in wanted}
        missing = (known.given for uid, known in self._known[source].items() if uid not in named)
        super().set_pods(source, [*named.values(), *missing])
