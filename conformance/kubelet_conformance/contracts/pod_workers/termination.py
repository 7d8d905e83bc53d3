"""WORK: terminations at unusual times or from unusual sources, and what a pod worker must do for each."""

import math
from collections.abc import Iterator

from msgspec import field

from kubelet_conformance.contract import Finding, Manifest, Moment, Note, Pod, PodStatus, Predicate
from kubelet_conformance.contract.applicability import CRI, PODS, ByVersion, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, deleted, exited, kubelet, pod_set, pod_unset, status
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.container import end_is_read
from kubelet_conformance.contracts.facts.kubelet import api_is_away
from kubelet_conformance.contracts.facts.status import terminal_phase_sent
from kubelet_conformance.contracts.facts.timing import (
    CALL_TIMEOUT,
    FILE_POLL,
    KUBELET_START,
    REACTION,
    RETRY,
    RETRY_SLACK,
)
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.tables.stop import MINIMUM_GRACE
from kubelet_conformance.trace.format.bodies import (
    ListPodSandboxRequest,
    SandboxRequest,
    StopContainerRequest,
)
from kubelet_conformance.trace.format.records import Disk
from kubelet_conformance.trace.world.disruption import disruption_of
from kubelet_conformance.trace.world.kubelet_view import kubelet_view
from kubelet_conformance.trace.world.views import Latest

_MAKING = call("RunPodSandbox", "CreateContainer", "StartContainer")
_GOES_WITHIN = ByVersion({"<=1.26": CALL_TIMEOUT + RETRY + RETRY_SLACK, ">=1.27": REACTION})
"""How long a deleted pod that waits for its volumes may stay: up to 1.26 until that wait gives up."""


@contract("WORK-06", on=pods.TERMINATION_ASKED, needs=(CRI, PODS), versions=_GOES_WITHIN)
def wait_for_volumes_is_cut(m: Moment, pod: Pod) -> Findings:
    """A deletion ends the wait of a sync for volumes at once (up to 1.26 that ends by its own limit)."""
    if not pod.born or pod.static or "deleted" in m.keys or not m.node.kubelet_up:
        return None
    if pod.termination is not None or pod.sandboxes or pods.worker_is_busy(pod):
        return None
    if not _waits_for_volumes(pod, m):
        return None
    if m.node.started_t is None or m.t - m.node.started_t < KUBELET_START or api_is_away(m):
        return None
    return answered(
        by=deleted(),
        within=_GOES_WITHIN.at(m.kubernetes),
        unless=pods.FAULT.either(pods.starts_or_creates().where(pods.of(pod))),
        text=f"{pod.name}, which waits for its volumes, goes",
    )


judges_waits(wait_for_volumes_is_cut)


def _waits_for_volumes(pod: Pod, m: Moment) -> bool:
    """The pod has volumes, and for a while nothing of it has been created."""
    return bool(pod.spec and pod.spec.volumes) and pod.set_t is not None and m.t - pod.set_t > REACTION


class _StoppingSandbox(Note):
    """The StopPodSandbox calls that were in progress when the static pod left its source."""

    ids: frozenset[str] = frozenset()
    again_seq: int = 0
    """Where the pod came back, having ended, while one of them still lasted."""
    again_t: float = 0.0
    went_t: float = 0.0


class _Housekeeping(Note):
    """When the node's housekeeping last asked what runs."""

    t: float = -math.inf


@observer(on=call("ListPodSandbox"))
def _housekeeping_is_remembered(m: Moment) -> None:
    """Remember when housekeeping asked for the sandboxes that are ready."""
    if m.request(ListPodSandboxRequest).filter.state is not None:
        m.node.note(_Housekeeping).t = m.t


@contract("WORK-23", on=_MAKING, needs=(CRI, PODS), versions=since("1.23"), clause="nothing")
def ended_pod_does_not_come_again(m: Moment, pod: Pod) -> Findings:
    """A static pod that comes back to its source under the same UID, when its run is over and it is being
    cleaned up, is not started again. Housekeeping forgets the status of a pod that no source has.
    """
    kept = pod.note(_StoppingSandbox)
    if not kept.again_seq or m.node.started_t is None or m.node.started_t > kept.went_t:
        return None  # A kubelet that came back since then remembers no end.
    return broken(f"{m.call.rpc} for a pod that had ended before it came back", kept.again_seq)


@ended_pod_does_not_come_again.clause("stays", on=pods.END)
def ended_pods_stayed_away(m: Moment) -> Iterator[Finding]:
    """A pod that had ended stays so to the end of the trace."""
    for pod in m.world.pods.values():
        kept = pod.note(_StoppingSandbox)
        if kept.again_seq and m.t - kept.again_t > KUBELET_START:
            yield KEPT


@observer(on=pod_unset())
def _departures_are_remembered(m: Moment, pod: Pod) -> None:
    """Remember how far the termination of a pod was when it left its source."""
    if pod.static:
        kept = pod.note(_StoppingSandbox)
        kept.ids, kept.again_seq = _sandbox_stops(pod) if _is_over(pod) else frozenset(), 0
        kept.went_t = m.t


@observer(on=pod_set())
def _returns_are_remembered(m: Moment, pod: Pod, manifest: Manifest) -> None:
    """Remember that it came back before that was over."""
    if not pod.static or pod.wanted or manifest.metadata.uid != pod.uid:
        return
    kept = pod.note(_StoppingSandbox)
    if kept.ids & _sandbox_stops(pod) and m.node.note(_Housekeeping).t < kept.went_t:
        kept.again_seq, kept.again_t = m.seq, m.t


def _is_over(pod: Pod) -> bool:
    """Every app container has ended for good, whether its record is still there or not."""
    every = [(one.name, pod.newest(one.name)) for one in pod.spec.containers] if pod.spec is not None else []
    ends = [(name, one.exit) for name, one in every if one is not None and one.ended]
    return (
        bool(every)
        and len(ends) == len(every)
        and all(end is not None and pods.will_not_run_again(pod, name, end.code) for name, end in ends)
    )


def _sandbox_stops(pod: Pod) -> frozenset[str]:
    return frozenset(one.id for one in pod.calls_open.values() if one.rpc == "StopPodSandbox")


class _Lost(Note):
    """Static pods that left their source before every source was ready."""

    pods: list[Pod] = []


@contract("WORK-27", on=pods.API_BACK, needs=(CRI, PODS), versions=since("1.27"))
def worker_is_notified_by_housekeeping(m: Moment) -> Iterator[Finding]:
    """A pod that left its source, of which its worker was not notified as other sources were not ready yet,
    is ended by housekeeping, with the grace of its spec.
    """
    lost = m.node.note(_Lost)
    removed, lost.pods = lost.pods, []
    for pod in removed if m.node.kubelet_up else ():
        for container in pod.every_container():
            spec = container.spec
            if container.state != "running" or pod.wanted or container.stopping or pod.spec is None:
                continue
            if spec is None or spec.lifecycle.pre_stop is not None or container.kind == "sidecar":
                continue
            stop = call("StopContainer").where(pods.about(container))
            grace = max(pod.spec.grace_seconds, MINIMUM_GRACE)
            yield answered(
                by=stop.where(_gives(grace)),
                not_before=stop,
                within=KUBELET_START + RETRY,
                unless=pods.FAULT.either(pod_set().where(pods.of(pod)), end_is_read(container)),
                whole_node=True,
                text=f"container {container.name} of {pod.name} is stopped with a grace of {grace} s",
            )


def _gives(grace: int) -> Predicate:
    return lambda m: m.request(StopContainerRequest).timeout == grace


@observer(on=pod_unset().either(kubelet("started")))
def _lost_removals_are_remembered(m: Moment) -> None:
    """Remember the removals that a kubelet ignores as it has not received the API server's pods yet."""
    pod, known, node = m.pod, kubelet_view(m), m.node
    if m.keys[0] == "kubelet:started":
        node.note(_Lost).pods.clear()
        return
    away, started = known.api_away_t, node.started_t
    if pod is None or not pod.static or not node.kubelet_up or away is None or started is None:
        return
    if away <= started:
        node.note(_Lost).pods.append(pod)


class _Waiters(Note):
    """Static pods that left their source while they waited for their name, by UID: when, and where."""

    left: Latest[str, tuple[float, int]] = field(default_factory=Latest[str, tuple[float, int]])


@contract("WORK-28", on=call("RunPodSandbox"), needs=(CRI, PODS), versions=since("1.22"), clause="nothing")
def waiting_pod_ends_without_a_call(m: Moment, pod: Pod) -> Findings:
    """A static pod that leaves its source while it waits for another one of its name to end is never started,
    and nothing is stopped for it.
    """
    left = m.node.note(_Waiters).left.get(pod.uid)
    if left is None or m.t - left[0] < FILE_POLL + REACTION:
        return None
    return broken("RunPodSandbox for a pod that had left its source before it was started", left[1])


@waiting_pod_ends_without_a_call.clause("stops", on=call("StopPodSandbox", "StopContainer"))
def nothing_is_stopped_for_it(m: Moment) -> Findings:
    """No stop is sent for a sandbox or container without an id."""
    left = m.node.note(_Waiters).left
    if not left or m.request(SandboxRequest).pod_sandbox_id or m.request(StopContainerRequest).container_id:
        return None
    return broken(f"{m.call.rpc} without an id", *(seq for _, seq in left.values()))


@waiting_pod_ends_without_a_call.clause("never", on=pods.END)
def waiting_pods_never_began(m: Moment) -> Iterator[Finding]:
    """A static pod that left its source while it waited for its name is never started."""
    for t, _ in m.node.note(_Waiters).left.values():
        if m.t - t > FILE_POLL + REACTION:
            yield KEPT


@observer(on=pod_set().either(pod_unset(), kubelet("started")))
def _waiters_are_remembered(m: Moment) -> None:
    """Remember the pods that left their source while they waited for their name."""
    pod, left = m.pod, m.node.note(_Waiters).left
    if m.keys[0] == "kubelet:started":
        left.clear()
    elif pod is None or not pod.static:
        return
    elif m.manifest is not None:
        left.pop(pod.uid, None)
    elif pod.uid and pod.born and not pod.sandboxes and not pod.containers and _name_is_held(m, pod):
        left[pod.uid] = m.t, m.seq


def _name_is_held(m: Moment, pod: Pod) -> bool:
    """Another static pod of the same name is being stopped."""
    alike = (one for one in m.world.pods.values() if (one.namespace, one.name) == (pod.namespace, pod.name))
    return any(one is not pod and any(c.stopping for c in one.every_container()) for one in alike)


class _FirstSeen(Note):
    """How the kubelet that runs saw a pod first."""

    ended: bool | None = None
    """In a terminal phase; None while it has not seen it."""


@observer(on=pod_set().either(kubelet("started")))
def _first_phases_are_remembered(m: Moment) -> None:
    """Remember which pods had ended when the kubelet saw them first; a new one sees all pods anew."""
    for pod in m.world.pods.values() if m.pod is None else (m.pod,):
        seen = pod.note(_FirstSeen)
        if m.pod is None or seen.ended is None:
            seen.ended = bool(terminal_phase_sent(pod))


@contract("WORK-29", on=_MAKING, needs=(CRI, PODS), versions=ByVersion({">=1.22": True}), clause="nothing")
def pod_sent_as_ended_is_not_started(m: Moment, pod: Pod) -> Findings:
    """A pod whose phase is terminal when it is first seen is not started."""
    if not pod.note(_FirstSeen).ended:
        return None
    return broken(f"{m.call.rpc} for pod {pod.name}, which had ended when it was first seen", pod.set_seq)


@pod_sent_as_ended_is_not_started.clause("stays", on=pods.END)
def pods_sent_as_ended_stayed_so(m: Moment) -> Iterator[Finding]:
    """A pod that had ended stays so to the end of the trace."""
    for pod in m.world.pods.values():
        if pod.note(_FirstSeen).ended and pod.set_t is not None and m.t - pod.set_t >= REACTION:
            yield KEPT


_FINISHED_BY_A_SYNC = since("1.27")
"""A pod that is sent as ended is synced once, as terminated (pod_workers.go)."""


@pod_sent_as_ended_is_not_started.clause("reported", on=kubelet("started"))
def what_is_sent_as_ended_is_synced_once(m: Moment) -> Iterator[Finding]:
    """From 1.27 on its status is completed, where it does not say whether the pod is ready."""
    if not _FINISHED_BY_A_SYNC.get(m.kubernetes) or m.header.channels.api != "full":
        return
    if api_is_away(m):
        return
    for pod in m.world.pods.values():
        sent = pod.sent_status
        if not pod.wanted or pod.static or sent is None or not sent.terminal or sent.reason:
            continue
        if sent.condition("Ready") is None:
            yield answered(
                by=status().where(pods.of(pod)),
                within=KUBELET_START + REACTION,
                unless=pods.FAULT.either(
                    LIFE_ENDS, pod_unset().where(pods.of(pod)), deleted().where(pods.of(pod))
                ),
                whole_node=True,
                text=f"a status of {pod.name} says that it is not ready",
            )


@pod_sent_as_ended_is_not_started.clause("unreported", on=status())
def nothing_is_reported_of_it(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Up to 1.26 no status of it is written, as its worker has nothing to do; it may be refused."""
    if status.reason or _FINISHED_BY_A_SYNC.get(m.kubernetes) or not pod.note(_FirstSeen).ended or pod.static:
        return None
    manifest = pod.manifest
    if manifest is None or manifest.metadata.deletion_timestamp is not None or not pod.wanted:
        return None
    sent = manifest.status
    if sent is None or sent.reason or sent.condition("Ready") is not None or pod.termination is not None:
        return None
    if any(one.state == "running" for one in pod.every_container()):
        return None
    return broken(f"a status of {pod.name} is written, which had ended when it was first seen", pod.set_seq)


@contract("WORK-30", on=kubelet("started"), needs=(CRI, PODS), versions=since("1.22"))
def leftovers_of_an_ended_pod_are_stopped(m: Moment) -> Iterator[Finding]:
    """A pod that has a terminal phase when a kubelet starts, and of which something still runs, is terminated
    as any other.
    """
    if api_is_away(m):
        return
    for pod in m.world.pods.values():
        sent = pod.sent_status
        if not pod.wanted or pod.static or sent is None or not sent.terminal:
            continue
        for container in pod.every_container():
            if (
                container.state == "running"
                and container.born
                and container.spec
                and not pods.has_pre_stop(container)
            ):
                yield answered(
                    by=call("StopContainer").where(pods.about(container)),
                    within=KUBELET_START + RETRY,
                    unless=pods.FAULT.either(exited().where(pods.about(container)), end_is_read(container)),
                    whole_node=True,
                    text=f"container {container.name} of {pod.name}, which is {sent.phase}, is stopped",
                )


_DEPTH = 2
"""A volume is `volumes/<plugin>/<name>`; files in it come and go with its content."""


def _removed_of(m: Moment) -> tuple[Pod | None, str]:
    """The pod of a folder that went, and the folder's place in that of the pod."""
    record = m.record
    if not isinstance(record, Disk) or record.op != "removed":
        return None, ""
    uid, _, below = record.path.partition("/pods/")[2].partition("/")
    return m.world.pods.get(uid), below


@contract("WORK-31", on=pods.DISK, needs=(CRI, PODS), versions=since("1.22"))
def folders_outlast_the_containers(m: Moment) -> Findings:
    """A pod's volumes go only when nothing of it runs, and its folder only when the pod is to go too."""
    pod, below = _removed_of(m)
    if pod is None or not pod.born or below.count("/") > _DEPTH:
        return None
    runs = any(container.state == "running" for container in pod.every_container())
    is_over = not pod.wanted or pod.termination is not None or pod.finished or pods.at_its_end(pod)
    is_over = is_over or disruption_of(pod) is not None
    if runs or not is_over:
        why = "something of it runs" if runs else "it was not asked to terminate"
        return broken(f"{below or 'the folder'} of {pod.name} is removed: {why}", pod.set_seq)
    return KEPT if pod.containers else None
