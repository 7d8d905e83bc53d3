"""Sidecars whose start a status does not tell of yet, though its conditions follow from it.

The results of a startup probe are told by the sync loop, one after another, while a sync reads the last of
them: where a sync came in between, the loop sets `started` back to what the probe's worker began with, and
the conditions of the sync stay (status_manager.go SetContainerStartup). The next item of the loop mends that.
"""

from __future__ import annotations

from kubelet_conformance.contract.frame import Finding, answered
from kubelet_conformance.contract.words import exited, status
from kubelet_conformance.contracts.instances import sidecars
from kubelet_conformance.contracts.situations import FAULT, TERMINATION_ASKED
from kubelet_conformance.contracts.timing import REACTION
from kubelet_conformance.trace.manifests import PodStatus
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.views import Pod


def may_have_started(pod: Pod, now: PodStatus) -> dict[str, str]:
    """The sidecars, by name with their ids, that are told as not started and that a probe may have started.

    They run, and Initialized does not name them.
    """
    initialized = now.condition("Initialized")
    named = initialized.message.strip("]").replace("[", " ").split() if initialized is not None else ()
    probed = {one.name for one in sidecars(pod) if one.startup_probe is not None and one.name not in named}
    return {
        one.name: one.runtime_id
        for one in now.init_container_statuses or ()
        if one.name in probed and one.state.running is not None and not one.started
    }


def starts_are_told(late: dict[str, str]) -> Finding:
    """That these have started is told as well, and soon."""

    def tells(m: Moment) -> bool:
        shown = m.status.by_name if m.status is not None else {}
        told = [one for name in late if (one := shown.get(name)) is not None]
        return all(one.started or one.runtime_id != late[one.name] for one in told)

    return answered(
        by=status().where(tells),
        within=REACTION,
        unless=exited().either(TERMINATION_ASKED, FAULT),
        text=f"sidecars {' and '.join(late)}, by which the pod is initialized, are told as started",
    )
