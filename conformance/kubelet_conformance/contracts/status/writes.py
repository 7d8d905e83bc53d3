"""STATUS: how a kubelet writes statuses, of which pods, when it repeats a write, and when it writes none."""

import re
from collections import OrderedDict, deque
from typing import Any

import msgspec
from msgspec import field

from kubelet_conformance.contract import Manifest, Moment, Note, Pattern, Pod, PodStatus
from kubelet_conformance.contract.applicability import CRI, EVERY_STATUS, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import (
    call,
    deleted,
    done,
    exited,
    failed,
    pod_set,
    pod_unset,
    status,
)
from kubelet_conformance.contracts.config.sources import change_of
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.static_pod import sent_static
from kubelet_conformance.contracts.facts.status import seconds
from kubelet_conformance.contracts.facts.timing import HOUSEKEEPING, KUBELET_START, REACTION, STATUS_BATCH
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.format.records import ABSENT, ApiWrite, PodChange, Status
from kubelet_conformance.trace.world.kubelet_view import informed_by, kubelet_view

Json = dict[str, Any]
_MERGED_BY = {"conditions": "type", "podIPs": "ip", "hostIPs": "ip"}
"""The lists of a status whose elements are merged, with the field that identifies an element."""
_RESPELLED = re.compile(rb'"(?:limits|requests)":\s*\{[^}]*"[1-9]\d*000"')
"""An amount in digits: an API server gives it back as 20M, and to a kubelet the two are not the same."""
API = Pattern(frozenset({"api"}))
_OK, _NOT_FOUND, _SERVER_ERROR = 200, 404, 500
_NAMES_REMEMBERED = 1000


def _writes_of_pods(m: Moment) -> bool:
    record = m.record
    return isinstance(record, ApiWrite) and record.resource == "pods" and record.verb in _CHANGES


def _is_missed(m: Moment) -> bool:
    return isinstance(m.record, ApiWrite) and m.record.verb == "get" and m.record.code == _NOT_FOUND


_CHANGES = frozenset({"patch", "update", "put"})
CHANGES = API.where(_writes_of_pods)
MISSED = API.where(_is_missed)


class _Stored:
    """The status of a pod that was last stored."""

    def __init__(self) -> None:
        self.status = ABSENT
        self.is_new = False
        """No PATCH has come with it yet; either of the two may be recorded first."""


@contract("STATUS-01", on=CHANGES, needs=(EVERY_STATUS,))
def statuses_are_patched(m: Moment) -> Findings:
    """A status is written by a PATCH of the status alone, which names the pod's UID and changes something."""
    write = m.record
    if not isinstance(write, ApiWrite):
        return None
    if write.verb != "patch" or write.subresource != "status":
        return broken(f"a pod is changed by {write.verb} of pods/{write.subresource}".rstrip("/"))
    if not write.precondition:
        return broken("the PATCH of a status does not name a UID")
    pod = m.world.pod_of_object(write.uid)
    if pod is None or write.code != _OK or not memoryview(write.body):
        return KEPT
    stored = pod.note(_Stored)
    # Whatever others have written since the last status is not known.
    is_new = stored.is_new or _written_by_others(pod) or _changes(stored.status, write.body)
    stored.is_new = False
    return KEPT if is_new else broken(f"the PATCH of {pod.name} changes nothing", pod.status_seq)


def _written_by_others(pod: Pod) -> bool:
    return pod.changed_t is None or pod.status_t is None or pod.changed_t >= pod.status_t


def _changes(status: msgspec.Raw, body: msgspec.Raw) -> bool:
    """Whether a patch changes what is stored, as far as that is known."""
    if not memoryview(status) or _RESPELLED.search(memoryview(body)):
        return True
    stored: Json = msgspec.json.decode(status)
    changes: Json = msgspec.json.decode(body).get("status", {})
    return any(_differs(stored, *each) for each in changes.items() if each[0][0] != "$")


def _differs(stored: Json, name: str, value: Any) -> bool:  # noqa: ANN401 - a JSON value
    """Whether a part of a patch changes what is stored; lists of the API's merge by a key, or are whole."""
    before = stored.get(name)
    key = _MERGED_BY.get(name)
    if key is None or not value or not before:
        return bool(before != value)
    known: dict[str, Json] = {each[key]: each for each in before}
    return any("$patch" in each or _is_changed(known.get(each[key], {}), each) for each in value)


def _is_changed(before: Json, changes: Json) -> bool:
    return any(before.get(field) != new for field, new in changes.items())


@observer(on=status())
def _status_is_stored(m: Moment, pod: Pod) -> None:
    """Record the stored status."""
    if isinstance(m.record, Status):
        stored = pod.note(_Stored)
        stored.status, stored.is_new = m.record.status, True


@contract("STATUS-03", on=pod_set(), needs=(EVERY_STATUS, PODS))
def foreign_phase_is_put_right(m: Moment, pod: Pod, manifest: Manifest) -> Findings:
    """A phase that another client has written is corrected with the next batch, 10 s later at the latest.

    A pod that is Failed or has succeeded by another client may be stopped instead.
    """
    reported = manifest.status
    if reported is None or pod.status is None or not pod.status.conditions:
        return None
    if not reported.phase or reported.phase == pod.status.phase or not m.node.kubelet_up:
        return None
    if reported.terminal and (pod.finished or pod.termination is not None or change_of(m) != "reconciled"):
        return None
    is_stopped = call("StopContainer", "StopPodSandbox").where(pods.of(pod))
    return answered(
        by=status()
        .where(pods.of(pod))
        .where(lambda n: n.status is not None and n.status.phase != reported.phase),
        within=STATUS_BATCH + REACTION,
        unless=pods.FAULT.either(
            is_stopped, pods.TERMINATION_ASKED.where(pods.of(pod)), pod_set().where(pods.of(pod))
        ),
        whole_node=True,
        text=f"the phase of {pod.name}, which is {reported.phase} by another client, is corrected",
    )


class _Successors(Note):
    """Which pod had the namespace and name of a pod before it, by UID."""

    of: OrderedDict[str, str] = field(default_factory=OrderedDict[str, str])


@contract("STATUS-04", on=status(), needs=(STATUS, PODS, CRI))
def successor_has_its_own_status(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """The status of a pod is not written to another one that has its name now."""
    before = m.node.note(_Successors).of.get(pod.uid)
    if before is None:
        return None
    for said in status.every_container:
        container = m.world.containers.get(said.runtime_id)
        if container is not None and container.pod is not pod:
            return broken(f"{said.name} of {pod.name} has the id of a container of another pod", pod.set_seq)
    return KEPT


@observer(on=pod_set())
def _name_is_taken_over(m: Moment, manifest: Manifest) -> None:
    """Record which pod follows which."""
    meta = manifest.metadata
    if m.pod is not None:
        return
    before = m.world.names.get((meta.namespace or "default", meta.name))
    if before is not None and before.uid and meta.uid and before.uid != meta.uid:
        known = m.node.note(_Successors).of
        known[meta.uid] = before.uid
        if len(known) > _NAMES_REMEMBERED:
            known.popitem(last=False)


_MISSES_MAX, _MISSES_REMEMBERED = 5, 50
"""How often in one batch a status may be written for a pod that is gone: its last changes."""


class _Missed(Note):
    """When pods were asked for that were not there, the latest of each."""

    of: OrderedDict[tuple[str, str], deque[float]] = field(
        default_factory=OrderedDict[tuple[str, str], deque[float]]
    )
    changes: deque[float] = field(default_factory=lambda: deque(maxlen=_MISSES_REMEMBERED))
    """When statuses changed, or containers started and ended, which makes new ones."""


@contract("STATUS-05", on=MISSED, needs=(EVERY_STATUS,))
def missing_pod_is_left_alone(m: Moment, write: ApiWrite) -> Findings:
    """NotFound for a pod is final: its status is not written again and again."""
    name, known = (write.namespace, write.name), m.node.note(_Missed).of
    times = known.setdefault(name, deque(maxlen=_MISSES_REMEMBERED))
    known.move_to_end(name)
    if len(known) > _NAMES_REMEMBERED:
        known.popitem(last=False)
    times.append(m.t)
    recent = [t for t in times if m.t - t <= STATUS_BATCH]
    # A question does not say whose it is: each of several pods that had the name has its own.
    namesakes = sum((pod.namespace, pod.name) == name for pod in m.world.pods.values())
    changes = sum(m.t - t <= STATUS_BATCH for t in m.node.note(_Missed).changes)
    # The status of each other pod that is gone has changed too, and each change makes a batch of all.
    others = sum(m.t - missed[-1] <= STATUS_BATCH for missed in known.values()) - 1
    if len(recent) <= _MISSES_MAX * max(1, namesakes) + changes + others:
        return KEPT
    text = f"was asked for {len(recent)} times in {m.t - recent[0]:.1f} s"
    return broken(f"{write.name}, which is gone, {text}")


@observer(on=done("StartContainer").either(exited(), status()))
def _container_changes(m: Moment) -> None:
    """Record what makes new statuses; with any, each status that was not written yet is tried again."""
    m.node.note(_Missed).changes.append(m.t)


class _Removals(Note):
    """When static pods were removed from their source, by namespace and name."""

    t: OrderedDict[tuple[str, str], float] = field(default_factory=OrderedDict[tuple[str, str], float])


_FORGOTTEN = 2 * HOUSEKEEPING + REACTION
"""How long after a removal, with nothing left to stop, the status of a pod is forgotten for certain."""


@contract("STATUS-14", on=status(), needs=(STATUS, PODS, CRI))
def status_of_a_removed_pod_is_forgotten(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """A pod that no source has any more leaves no status behind: if it comes back it starts without one."""
    origin = seconds(m.header.started)
    if not pod.static or origin is None:
        return None
    removed_t = m.node.note(_Removals).t.get((pod.namespace, pod.name))
    begun = seconds(status.start_time)
    if removed_t is None or pod.changed_t is None or begun is None:
        return None
    if pod.changed_t - informed_by(m, removed_t) < _FORGOTTEN or m.t < pod.changed_t:
        return None
    if begun - origin >= removed_t:
        return KEPT
    return broken(f"the startTime of {pod.name}, which was gone for a while, is that of its former instance")


@observer(on=pod_unset())
def _static_pod_is_removed(m: Moment, pod: Pod) -> None:
    """Record when static pods are removed; one that needs long to stop is not forgotten at once."""
    known = m.node.note(_Removals).t
    if not pod.static:
        return
    known.pop((pod.namespace, pod.name), None)
    if not m.node.kubelet_up:
        return
    grace = pod.spec.grace_seconds if pod.spec is not None else 0
    known[pod.namespace, pod.name] = m.t + grace
    if len(known) > _NAMES_REMEMBERED:
        known.popitem(last=False)


@observer(on=pod_set())
def _static_pod_is_back(m: Moment) -> None:
    """Record which come back so soon, or before they were stopped, that they were never forgotten."""
    known, name = m.node.note(_Removals).t, sent_static(m)
    if name is not None and (m.t - known.get(name, m.t) < _FORGOTTEN or _was_there_lately(m)):
        known.pop(name, None)


def _was_there_lately(m: Moment) -> bool:
    """The former instance of the pod has not ended, or only just: its worker has yet to stop it."""
    pod = m.pod
    if pod is None:
        return False
    ends = [stop.end_t for one in pod.sandboxes for stop in one.stops]
    left = any(one.state != "removed" and not one.stops for one in pod.sandboxes)
    is_busy = left or any(one.state == "ready" for one in pod.sandboxes) or pods.worker_is_busy(pod)
    return is_busy or any(t is None or m.t - t < _FORGOTTEN for t in ends)


@observer(on=LIFE_ENDS)
def _kubelet_ends(m: Moment) -> None:
    """Record which the kubelet had no time to forget."""
    known = m.node.note(_Removals).t
    for name in [name for name, t in known.items() if m.t - t < _FORGOTTEN]:
        del known[name]


_CANNOT_START = failed("RunPodSandbox", "ImageStatus", "CreateContainer", "StartContainer").either(
    call("PullImage")
)


@contract("STATUS-15", on=pod_set(), needs=(CRI, PODS))
def standalone_kubelet_runs_its_pods(m: Moment, manifest: Manifest) -> Findings:
    """A kubelet without an API server runs its static pods, and writes nothing."""
    if not m.header.standalone or m.pod is not None or m.replaced is not None or not m.node.kubelet_up:
        return None
    if manifest.spec.volumes or pods.is_refused(m, manifest) or kubelet_view(m).bad_t is not None:
        return None
    if not isinstance(m.record, PodChange) or m.record.source != "file":
        return None  # A URL is asked every 20 s.
    if any(spec.pull_policy == "Never" for _, spec in manifest.spec.entries.values()):
        return None  # Its image may be absent.
    name = manifest.metadata.name

    def is_refused(n: Moment) -> bool:
        is_own = isinstance(n.record, Status) and n.record.name.startswith(name)
        return is_own and n.status is not None and n.status.phase == "Failed"

    return answered(
        by=done("StartContainer").where(lambda n: n.pod is not None and n.pod.name.startswith(name)),
        within=KUBELET_START + REACTION,
        unless=pods.FAULT.either(pod_unset(), pod_set(), _CANNOT_START, status().where(is_refused)),
        whole_node=True,
        text=f"a container of {name} is started",
    )


@standalone_kubelet_runs_its_pods.clause("writes nothing", on=API)
def standalone_kubelet_writes_nothing(m: Moment) -> Findings:
    """A kubelet without an API server writes to none."""
    return broken("a kubelet without an API server writes to one") if m.header.standalone else None


@contract("STATUS-19", on=pod_set(), needs=(EVERY_STATUS, PODS, CRI))
def finished_pod_can_be_deleted(m: Moment, pod: Pod, manifest: Manifest) -> Findings:
    """A pod that has ended and whose last status is written is removed within 10 s once it is deleted."""
    meta = manifest.metadata
    if meta.deletion_timestamp is None or pod.termination is not None:
        return None
    if not pod.finished or pod.static or not pod.born or not m.node.kubelet_up or m.node.started_t is None:
        return None
    if any(c.state not in {"exited", "removed"} for c in pod.every_container()):
        return None
    if m.t - m.node.started_t < KUBELET_START:
        return None
    return answered(
        by=pods.API_DELETE.where(lambda n: m.world.pod_of_object(_uid(n)) is pod).either(
            deleted().where(pods.of(pod))
        ),
        within=STATUS_BATCH + REACTION,
        unless=pods.FAULT,
        whole_node=True,
        text=f"{pod.name}, which has ended, is deleted",
    )


def _uid(m: Moment) -> str:
    return m.record.uid if isinstance(m.record, ApiWrite) else ""


@contract("STATUS-20", on=pods.STATUS_WRITE, needs=(EVERY_STATUS,))
def failed_write_is_repeated(m: Moment) -> Findings:
    """A status that could not be written is written with the next change, or the next batch after 10 s."""
    write = m.record
    pod = m.world.pod_of_object(_uid(m))
    if not isinstance(write, ApiWrite) or pod is None or (write.code or 0) < _SERVER_ERROR:
        return None
    if pod.status_seq == m.seq - 1:
        return None  # It was stored all the same, as the kubelet sees when it comes to write it again.
    return answered(
        by=pods.STATUS_WRITE.where(lambda n: m.world.pod_of_object(_uid(n)) is pod),
        within=STATUS_BATCH + REACTION,
        unless=deleted().where(pods.of(pod)),
        whole_node=True,
        text=f"the status of {pod.name} is written again after {write.code}",
    )
