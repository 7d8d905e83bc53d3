"""PLEG: a kubelet that no longer sees its runtime begins nothing; one that is behind goes on looking."""

from __future__ import annotations

from kubelet_conformance.contract import Container, Manifest, Moment
from kubelet_conformance.contract.frame import Findings, answered, contract
from kubelet_conformance.contract.needs import CRI, PODS
from kubelet_conformance.contract.words import Predicate, call, done, failed, pod_set, read_as
from kubelet_conformance.contracts.reads import WholeList
from kubelet_conformance.contracts.timing import REACTION, RELIST
from kubelet_conformance.trace.bodies import ListPodSandboxRequest
from kubelet_conformance.trace.kubelet_view import kubelet_view

_THRESHOLD = 180.0
"""So long after the last good relist the PLEG is not healthy (generic.go)."""
_EVENTED_THRESHOLD = 600.0
"""The same where container events are heard (evented.go)."""


@contract("PLEG-08", on=pod_set(), needs=(CRI, PODS))
def blind_kubelet_begins_nothing(m: Moment, manifest: Manifest) -> Findings:
    """When no relist has succeeded for three minutes, no new pod is begun until one has."""
    relist = m.node.note(WholeList)
    if relist.seq <= m.node.started_seq or m.pod is not None or not m.node.kubelet_up:
        return None
    evented = m.header.feature_gates.get("EventedPLEG", False)
    threshold = _EVENTED_THRESHOLD if evented else _THRESHOLD
    if manifest.metadata.is_mirror or m.t - relist.t < threshold + REACTION:
        return None
    uid, name = manifest.metadata.uid, manifest.metadata.name
    return answered(
        by=done("ListContainers"),
        not_before=call("RunPodSandbox").where(_is_of(uid)),
        whole_node=True,
        text=f"{name} waits until a relist has succeeded",
    )


def _is_of(uid: str) -> Predicate:
    return lambda m: m.pod is not None and m.pod.uid == uid


def _lists_all_sandboxes(m: Moment) -> bool:
    return m.request(ListPodSandboxRequest).everything


@contract("PLEG-09", on=read_as("exited"), needs=(CRI,))
def relist_waits_for_nobody(m: Moment, container: Container) -> Findings:
    """Events that the loop does not take, since the runtime is not fit, do not hold up the relists."""
    if container.record is not None and container.record.state == "CONTAINER_EXITED":
        return None
    if (
        kubelet_view(m).bad_t is None
        or not m.node.kubelet_up
        or m.header.feature_gates.get("EventedPLEG", False)
    ):
        return None
    return answered(
        by=call("ListPodSandbox").where(_lists_all_sandboxes),
        within=RELIST + REACTION,
        unless=failed("ListPodSandbox", "ListContainers", "PodSandboxStatus", "ContainerStatus"),
        whole_node=True,
        text="the runtime is listed again",
    )
