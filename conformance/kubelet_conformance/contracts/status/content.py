"""STATUS: consecutive statuses follow the order of the changes that they show."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, ContainerStatus, Finding, Moment, Pod, PodStatus
from kubelet_conformance.contract.applicability import CRI, EVERY_STATUS, PODS, STORED_STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, kept_if
from kubelet_conformance.contract.patterns import call, pod_set, status
from kubelet_conformance.contracts.facts.pod import (
    FAULT,
    TERMINATION_ASKED,
    is_first_of_this_life,
    of,
    to_run,
    worker_is_busy,
)
from kubelet_conformance.contracts.facts.probe import PROBES, no_more_probed, probe_at
from kubelet_conformance.contracts.facts.sandbox import is_hidden_by_event
from kubelet_conformance.contracts.facts.static_pod import status_may_be_forgotten
from kubelet_conformance.contracts.facts.status import AGAIN, UNKNOWN_END
from kubelet_conformance.contracts.facts.timing import API_POLL, RELIST, RETRY, RETRY_SLACK
from kubelet_conformance.trace.format.bodies import ExecSyncRequest

AT_ONCE = 2.0
"""How late the result of a probe may be in a status, whatever the pod's worker is busy with."""


def _course(said: ContainerStatus) -> int | None:
    """The stage of a container: 1 for running, 2 for ended; None where it is another one or not known."""
    if said.state.terminated is not None:
        return None if said.state.terminated.reason == UNKNOWN_END else 2
    return 1 if said.state.running is not None else None


def _before_seq(m: Moment) -> int | None:
    """The status before."""
    return m.pod.status_seq if m.pod is not None else None


@contract("STATUS-02", on=AGAIN, needs=(STORED_STATUS,))
def older_status_does_not_follow_a_newer(m: Moment) -> Iterator[Finding]:
    """A status that is older than the one that was written last is never written over it."""
    before = m.pod.status.by_name if m.pod is not None and m.pod.status is not None else {}
    for said in m.status.every_container if m.status is not None else ():
        old = before.get(said.name)
        if old is None or not old.container_id:
            continue
        if not said.container_id:
            is_there = old.state.running is not None and _may_be_shown(m.world.containers.get(old.runtime_id))
            yield kept_if(not is_there, f"{said.name} was created and has no id any more", _before_seq(m))
            continue
        if said.container_id == old.container_id:
            was, is_ = _course(old), _course(said)
            if was is not None and is_ is not None:
                yield broken(f"{said.name} had ended and runs again") if was > is_ else KEPT
            continue
        older, newer = (m.world.containers.get(one.runtime_id) for one in (said, old))
        if older is None or newer is None or older.pod is not newer.pod or not _may_be_shown(newer):
            continue
        if older.created_t is None or newer.created_t is None:
            continue
        is_older = older.created_t < newer.created_t
        yield broken(f"{said.name} is an older instance again", _before_seq(m)) if is_older else KEPT


def _may_be_shown(container: Container | None) -> bool:
    """The container has a record, and the kubelet knows of it."""
    return container is not None and not is_hidden_by_event(container)


@contract("STATUS-13", on=PROBES, needs=(CRI, PODS, EVERY_STATUS))
def readiness_is_reported_at_once(m: Moment, pod: Pod) -> Findings:
    """The result of a readiness probe is reported at once, whatever the pod's worker is doing meanwhile."""
    probed = probe_at(m)
    if probed is None or probed.name != "readiness" or not probed.reached or pod.static:
        return None
    name, container, ready = probed.container.name, probed.container, probed.outcome == "success"
    reported = pod.status.by_name.get(name) if pod.status is not None else None
    if reported is None or reported.runtime_id != container.id or not to_run(m) or reported.ready is ready:
        return None
    if reported.state.running is None or (ready and not reported.started):
        return None

    def shows(n: Moment) -> bool:
        said = n.status.by_name.get(name) if n.status is not None else None
        return n.pod is pod and said is not None and said.ready is ready

    return answered(
        by=status().where(shows),
        within=AT_ONCE,
        unless=FAULT.either(no_more_probed(container), TERMINATION_ASKED.where(of(pod))),
        whole_node=True,
        text=f"{name} is reported as {'ready' if ready else 'not ready'}",
    )


@readiness_is_reported_at_once.clause("conditions", on=AGAIN)
def conditions_change_with_readiness(_: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """Ready and ContainersReady change in the same status."""
    before = pod.status
    if before is None or status.terminal:
        return
    for said in status.container_statuses or ():
        old = before.by_name.get(said.name)
        if old is None or old.ready == said.ready or old.container_id != said.container_id:
            continue
        condition = status.condition("ContainersReady")
        if not said.ready and condition is not None:
            is_so = condition.status == "True"
            yield broken(f"{said.name} is not ready, and ContainersReady is True") if is_so else KEPT


@contract("STATUS-17", on=AGAIN, needs=(STORED_STATUS,))
def reason_goes_with_its_phase(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """The reason and message of a pod are kept for as long as its phase is the same, and no longer."""
    before = pod.status
    if before is None or not before.reason or not status.conditions:
        return None
    if _may_be_forgotten(m, pod):
        return None
    if before.phase != status.phase:
        is_stale = status.reason == before.reason and not before.terminal and not status.terminal
        return broken(f"reason {status.reason} stays, phase is {status.phase}") if is_stale else None
    if not status.reason or (before.message and not status.message):
        return broken(f"phase stays {status.phase}, and its reason {before.reason} is lost")
    return KEPT


def _may_be_forgotten(m: Moment, pod: Pod) -> bool:
    """A kubelet that starts has the statuses of its pods from their objects, and a static pod has none."""
    return pod.static and (is_first_of_this_life(m) or status_may_be_forgotten(m, pod))


@contract("STATUS-18", on=status(), needs=(EVERY_STATUS, PODS), versions=since("1.34"))
def generation_is_one_that_was_sent(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Every status carries the generation of the pod's spec that it was built from."""
    meta = pod.manifest.metadata if pod.manifest is not None else None
    if meta is None or not meta.generation or not status.conditions or pod.static:
        return None
    if status.observed_generation is None:
        return broken("observedGeneration is missing")
    if not 0 < status.observed_generation <= meta.generation:
        return broken(f"observedGeneration is {status.observed_generation}, the pod has {meta.generation}")
    return KEPT


@generation_is_one_that_was_sent.clause("follows", on=pod_set())
def generation_is_followed(m: Moment, pod: Pod) -> Findings:
    """The observed generation follows a change of the spec."""
    meta = m.manifest.metadata if m.manifest is not None else None
    before = pod.manifest.metadata.generation if pod.manifest is not None else None
    generation = meta.generation if meta is not None else None
    if not before or not generation or generation == before or not to_run(m):
        return None
    if worker_is_busy(pod):
        return None  # It follows with the next sync, and a hook or a pull takes its time.
    if pod.changed_t is not None and m.t - pod.changed_t < RELIST:
        return None  # So it is with the sync that follows the change before, and begins only now.
    if pod.sandbox is not None and pod.sandbox.state != "ready":
        return None  # Or with the one that kills what is left of it.
    # A sync that begins just then follows what was before, and may wait for a hook.
    hook = call("ExecSync").where(lambda n: n.t - m.t < API_POLL and not n.request(ExecSyncRequest).timeout)
    return answered(
        by=status()
        .where(of(pod))
        .where(lambda n: n.status is not None and n.status.observed_generation == generation),
        within=RETRY + RETRY_SLACK,
        unless=FAULT.either(TERMINATION_ASKED.where(of(pod)), pod_set().where(of(pod)), hook.where(of(pod))),
        whole_node=True,
        text=f"generation {generation} of {pod.name} is observed",
    )
