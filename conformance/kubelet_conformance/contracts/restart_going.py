"""RESTART: nothing of a pod that goes is run again."""

from __future__ import annotations

from kubelet_conformance.contract import Container, Moment, Pod
from kubelet_conformance.contract.frame import Findings, answered, contract
from kubelet_conformance.contract.needs import CRI, PODS
from kubelet_conformance.contract.words import done, exited, pod_set
from kubelet_conformance.contracts.instances import creation_of
from kubelet_conformance.contracts.kills import stopped_for_itself
from kubelet_conformance.contracts.timing import RELIST
from kubelet_conformance.trace.kubelet_view import informed_by

_WANTED_AGAIN = pod_set().where(lambda m: m.pod is not None and not m.pod.wanted)


@contract("RESTART-06", on=exited(), needs=(CRI, PODS))
def nothing_restarts_in_termination(m: Moment, pod: Pod, container: Container) -> Findings:
    """A container that ends while its pod is being terminated is not run again."""
    if m.exit is None or pod.termination is None:
        return None
    asked_t = pod.termination.t
    is_told = m.t - (asked_t if pod.static else informed_by(m, asked_t)) >= 2 * RELIST
    aware = bool(container.stops) or is_told
    if not aware or container.kind not in {"app", "init"} or stopped_for_itself(m, pod, container):
        return None
    return answered(
        by=done("StopPodSandbox"),
        unless=_WANTED_AGAIN,
        not_before=creation_of(container.name),
        text=f"{container.name} is not made again in a pod that goes",
    )
