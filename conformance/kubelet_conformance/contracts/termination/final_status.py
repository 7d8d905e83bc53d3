"""TERM: what the last statuses of a pod say, and when its object may go."""

import math

from kubelet_conformance.contract import Container, Moment, Note, Pod, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, STORED_STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, observer
from kubelet_conformance.contract.patterns import call, deleted, happened, status
from kubelet_conformance.contracts.facts import timing
from kubelet_conformance.contracts.facts.pod import API_DELETE, pod_of_write
from kubelet_conformance.contracts.facts.sandbox import FINISHED
from kubelet_conformance.contracts.facts.static_pod import has_no_stored_status, is_without_a_past
from kubelet_conformance.contracts.facts.status import AGAIN, UNREADY_AS, is_lost, phase_of_another, was_lost
from kubelet_conformance.trace.format.manifests import ContainerStatus, PodSpec, PodStatus
from kubelet_conformance.trace.format.records import ApiWrite
from kubelet_conformance.trace.world.kubelet_view import informed_by, kubelet_view
from kubelet_conformance.trace.world.missed_updates import FOLLOWED_AGAIN, is_watch_late
from kubelet_conformance.trace.world.pod_cgroups import PodCgroup


def _ends_here(m: Moment) -> bool:
    """The first terminal phase of a pod, unless its source had sent it as ended already."""
    pod = m.pod
    if pod is None or m.status is None or not m.status.terminal or not pod.born:
        return False
    sent = pod.sent_status
    before = pod.status
    return not (sent and sent.terminal) and not (before and before.terminal) and not _is_refused_anew(m, pod)


def _is_refused_anew(m: Moment, pod: Pod) -> bool:
    """A kubelet that has started since refuses a pod that ran, of which its first status tells nothing.

    That may be written before housekeeping has stopped what runs: no worker knows the pod (errata).
    """
    before, status = pod.status, m.status
    if before is None or before.terminal:
        return False
    tells_nothing = status is not None and not status.conditions and not status.by_name
    return tells_nothing and _is_of_another_kubelet(m, pod)


FIRST_TERMINAL = status().where(_ends_here)


@contract("TERM-15", on=FIRST_TERMINAL, needs=(CRI, STORED_STATUS))
def terminal_phase_waits_for_the_containers(_: Moment, pod: Pod) -> Findings:
    """No status has a terminal phase while a container of the pod runs or is being stopped."""
    if not pod.containers:
        return None
    for container in pod.every_container():
        if container.state == "running":
            return broken(f"the phase is terminal while container {container.name} runs", container.start)
    return KEPT


@contract("TERM-32", on=FIRST_TERMINAL, needs=(CRI, STORED_STATUS), versions=since("1.23"))
def terminal_phase_waits_for_the_sandbox(m: Moment) -> Findings:
    """The first status with a terminal phase comes after StopPodSandbox returned.

    A static pod's does not wait: it is written to the mirror, whose UID no worker knows.
    """
    known = [s for s in m.pod.sandboxes if s.born and s.state != "removed"] if m.pod else []
    if not known:
        return None
    for sandbox in known:
        if not _is_stopped(sandbox):
            if m.pod is not None and m.pod.static:
                return None
            return broken(f"the phase is terminal before sandbox {sandbox.id[:12]} was stopped", sandbox.run)
    return KEPT


def _is_stopped(sandbox: Sandbox) -> bool:
    return any(stop.is_done for stop in sandbox.stops)


def _is_deleted_for_good(pod: Pod) -> bool:
    """A pod of the API that is being deleted with a grace period."""
    end = pod.termination
    return end is not None and end.cause == "deleted" and bool(end.grace) and not pod.static


@contract("TERM-16", on=FIRST_TERMINAL, needs=(CRI, PODS, STATUS), versions=since("1.27"), clause="phase")
def deleted_pod_ends_in_the_phase_of_its_exit_codes(
    _: Moment, pod: Pod, spec: PodSpec, status: PodStatus
) -> Findings:
    """A deleted pod becomes Succeeded if all its app containers ended with 0, otherwise Failed, before its
    object goes; static pods are exempt, and those that another client has ended.
    """
    if not _is_deleted_for_good(pod) or status.reason or phase_of_another(pod):
        return None
    ended = {c.name: c.state.terminated for c in status.container_statuses or ()}
    codes = [end.exit_code if end else None for end in (ended.get(c.name) for c in spec.containers)]
    expected = "Succeeded" if all(code == 0 for code in codes) else "Failed"
    if status.phase != expected:
        return broken(f"expected {expected} for exit codes {codes}, got {status.phase}")
    return KEPT


@deleted_pod_ends_in_the_phase_of_its_exit_codes.clause("before-it-goes", on=deleted())
def deleted_pod_has_ended(m: Moment, pod: Pod) -> Findings:
    """Where every status is recorded, there is a terminal one before the object goes."""
    if not pod.born or not _is_deleted_for_good(pod) or m.header.channels.api != "full":
        return None
    if not pod.finished:
        return broken(f"pod {pod.name} went without a terminal phase", pod.status_seq)
    return KEPT


@contract("TERM-18", on=API_DELETE, needs=(CRI, PODS, STATUS), versions=since("1.27"))
def object_is_deleted_when_the_pod_has_ended(m: Moment) -> Findings:
    """The kubelet deletes a pod object only when it carries a deletionTimestamp and its phase is terminal."""
    pod = pod_of_write(m)
    if pod is None or not pod.born or pod.static:
        return None
    if pod.termination is None:
        return broken(f"pod {pod.name} is deleted without a deletion request", pod.set_seq)
    if not pod.finished:
        return broken(f"pod {pod.name} is deleted without a terminal phase", pod.status_seq)
    return KEPT


@object_is_deleted_when_the_pod_has_ended.clause("cgroup", on=API_DELETE)
def object_is_deleted_after_its_cgroup(m: Moment) -> Findings:
    """The pod's cgroup is removed before its object."""
    pod = pod_of_write(m)
    if pod is None or not pod.born or pod.static or not pod.note(PodCgroup).there:
        return None
    return broken(f"pod {pod.name} is deleted, and its cgroup is still there", pod.set_seq)


@contract("TERM-19", on=API_DELETE, needs=(CRI,))
def last_delete_names_the_uid(m: Moment) -> Findings:
    """The kubelet's final DELETE has a grace period of 0 and the pod's UID as precondition."""
    pod, write = pod_of_write(m), m.record
    if pod is None or pod.static or not isinstance(write, ApiWrite):
        return None
    if write.grace != 0:
        return broken(f"expected gracePeriodSeconds 0, got {write.grace}")
    if write.precondition != pod.uid:
        return broken(f"expected the UID {pod.uid} as precondition, got {write.precondition}")
    return KEPT


@contract("TERM-30", on=AGAIN, needs=(CRI, PODS, STATUS))
def final_status_keeps_the_past(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """startTime, podIP, restart counts and last states are kept in the statuses of a pod that is ending.

    A kubelet that starts knows no status of a static pod: its manifest has none. Nor does one that has
    forgotten a pod whose file is gone, where the mirror is gone too, or is reported late. The address of a
    sandbox that was stopped, or died, before it started it does not know: it asks the runtime alone.
    """
    before = pod.status
    if before is None or not (pod.termination or status.terminal):
        return None
    if has_no_stored_status(pod) or _is_reported_late(m, pod):
        return None
    if (pod.static and _is_of_another_kubelet(m, pod)) or _is_refused_anew(m, pod):
        return None
    if before.start_time and status.start_time != before.start_time:
        return broken(f"startTime was {before.start_time}, is {status.start_time}", pod.status_seq)
    started_t = m.node.started_t or 0.0
    addresses = [each.ip for each in pod.sandboxes if _tells_its_address(each, started_t)]
    if before.pod_ip in addresses:
        addresses = addresses[addresses.index(before.pod_ip) :]
    # A pod that is to go may still be in a sandbox that was made for it since.
    if before.pod_ip and addresses and status.pod_ip not in {before.pod_ip, *filter(None, addresses)}:
        return broken(f"podIP was {before.pod_ip}, is {status.pod_ip or 'gone'}", pod.status_seq)
    return _lost_count(m, pod, before.by_name, status.by_name) or KEPT


def _tells_its_address(sandbox: Sandbox, started_t: float) -> bool:
    """The runtime has reported, or reports, the sandbox's address to a kubelet that started then."""
    was_asked = any(stop.end_t is None and stop.call.t < started_t for stop in sandbox.stops)
    if sandbox.state == "removed" or was_asked:
        return False  # Perhaps it was stopped, and the kubelet before got no answer.
    stopped = (stop.end_t for stop in sandbox.stops if stop.succeeded and stop.end_t is not None)
    end_t = sandbox.died_t if sandbox.died_t is not None else next(stopped, None)
    return sandbox.state == "ready" or (end_t is not None and end_t >= started_t)


def _is_reported_late(m: Moment, pod: Pod) -> bool:
    """The pod's file is gone, and the kubelet has not yet received what it wrote to the mirror itself."""
    if not pod.static or pod.wanted:
        return False
    view = kubelet_view(m)
    # It writes to an API server that is back, or over a new connection, before it watches again.
    is_connected_anew = view.api_away_t is None and view.api_was_faulty(m.t - FOLLOWED_AGAIN)
    is_back = -math.inf < view.api_back_t <= (pod.status_t or 0.0)
    is_informed_later = is_back and m.t <= informed_by(m, view.api_back_t) < math.inf
    return is_connected_anew or is_watch_late(m.node, m.t) or is_informed_later


def _is_of_another_kubelet(m: Moment, pod: Pod) -> bool:
    """The last status was written before this kubelet started."""
    return pod.status_t is not None and pod.status_t < (m.node.started_t or 0.0)


def _lost_count(
    m: Moment, pod: Pod, before: dict[str, ContainerStatus], new: dict[str, ContainerStatus]
) -> Findings:
    """A restart count that has fallen, or a last state that is lost."""
    for name, old in before.items():
        kept = new.get(name)
        if kept is not None and (_is_left_over(m, kept, old) or is_without_a_past(pod, name)):
            continue
        if kept is not None and _is_counted_anew(m, pod, kept, old):
            continue
        if kept is None or kept.restart_count < old.restart_count - _is_made_up(kept, old):
            return broken(f"the restart count of {name} was {old.restart_count}, is lost", pod.status_seq)
        forgotten = kept.last_state.terminated is None and kept.state.terminated is None
        is_gone = name in pod.note(_TakenAway).names or _is_alone(m, pod, kept)
        if old.last_state.terminated and forgotten and not is_gone:
            return broken(f"the last state of {name} is lost", pod.status_seq)
    return None


def _is_made_up(kept: ContainerStatus, old: ContainerStatus) -> bool:
    """An instance whose record could not be read was shown as ended and counted as restarted; that it had
    ended became its last state where it could not be started.
    """
    return is_lost(old) or (was_lost(old) and kept.runtime_id == old.runtime_id)


class _TakenAway(Note):
    """The containers of a pod of which another client has removed a record: what it said is lost."""

    names: set[str] = set()


@observer(on=happened("removed"))
def _take_removal(_: Moment, pod: Pod, container: Container) -> None:
    pod.note(_TakenAway).names.add(container.name)


class _Collected(Note):
    """When the round of garbage collection began that last removed a record of each container."""

    since: dict[str, float] = {}


class _Round(Note):
    """Garbage collection looks once, and then removes record after record."""

    began_t: float = -math.inf
    last_t: float = -math.inf


@observer(on=call("RemoveContainer"))
def _take_collection(m: Moment, pod: Pod, container: Container) -> None:
    latest = m.node.note(_Round)
    if m.t > latest.last_t + timing.TOGETHER:
        latest.began_t = m.t
    latest.last_t = m.t
    pod.note(_Collected).since[container.name] = latest.began_t


def _is_alone(m: Moment, pod: Pod, kept: ContainerStatus) -> bool:
    """The records of all that ran before it are gone.

    It was made anew in a new sandbox, for which they were removed; or garbage collection looked while it had
    been made and did not run yet: then it counts as the newest that does not. The round may end later.
    """
    one = m.world.containers.get(kept.runtime_id)
    if one is None:
        return False
    others = [each for each in pod.containers.get(one.name, ()) if each is not one]
    if any(each.state != "removed" and each.started_t is not None for each in others):
        return False
    looked_t = (one.started_t or m.t) + timing.TOGETHER
    return one.kind in {"init", "sidecar"} or pod.note(_Collected).since.get(one.name, 0.0) < looked_t


def _is_counted_anew(m: Moment, pod: Pod, kept: ContainerStatus, old: ContainerStatus) -> bool:
    """No record was left when it was made in a new sandbox: then only logs show its restarts."""
    one = m.world.containers.get(kept.runtime_id)
    if one is None or kept.runtime_id == old.runtime_id:
        return False
    if one.kind not in {"init", "sidecar"} or not _is_alone(m, pod, kept):
        return False
    return kept.restart_count == one.attempt and one.sandbox is not None and one.sandbox.attempt > 0


def _is_left_over(m: Moment, kept: ContainerStatus, old: ContainerStatus) -> bool:
    """The newest record has been removed, and an older one is left: only what has run is collected.

    Of a pod that goes the newest record is the first to be removed, and news of that may report the others
    (pod_container_deletor.go, pleg/evented.go).
    """
    if old.runtime_id in m.world.containers:
        return False
    left, newest = m.world.containers.get(kept.runtime_id), m.pod.newest(kept.name) if m.pod else None
    if left is not None and (left.start_failed or left.state == "created"):
        return True
    if newest is None or newest.id != old.runtime_id or newest.removed_t is None:
        return False
    went_later = m.world.went_since(kept.runtime_id, newest.removed_t)
    return kept.runtime_id != old.runtime_id and (left is not None or went_later)


@contract("TERM-31", on=FINISHED, needs=(CRI, STATUS), versions=since("1.23"))
def ended_pod_is_not_ready(m: Moment, status: PodStatus) -> Findings:
    """With a terminal phase, Ready and ContainersReady are False, for PodCompleted or PodFailed.

    Where containers have not ended by their records, it is the end of the pod that makes the phase: then
    conditions that were False before keep their reason.
    """
    if not status.terminal or m.pod is None or not status.conditions:
        return None
    reason = UNREADY_AS[status.phase]
    is_made = any(is_lost(one) or one.state.terminated is None for one in status.lasting_containers)
    if is_made and m.header.channels.api == "served":
        return None  # It is made so as it is written, and a kubelet without an API server writes nothing.
    reasons = {reason, "ContainersNotReady"} if is_made else {reason}
    for kind in ("Ready", "ContainersReady"):
        condition = status.condition(kind)
        if condition is None or condition.status != "False" or condition.reason not in reasons:
            got = f"{condition.status} ({condition.reason})" if condition else "none"
            return broken(f"expected {kind} False ({reason}) with phase {status.phase}, got {got}")
    return KEPT
