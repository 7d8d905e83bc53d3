"""CONFIG: what the kubelet does with the pods that its sources send, one snapshot after another."""

from collections.abc import Iterator

import msgspec

from kubelet_conformance.contract import Finding, Moment, Note, Pod, PodSpec, Predicate
from kubelet_conformance.contract.applicability import CRI, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, deleted, done, failed, kubelet, pod_set, pod_unset
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts import timing
from kubelet_conformance.contracts.facts.kills import explained, to_be_explained
from kubelet_conformance.contracts.facts.kubelet import api_is_away, sees_its_runtime
from kubelet_conformance.contracts.facts.sandbox import sandbox_asked
from kubelet_conformance.contracts.facts.static_pod import (
    SEEN,
    ended_since_its_file_went,
    stops_after_removal,
)
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.tables import pod as tables
from kubelet_conformance.trace.format.records import Call, PodChange, Reply
from kubelet_conformance.trace.world.kubelet_view import kubelet_view

_HTTP_OR_FILE = {"http": timing.FILE_POLL + timing.REACTION, "file": timing.REACTION}
"""The time within which a change at a source of static pods is noticed."""


def _record(m: Moment) -> PodChange | None:
    return m.record if isinstance(m.record, PodChange) else None


@contract("CONFIG-01", on=pod_set(), needs=(CRI, PODS))
def sources_do_not_displace_each_other(m: Moment) -> Findings:
    """Pods of two sources that have the same name are two pods: both are started."""
    pod = pods.new_pod(m)
    other = m.world.names.get((pod.namespace, pod.name)) if pod is not None else None
    if pod is None or other is None or not other.wanted or other.uid == pod.uid or not other.uid:
        return None
    if (other.source == "api") is (pod.source == "api") or not pods.can_start(m, pod) or pods.host_ports(m):
        return None
    if m.pod is other:
        return None
    uid = other.uid
    beside = pods.NewPod(pod.uid, pod.namespace, pod.name, pod.source)
    return answered(
        by=call("RunPodSandbox").where(beside.asked).where(_has_another_uid(uid)),
        within=_HTTP_OR_FILE.get(pod.source, timing.REACTION),
        unless=pods.FAULT.either(pods.TERMINATION_ASKED),
        whole_node=True,
        text=f"pod {pod.name} of source {pod.source} is started beside the other",
    )


def _has_another_uid(uid: str) -> Predicate:
    return lambda m: sandbox_asked(m).metadata.uid != uid


class _Ports(Note):
    """Static pods that have just been removed from a source: when, from which, and their host ports."""

    t: float = float("-inf")
    source: str = ""
    ports: frozenset[tuple[str, int]] = frozenset()
    seq: int = 0


@contract("CONFIG-03", on=pods.NEW_STATIC_POD, needs=(CRI, PODS))
def removals_come_before_additions(m: Moment) -> Findings:
    """Of one snapshot removals are taken first: a new pod gets the host port of the one that it drops."""
    pod, record, left = pods.new_pod(m), _record(m), m.node.note(_Ports)
    if pod is None or record is None or record.source not in _HTTP_OR_FILE:
        return None
    if (
        left.source != record.source
        or m.t - left.t > timing.SAME_MOMENT
        or not pods.host_ports(m) & left.ports
    ):
        return None
    if not pods.can_start(m, pod):
        return None
    return pods.starts(
        pod, _HTTP_OR_FILE[pod.source], f"pod {pod.name} is admitted in place of the one removed"
    )


@observer(on=pod_unset())
def _removal_is_sent(m: Moment, pod: Pod, spec: PodSpec) -> None:
    """Record removals."""
    record = _record(m)
    if record is None or not pod.static:
        return
    left = m.node.note(_Ports)
    if m.t - left.t > timing.SAME_MOMENT or left.source != record.source:
        left.ports = frozenset()
    ports = [port for one in spec.containers for port in one.ports or ()]
    left.t, left.source, left.seq = m.t, record.source, m.seq
    left.ports |= {(port.protocol, port.host_port) for port in ports if port.host_port}


class _Removed(Note):
    """The latest removal from a source of static pods."""

    t: float = float("-inf")
    seq: int = 0
    source: str = ""


@contract("CONFIG-04", on=pod_unset(), needs=(CRI, PODS), clause="killed")
def pod_that_left_its_source_is_killed(m: Moment, pod: Pod) -> Iterator[Finding]:
    """A pod that is missing from its source's next snapshot is killed, and no pod of another source is."""
    left = f"of {pod.name}, which left its source, is stopped"
    yield from stops_after_removal(m, pod, lambda container: f"container {container.name} {left}")


@pod_that_left_its_source_is_killed.clause("others", on=call("StopContainer"))
def pods_of_other_sources_stay(m: Moment, pod: Pod) -> Findings:
    """No pod of another source is stopped."""
    removed = m.node.note(_Removed)
    if m.t - removed.t > timing.FILE_POLL + timing.REACTION or pod.source == removed.source:
        return None
    if explained(m):
        return None
    return to_be_explained(
        m, f"there is a reason to stop {pod.name}, another pod having left another source,"
    )


@observer(on=pod_unset())
def _departure_is_sent(m: Moment) -> None:
    """Record removals."""
    record = _record(m)
    if record is not None and record.source in _HTTP_OR_FILE:
        removed = m.node.note(_Removed)
        removed.t, removed.seq, removed.source = m.t, m.seq, record.source


class _Sent(Note):
    """The last manifest of each API pod, by UID."""

    by_uid: dict[str, bytes] = {}
    latest: tuple[bytes, bytes] | None = None
    """The manifest of a pod before the latest, and that; None where the pod is new or they are not known."""
    seq: int = 0


def _take_manifest(m: Moment) -> _Sent:
    """Take a manifest in: call it for every moment of pod_set() and deleted()."""
    sent, record = m.node.note(_Sent), _record(m)
    if sent.seq == m.seq:
        return sent
    sent.seq, sent.latest = m.seq, None
    if record is None or m.manifest is None:
        sent.by_uid.pop(getattr(m.record, "uid", ""), None)
    elif record.source == "api" and m.manifest.metadata.uid:
        uid, new = m.manifest.metadata.uid, bytes(record.pod)
        old = sent.by_uid.get(uid)
        sent.latest = None if old is None else (old, new)
        sent.by_uid[uid] = new
    return sent


def change_of(m: Moment) -> tables.Change | None:
    """Take a manifest in, and say what it changed; None where that is not known."""
    latest = _take_manifest(m).latest
    return (
        tables.CHANGES.decide(
            tables.ManifestChange(*(tables.manifest_parts(msgspec.json.decode(raw)) for raw in latest))
        )
        if latest is not None
        else None
    )


class _Failure(Note):
    """The latest RunPodSandbox that failed, if no other record of the pod has followed."""

    t: float | None = None
    seq: int = 0


_WHILE = 2.0
"""A change that wakes the worker does so within this, and one that does not can be distinguished by it."""


@contract("CONFIG-05", on=pod_set(), needs=(CRI, PODS), clause="nothing")
def only_meaningful_changes_count(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """A manifest that differs in spec, labels, annotations or deletion is taken up at once; one that differs
    only in its status, or in nothing, causes no sync.
    """
    if pod.termination is not None or not m.node.kubelet_up:
        return None
    failed_t = pod.note(_Failure).t
    if failed_t is None or pod.sandboxes or m.t + _WHILE > failed_t + timing.RETRY_LEAST:
        return None
    if worker_waits(pod) or spec.readiness_gates or kubelet_view(m).down_since(m.t) is not None:
        return None
    if change_of(m) != "reconciled":
        return None
    begun = m.t
    return answered(
        by=call("ListContainers", "Status").where(lambda n: n.t - begun > _WHILE).either(LIFE_ENDS),
        not_before=call("RunPodSandbox").where(pods.of(pod)),
        unless=pods.FAULT.either(pod_set().where(pods.of(pod))),
        whole_node=True,
        text=f"{_WHILE:g} s pass without a sync of {pod.name}",
    )


def worker_waits(pod: Pod) -> bool:
    """A call for the pod is in progress."""
    return bool(pod.calls_open)


def _has_no_sandbox(pod: Pod) -> bool:
    """The sandbox of the pod could not be made, nor has it come to be although its call had failed."""
    return pod.note(_Failure).t is not None and not pod.sandboxes


@only_meaningful_changes_count.clause("something", on=pod_set())
def meaningful_change_is_taken_up(m: Moment, pod: Pod) -> Findings:
    """A change of spec, labels, annotations or deletion wakes a worker that waits for its retry."""
    if pod.termination is not None or pods.is_mirror(m):
        return None
    if not _has_no_sandbox(pod) or worker_waits(pod) or api_is_away(m):
        return None
    if not sees_its_runtime(m):
        return None
    if kubelet_view(m).down_since(m.t) is not None or kubelet_view(m).network_bad_t is not None:
        return None
    if change_of(m) != "updated":
        return None
    return answered(
        by=call("RunPodSandbox").where(pods.of(pod)),
        within=timing.REACTION,
        unless=pods.FAULT.either(pods.TERMINATION_ASKED),
        whole_node=True,
        text=f"the sandbox of {pod.name} is tried again after the change",
    )


@observer(
    on=failed("RunPodSandbox").either(
        done("RunPodSandbox"),
        call("RunPodSandbox", "StopPodSandbox"),
        pod_set(),
        deleted(),
        pod_unset(),
    ),
    last=True,
)
def _sync_fails(m: Moment) -> None:
    """Record manifests and failures."""
    if not isinstance(m.record, (Call, Reply)):
        _take_manifest(m)
    if m.pod is None:
        return
    failure, key = m.pod.note(_Failure), m.keys[0]
    if key == "failed:RunPodSandbox" and m.pod.born and not m.pod.sandboxes:
        failure.t, failure.seq = m.t, m.seq
    elif not key.startswith("pod:"):
        failure.t = None


@contract("CONFIG-06", on=call("RunPodSandbox"), needs=(CRI, PODS))
def first_seen_stays(m: Moment, pod: Pod) -> Findings:
    """The time at which a kubelet first saw a pod stays the same, however often the pod is sent again."""
    old = pod.sandbox
    if old is None or old.config is None or old.ready_t is None:
        return None
    if m.node.started_t is None or old.ready_t < m.node.started_t or not pod.born:
        return None
    if ended_since_its_file_went(m, pod):
        return None  # It is another pod now, though it has the same UID.
    before, now = old.config.annotations.get(SEEN), sandbox_asked(m).annotations.get(SEEN)
    if before != now:
        return broken(f"{SEEN} is {now}, and was {before}", old.run)
    return KEPT


@contract("CONFIG-08", on=pod_set().either(kubelet("started")), needs=(CRI, PODS), clause="gone")
def pod_that_comes_deleted_is_not_started(m: Moment) -> Iterator[Finding]:
    """A pod that is being terminated when a kubelet first sees it is not started: its object is deleted for
    good.
    """
    if api_is_away(m) or kubelet_view(m).node_unknown or not m.world.past_known:
        return
    manifest, record = m.manifest, _record(m)
    if manifest is not None and record is not None:
        came = manifest.metadata.deletion_timestamp is not None and m.pod is None and sees_its_runtime(m)
        if (
            came
            and record.source == "api"
            and not pods.is_mirror(m)
            and kubelet_view(m).down_since(m.t) is None
        ):
            yield _is_finalized(manifest.metadata.uid, manifest.metadata.name)
        return
    for pod in m.world.pods.values():
        if pod.source == "api" and pod.wanted and pod.born and not pod.sandboxes and _came_deleted(m, pod):
            yield _is_finalized(pod.uid, pod.name)


def _came_deleted(m: Moment, pod: Pod) -> bool:
    """The pod came, and was deleted, while no kubelet was up."""
    end, down = pod.termination, m.node.down_t
    if end is None or end.cause != "deleted" or pod.set_t is None or m.node.kubelet_up or down is None:
        return False
    return pod.set_t >= down


def _is_finalized(uid: str, name: str) -> Finding:
    def is_gone(n: Moment) -> bool:
        return getattr(n.record, "uid", "") == uid or (n.pod is not None and n.pod.uid == uid)

    return answered(
        by=deleted().either(pods.API_DELETE).where(is_gone),
        within=timing.RETRY + timing.RETRY_SLACK,
        not_before=call("RunPodSandbox").where(lambda n: sandbox_asked(n).metadata.uid == uid),
        unless=pods.FAULT,
        whole_node=True,
        text=f"pod {name}, which was already being deleted, is deleted for good",
    )


@pod_that_comes_deleted_is_not_started.clause("not-run", on=call("RunPodSandbox"))
def deleted_pod_gets_no_sandbox(m: Moment, pod: Pod) -> Findings:
    """A pod that comes being deleted gets no sandbox, even if the kubelet was down when it came."""
    if pod.termination is None or pod.set_t is None or pod.sandboxes or not m.world.past_known:
        return None
    if pod.termination.seq != pod.set_seq or pod.source != "api":
        return None
    return broken(f"a sandbox is run for {pod.name}, which was already being deleted", pod.set_seq)
