"""Bugs in what a kubelet makes of the pods that its sources name, above all after a restart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from lightkube.models.core_v1 import Node, Pod
from msgspec.structs import replace

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.admission import HANDLERS, Candidate, Rejection, node_affinity
from kubelet_reference.config import Mux, Source
from kubelet_reference.parts import Parts
from kubelet_reference.pod_activity import PodActivity
from kubelet_reference.pod_handlers import PodHandlers


class _AllAreNew(PodHandlers):
    """Takes each pod that it sees for the first time for a new one, whatever its phase."""

    async def add(self, added: Iterable[Pod]) -> None:
        found = [replace(pod, status=None) if self.forgets(pods.phase(pod)) else pod for pod in added]
        await super().add(found)

    def forgets(self, phase: str) -> bool:
        """Whether a pod of this phase is taken for a new one."""
        return pods.is_terminal_phase(phase)


class _SucceededAreNew(_AllAreNew):
    """Leaves out failed pods, and not those that succeeded."""

    def forgets(self, phase: str) -> bool:
        return phase == pods.SUCCEEDED


class _DoneTakeRoom(PodActivity):
    """Counts pods that are over with those that take up room."""

    def is_active(self, pod: Pod) -> bool:
        return bool(pods.uid(pod))


class _SourceMayForget(Mux):
    """Goes on with pods that a new snapshot does not name."""

    def set_pods(self, source: Source, wanted: Iterable[Pod]) -> None:
        named = {pods.uid(pod): pod for pod in wanted}
        missing = (known.given for uid, known in self._known[source].items() if uid not in named)
        super().set_pods(source, [*named.values(), *missing])


def _affinity_without_node(candidate: Candidate) -> Rejection | None:
    """Takes a node whose object was not read yet for one without labels."""
    return node_affinity(dataclasses.replace(candidate, node=candidate.node or Node()))


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-7250",
        "A pod that succeeded is run again by a kubelet that comes back and finds no records of it.",
        lambda: Parts(pod_handlers=_SucceededAreNew),
        ("WORK-14", "RESTARTKUBELET-05"),
    ),
    Bug(
        "K8S-104531",
        "A pod that the API server shows as ended is started by a kubelet that comes back.",
        lambda: Parts(pod_handlers=_AllAreNew),
        ("CLEANUP-07", "WORK-14"),
        ("K26", "K8S-104798"),
    ),
    Bug(
        "K8S-104577",
        "Pods that are over still take up room on the node, and new ones are refused.",
        lambda: Parts(pod_activity=_DoneTakeRoom),
        ("ADMIT-04",),
        ("K8S-105523", "K8S-105527"),
    ),
    Bug(
        "K8S-68738",
        "A pod that its source no longer names, without a word of its removal, goes on running.",
        lambda: Parts(mux=_SourceMayForget),
        ("WORK-05", "CONFIG-04"),
    ),
    Bug(
        "K8S-100467",
        "Running pods are refused by a kubelet that comes back and has not read its node's labels yet.",
        lambda: Parts(
            admission_handlers=tuple(
                _affinity_without_node if handler is node_affinity else handler for handler in HANDLERS
            )
        ),
        ("RESTARTKUBELET-01",),
        (
            "K8S-92067",
            "K8S-94087",
            "K8S-76322",
            "K8S-99708",
            "K8S-123859",
            "K8S-123980",
            "K8S-124586",
        ),
    ),
)
