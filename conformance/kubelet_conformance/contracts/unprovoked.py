"""Whether anything that the trace shows explains that a container is stopped."""

from __future__ import annotations

from kubelet_conformance.contract.frame import Answered, answered
from kubelet_conformance.contracts.deadline import time_may_be_over
from kubelet_conformance.contracts.kills import fails_as_a_whole, reasons
from kubelet_conformance.contracts.probe_runs import has_other_probes
from kubelet_conformance.contracts.situations import NOBODY, TERMINATION_ASKED
from kubelet_conformance.contracts.timing import API_POLL
from kubelet_conformance.trace.disruption import disruption_of, is_ended_by_the_kubelet
from kubelet_conformance.trace.kubelet_view import kubelet_view
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.views import Container, Pod


def explained(m: Moment, *, probes: bool = True) -> bool:
    """Something in sight may be the reason for stopping the moment's container now.

    With `probes=False` what its own exec probes say is left out. True wherever the trace knows too little.
    """
    pod, container = m.pod, m.container
    if pod is None or container is None or pod.spec is None or not pod.born or not container.born:
        return True
    if pod.termination is not None or pod.finished or not pod.wanted or container.state != "running":
        return True
    if is_ended_by_the_kubelet(m, pod):
        return True
    if pod.spec.active_deadline_seconds is not None or has_other_probes(container, "liveness", "startup"):
        return True
    if any(probes or "probe" not in reason.cause for reason in reasons(m)):
        return True
    return _another_ended(pod, container) or fails_as_a_whole(pod)


def _another_ended(pod: Pod, container: Container) -> bool:
    """An init container may have failed for good, or its siblings may have come to their end."""
    if pod.restart_policy == "Always":
        return False
    return any(c is not container and c.state != "running" for c in pod.every_container())


def to_be_explained(text: str) -> Answered:
    """A stop that nothing explains is wrong, unless a forced deletion is recorded just after it."""
    return answered(by=NOBODY, within=API_POLL, unless=TERMINATION_ASKED, text=text)


def is_ended_for_a_reason(m: Moment, pod: Pod) -> bool:
    """The kubelet ends it on its own account, and not for labels of its node that it could not read."""
    ended = disruption_of(pod)
    is_blind = ended is not None and ended.reason == "NodeAffinity" and kubelet_view(m).api_away_t is not None
    return time_may_be_over(m, pod) or (is_ended_by_the_kubelet(m, pod) and not is_blind)
