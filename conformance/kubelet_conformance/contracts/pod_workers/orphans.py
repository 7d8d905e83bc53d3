"""WORK: pods at the runtime that no source knows."""

from collections.abc import Iterator

from kubelet_conformance.contract import Answered, Container, Finding, Moment, Note, Pod
from kubelet_conformance.contract.applicability import CRI, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, exited, pod_set
from kubelet_conformance.contracts.facts.kills import ORPHAN_GRACE
from kubelet_conformance.contracts.facts.pod import FAULT, about, known_to_kubelet, of
from kubelet_conformance.contracts.facts.timing import HOUSEKEEPING, KUBELET_START
from kubelet_conformance.trace.format.bodies import StopContainerRequest


@contract("WORK-24", on=call("StopContainer"), needs=(CRI, PODS), versions=ORPHAN_GRACE, clause="grace")
def unknown_pod_is_killed_quickly(m: Moment, pod: Pod, container: Container) -> Findings:
    """A pod at the runtime that no source knows is stopped with the least grace (1 s up to 1.26, 2 s from
    1.28) and without its preStop hooks, soon after the kubelet has received pods from all sources.
    """
    if container.state != "running" or known_to_kubelet(pod, m.node):
        return None
    expected, got = ORPHAN_GRACE.at(m.kubernetes), m.request(StopContainerRequest).timeout
    if got != expected:
        return broken(f"expected timeout {expected} for a pod that no source knows, got {got}")
    return KEPT


@unknown_pod_is_killed_quickly.clause("no-hook", on=call("ExecSync"))
def unknown_pod_gets_no_hook(m: Moment, pod: Pod, container: Container) -> Findings:
    """No hook runs in it."""
    if known_to_kubelet(pod, m.node):
        return None
    if container.state == "unknown":
        return None  # Garbage collection gives it the hook that its annotations have (TERM-12).
    return broken(f"expected no hook in pod {pod.name}, which no source knows")


class _Awaited(Note):
    """The kubelet instance from which a container's kill is awaited."""

    life: int = 0


class _Faults(Note):
    """When something was last broken or healed from outside."""

    t: float = float("-inf")


@observer(on=FAULT)
def faults_are_remembered(m: Moment) -> None:
    """Remember the last fault: a source may be unreachable."""
    m.node.note(_Faults).t = m.t


@unknown_pod_is_killed_quickly.clause("killed", on=done("ListContainers"))
def unknown_pods_are_killed(m: Moment) -> Findings:
    """A pod that no source knows is stopped soon after the kubelet's first listings, unless a fault blocks a
    source.
    """
    node = m.node
    if node.relisted_t is None or node.started_t is None or m.t - node.relisted_t > HOUSEKEEPING:
        return None
    return _kills_of_unknown_pods(m) if node.started_t - node.note(_Faults).t >= KUBELET_START else None


def _kills_of_unknown_pods(m: Moment) -> Iterator[Finding]:
    node = m.node
    for pod in list(m.world.pods.values()):
        if known_to_kubelet(pod, node):
            continue
        for container in pod.every_container():
            awaited = container.note(_Awaited)
            if container.state == "running" and not container.stopping and awaited.life != node.lives:
                awaited.life = node.lives
                yield _is_killed(container, pod)


def _is_killed(container: Container, pod: Pod) -> Answered:
    return answered(
        by=call("StopContainer").where(about(container)),
        within=KUBELET_START,
        unless=pod_set().where(of(pod)).either(FAULT, exited().where(about(container))),
        whole_node=True,
        text=f"container {container.name} of a pod that no source knows is stopped",
    )
