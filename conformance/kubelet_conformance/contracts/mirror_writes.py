"""The kubelet's writes about mirror pods, as far as judges have to remember them."""

from __future__ import annotations

from typing import Any

import msgspec

from kubelet_conformance.contract import Moment, Pod
from kubelet_conformance.contract.frame import observer
from kubelet_conformance.contract.words import Pattern, call, pod_set
from kubelet_conformance.contracts.fresh import MIRROR
from kubelet_conformance.contracts.sandboxes import sandbox_asked
from kubelet_conformance.contracts.static_names import HASH, FullName, is_static
from kubelet_conformance.trace.records import ApiWrite
from kubelet_conformance.trace.views import Latest

Json = dict[str, Any]
CREATED = 201


class Mirrors:
    """Mirror pods by UID, the hash that the latest of each name has, and the hash of static pods by UID."""

    def __init__(self) -> None:
        self.names = Latest[str, "FullName"]()
        self.latest = Latest["FullName", tuple[str, int]]()
        """Mirrors that were created since the last sandbox of that name: hash and seq."""
        self.made = Latest["FullName", str]()
        """The hash that the latest mirror of each name was made with."""
        self.hashes = Latest[str, str]()


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
    """What was written."""
    body: Json = msgspec.json.decode(record.body) if bytes(record.body) else {}
    return body


def metadata_of(body: Json) -> Json:
    """The metadata of an object that was written."""
    found: Json = body.get("metadata") or {}
    return found


def name_of(body: Json) -> FullName:
    """Its namespace and name."""
    meta = metadata_of(body)
    return meta.get("namespace") or "default", meta.get("name", "")


def learn_mirrors(m: Moment) -> Mirrors:
    """Take writes and sandboxes in."""
    known, record = m.node.note(Mirrors), m.record
    if isinstance(record, ApiWrite):
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
    """The UID of the mirror that a static pod has, if it was last made with the pod's hash."""
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
