"""Admission: whether this node can run a new pod at all (ADMIT-01 to ADMIT-06, ADMIT-11).

Each reason to refuse is a handler of its own; they are asked in order, and the first that refuses decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, cast

from lightkube.models.core_v1 import (
    Container,
    ContainerPort,
    Node,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
)

from kubelet_reference.api import pods
from kubelet_reference.api.pods import is_critical
from kubelet_reference.api.quantities import milli, whole
from kubelet_reference.api.resources import qos_class, requests
from kubelet_reference.util.settings import Settings
from kubelet_reference.util.versions import Behaviour

_ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - it is compared, nothing listens
_SELF = "linux"
MEMORY_TAINT = "node.kubernetes.io/memory-pressure"


@dataclass(frozen=True, slots=True)
class InsufficientResource:
    """How much of a resource is missing: pods, cpu in thousandths of a core, memory in bytes."""

    resource: str
    missing: int


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a pod cannot run here: the reason of its status and event, and the text (ADMIT-03).

    `insufficient` is there where it is only room that is missing: a critical pod may make itself some
    (ADMIT-08).
    """

    reason: str
    message: str
    insufficient: InsufficientResource | None = None


@dataclass(frozen=True, slots=True)
class NodePressure:
    """What the node suffers from: its pressures, such as MemoryPressure, and whether it goes down."""

    pressures: frozenset[str] = frozenset()
    is_shutting_down: bool = False


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node that a container takes."""

    protocol: str
    address: str
    port: int

    def clashes(self, other: HostPort) -> bool:
        """Whether the node cannot give both."""
        same_address = self.address == other.address or _ANY_ADDRESS in {self.address, other.address}
        return same_address and (self.protocol, self.port) == (other.protocol, other.port)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pod takes of the node: cpu in thousandths of a core, memory in bytes, ports."""

    cpu_millicores: int
    memory_bytes: int
    host_ports: tuple[HostPort, ...]


def demand_of(pod: Pod) -> Demand:
    """What a pod takes: what runs together in the end, or at its most demanding init container.

    Sidecars run on beside the app containers, and beside every init container that comes after them.
    """
    overhead = cast("Mapping[str, str]", pods.spec(pod).overhead or {})  # pyright: ignore[reportUnknownMemberType]

    def total(resource: str, amount: Callable[[str], int]) -> int:
        def of(one: Container) -> int:
            return amount(requests(one).get(resource, "0"))

        beside = largest = 0
        for one in pods.init_containers(pod):
            largest = max(largest, beside + of(one))
            if pods.is_sidecar(one):
                beside += of(one)
        together = beside + sum(of(one) for one in pods.containers(pod))
        return max(together, largest) + amount(overhead.get(resource, "0"))

    return Demand(total("cpu", milli), total("memory", whole), tuple(_host_ports(pod)))


def _host_ports(pod: Pod) -> Iterable[HostPort]:
    for one in (*pods.containers(pod), *pods.sidecars(pod)):
        for port in one.ports or ():
            if port.hostPort:
                yield _host_port(port, port.hostPort)


def _host_port(port: ContainerPort, number: int) -> HostPort:
    return HostPort(str(port.protocol), port.hostIP or _ANY_ADDRESS, number)


@dataclass(frozen=True)
class Candidate:
    """A new pod, and what it must get along with.

    `wanted` is how many other pods there are, those that are over included. `demands_of_others` gives the
    demand of the pods that are admitted and may still have something running (ADMIT-04). `node` is the node's
    object as last seen, None without one.
    """

    pod: Pod
    wanted: int
    demands_of_others: Callable[[], Sequence[Demand]]
    settings: Settings
    node: Node | None
    behaviour: Behaviour
    node_pressure: NodePressure

    @cached_property
    def taken(self) -> Sequence[Demand]:
        """The demand of the others; dear to know among many pods, so only asked for where it matters."""
        return self.demands_of_others()

    @cached_property
    def demand(self) -> Demand:
        """What the new pod takes."""
        return demand_of(self.pod)


Handler: TypeAlias = Callable[[Candidate], Rejection | None]


def freed_by(pod: Pod, resource: str) -> int:
    """What of a resource the end of a pod gives back, in the units of `InsufficientResource`."""
    match resource:
        case "cpu":
            return demand_of(pod).cpu_millicores
        case "memory":
            return demand_of(pod).memory_bytes
        case _:
            return 1


def no_pressure(candidate: Candidate) -> Rejection | None:
    """A node under pressure takes critical pods only (ADMIT-09).

    If it is short of nothing but memory, it takes what asks for memory too, and what tolerates that.
    """
    pressures = candidate.node_pressure.pressures
    if not pressures or is_critical(candidate.pod):
        return None
    is_modest = qos_class(candidate.pod) != "BestEffort" or _tolerates(candidate.pod, MEMORY_TAINT)
    if pressures == frozenset({"MemoryPressure"}) and is_modest:
        return None
    return Rejection("Evicted", f"The node had condition: [{' '.join(sorted(pressures))}]. ")


def _tolerates(pod: Pod, taint: str) -> bool:
    """Whether the pod tolerates a taint that keeps pods from being scheduled."""
    return any(
        (one.key or taint) == taint and (one.effect or "NoSchedule") == "NoSchedule"
        for one in pods.spec(pod).tolerations or ()
    )


def no_shutdown(candidate: Candidate) -> Rejection | None:
    """A node that goes down takes nothing any more (SHUT-01)."""
    if not candidate.node_pressure.is_shutting_down:
        return None
    return Rejection("NodeShutdown", "Pod was rejected as the node is shutting down.")


def sidecars_allowed(candidate: Candidate) -> Rejection | None:
    """Without the gate SidecarContainers restartable init containers are refused (SIDECAR-01)."""
    if candidate.behaviour.runs_sidecars:
        return None
    for one in pods.init_containers(candidate.pod):
        if pods.is_sidecar(one):
            message = f'Init container "{one.name}" may not have a non-default restartPolicy'
            return Rejection("InitContainerRestartPolicyForbidden", message)
    return None


def right_os(candidate: Candidate) -> Rejection | None:
    """A pod for another operating system cannot run here; where its selector says so, that decides."""
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
    wanted = candidate.demand.cpu_millicores
    if not wanted:
        return None
    used = sum(demand.cpu_millicores for demand in candidate.taken)
    return _out_of("cpu", wanted, used, candidate.settings.cpu_millicores)


def room_for_memory(candidate: Candidate) -> Rejection | None:
    """The memory that all pods ask for fits the node."""
    wanted = candidate.demand.memory_bytes
    if not wanted:
        return None
    used = sum(demand.memory_bytes for demand in candidate.taken)
    return _out_of("memory", wanted, used, candidate.settings.memory_bytes)


def node_affinity(candidate: Candidate) -> Rejection | None:
    """The node has the labels that the pod selects; without a node object they are unknown."""
    if candidate.node is None or fits_node(candidate.pod, candidate.node):
        return None
    return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")


def node_ports(candidate: Candidate) -> Rejection | None:
    """No other pod has one of its host ports: the newer pod fails (ADMIT-06)."""
    wanted = candidate.demand.host_ports
    if any(mine.clashes(port) for mine in wanted for other in candidate.taken for port in other.host_ports):
        return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    return None


def _out_of(resource: str, wanted: int, used: int, capacity: int) -> Rejection | None:
    if used + wanted <= capacity:
        return None
    account = f"{resource}, requested: {wanted}, used: {used}, capacity: {capacity}"
    insufficient = InsufficientResource(resource, used + wanted - capacity)
    return Rejection(f"OutOf{resource}", f"Node didn't have enough resource: {account}", insufficient)


def _predicate(name: str, message: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {message}")


HANDLERS: tuple[Handler, ...] = (
    no_pressure,
    no_shutdown,
    right_os,
    sidecars_allowed,
    room_for_a_pod,
    room_for_cpu,
    room_for_memory,
    node_affinity,
    node_ports,
)


@dataclass(eq=False)
class Admission:
    """Asks the handlers about each new pod; a pod that is admitted is not asked about again (ADMIT-01).

    `node` gives the node's object as last seen, `node_pressure` what the node suffers from now.
    """

    settings: Settings
    node: Callable[[], Node | None]
    handlers: Sequence[Handler]
    behaviour: Behaviour
    node_pressure: Callable[[], NodePressure]

    def admit(self, pod: Pod, others: Sequence[Pod], is_active: Callable[[Pod], bool]) -> Rejection | None:
        """Why the pod cannot run beside `others`, or None if it can.

        `is_active` says which of the others count: those that are admitted and not over; one that is being
        stopped counts (ADMIT-04).
        """

        def demands_of_others() -> list[Demand]:
            return [
                demand_of(other) for other in others if pods.uid(other) != pods.uid(pod) and is_active(other)
            ]

        candidate = Candidate(
            pod,
            len(others),
            demands_of_others,
            self.settings,
            self.node(),
            self.behaviour,
            self.node_pressure(),
        )
        return next(filter(None, (handler(candidate) for handler in self.handlers)), None)


def fits_node(pod: Pod, node: Node) -> bool:
    """Whether the node has every label of the selector and matches one term of the required affinity."""
    labels = _labels(node)
    selector = cast("Mapping[str, str]", pods.spec(pod).nodeSelector or {})  # pyright: ignore[reportUnknownMemberType]
    if any(labels.get(name) != value for name, value in selector.items()):
        return False
    affinity = pods.spec(pod).affinity
    required = (
        affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution
        if affinity and affinity.nodeAffinity
        else None
    )
    return required is None or any(_matches_term(term, node) for term in required.nodeSelectorTerms)


def _labels(node: Node) -> Mapping[str, str]:
    found = node.metadata.labels if node.metadata else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return cast("Mapping[str, str]", found or {})


def _matches_term(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether all requirements of a term hold; a term without any matches nothing."""
    fields = {"metadata.name": (node.metadata and node.metadata.name) or ""}
    requirements = [(one, _labels(node)) for one in term.matchExpressions or ()]
    requirements += [(one, fields) for one in term.matchFields or ()]
    return bool(requirements) and all(_matches(one, values) for one, values in requirements)


def _matches(requirement: NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    value, wanted = values.get(requirement.key), requirement.values or []
    match requirement.operator:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return _compare(requirement.operator, value, wanted)


def _compare(operator: str, value: str | None, wanted: list[str]) -> bool:
    """Whether the label is a whole number above (Gt) or below (Lt) the one that is wanted."""
    try:
        [only] = wanted
        difference = int(str(value)) - int(only)
    except ValueError:
        return False
    return difference > 0 if operator == "Gt" else difference < 0
