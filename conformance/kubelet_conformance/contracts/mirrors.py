"""STATIC: the mirror pods that stand for static pods at the API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from kubelet_conformance.contract.frame import KEPT, answered, broken, contract
from kubelet_conformance.contract.needs import CRI, EVERY_STATUS, PODS, STORED_STATUS
from kubelet_conformance.contract.versions import since
from kubelet_conformance.contract.words import Pattern, call, deleted, done, pod_set, pod_unset, status
from kubelet_conformance.contracts.fresh import MIRROR, is_mirror
from kubelet_conformance.contracts.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.outside import OUTSIDE, outside, take_in
from kubelet_conformance.contracts.sandboxes import FINISHED
from kubelet_conformance.contracts.situations import API_DELETE, FAULT
from kubelet_conformance.contracts.static_names import HASH, is_static, kubelet_works, sandbox_asked
from kubelet_conformance.contracts.timing import HOUSEKEEPING, REACTION, RETRY, RETRY_SLACK
from kubelet_conformance.contracts.unprovoked import explained
from kubelet_conformance.trace.records import ApiWrite, PodChange

if TYPE_CHECKING:
    from kubelet_conformance.contract.frame import Findings
    from kubelet_conformance.contract.words import Predicate
    from kubelet_conformance.contracts.static_names import FullName
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Pod

Json = dict[str, Any]
_CREATED = 201


class _Mirrors:
    """Mirror pods by UID, the hash that the latest of each name has, and the hash of static pods by UID."""

    def __init__(self) -> None:
        self.names: dict[str, FullName] = {}
        self.latest: dict[FullName, tuple[str, int]] = {}
        """Mirrors that were created since the last sandbox of that name: hash and seq."""
        self.hashes: dict[str, str] = {}


def _creates_a_mirror(m: Moment) -> bool:
    record = m.record
    if not isinstance(record, ApiWrite) or record.verb.lower() != "create" or record.resource != "pods":
        return False
    return MIRROR in (_metadata(_body(record)).get("annotations") or {})


_CREATE: Pattern = Pattern(frozenset({"api"})).where(_creates_a_mirror, "the kubelet creates a mirror pod")
_WRITE: Pattern = Pattern(frozenset({"api"}))
_LEARNING = _WRITE.either(call("RunPodSandbox"))


def _body(record: ApiWrite) -> Json:
    body: Json = msgspec.json.decode(record.body) if bytes(record.body) else {}
    return body


def _metadata(body: Json) -> Json:
    found: Json = body.get("metadata") or {}
    return found


def _name_of(body: Json) -> FullName:
    meta = _metadata(body)
    return meta.get("namespace") or "default", meta.get("name", "")


def _learn(m: Moment) -> _Mirrors:
    """Take writes and sandboxes in."""
    known, record = m.node.note(_Mirrors), m.record
    if isinstance(record, ApiWrite):
        if record.code == _CREATED and record.uid and _creates_a_mirror(m):
            body = _body(record)
            known.names[record.uid] = _name_of(body)
            known.latest[_name_of(body)] = _metadata(body)["annotations"][MIRROR], m.seq
    elif m.keys[0] == "call:RunPodSandbox":
        config = sandbox_asked(m)
        if is_static(config):
            known.hashes[config.metadata.uid] = config.annotations.get(HASH, "")
    return known


def _take_in(m: Moment) -> None:
    """For `remember(on=_LEARNING)`, and done once a moment for all."""
    _learn(m)


def _static_pod(m: Moment, mirror_uid: str) -> Pod | None:
    """The static pod that a mirror stands for."""
    found = m.world.mirrors.get(mirror_uid)
    if found is None:
        name = m.node.note(_Mirrors).names.get(mirror_uid)
        found = m.world.names.get(name) if name is not None else None
    return found if found is not None and found.static else None


@contract("STATIC-04", on=_CREATE, needs=(CRI, PODS, EVERY_STATUS))
def pods_of_files_tolerate_no_execute(m: Moment) -> Findings:
    """A static pod from a file tolerates every NoExecute taint; one from a URL does not for that."""
    if not isinstance(m.record, ApiWrite):
        return None
    body = _body(m.record)
    pod = m.world.names.get(_name_of(body))
    if pod is None or not pod.static or pod.manifest is None:
        return None
    spec: Json = body.get("spec") or {}
    wants: list[Json] = spec.get("tolerations") or []
    blanket = any(
        one.get("operator") == "Exists" and one.get("effect") == "NoExecute" and not one.get("key")
        for one in wants
    )
    if pod.source == "file" and not blanket:
        return broken(f"the mirror of {pod.name} does not tolerate NoExecute taints", pod.set_seq)
    return KEPT


@contract("STATIC-11", on=_CREATE, needs=(CRI, PODS, EVERY_STATUS), clause="content")
def mirror_names_hash_and_node(m: Moment) -> Findings:
    """Each static pod gets a mirror pod at the API server, which carries its hash and is owned by
    the node.
    """
    known = _learn(m)
    if not isinstance(m.record, ApiWrite):
        return None
    body = _body(m.record)
    pod, got = m.world.names.get(_name_of(body)), _metadata(body)["annotations"][MIRROR]
    expected = known.hashes.get(pod.uid) if pod is not None and pod.uid else None
    if expected is not None and got != expected:
        return broken(f"the mirror has hash {got}, its static pod {expected}")
    owners: list[Json] = _metadata(body).get("ownerReferences") or []
    if not any(one.get("kind") == "Node" and one.get("controller") for one in owners):
        return broken(f"the mirror of {_name_of(body)[1]} is not owned by its node")
    return KEPT


@mirror_names_hash_and_node.clause("made", on=call("RunPodSandbox"))
def each_static_pod_gets_a_mirror(m: Moment) -> Findings:
    """It is made when the pod is started, unless there is one."""
    known, config = _learn(m), sandbox_asked(m)
    if not is_static(config) or m.pod is None or not m.pod.born or m.pod.mirror_uid or m.pod.sandboxes:
        return None
    name = config.metadata.namespace, config.metadata.name
    made = known.latest.pop(name, None)
    if made is not None:
        hash_ = config.annotations.get(HASH, "")
        return (
            KEPT if made[0] == hash_ else broken(f"the mirror has hash {made[0]}, the pod {hash_}", made[1])
        )
    if name in known.names.values() or outside(m).api_away_t is not None or outside(m).node_gone:
        return None

    def is_its_mirror(n: Moment) -> bool:
        return isinstance(n.record, ApiWrite) and _name_of(_body(n.record)) == name

    return answered(
        by=_CREATE.where(is_its_mirror),
        within=RETRY + RETRY_SLACK,
        unless=FAULT.either(pod_unset()),
        whole_node=True,
        text=f"a mirror pod of {name[1]} is created",
    )


mirror_names_hash_and_node.remember(on=OUTSIDE)(take_in)
mirror_names_hash_and_node.remember(on=_LEARNING)(_take_in)


@contract("STATIC-12", on=call("RunPodSandbox"), needs=(CRI, PODS, EVERY_STATUS))
def no_mirror_without_a_node(m: Moment) -> Findings:
    """While the node has no object of its own at the API server, no mirror pod is created."""
    config = sandbox_asked(m)
    if not is_static(config) or not outside(m).node_gone:
        return None
    return answered(
        by=FAULT.either(LIFE_ENDS),
        unless=pod_unset(),
        not_before=_CREATE,
        whole_node=True,
        text="the node's object is there again",
    )


no_mirror_without_a_node.remember(on=OUTSIDE)(take_in)


@contract("STATIC-13", on=API_DELETE, needs=(CRI, PODS, EVERY_STATUS), clause="request")
def mirror_is_deleted_with_care(m: Moment) -> Findings:
    """A mirror pod that is deleted or out of date is deleted with grace 0 and its UID as a precondition, and
    created again; its static pod's containers are not touched.
    """
    _learn(m)
    record = m.record
    if not isinstance(record, ApiWrite) or _static_pod(m, record.uid or record.precondition or "") is None:
        return None
    if record.grace != 0:
        return broken(f"a mirror pod is deleted with grace {record.grace}, expected 0")
    if not record.precondition:
        return broken("a mirror pod is deleted without its UID as a precondition")
    return KEPT


@mirror_is_deleted_with_care.clause("again", on=pod_set().where(is_mirror))
def deleted_mirror_is_replaced(m: Moment) -> Findings:
    """One that somebody deletes is deleted for good and made again."""
    meta = m.manifest.metadata if m.manifest is not None else None
    if meta is None or meta.deletion_timestamp is None or not kubelet_works(m):
        return None
    pod, uid = _static_pod(m, meta.uid), meta.uid
    if pod is None or not pod.wanted or pod.finished or outside(m).api_away_t is not None:
        return None

    def is_this(n: Moment) -> bool:
        return isinstance(n.record, ApiWrite) and uid in {n.record.uid, n.record.precondition}

    return answered(
        by=API_DELETE.where(is_this),
        within=RETRY + RETRY_SLACK,
        unless=FAULT.either(pod_unset()),
        not_before=call("StopContainer").where(_unexplained(pod)),
        whole_node=True,
        text=f"the mirror of {pod.name}, which somebody deletes, is deleted for good",
    )


def _unexplained(pod: Pod) -> Predicate:
    return lambda m: m.pod is pod and not explained(m)


@mirror_is_deleted_with_care.clause("made-again", on=deleted())
def gone_mirror_is_made_again(m: Moment) -> Findings:
    """A new one is made when it is gone."""
    pod = m.pod
    if pod is None or not pod.static or not pod.wanted or pod.finished or pod.termination is not None:
        return None
    if outside(m).api_away_t is not None or not kubelet_works(m):
        return None
    name = pod.namespace, pod.name

    def is_its_mirror(n: Moment) -> bool:
        return isinstance(n.record, ApiWrite) and _name_of(_body(n.record)) == name

    return answered(
        by=_CREATE.where(is_its_mirror),
        # Where nothing else wakes its worker, the next resync does.
        within=90.0 + RETRY_SLACK,
        unless=FAULT.either(pod_unset()),
        not_before=call("StopContainer").where(_unexplained(pod)),
        whole_node=True,
        text=f"a mirror pod of {pod.name} is created again",
    )


mirror_is_deleted_with_care.remember(on=OUTSIDE)(take_in)
mirror_is_deleted_with_care.remember(on=_LEARNING)(_take_in)


@contract(
    "STATIC-15", on=deleted(), needs=(CRI, PODS, STORED_STATUS), versions=since("1.22"), clause="not-before"
)
def mirror_outlives_its_containers(m: Moment) -> Findings:
    """A mirror pod whose manifest is gone is deleted, but not before the static pod has ended."""
    pod = m.pod
    if pod is None or not pod.static or pod.termination is None or pod.wanted or not pod.born:
        return None
    if pod.note(_Unheard).of or (m.node.started_t is not None and pod.termination.t < m.node.started_t):
        return None
    running = [c for c in pod.every_container() if c.state == "running"]
    if running:
        text = f"the mirror of {pod.name} is gone while {running[0].name} runs"
        return broken(text, pod.termination.seq, running[0].started_seq)
    return KEPT


@mirror_outlives_its_containers.clause("goes", on=done("StopPodSandbox"))
def orphaned_mirror_goes(m: Moment) -> Findings:
    """It is deleted soon after."""
    pod = m.pod
    if pod is None or not pod.static or pod.wanted or not pod.mirror_uid or m.sandbox is not pod.sandbox:
        return None
    if m.world.names.get((pod.namespace, pod.name)) is not pod or not kubelet_works(m):
        return None
    if any(c.state == "running" for c in pod.every_container()) or outside(m).api_away_t is not None:
        return None
    return answered(
        by=deleted().where(lambda n: n.pod is pod),
        within=HOUSEKEEPING + REACTION + RETRY,
        unless=FAULT.either(pod_set()),
        whole_node=True,
        text=f"the mirror of {pod.name} is deleted",
    )


class _Unheard:
    """The pod was removed while a source was silent: its worker is not told before that source is heard."""

    def __init__(self) -> None:
        self.of = False


mirror_outlives_its_containers.remember(on=OUTSIDE)(take_in)


@mirror_outlives_its_containers.remember(on=pod_unset())
def _removal_is_unheard(m: Moment) -> None:
    """Take in removals that nobody takes up."""
    if m.pod is not None and outside(m).api_away_t is not None:
        m.pod.note(_Unheard).of = True


@contract("STATIC-16", on=status(), needs=(CRI, PODS, STORED_STATUS))
def status_goes_to_the_mirror(m: Moment) -> Findings:
    """The status of a static pod is written to its mirror, under the mirror's UID."""
    pod = m.pod
    uid = getattr(m.record, "uid", "")
    if pod is None or not pod.static or not pod.uid:
        return None
    return broken(f"a status of static pod {pod.name} carries its own UID") if uid == pod.uid else KEPT


@status_goes_to_the_mirror.clause("patch", on=_WRITE)
def status_patch_names_the_mirror(m: Moment) -> Findings:
    """No write of a status names the static pod's own UID."""
    record = m.record
    if not isinstance(record, ApiWrite) or record.subresource != "status" or record.resource != "pods":
        return None
    pod = m.world.pods.get(record.precondition or record.uid)
    if pod is None or not pod.static:
        return None
    return broken(f"the status of static pod {pod.name} is written under its own UID")


@contract("STATIC-17", on=FINISHED, needs=(CRI, PODS, EVERY_STATUS))
def finished_static_pod_keeps_its_mirror(m: Moment) -> Findings:
    """A static pod that has finished keeps its mirror as long as its manifest is there."""
    pod = m.pod
    if pod is None or not pod.static or not pod.wanted or m.status is None or not m.status.terminal:
        return None
    if pod.finished or pod.termination is not None:
        return None

    def is_its_mirror(n: Moment) -> bool:
        record = n.record
        return isinstance(record, ApiWrite) and pod.mirror_uid in {record.uid, record.precondition}

    def is_its_manifest(n: Moment) -> bool:
        return (isinstance(n.record, PodChange) and n.record.source == pod.source) or is_mirror(n)

    return answered(
        by=LIFE_ENDS,
        unless=pod_unset().either(pod_set()).where(is_its_manifest),
        not_before=API_DELETE.where(is_its_mirror),
        whole_node=True,
        text=f"{pod.name} keeps its mirror",
    )
