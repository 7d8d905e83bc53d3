"""ADMIT: what a kubelet that starts does about pods that were admitted before."""

from __future__ import annotations

from collections.abc import Iterator

from kubelet_conformance.contract.frame import Finding, answered, contract
from kubelet_conformance.contract.needs import CRI, PODS, STATUS
from kubelet_conformance.contract.versions import since
from kubelet_conformance.contract.words import Predicate, deleted, event, kubelet, status
from kubelet_conformance.contracts.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.situations import of
from kubelet_conformance.trace.disruption import REFUSALS
from kubelet_conformance.trace.moment import Moment

_REFUSED = event(*sorted(REFUSALS - {"Evicted"}))


@contract("ADMIT-05", on=kubelet("started"), needs=(CRI, PODS, STATUS), versions=since("1.29"))
def ended_pods_are_not_admitted_again(m: Moment) -> Iterator[Finding]:
    """A kubelet that starts admits its pods again, but for those that have ended: they stay as they ended.

    A deadline that has passed meanwhile gives a reason, whatever the phase is (kubelet_pods.go).
    """
    for pod in m.world.pods.values():
        if not pod.finished or not pod.wanted or not pod.born or pod.status is None or pod.static:
            continue
        phase, reasons = pod.finished, {pod.status.reason}
        if pod.spec is not None and pod.spec.active_deadline_seconds is not None:
            reasons.add("DeadlineExceeded")
        yield answered(
            by=LIFE_ENDS.either(deleted().where(of(pod))),
            not_before=status().where(_says_otherwise(phase, reasons)).either(_REFUSED).where(of(pod)),
            whole_node=True,
            text=f"pod {pod.name}, which is {phase}, is not refused",
        )


def _says_otherwise(phase: str, reasons: set[str]) -> Predicate:
    def says(m: Moment) -> bool:
        return m.status is not None and (m.status.phase != phase or m.status.reason not in reasons)

    return says
