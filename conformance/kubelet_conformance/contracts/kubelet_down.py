"""RESTARTKUBELET: pods that were deleted or removed while the kubelet was down."""

from __future__ import annotations

from collections.abc import Iterator

from kubelet_conformance.contract.frame import KEPT, Finding, Findings, answered, broken, contract
from kubelet_conformance.contract.needs import CRI, PODS
from kubelet_conformance.contract.words import call, exited, kubelet, pod_set
from kubelet_conformance.contracts.kills import ORPHAN_GRACE
from kubelet_conformance.contracts.situations import about, hook_command, known_to_kubelet, runs_pre_stop
from kubelet_conformance.contracts.tables.stop import MINIMUM_GRACE
from kubelet_conformance.contracts.timing import KUBELET_START
from kubelet_conformance.trace.bodies import StopContainerRequest
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.views import Node, Pod


def _asked_while_down(pod: Pod, node: Node) -> bool:
    end, down = pod.termination, node.down_t
    return end is not None and down is not None and end.t >= down


@contract("RESTARTKUBELET-06", on=kubelet("started"), needs=(CRI, PODS), clause="stopped")
def pod_deleted_meanwhile_is_stopped(m: Moment) -> Iterator[Finding]:
    """A pod that was deleted while the kubelet was down is stopped after its start: with its grace while the
    object exists, else with the least and without hooks.
    """
    if m.node.lives < 1:
        return
    for pod in list(m.world.pods.values()):
        if not pod.born or pod.static or not _asked_while_down(pod, m.node):
            continue
        yield from _stops_due(pod, "deleted")


def _is_back(m: Moment) -> bool:
    """A source has the pod again."""
    return m.manifest is not None and m.manifest.metadata.deletion_timestamp is None


def _stops_due(pod: Pod, how: str) -> Iterator[Finding]:
    for container in pod.of_kind("app", "init"):
        if container.state == "running" and container.born:
            yield answered(
                by=call("StopContainer")
                .where(about(container))
                .either(call("ExecSync").where(runs_pre_stop).where(about(container))),
                within=KUBELET_START,
                unless=exited().where(about(container)).either(pod_set().where(_is_back)),
                text=f"container {container.name} of a pod {how} while the kubelet was down is stopped",
            )


@pod_deleted_meanwhile_is_stopped.clause("grace", on=call("StopContainer"))
def pod_deleted_meanwhile_has_its_grace(m: Moment) -> Findings:
    """The grace is the object's, or the least."""
    pod, container = m.pod, m.container
    if pod is None or container is None or container.state != "running" or not pod.born or pod.static:
        return None
    end, node = pod.termination, m.node
    if (
        end is None
        or node.lives <= 1
        or node.started_t is None
        or node.down_t is None
        or end.t < node.down_t
        or end.seq > node.started_seq
    ):
        return None
    got = m.request(StopContainerRequest).timeout
    if known_to_kubelet(pod, node):
        hooks = hook_command(container, "pre_stop") is not None
        if end.grace is None or hooks or container.kind == "sidecar":
            return None
        expected = {end.grace, max(end.grace, MINIMUM_GRACE)}
    else:
        least = ORPHAN_GRACE.get(m.kubernetes)
        expected = {least} if least is not None else set[int]()
    if expected and got not in expected:
        return broken(f"expected timeout {max(expected)}, got {got}", end.seq)
    return KEPT if expected else None


@contract("RESTARTKUBELET-07", on=kubelet("started"), needs=(CRI, PODS))
def pod_removed_meanwhile_is_stopped(m: Moment) -> Iterator[Finding]:
    """A static pod whose manifest was removed while the kubelet was down is stopped after its start."""
    for pod in list(m.world.pods.values()):
        if pod.born and pod.static and not pod.wanted and _asked_while_down(pod, m.node):
            yield from _stops_due(pod, "removed")
