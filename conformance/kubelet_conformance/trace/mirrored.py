"""Which static pod a mirror stands for: the kubelet tells it when it makes the mirror."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from kubelet_conformance.trace.records import ApiWrite
from kubelet_conformance.trace.seen import seen_at

if TYPE_CHECKING:
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Pod
    from kubelet_conformance.trace.world import World

__all__ = ("mirror_is_made",)

_MIRROR = "kubernetes.io/config.mirror"
_CREATED = 201


def _pod_of(world: World, metadata: dict[str, Any]) -> Pod | None:
    """By its UID, or by its name where no sandbox has told its UID yet."""
    annotations: dict[str, str] = metadata.get("annotations") or {}
    uid, seen_t = annotations.get(_MIRROR, ""), seen_at(world.header, annotations)
    namespace, name = metadata.get("namespace") or "default", metadata.get("name", "")
    return world.pods.get(uid) or (world.waiting(namespace, name, seen_t) if uid else None)


def mirror_is_made(moment: Moment) -> None:
    """The mirror's annotation names the static pod, whose UID is its hash (STATIC-11)."""
    record = moment.record
    if not isinstance(record, ApiWrite) or (record.verb, record.resource) != ("create", "pods"):
        return
    if record.code != _CREATED or not record.uid or not memoryview(record.body):
        return
    metadata: dict[str, Any] = msgspec.json.decode(record.body).get("metadata") or {}
    pod = _pod_of(moment.world, metadata)
    if pod is not None and pod.static:
        begun = moment.node.started_t
        if pod.mirror_uid and pod.status_t is not None and begun is not None and pod.status_t < begun:
            pod.status = None  # The kubelet that wrote it is gone, and with the mirror what it wrote.
        pod.mirror_uid = record.uid
        moment.world.mirrors[record.uid] = pod
