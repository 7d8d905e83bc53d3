"""ADMIT: pods that the node refuses, and what must never happen to them.

ADMIT: what a kubelet that starts does about pods that were admitted before.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import field

from kubelet_conformance.contract import Answered, Finding, Manifest, Moment, Note, Pod, PodStatus, Predicate
from kubelet_conformance.contract.applicability import CRI, EVERY_EVENT, EVERY_STATUS, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, deleted, event, expects, kubelet, pod_set, status
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.kubelet import api_is_away, final_phase_is_written
from kubelet_conformance.contracts.facts.sandbox import FINISHED
from kubelet_conformance.contracts.facts.status import AGAIN
from kubelet_conformance.contracts.facts.timing import HOUSEKEEPING, POSTED, REACTION, RETRY, STATUS_BATCH
from kubelet_conformance.contracts.runtime.expected import as_expected
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.format.records import Event, Expect, PodChange
from kubelet_conformance.trace.world.disruption import REFUSALS
from kubelet_conformance.trace.world.views import Latest

Json = dict[str, Any]
_LATER = frozenset({"DeadlineExceeded", "Preempting", "Terminated", "NodeLost", "NodeAffinity"})
"""Reasons that may also end a pod that was admitted."""


class _Work(Note):
    """The calls for a pod and its Warning events, under its first kubelet instance."""

    call_seq: int = 0
    warned: dict[str, int] = {}


def _rejects(m: Moment, new: PodStatus | None) -> bool:
    """This status refuses the pod: it is the first terminal one of a pod that was never started."""
    pod = m.pod
    if pod is None or new is None or new.phase != "Failed" or not new.reason or not pod.born or pod.finished:
        return False
    if pod.sandboxes or pod.note(_Work).call_seq:
        return False  # It was admitted.
    return pod.deleted_t is None and _is_a_refusal(new.reason)


def _is_a_warning(m: Moment) -> bool:
    return isinstance(m.record, Event) and m.record.type == "Warning"


def _is_a_refusal(reason: str) -> bool:
    return reason in REFUSALS or reason.startswith("OutOf")


@contract("ADMIT-01", on=pod_set(), needs=(CRI, PODS, STATUS))
def update_is_not_admitted_again(m: Moment, pod: Pod, manifest: Manifest) -> Findings:
    """A pod that has been admitted is not refused for a later change of its manifest."""
    if not pod.born or pod.termination is not None or pod.finished:
        return None
    if manifest.metadata.deletion_timestamp is not None or pod.manifest == manifest or not m.node.kubelet_up:
        return None
    if not any(c.state == "running" for c in pod.every_container()):
        return None
    refused = status().where(_fails_for)
    return answered(
        by=LIFE_ENDS.either(pods.TERMINATION_ASKED.where(pods.of(pod))),
        unless=pods.FAULT,
        not_before=refused.where(pods.of(pod)),
        whole_node=True,
        text=f"pod {pod.name}, which was changed, is not refused",
    )


def _fails_for(m: Moment) -> bool:
    now = m.status
    refusal = now is not None and now.phase == "Failed" and _is_a_refusal(now.reason)
    return refusal and now is not None and now.reason not in (_LATER - {"NodeAffinity"}) | {"Evicted"}


@contract("ADMIT-02", on=FINISHED, needs=(CRI, PODS, EVERY_STATUS, EVERY_EVENT), clause="reported")
def refused_pod_is_reported_and_left_alone(m: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """A pod that the node refuses gets a Warning event with the reason and a status with phase Failed, the
    same reason and a message; nothing of it is ever started.
    """
    if not _rejects(m, status):
        return
    warned = pod.note(_Work).warned
    if status.reason not in warned:
        yield answered(
            by=event(status.reason).where(_is_a_warning),
            within=POSTED if m.header.clock == "wall" else 0.0,
            text=f"a Warning event says that {pod.name} is refused with {status.reason}",
        )
    if not status.message.startswith("Pod"):
        yield broken(
            f"the message {status.message[:60]!r} does not say that the pod was rejected", pod.set_seq
        )
    yield answered(
        by=LIFE_ENDS.either(deleted().where(pods.of(pod))),
        not_before=pods.starts_or_creates().where(pods.of(pod)),
        whole_node=True,
        text=f"nothing of {pod.name}, which was refused, is started",
    )


@refused_pod_is_reported_and_left_alone.clause("failed", on=pods.REFUSED)
def refused_pod_is_failed(m: Moment, pod: Pod, event: Event) -> Findings:
    """A refusal that an event reports is soon in the pod's status."""
    if event.type != "Warning":
        return None
    if pod.static or pod.sandboxes or not pod.born or pod.finished or pod.termination is not None:
        return None
    if not m.node.kubelet_up:
        return None
    return answered(
        by=FINISHED,
        within=final_phase_is_written(m),
        unless=pods.FAULT.either(pods.TERMINATION_ASKED),
        text=f"pod {pod.name}, which is refused, is Failed",
    )


@refused_pod_is_reported_and_left_alone.clause("for-ever", on=AGAIN)
def refused_pod_stays_refused(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """A refused pod stays Failed, with that reason."""
    if pod.status is None or pod.sandboxes or not pod.born:
        return None
    old = pod.status
    if old.phase != "Failed" or not _is_a_refusal(old.reason):
        return None
    if (status.phase, status.reason) != (old.phase, old.reason):
        return broken(f"{old.phase} ({old.reason}) became {status.phase} ({status.reason})", pod.status_seq)
    return KEPT


@observer(on=pods.REFUSED)
def _warning_is_sent(m: Moment, pod: Pod, event: Event) -> None:
    """Record Warning events of refusals."""
    if event.type == "Warning":
        pod.note(_Work).warned[event.reason] = m.seq


@contract("ADMIT-03", on=FINISHED, needs=(CRI, PODS, EVERY_STATUS))
def refusals_have_known_reasons(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """A pod that fails without ever having been started has one of the reasons of the admission handlers."""
    if status.phase != "Failed" or pod.finished or not pod.born or pod.sandboxes:
        return None
    if pod.termination is not None or pod.static or pod.note(_Work).call_seq:
        return None
    if _is_a_refusal(status.reason) or status.reason in _LATER:
        return KEPT
    return broken(
        f"pod {pod.name} was never started and is Failed with reason {status.reason!r}", pod.set_seq
    )


@refusals_have_known_reasons.clause("right", on=expects("ADMIT-03"))
def pods_are_refused_for_what_applies_to_them(m: Moment, expect: Expect) -> Findings:
    """A pod is refused for the one reason that a scenario expects, and one that the node suits is run."""
    return as_expected(m, expect)


@observer(on=call("RunPodSandbox"))
def _sandbox_is_tried(m: Moment, pod: Pod) -> None:
    """Record that the pod was admitted."""
    pod.note(_Work).call_seq = m.seq


def _taken_by(m: Moment, *, leaving: bool) -> Pod | None:
    """An API pod that holds a host port that the manifest asks for: one that runs, or one that is deleted."""
    wanted = pods.host_ports(m)
    if not wanted:
        return None
    for pod in m.world.pods.values():
        if pod.spec is None or not pod.wanted or pod is m.pod or (pod.termination is not None) is not leaving:
            continue
        if not any(c.state == "running" and c.born for c in pod.every_container()):
            continue
        ports = {(p.protocol, p.host_port) for one in pod.spec.containers for p in one.ports or ()}
        if ports & wanted:
            return pod
    return None


def _is_refused(m: Moment, pod: pods.NewPod, holder: Pod) -> Finding:
    def is_its_refusal(n: Moment) -> bool:
        return n.status is not None and n.status.phase == "Failed" and pod.is_about(n)

    return answered(
        by=status().where(is_its_refusal),
        within=final_phase_is_written(m),
        unless=pods.FAULT.either(pods.TERMINATION_ASKED.where(pod.is_about)),
        not_before=call("RunPodSandbox").where(pod.asked),
        whole_node=True,
        text=f"pod {pod.name}, whose host port {holder.name} has, is refused",
    )


def _asks_for_a_port(m: Moment) -> pods.NewPod | None:
    pod = pods.new_pod(m)
    if pod is None or pod.source != "api" or not pods.can_start(m, pod):
        return None
    if not isinstance(m.record, PodChange):
        return None
    # Pods may share a port on different addresses.
    return None if b'"hostIP"' in bytes(m.record.pod) else pod


@contract("ADMIT-04", on=pod_set(), needs=(CRI, PODS, EVERY_STATUS), versions=since("1.22"))
def leaving_pod_still_counts(m: Moment) -> Findings:
    """A pod that is being deleted holds what it has until its containers have ended."""
    pod, holder = _asks_for_a_port(m), _taken_by(m, leaving=True)
    if pod is None or holder is None or holder.termination is None or holder.termination.cause != "deleted":
        return None
    return _is_refused(m, pod, holder)


class _Sizes(Note):
    """What each pod's containers ask for, by UID, and what pods that were admitted have asked for."""

    of: Latest[str, str] = field(default_factory=Latest[str, str])
    admitted: Latest[str, int] = field(default_factory=Latest[str, int])


def _size(pod: Json) -> str:
    """What the pod takes of the node, as text."""
    spec: Json = pod.get("spec") or {}
    every: list[Json] = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    takes = [(one.get("resources"), one.get("ports")) for one in every]
    placed = [spec.get(key) for key in ("nodeSelector", "affinity", "hostNetwork", "overhead")]
    return repr((takes, placed))


@leaving_pod_still_counts.clause("freed", on=status().either(call("RunPodSandbox")))
def pod_that_is_over_counts_no_more(m: Moment, pod: Pod) -> Findings:
    """A pod that has ended, or is gone, holds nothing any more."""
    now, sizes = m.status, m.node.note(_Sizes)
    size = sizes.of.get(pod.uid)
    if size is None:
        return None
    if now is None:
        before = size in sizes.admitted
        sizes.admitted[size] = m.seq
        return KEPT if before and not pod.sandboxes and _is_alone(m, pod) else None
    if not _rejects(m, now) or size not in sizes.admitted:
        return None
    if not now.reason.startswith(("OutOf", "NodePorts")):
        return None
    if not _is_alone(m, pod):
        return None
    text = f"{now.reason}: a pod like {pod.name} was admitted before, and no other takes anything now"
    return broken(text, sizes.admitted[size])


def _is_alone(m: Moment, pod: Pod) -> bool:
    """No other pod may take anything of the node."""
    if not m.world.has_every_pod:
        return False
    for other in (*m.world.pods.values(), *m.world.names.values()):
        if other is pod or (other.static and other.name == pod.name):
            continue
        ended = not other.wanted or other.finished
        if not ended or any(c.state != "exited" for c in other.every_container() if c.state != "removed"):
            return False
    return True


@observer(on=pod_set().either(deleted()))
def _size_is_reported(m: Moment) -> None:
    """Record what pods ask for."""
    sizes, record = m.node.note(_Sizes).of, m.record
    if isinstance(record, PodChange) and m.manifest is not None and m.manifest.metadata.uid:
        sizes[m.manifest.metadata.uid] = _size(msgspec.json.decode(record.pod))
    elif m.pod is not None:
        sizes.pop(m.pod.uid, None)


@contract("ADMIT-06", on=pod_set(), needs=(CRI, PODS, EVERY_STATUS))
def newer_pod_does_not_get_the_port(m: Moment) -> Findings:
    """Of two pods that ask for one host port the newer is refused."""
    pod, holder = _asks_for_a_port(m), _taken_by(m, leaving=False)
    return None if pod is None or holder is None else _is_refused(m, pod, holder)


@contract("ADMIT-10", on=pod_set(), needs=(CRI, PODS, EVERY_STATUS), versions=since("1.28"))
def refused_pod_can_be_deleted(m: Moment) -> Findings:
    """A pod that was refused and is then deleted is deleted for good."""
    return _is_finalized(m)


def _is_finalized(m: Moment) -> Findings:
    pod, manifest = m.pod, m.manifest
    if pod is None or manifest is None or pod.termination is not None or pod.sandboxes or not pod.born:
        return None
    if manifest.metadata.deletion_timestamp is None or pod.status is None or pod.status.phase != "Failed":
        return None
    if not _is_a_refusal(pod.status.reason) or not m.node.kubelet_up or api_is_away(m):
        return None
    return _goes_for_good(pod)


def _goes_for_good(pod: Pod) -> Answered:
    return answered(
        by=deleted().either(pods.API_DELETE).where(lambda n: n.pod is pod or pods.pod_of_write(n) is pod),
        within=HOUSEKEEPING + RETRY + STATUS_BATCH + REACTION,
        unless=pods.FAULT,
        whole_node=True,
        text=f"pod {pod.name}, which was refused, is deleted for good",
    )


@contract("WORK-34", on=pod_set(), needs=(CRI, PODS, EVERY_STATUS), versions=since("1.28"))
def refused_pod_is_finalized(m: Moment) -> Findings:
    """A pod that was refused at admission and is deleted later is finalized, with grace 0."""
    return _is_finalized(m)


@refused_pod_is_finalized.clause("asked-before", on=FINISHED)
def pod_refused_when_it_was_to_go_is_finalized(m: Moment) -> Findings:
    """A refused pod that was deleted before the API server received the refusal is finalized, too."""
    return _is_finalized_late(m)


@refused_pod_can_be_deleted.clause("asked-before", on=FINISHED)
def pod_refused_when_it_was_to_go_can_be_deleted(m: Moment) -> Findings:
    """A refused pod that was to go before the API server received the refusal is deleted for good, too."""
    return _is_finalized_late(m)


def _is_finalized_late(m: Moment) -> Findings:
    pod, now, end = m.pod, m.status, m.pod.termination if m.pod else None
    if pod is None or now is None or end is None or now.phase != "Failed" or not _is_a_refusal(now.reason):
        return None
    if pod.sandboxes or not pod.born or pod.static or end.cause != "deleted" or pod.deleted_t is not None:
        return None
    if not m.node.kubelet_up or api_is_away(m):
        return None
    return _goes_for_good(pod)


@refused_pod_is_finalized.clause("grace", on=pods.API_DELETE)
def refused_pod_is_deleted_without_grace(m: Moment) -> Findings:
    """The kubelet's own DELETE has grace 0."""
    pod = pods.pod_of_write(m)
    if pod is None or pod.static or pod.sandboxes or pod.status is None or pod.status.phase != "Failed":
        return None
    if not _is_a_refusal(pod.status.reason):
        return None
    grace = getattr(m.record, "grace", None)
    return KEPT if grace == 0 else broken(f"pod {pod.name} is deleted with grace {grace}, expected 0")


@contract("ADMIT-11", on=FINISHED, needs=(CRI, PODS, STATUS))
def admission_comes_first(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """The kubelet makes no runtime call for a pod before it is admitted: for a refused pod there is
    no call.
    """
    if status.phase != "Failed" or pod.finished or not pod.born:
        return None
    if not _is_a_refusal(status.reason) or status.reason in _LATER | {"Evicted", "NodeShutdown"}:
        return None
    if pod.set_t is None or m.node.started_t is None or pod.set_t < m.node.started_t:
        return None
    seq = pod.note(_Work).call_seq
    if seq:
        return broken(f"{status.reason}: pod {pod.name} is refused after its sandbox was asked for", seq)
    return KEPT


_REFUSED = event(*sorted(REFUSALS - {"Evicted"}))


@contract("ADMIT-05", on=kubelet("started"), needs=(CRI, PODS, STATUS), versions=since("1.29"))
def ended_pods_are_not_admitted_again(m: Moment) -> Iterator[Finding]:
    """A kubelet that starts admits its pods again, except those that have ended: they stay as they ended.

    A deadline that has passed meanwhile gives a reason, whatever the phase is (kubelet_pods.go).
    """
    for pod in m.world.pods.values():
        if not pod.finished or not pod.wanted or not pod.born or pod.status is None or pod.static:
            continue
        phase, reasons = pod.finished, {pod.status.reason}
        if pod.spec is not None and pod.spec.active_deadline_seconds is not None:
            reasons.add("DeadlineExceeded")
        yield answered(
            by=LIFE_ENDS.either(deleted().where(pods.of(pod))),
            not_before=status().where(_says_otherwise(phase, reasons)).either(_REFUSED).where(pods.of(pod)),
            whole_node=True,
            text=f"pod {pod.name}, which is {phase}, is not refused",
        )


def _says_otherwise(phase: str, reasons: set[str]) -> Predicate:
    def says(m: Moment) -> bool:
        return m.status is not None and (m.status.phase != phase or m.status.reason not in reasons)

    return says
