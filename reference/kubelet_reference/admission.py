"""Admission: whether this node can run a new pod at all (ADMIT-01 to ADMIT-06, ADMIT-11).

Each reason to refuse is a handler of its own; they are asked in order, and the first that refuses decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, cast

from kubelet_reference import pods
from kubelet_reference.node_affinity import fits_node
from kubelet_reference.quantities import milli, whole
from kubelet_reference.resources import requests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lightkube.models.core_v1 import ContainerPort, Node, Pod, PodSpec

    from kubelet_reference.settings import Settings

__all__ = ("HANDLERS", "Admission", "Candidate", "Demand", "Handler", "Rejection", "demand_of")

_ANY_ADDRESS = ("", "0.0.0.0")  # noqa: S104 - it is compared, nothing listens
_SELF = "linux"


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a pod cannot run here: the reason of its status and event, and the text (ADMIT-03)."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a container takes."""

    protocol: str
    address: str
    port: int

    def clashes(self, other: HostPort) -> bool:
        """Whether the node cannot give both."""
        same_address = self.address == other.address or "" in {self.address, other.address}
        return same_address and (self.protocol, self.port) == (other.protocol, other.port)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod takes of the node: cpu in thousandths of a core, memory in bytes, ports."""

    cpu_millicores: int
    memory_bytes: int
    host_ports: tuple[HostPort, ...]


def demand_of(pod: Pod) -> Demand:
    """What a pod takes: its app containers together, or its largest init container if that is more."""
    app = [requests(one) for one in pods.containers(pod)]
    init = [requests(one) for one in pods.init_containers(pod)]
    overhead = cast("Mapping[str, str]", pods.spec(pod).overhead or {})  # pyright: ignore[reportUnknownMemberType]

    def total(resource: str, amount: Callable[[str], int]) -> int:
        together = sum(amount(one.get(resource, "0")) for one in app)
        largest = max((amount(one.get(resource, "0")) for one in init), default=0)
        return max(together, largest) + amount(overhead.get(resource, "0"))

    return Demand(total("cpu", milli), total("memory", whole), tuple(_host_ports(pods.spec(pod))))


def _host_ports(spec: PodSpec) -> Iterable[HostPort]:
    for one in spec.containers:
        for port in one.ports or ():
            if port.hostPort:
                yield _host_port(port, port.hostPort)


def _host_port(port: ContainerPort, number: int) -> HostPort:
    address = "" if (port.hostIP or "") in _ANY_ADDRESS else port.hostIP or ""
    return HostPort(port.protocol or "TCP", address, number)


@dataclass(frozen=True)
class Candidate:
    """A new pod, and what it must get along with.

    `wanted` is how many other pods there are, those that are over included. `reckon` gives the demand of the
    pods that are admitted and may still have something running (ADMIT-04). `node` is the node's object as
    last seen, None without one.
    """

    pod: Pod
    wanted: int
    reckon: Callable[[], Sequence[Demand]]
    settings: Settings
    node: Node | None

    @cached_property
    def taken(self) -> Sequence[Demand]:
        """The demand of the others; dear to know among many pods, so only asked for where it matters."""
        return self.reckon()

    @cached_property
    def demand(self) -> Demand:
        """What the new pod takes."""
        return demand_of(self.pod)


Handler: TypeAlias = Callable[[Candidate], Rejection | None]


def no_sidecars(candidate: Candidate) -> Rejection | None:
    """Restartable init containers are refused, as with the gate SidecarContainers off."""
    for one in pods.init_containers(candidate.pod):
        if pods.is_sidecar(one):
            message = f'Init container "{one.name}" may not have a non-default restartPolicy'
            return Rejection("InitContainerRestartPolicyForbidden", message)
    return None


def right_os(candidate: Candidate) -> Rejection | None:
    """A pod for another operating system cannot run here, whether its label or its field says so."""
    selector = cast("Mapping[str, str]", pods.spec(candidate.pod).nodeSelector or {})  # pyright: ignore[reportUnknownMemberType]
    if selector.get("kubernetes.io/os", _SELF) != _SELF:
        message = f"Failed to admit pod as the `kubernetes.io/os` label doesn't match node label ({_SELF})"
        return Rejection("PodOSSelectorNodeLabelDoesNotMatch", message)
    os = pods.spec(candidate.pod).os
    if os is not None and os.name != _SELF:
        return Rejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def room_for_a_pod(candidate: Candidate) -> Rejection | None:
    """The node takes only so many pods."""
    if candidate.wanted < candidate.settings.max_pods:
        return None
    return _out_of("pods", 1, len(candidate.taken), candidate.settings.max_pods)


def room_for_cpu(candidate: Candidate) -> Rejection | None:
    """The CPU that all pods ask for fits the node."""
    if not candidate.demand.cpu_millicores:
        return None
    used = sum(demand.cpu_millicores for demand in candidate.taken)
    return _out_of("cpu", candidate.demand.cpu_millicores, used, candidate.settings.cpu_millicores)


def room_for_memory(candidate: Candidate) -> Rejection | None:
    """The memory that all pods ask for fits the node."""
    if not candidate.demand.memory_bytes:
        return None
    used = sum(demand.memory_bytes for demand in candidate.taken)
    return _out_of("memory", candidate.demand.memory_bytes, used, candidate.settings.memory_bytes)


def node_affinity(candidate: Candidate) -> Rejection | None:
    """The node has the labels that the pod selects; without a node object nobody can say."""
    if candidate.node is None or fits_node(candidate.pod, candidate.node):
        return None
    return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")


def node_name(candidate: Candidate) -> Rejection | None:
    """The pod is meant for this node."""
    if pods.spec(candidate.pod).nodeName in {None, "", candidate.settings.node_name}:
        return None
    return _predicate("NodeName", "node(s) didn't match the requested node name")


def node_ports(candidate: Candidate) -> Rejection | None:
    """No other pod has one of its host ports: the newer pod fails (ADMIT-06)."""
    if not candidate.demand.host_ports:
        return None
    taken = [port for demand in candidate.taken for port in demand.host_ports]
    if any(mine.clashes(other) for mine in candidate.demand.host_ports for other in taken):
        return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    return None


def _out_of(resource: str, wanted: int, used: int, capacity: int) -> Rejection | None:
    if wanted == 0 or used + wanted <= capacity:
        return None
    account = f"{resource}, requested: {wanted}, used: {used}, capacity: {capacity}"
    return Rejection(f"OutOf{resource}", f"Node didn't have enough resource: {account}")


def _predicate(name: str, message: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {message}")


HANDLERS: tuple[Handler, ...] = (
    right_os,
    no_sidecars,
    room_for_a_pod,
    room_for_cpu,
    room_for_memory,
    node_affinity,
    node_name,
    node_ports,
)


class Admission:
    """Asks the handlers about each new pod; a pod that is admitted is not asked about again (ADMIT-01).

    `node` gives the node's object as last seen.
    """

    def __init__(
        self,
        settings: Settings,
        node: Callable[[], Node | None] = lambda: None,
        handlers: Sequence[Handler] = HANDLERS,
    ) -> None:
        self._settings = settings
        self._node = node
        self._handlers = handlers
        self._demands: dict[str, tuple[PodSpec, Demand]] = {}

    def admit(
        self, pod: Pod, others: Sequence[Pod], is_active: Callable[[Pod], bool] = lambda _: True
    ) -> Rejection | None:
        """Why the pod cannot run beside `others`, or None if it can.

        `is_active` tells which of the others count: those that are admitted and not over; one that is being
        stopped counts (ADMIT-04).
        """

        def reckon() -> list[Demand]:
            return self._taken(filter(is_active, others), pods.uid(pod))

        candidate = Candidate(pod, len(others), reckon, self._settings, self._node())
        return next(filter(None, (handler(candidate) for handler in self._handlers)), None)

    def _taken(self, others: Iterable[Pod], own_uid: str) -> list[Demand]:
        """The demand of each of the others; what is known from the last time is not reckoned again."""
        known, self._demands = self._demands, {}
        for other in others:
            spec, uid = pods.spec(other), pods.uid(other)
            if uid != own_uid:
                last = known.get(uid)
                self._demands[uid] = last if last and last[0] is spec else (spec, demand_of(other))
        return [demand for _, demand in self._demands.values()]
