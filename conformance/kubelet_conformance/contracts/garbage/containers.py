"""GC: which records of dead containers and sandboxes are removed, in which order, and which are kept."""

import math
from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import (
    call,
    deleted,
    done,
    exited,
    failed,
    pod_set,
    pod_unset,
    read_as,
)
from kubelet_conformance.contracts.facts.kills import begins_anew
from kubelet_conformance.contracts.facts.node_pressure import node_pressure, setting
from kubelet_conformance.contracts.facts.pod import FAULT, TERMINATION_ASKED, about, of
from kubelet_conformance.contracts.facts.static_pod import is_left_to_itself
from kubelet_conformance.contracts.facts.status import being_read
from kubelet_conformance.contracts.facts.timing import API_POLL, GC_PERIOD, REACTION, RELIST, TOGETHER
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.bodies import ContainerStatusReply
from kubelet_conformance.trace.world.disruption import may_be_disrupted
from kubelet_conformance.trace.world.kubelet_view import informed_by, kubelet_view

REMOVE = call("RemoveContainer")
GC_SLACK = 15.0
"""How long one garbage collection may take on a loaded machine, with its wait for the pod's worker."""


def lives_on(pod: Pod) -> bool:
    """The pod is desired, and not evicted: the kubelet needs its newest records."""
    sent = pod.sent_status
    evicted = any(one is not None and one.reason == "Evicted" for one in (sent, pod.status))
    return pod.wanted and pod.termination is None and not evicted and not may_be_disrupted(pod)


@contract("GC-01", on=REMOVE, needs=(CRI, PODS))
def oldest_record_goes_first(m: Moment, pod: Pod, container: Container) -> Findings:
    """Of the dead records of one container of a living pod the oldest is removed first.

    Those beyond the limit after one more exit are removed newest first, before those never started (LOOP-10).
    """
    if not pod.born or not lives_on(pod):
        return None
    if container.kind in {"init", "sidecar", "unknown"}:
        return None
    every = pod.containers.get(container.name, [])
    records = [c for c in every if c is container or c.state not in {"running", "removed"}]
    if len(records) < 2 or begins_anew(m, pod):  # noqa: PLR2004 - there is an order only among several
        return None
    if kubelet_view(m).disk_fails:
        return None  # A record stays with a log that cannot be removed (GC-06).
    if records[0] is not container and not _made_due_by_a_death(m, container, records):
        text = f"attempt {container.attempt} of {container.name} is removed before {records[0].attempt}"
        return broken(text, records[0].create)
    return KEPT


class _Removals(Note):
    """When the kubelet last waited for a removal: others of the same garbage collection follow it."""

    waited_t: float = 0.0


def _made_due_by_a_death(m: Moment, container: Container, records: list[Container]) -> bool:
    """A newer instance has died, or was already dead when this kubelet started, no longer ago than that."""
    newer = [c for c in records[records.index(container) + 1 :] if c.state == "exited" and c.exit is not None]
    if container.state != "exited" or not newer:
        return False
    died_t = max(c.exit.t for c in newer if c.exit is not None)
    due_t = max(died_t, m.node.started_t or 0.0, m.node.note(_Removals).waited_t)
    return m.t <= informed_by(m, due_t) + RELIST + REACTION


@observer(on=done("RemoveContainer").either(failed("RemoveContainer")))
def _waits_are_remembered(m: Moment) -> None:
    if m.t - m.call.t > TOGETHER:
        m.node.note(_Removals).waited_t = m.t


@contract("GC-10", on=REMOVE, needs=(CRI, PODS), clause="newest-kept")
def newest_record_is_kept(m: Moment, pod: Pod, container: Container) -> Findings:
    """While a pod exists, the newest record of each of its containers is kept, and one older than the newest
    dead one is removed soon after a death.
    """
    if not pod.born or not lives_on(pod):
        return None
    if container.kind in {"init", "sidecar"} and pod.sandbox is not None and pod.sandbox.state != "ready":
        return None
    if container is pod.newest(container.name) and not _may_all_go(m, pod):
        return broken(
            f"the newest record of {container.name} is removed while its pod exists", container.create
        )
    return KEPT


def _disk_is_short(m: Moment) -> bool:
    """The node is short of disk and removes all that it can (EVICT-01)."""
    return any(low.of_disk for low in node_pressure(m).low.values())


def _may_all_go(m: Moment, pod: Pod) -> bool:
    """No record of the pod is safe: the disk is full, or an operator allows only so many in all (GC-03)."""
    may_have_ended = bool(pod.finished) or m.header.channels.api == "none"
    return (may_have_ended and _disk_is_short(m)) or most_in_all(m) >= 0


def most_in_all(m: Moment) -> int:
    """How many dead containers may stay in all, -1 for any number."""
    found = setting(m, "maximumDeadContainers", -1)
    return -1 if found is None else int(found)


def stays_unread(container: Container) -> Pattern:
    """A removal of it is given up: its status cannot be read, and so not where its log is (GC-06)."""
    return failed("ContainerStatus").where(about(container))


def being_removed(m: Moment, pod: Pod) -> set[Container | None]:
    """The removals in progress."""
    return {m.world.called.get(call.id) for call in pod.calls_open.values() if call.rpc == "RemoveContainer"}


@newest_record_is_kept.clause("older-removed", on=exited())
def older_dead_record_is_removed(m: Moment, pod: Pod, container: Container) -> Findings:
    """The record before the newest dead one is removed."""
    if container is not pod.newest(container.name):
        return None
    dead = [one for one in pod.containers[container.name] if one is not container and one.state == "exited"]
    if not dead or not pod.born or not lives_on(pod) or not m.node.kubelet_up:
        return None
    if m.node.listing_failed or kubelet_view(m).disk_fails:
        return None
    going = being_removed(m, pod)
    return [
        answered(
            by=REMOVE.where(about(older)),
            within=REACTION,
            unless=TERMINATION_ASKED.either(stays_unread(older)),
            text=f"attempt {older.attempt} of {container.name} is removed after attempt {container.attempt}",
        )
        for older in dead
        if older not in going
    ]


@contract("GC-02", on=deleted().either(pod_unset()), needs=(CRI, PODS))
def records_of_a_gone_pod_are_removed(m: Moment, pod: Pod) -> Iterator[Finding]:
    """When a pod is gone, all its dead containers are removed within a minute."""
    if not pod.born or not m.node.kubelet_up or ("deleted" in m.keys and pod.static):
        return
    if is_left_to_itself(m, pod):
        return
    grace = (
        pod.spec.grace_seconds if pod.spec and any(c.state == "running" for c in pod.every_container()) else 0
    )
    going = being_removed(m, pod)
    for container in pod.every_container():
        if container.state in {"running", "exited"} and container.born and container not in going:
            yield answered(
                by=REMOVE.where(about(container)),
                within=GC_PERIOD + GC_SLACK + grace,
                unless=pod_set().where(of(pod)),
                text=f"the record of {container.name}, whose pod is gone, is removed",
                whole_node=True,
            )


judges_waits(records_of_a_gone_pod_are_removed)


@contract("GC-04", on=REMOVE, needs=(CRI,))
def unknown_container_is_stopped_before_it_goes(_: Moment, container: Container) -> Findings:
    """A container whose state is unknown is stopped before its record is removed."""
    if not _was_unknown(container):
        return None
    if container.sandbox is not None and container.sandbox.stopped:
        return None  # It ended with its sandbox (CRI-05).
    # A stop that was not answered, or with an error, may have ended it.
    has_ended = container.state == "exited" and bool(container.stops)
    if not has_ended and not any(stop.is_done for stop in container.stops):
        return broken(f"expected container {container.name}, in an unknown state, to be stopped first")
    return KEPT


class _Reported(Note):
    """Whether the runtime has ever said that the state of a container is unknown."""

    unknown: bool = False


@observer(on=read_as("unknown"))
def _unknown_states_are_remembered(m: Moment) -> None:
    """Record it: once stopped, the container is reported as exited."""
    record = m.response(ContainerStatusReply).status
    if m.container is not None and record is not None and record.state == "CONTAINER_UNKNOWN":
        m.container.note(_Reported).unknown = True


def _was_unknown(container: Container) -> bool:
    return container.state == "unknown" or container.note(_Reported).unknown


@contract("GC-05", on=call("RemovePodSandbox"), needs=(CRI, PODS))
def sandbox_goes_when_it_is_empty_and_stopped(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A sandbox is removed only when it is not ready, was stopped, and has no containers left; the newest one
    stays while its pod exists.
    """
    if not sandbox.born:
        return None
    run = sandbox.run
    if not any(stop.is_done for stop in sandbox.stops):
        return broken("expected StopPodSandbox before RemovePodSandbox", run)
    ends = [stop.call.t if stop.end_t is None else stop.end_t for stop in sandbox.stops]
    if not any(m.t - t <= REACTION for t in ends):
        return broken("expected one more StopPodSandbox just before RemovePodSandbox", run)
    if sandbox.containers:
        left = ", ".join(sorted(c.name for c in sandbox.containers.values()))
        return broken(f"the sandbox is removed with containers left in it: {left}", run)
    # Everything of a deleted pod that has ended is removed, a moment before its object is.
    over = may_be_disrupted(pod) or (pod.termination is not None and len(sandbox.stops) > 1)
    if (pod.former_phase or pod.finished) and (sandbox.ready_t or 0.0) < pod.back_t:
        over = True  # A static pod that had ended for good is not run again when it comes back.
    # A garbage collection just before it came back does not know that, nor a kubelet that waits for a list.
    is_known = m.t > informed_by(m, pod.back_t) + API_POLL and not being_read(m)
    is_back = pod.back_t > -math.inf and not is_known
    if sandbox is pod.sandbox and pod.wanted and not over and not is_back:
        return broken("the newest sandbox of a pod that still exists is removed", run)
    return KEPT


def _is_in(m: Moment, sandbox: Sandbox) -> bool:
    return m.container is not None and m.container.sandbox is sandbox


@sandbox_goes_when_it_is_empty_and_stopped.clause("goes", on=deleted())
def sandbox_of_a_gone_pod_goes(m: Moment, pod: Pod) -> Findings:
    """The sandboxes of a pod that is gone are removed within a minute."""
    if not pod.born or pod.static or not m.node.kubelet_up:
        return None
    sandbox = pod.sandbox
    if sandbox is None or not sandbox.born or sandbox.state != "notready":
        return None
    return answered(
        by=call("RemovePodSandbox").where(lambda n: n.sandbox is sandbox),
        within=GC_PERIOD + GC_SLACK,
        # A sandbox stays while the runtime refuses to remove what is in it.
        unless=FAULT.either(failed("RemoveContainer").where(lambda n: _is_in(n, sandbox))),
        whole_node=True,
        text=f"the sandbox of {pod.name}, which is gone, is removed",
    )


@contract("GC-09", on=REMOVE, needs=(CRI,))
def running_container_is_not_removed(_: Moment, container: Container) -> Findings:
    """The record of a running container is never removed."""
    if container.state == "running":
        return broken(f"container {container.name} is removed while it runs", container.start)
    return KEPT
