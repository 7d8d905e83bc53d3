"""What the node has promised to each pod: the resources it was admitted with, until a resize is accepted.

A pod's spec says what is desired; what was allocated is what its containers are made with and compared to
(RESIZE-07). A resize that the node could never give is infeasible, one that does not fit now is deferred and
asked for again with every sync (RESIZE-02). Allocations are on disk, so that a restarted kubelet does not
take for granted what it has not given (RESTARTKUBELET-16).
"""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TypeAlias, cast

import msgspec
from lightkube.models.core_v1 import Container, Pod, ResourceRequirements
from msgspec.structs import replace

from kubelet_reference.allocation.admission import Demand, demand_of
from kubelet_reference.api import pods
from kubelet_reference.util.ports import Disk
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

INFEASIBLE, DEFERRED = "Infeasible", "Deferred"
CHECKPOINT = "allocated_pods_state"
OLD_CHECKPOINT = "pod_status_manager_state"
"""Its name up to 1.32."""

Quantities: TypeAlias = dict[str, dict[str, str]]
"""`requests` and `limits` of one container, by resource."""
Allocated: TypeAlias = dict[str, Quantities]
"""Of each container of a pod, by name."""

_log = logging.getLogger("kubelet_reference.allocation")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a resize is not made: the reason `Infeasible` or `Deferred`, and the text."""

    reason: str
    message: str


def refusal(wanted: Demand, taken: Iterable[Demand], settings: Settings) -> Refusal | None:
    """Why the node does not give a pod what it wants beside the others; None if it does (RESIZE-02)."""
    others = list(taken)
    account = (
        ("cpu", wanted.cpu_millicores, sum(o.cpu_millicores for o in others), settings.cpu_millicores),
        ("memory", wanted.memory_bytes, sum(o.memory_bytes for o in others), settings.memory_bytes),
    )
    for name, amount, _, capacity in account:
        if amount > capacity:
            text = f"Node didn't have enough capacity: {name}, requested: {amount}, capacity: {capacity}"
            return Refusal(INFEASIBLE, text)
    for name, amount, used, capacity in account:
        if used + amount > capacity:
            text = (
                f"Node didn't have enough resource: {name}, requested: {amount}, "
                f"used: {used}, capacity: {capacity}"
            )
            return Refusal(DEFERRED, text)
    return None


@dataclass(eq=False)
class Allocations:
    """What is promised, by pod UID. Without resize in place, and of static pods, the spec is (STATIC-24).

    `others` gives the pods that take something of the node, but for one.
    """

    disk: Disk
    settings: Settings
    behaviour: Behaviour
    others: Callable[[Pod], Iterable[Pod]]

    def __post_init__(self) -> None:
        self._held: dict[str, Allocated] = self.restored() if self.behaviour.resizes_in_place else {}
        self._pending: dict[str, Refusal] = {}

    def can_be_resized(self, pod: Pod) -> bool:
        """Whether the pod's resources may change while it runs."""
        return self.behaviour.resizes_in_place and not pods.is_static(pod)

    def applied(self, pod: Pod) -> Pod:
        """The pod with the resources that were allocated to it, or those of its spec if none were."""
        held = self._held.get(pods.uid(pod)) if self.can_be_resized(pod) else None
        return pod if held is None or held == _wanted(pod) else _with(pod, held)

    def resized(self, pod: Pod) -> Pod:
        """The pod as `applied`, after what it wants was allocated if the node can give it (RESIZE-07)."""
        if not self.can_be_resized(pod):
            return pod
        uid, wanted = pods.uid(pod), _wanted(pod)
        held = self._held.get(uid)
        refused = None if held is None or held == wanted else self.refusal(pod)
        if refused is not None:
            self._pending[uid] = refused
            return self.applied(pod)
        self._pending.pop(uid, None)
        if held != wanted:
            self._held[uid] = wanted
            self.save()
        return pod

    def pending(self, pod: Pod) -> Refusal | None:
        """Why what the pod wants has not been allocated; None if it has."""
        return self._pending.get(pods.uid(pod))

    def refusal(self, pod: Pod) -> Refusal | None:
        """Why the node cannot give the pod what it wants now."""
        others = (demand_of(self.applied(other)) for other in self.others(pod))
        return refusal(demand_of(pod), others, self.settings)

    def keep_only(self, uids: Collection[str]) -> None:
        """Forget pods that are gone; the checkpoint loses them when it is next written."""
        for uid in self._held.keys() - uids:
            del self._held[uid]
            self._pending.pop(uid, None)

    @property
    def _path(self) -> str:
        old = not self.behaviour.tells_resize_by_condition
        return f"{self.settings.root_dir}/{OLD_CHECKPOINT if old else CHECKPOINT}"

    def save(self) -> None:
        """Write the checkpoint; a failure is only logged."""
        try:
            self.disk.make_folder(self.settings.root_dir)
            self.disk.write(self._path, msgspec.json.encode(self._held, order="sorted"))
        except OSError as error:
            _log.warning("allocations not saved: %s", error)

    def restored(self) -> dict[str, Allocated]:
        """What the kubelet before has allocated; nothing if it left no checkpoint that can be read."""
        try:
            return msgspec.json.decode(self.disk.read(self._path), type=dict[str, Allocated])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            _log.warning("allocations not restored: %s", error)
            return {}


def _wanted(pod: Pod) -> Allocated:
    return {one.name: _quantities(one.resources) for one in pods.containers(pod)}


def _quantities(resources: ResourceRequirements | None) -> Quantities:
    found: Quantities = {}
    for which in ("requests", "limits"):
        values = cast("dict[str, str] | None", getattr(resources, which, None))
        if values:
            found[which] = {name: str(amount) for name, amount in values.items()}
    return found


def _with(pod: Pod, held: Allocated) -> Pod:
    containers = [_container_with(one, held.get(one.name, {})) for one in pods.containers(pod)]
    return replace(pod, spec=replace(pods.spec(pod), containers=containers))


def _container_with(container: Container, held: Quantities) -> Container:
    resources = replace(
        container.resources or ResourceRequirements(),
        requests=held.get("requests"),
        limits=held.get("limits"),
    )
    return replace(container, resources=resources)
