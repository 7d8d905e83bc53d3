"""Finds the static pod of each mirror pod when the kubelet creates the mirror."""

from kubelet_conformance.trace.format.labels import Annotation
from kubelet_conformance.trace.format.manifests import Manifest, PodSpec
from kubelet_conformance.trace.format.records import ApiWrite, Body
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Pod
from kubelet_conformance.trace.world.world import World, seen_at

_CREATED = 201


class Mirror:
    """Since which record a static pod has its current mirror, which was unknown before."""

    def __init__(self) -> None:
        self.seq = 0


def _pod_of(world: World, mirror: Manifest) -> Pod | None:
    """The static pod of a mirror: by UID, or by name and content while its UID is unknown."""
    meta = mirror.metadata
    annotations, namespace = meta.annotations or {}, meta.namespace or "default"
    uid = annotations.get(Annotation.MIRROR, "")
    if uid in world.pods or not uid:
        return world.pods.get(uid)
    versions = world.nameless(namespace, meta.name)
    alike = [pod for pod in versions if pod.spec is not None and _content(pod.spec) == _content(mirror.spec)]
    if len(versions) > 1 and len(alike) == 1:
        world.versions[uid] = alike[0]
    return world.waiting(namespace, meta.name, uid, seen_at(world.header, annotations))


def _content(spec: PodSpec) -> object:
    """What is in a mirror as it is in the manifest, which has no defaults yet."""
    entries = ((name, kind, one.image, one.command) for name, (kind, one) in spec.entries.items())
    return sorted(entries), spec.restart_policy, spec.grace_seconds


def mirror_is_made(moment: Moment) -> None:
    """The mirror's annotation names the static pod, whose UID is its hash (STATIC-11)."""
    record = moment.record
    if not isinstance(record, ApiWrite) or (record.verb, record.resource) != ("create", "pods"):
        return
    if record.code != _CREATED or not record.uid or not memoryview(record.body):
        return
    pod = _pod_of(moment.world, Body(record.body).view(Manifest))
    if pod is not None and pod.static:
        begun = moment.node.started_t
        if pod.mirror_uid and pod.status_t is not None and begun is not None and pod.status_t < begun:
            pod.status = None  # The kubelet that wrote it is gone, and with the mirror what it wrote.
        pod.mirror_uid, pod.note(Mirror).seq = record.uid, moment.seq
        moment.world.mirrors[record.uid] = pod
