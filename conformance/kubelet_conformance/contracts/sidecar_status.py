"""SIDECAR: how restartable init containers show in the status of their pod."""

from __future__ import annotations

from kubelet_conformance.contract import ContainerStatus, Moment, Pod, PodStatus
from kubelet_conformance.contract.frame import KEPT, Findings, broken, contract
from kubelet_conformance.contract.needs import PODS, STATUS
from kubelet_conformance.contract.versions import since
from kubelet_conformance.contract.words import status
from kubelet_conformance.contracts.instances import sidecars
from kubelet_conformance.contracts.told_started import may_have_started, starts_are_told
from kubelet_conformance.contracts.written import is_lost

_ON = since("1.29")


def _told(pod: Pod, now: PodStatus) -> list[ContainerStatus]:
    return [told for told in now.init_container_statuses or () if pod.kind_of(told.name) == "sidecar"]


def _app_runs_or_ended(now: PodStatus) -> bool:
    """One that is told as ended only because its pod has, and was never made, counts for nothing."""
    apps = [told for told in now.container_statuses or () if not is_lost(told)]
    return any(told.state.running or told.state.terminated for told in apps)


def _app_has_run(now: PodStatus) -> bool:
    return _app_runs_or_ended(now) or any(told.last_state.terminated for told in now.container_statuses or ())


@contract("SIDECAR-17", on=status(), needs=(PODS, STATUS), versions=_ON)
def counts_for_readiness(m: Moment, status: PodStatus) -> Findings:
    """The readiness of sidecars counts for ContainersReady, and that they have started for Initialized.

    That one has not started any more is told at once, and the condition follows with the next sync.
    """
    pod = m.pod
    told = _told(pod, status) if pod and status else []
    if not told or status.terminal:
        return None
    ready, initialized = status.condition("ContainersReady"), status.condition("Initialized")
    unready = [one.name for one in told if not one.ready]
    if unready and ready and ready.status == "True":
        return broken(f"ContainersReady is True though {unready[0]} is not ready")
    before = {one.name for one in _told(pod, pod.status) if one.started} if pod and pod.status else set[str]()
    late = {one.name for one in told if not one.started and one.name not in before}
    if not late or initialized is None or initialized.status != "True" or _app_has_run(status):
        return KEPT
    unseen = may_have_started(pod, status) if pod else {}
    if late <= unseen.keys():
        return starts_are_told(unseen)
    return broken(f"Initialized is True though {min(late)} has not started")


@contract("SIDECAR-18", on=status(), needs=(PODS, STATUS), versions=_ON)
def stays_initialized(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Once an app container has run, Initialized stays True whatever the sidecars do."""
    condition = status.condition("Initialized") if status else None
    if condition is None or not any(sidecars(pod)) or not _app_runs_or_ended(status):
        return None
    if condition.status != "True":
        return broken(f"Initialized is {condition.status} though an app container has run")
    return KEPT


@contract("SIDECAR-19", on=status(), needs=(PODS, STATUS), versions=_ON)
def pending_until_they_started(m: Moment, status: PodStatus) -> Findings:
    """Sidecars that have not started keep a pod Pending only until an app container has run."""
    pod = m.pod
    told = _told(pod, status) if pod and status else []
    if not told or status.terminal:
        return None
    if not _app_has_run(status):
        if any(not one.started for one in told) and status.phase != "Pending":
            return broken(f"phase {status.phase} before the sidecars have started")
        return KEPT
    apps = status.container_statuses or []
    held = pod is not None and pod.status is not None and pod.status.phase == "Pending"
    if held or not _app_runs_or_ended(status) or all(one.state.terminated for one in apps):
        # All wait to run again: the decision table has Pending then. Or a last phase may follow, after a
        # deadline perhaps: it is held back while anything runs, and what was Pending stays so.
        return None
    inits = [one for one in status.init_container_statuses or () if one not in told]
    waiting = any(one.state.waiting and not one.last_state.terminated for one in (*apps, *told))
    waiting = waiting or any(one.state.terminated is None for one in inits)
    if status.phase == "Pending" and not waiting:
        return broken("phase Pending though an app container has run and nothing waits")
    return KEPT
