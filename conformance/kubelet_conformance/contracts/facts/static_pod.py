"""Static pods: their names, their mirrors, and the instances of one that is removed and comes back."""

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import field

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod, Predicate, Sandbox
from kubelet_conformance.contract.definition import answered, observer
from kubelet_conformance.contract.patterns import call, deleted, exited, pod_set, pod_unset
from kubelet_conformance.contracts.facts.kubelet import is_informed
from kubelet_conformance.contracts.facts.pod import FAULT, MIRROR, about, of, runs_post_start
from kubelet_conformance.contracts.facts.probe import post_start_in_flight
from kubelet_conformance.contracts.facts.sandbox import sandbox_asked
from kubelet_conformance.contracts.facts.status import is_lost
from kubelet_conformance.contracts.facts.timing import FILE_POLL, REACTION
from kubelet_conformance.trace.format.bodies import PodSandboxConfig
from kubelet_conformance.trace.format.manifests import ContainerStatus
from kubelet_conformance.trace.format.records import ApiWrite, Deleted, PodChange
from kubelet_conformance.trace.world.kubelet_view import informed_by, kubelet_view
from kubelet_conformance.trace.world.mirror_pods import Mirror
from kubelet_conformance.trace.world.resolve import full_name
from kubelet_conformance.trace.world.views import Latest

SOURCE, HASH, SEEN = "kubernetes.io/config.source", "kubernetes.io/config.hash", "kubernetes.io/config.seen"
"""Annotations that the kubelet puts on pods (config/common.go)."""
_STATIC = frozenset({"file", "http"})
FullName: TypeAlias = tuple[str, str]
"""Namespace and name."""


def is_static(config: PodSandboxConfig) -> bool:
    """The kubelet says that the pod is a static one."""
    return config.annotations.get(SOURCE) in _STATIC


def sent_static(m: Moment) -> FullName | None:
    """Namespace and name that the manifest of this `pod` record gets; None where it is no static pod's."""
    record = m.record
    if not isinstance(record, PodChange) or record.source not in _STATIC:
        return None
    if m.manifest is not None:
        meta = m.manifest.metadata
        return meta.namespace or "default", full_name(m.world, record.source, meta.name)
    return record.namespace or "default", full_name(m.world, record.source, record.name)


def is_sent_for(pod: Pod) -> Predicate:
    """A manifest of this static pod's namespace and name is sent or removed."""
    return lambda m: sent_static(m) == (pod.namespace, pod.name)


HOLDS_UP = call("PullImage").either(call("ExecSync").where(runs_post_start))
"""A sync that was in progress goes on to its end, and waits for images and for hooks."""


def stops_after_removal(m: Moment, pod: Pod, text: Callable[[Container], str]) -> Iterator[Finding]:
    """Each running container of a static pod is stopped soon after its manifest was removed.

    A sidecar is stopped when the app containers have ended, for which they have the pod's grace. A sync that
    waits for a hook or an image goes on to its end.
    """
    grace = pod.spec.grace_seconds if pod.spec is not None else 0
    runs_apps = any(c.state == "running" for c in pod.of_kind("app"))
    if sent_static(m) is None or not pod.static or not pod.born or not is_informed(m):
        return
    if post_start_in_flight(pod) is not None:
        return
    held_up = HOLDS_UP.where(of(pod))
    for container in pod.every_container():
        if container.state == "running" and container.born and not container.stopping:
            kills = call("StopContainer", "ExecSync").where(about(container))
            yield answered(
                by=kills.either(call("StopPodSandbox").where(of(pod))),
                within=FILE_POLL + REACTION + (grace if runs_apps and container.kind == "sidecar" else 0),
                unless=FAULT.either(
                    pod_set().where(is_sent_for(pod)), held_up, exited().where(about(container))
                ),
                whole_node=True,
                text=text(container),
            )


N = TypeVar("N")


class _Lasting(Note):
    """Notes of static pods by kind and UID, which outlive one instance of the pod."""

    notes: Latest[tuple[type, str], Any] = field(default_factory=Latest[tuple[type, str], Any])


def note_for_all_instances(m: Moment, pod: Pod, kind: type[N]) -> N:
    """A judge's own state for this pod, kept across instances of a static pod: one value of each type."""
    note = pod.note(kind)
    if not pod.static or not pod.uid:
        return note
    found: N = m.node.note(_Lasting).notes.setdefault((kind, pod.uid), note)
    return found


_LOOKED_AFTER_SINCE = (1, 27)


class _Life(Note):
    """When the pod's last mirror was deleted."""

    mirror_gone_t: float = -math.inf
    gone_uid: str = ""


class _Removed(Note):
    """When files of static pods were last removed, by namespace and name; kept when a pod is forgotten."""

    t: Latest[FullName, float] = field(default_factory=Latest[FullName, float])


class _Edited(Note):
    """When the pod's file was last edited into that of another pod, which ends it like a removal."""

    t: float = -math.inf


@observer(on=deleted())
def take_deletions(m: Moment, pod: Pod) -> None:
    """Record which mirrors are deleted."""
    if pod.static and isinstance(m.record, Deleted):
        pod.note(_Life).mirror_gone_t, pod.note(_Life).gone_uid = m.t, m.record.uid


@observer(on=pod_unset().either(pod_set()))
def take_removals(m: Moment) -> None:
    """Record which files are removed, and which are edited."""
    name = sent_static(m)
    if m.replaced is not None:
        m.replaced.note(_Edited).t = m.t
    elif name is not None and m.manifest is None:
        m.node.note(_Removed).t[name] = m.t


def _file_went_t(m: Moment, pod: Pod) -> float:
    """When the pod's file was last removed, or became that of another pod; minus infinity if never."""
    gone_t = m.node.note(_Removed).t.get((pod.namespace, pod.name), -math.inf)
    return max(gone_t, pod.note(_Edited).t)


def is_of_a_former_instance(container: Container) -> bool:
    """The container is older than the return of its static pod: it ends as its file had been removed."""
    pod, created_t = container.pod, container.created_t
    return pod is not None and created_t is not None and created_t <= pod.back_t


def has_come_back(m: Moment, pod: Pod) -> bool:
    """The pod is a static one that ended before, as its file was removed or edited."""
    return pod.static and (pod.finished_before or _file_went_t(m, pod) > -math.inf)


def ended_since_its_file_went(m: Moment, pod: Pod) -> bool:
    """The pod's file was removed once, and the kubelet, perhaps late to notice, has stopped a sandbox since.

    What it reported then of containers that never ran stays until they have a record (kubelet_pods.go
    convertToAPIContainerStatuses), though the pod is back by now.
    """
    gone_t = _file_went_t(m, pod)
    return gone_t > -math.inf and any(stop.call.t >= gone_t for one in pod.sandboxes for stop in one.stops)


def end_is_made_up(m: Moment, pod: Pod | None, said: ContainerStatus) -> bool:
    """The container is shown as lost because its static pod ended, or the pod's former instance did.

    What does not run then is shown as ended, whatever its record says, and the phase stays, but for pods
    of the API (status_manager.go TerminatePod).
    """
    if pod is None or not is_lost(said):
        return False
    return (pod.static and pod.termination is not None) or ended_since_its_file_went(m, pod)


def is_left_to_itself(m: Moment, pod: Pod) -> bool:
    """The pod's file, or by force its object, is gone: up to 1.26 a kill that failed is not repeated.

    Nor one that was put off: as long as it has a worker only what config has is synced again (WORK-27).
    """
    if m.kubernetes is None or m.kubernetes >= _LOOKED_AFTER_SINCE:
        return False
    is_going = not pod.wanted or "pod:remove" in m.keys
    end = pod.termination
    return is_going and (pod.static or end is None or end.grace == 0 or end.cause in {"forced", "removed"})


def run_before_removal_was_noticed(m: Moment, pod: Pod, sandbox: Sandbox) -> bool:
    """The sandbox was run before the kubelet could notice that the file was removed, and is to be stopped."""
    gone_t = _file_went_t(m, pod)
    return (
        gone_t > -math.inf and sandbox.run is not None and sandbox.run.t <= informed_by(m, gone_t) + REACTION
    )


def is_without_a_past(pod: Pod, name: str) -> bool:
    """The pod's file is gone, and the container has no record any more: nothing records its restarts."""
    return pod.static and not pod.wanted and all(c.state == "removed" for c in pod.containers.get(name, ()))


def has_no_stored_status(pod: Pod) -> bool:
    """The pod's file is gone, and so is the mirror that its latest status was written to."""
    written_t = pod.status_t
    return (
        pod.static and not pod.wanted and written_t is not None and pod.note(_Life).mirror_gone_t >= written_t
    )


def has_no_mirror(m: Moment, pod: Pod) -> bool:
    """The static pod's status can be written nowhere, and an ended pod gets no mirror (STATIC-12).

    Its last mirror is gone, or it never got one, as the API server was away or requests to it failed.
    """
    if pod.static and not pod.mirror_uid:
        run, view = pod.sandbox.run if pod.sandbox is not None else None, kubelet_view(m)
        return run is not None and (view.api_was_away(run.t) or view.api_was_faulty(run.t))
    return pod.static and pod.mirror_uid == pod.note(_Life).gone_uid


def status_may_be_forgotten(m: Moment, pod: Pod) -> bool:
    """The pod is a static one, and its latest status may be forgotten: its file was removed after that.

    That is so where the kubelet that wrote it is gone, and the mirror that had it is gone or out of reach.
    """
    if not pod.static or pod.status_t is None:
        return False
    began_t = m.node.started_t or 0.0
    if m.node.started_seq > pod.status_seq and (
        pod.note(_Life).mirror_gone_t >= pod.status_t or kubelet_view(m).api_was_away(began_t)
    ):
        return True
    if not pod.wanted or pod.back_t == -math.inf:
        return not pod.wanted
    run = pod.sandbox.run if pod.sandbox is not None else None
    return run is None or run.t < pod.back_t or pod.status_t < run.t


def is_forgotten(m: Moment, pod: Pod) -> bool:
    """A new kubelet reads the last status of an API pod from its object, and has none of a static pod.

    A static pod whose file is back starts without one, and so may one whose mirror was made anew: a write
    that comes before the kubelet has been sent the mirror takes it for another pod's (`syncPod`).
    """
    if pod.wanted and status_may_be_forgotten(m, pod):
        return True
    return pod.static and pod.status_seq < max(m.node.started_seq, pod.note(Mirror).seq)


Json = dict[str, Any]
CREATED = 201


class Mirrors(Note):
    """Mirror pods by UID, the hash that the latest of each name has, and the hash of static pods by UID."""

    names: Latest[str, FullName] = field(default_factory=Latest[str, FullName])
    latest: Latest[FullName, tuple[str, int]] = field(default_factory=Latest[FullName, tuple[str, int]])
    """Mirrors that were created since the last sandbox of that name: hash and seq."""
    made: Latest[FullName, str] = field(default_factory=Latest[FullName, str])
    """The hash that the latest mirror of each name was created with."""
    unanswered: Latest[FullName, int] = field(default_factory=Latest[FullName, int])
    """Mirrors that may have been created: the kubelet has received no answer; the seq of the request."""
    hashes: Latest[str, str] = field(default_factory=Latest[str, str])


def _creates_a_mirror(m: Moment) -> bool:
    record = m.record
    if not isinstance(record, ApiWrite) or record.verb.lower() != "create" or record.resource != "pods":
        return False
    return MIRROR in (metadata_of(body_of(record)).get("annotations") or {})


CREATES_A_MIRROR: Pattern = Pattern(frozenset({"api"})).where(_creates_a_mirror)


def _is_to_go(m: Moment) -> bool:
    meta = m.manifest.metadata if m.manifest is not None else None
    return meta is not None and meta.is_mirror and meta.deletion_timestamp is not None


MIRROR_IS_TO_GO: Pattern = pod_set().where(_is_to_go)
API_WRITE: Pattern = Pattern(frozenset({"api"}))
MIRRORS = API_WRITE.either(call("RunPodSandbox"))


def body_of(record: ApiWrite) -> Json:
    """The object that was written to the API server, as JSON."""
    body: Json = msgspec.json.decode(record.body) if bytes(record.body) else {}
    return body


def metadata_of(body: Json) -> Json:
    """The metadata of an object that was written."""
    found: Json = body.get("metadata") or {}
    return found


def name_of(body: Json) -> FullName:
    """The namespace and name of an object that was written."""
    meta = metadata_of(body)
    return meta.get("namespace") or "default", meta.get("name", "")


def learn_mirrors(m: Moment) -> Mirrors:
    """Record writes of mirror pods and sandboxes of static pods, once for all judges."""
    known, record = m.node.note(Mirrors), m.record
    if isinstance(record, ApiWrite):
        if record.code == 0 and _creates_a_mirror(m):
            known.unanswered[name_of(body_of(record))] = m.seq
        if record.code == CREATED and record.uid and _creates_a_mirror(m):
            body = body_of(record)
            known.names[record.uid] = name_of(body)
            made = metadata_of(body)["annotations"][MIRROR]
            known.latest[name_of(body)] = made, m.seq
            known.made[name_of(body)] = made
    elif m.keys[0] == "call:RunPodSandbox":
        config = sandbox_asked(m)
        if is_static(config):
            known.hashes[config.metadata.uid] = config.annotations.get(HASH, "")
    return known


@observer(on=MIRRORS)
def take_mirrors(m: Moment) -> None:
    """Keep what is known of mirrors up to date."""
    learn_mirrors(m)


def is_create_of(m: Moment, pod: Pod) -> bool:
    """The record is the creation of that pod's mirror."""
    record = m.record
    return (
        isinstance(record, ApiWrite)
        and CREATES_A_MIRROR.matches(m)
        and name_of(body_of(record)) == (pod.namespace, pod.name)
    )


def latest_mirror(m: Moment, pod: Pod) -> str | None:
    """The UID of the mirror that a static pod has, if it was last created with the pod's hash."""
    known = m.node.note(Mirrors)
    made = known.made.get((pod.namespace, pod.name))
    if not pod.static or made is None or made != known.hashes.get(pod.uid):
        return None
    return pod.mirror_uid or None


def static_pod_of(m: Moment, mirror_uid: str) -> Pod | None:
    """The static pod that a mirror stands for."""
    found = m.world.mirrors.get(mirror_uid)
    if found is None:
        name = m.node.note(Mirrors).names.get(mirror_uid)
        found = m.world.names.get(name) if name is not None else None
    return found if found is not None and found.static else None
