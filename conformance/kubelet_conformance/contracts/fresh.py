"""Pods that the kubelet hears of for the first time, and that it can start at once."""

from __future__ import annotations

import msgspec

from kubelet_conformance.contract.frame import Answered, answered
from kubelet_conformance.contract.words import Pattern, call, event, pod_set, status
from kubelet_conformance.contracts.situations import FAULT, TERMINATION_ASKED
from kubelet_conformance.contracts.timing import FILE_POLL
from kubelet_conformance.trace.bodies import RunPodSandboxRequest
from kubelet_conformance.trace.disruption import REFUSALS
from kubelet_conformance.trace.kubelet_view import kubelet_view
from kubelet_conformance.trace.looking import full_name
from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.records import Event, PodChange
from kubelet_conformance.trace.views import Pod

MIRROR = "kubernetes.io/config.mirror"
"""The annotation by which a mirror pod names the hash of its static pod."""
MAKES_ROOM = event("Preempting")
"""A pod has to go for another one: until it is gone the kubelet looks at nothing else (ADMIT-08)."""
_HINDRANCES = REFUSALS | {"FailedMount", "FailedValidation", "FailedCreatePodContainer", "NetworkNotReady"}


class Fresh(msgspec.Struct, frozen=True):
    """A pod by what its sandbox will be called; a static pod gets its UID only then."""

    uid: str
    namespace: str
    name: str
    source: str

    def asked(self, m: Moment) -> bool:
        """The RunPodSandbox that begins here is for it."""
        metadata = m.request(RunPodSandboxRequest).config.metadata
        if self.uid:
            return metadata.uid == self.uid
        return (metadata.namespace, metadata.name) == (self.namespace, self.name)

    def is_about(self, m: Moment) -> bool:
        """The record is about it."""
        pod = m.pod or m.replaced
        if pod is not None:
            return pod.uid == self.uid if self.uid else self._called(pod)
        return isinstance(m.record, Event) and self.name in m.record.message

    def _called(self, pod: Pod) -> bool:
        return pod.static and (pod.namespace, pod.name) == (self.namespace, self.name)

    def known(self, m: Moment) -> Pod | None:
        """The pod as the trace knows it by now."""
        if self.uid:
            return m.world.pods.get(self.uid)
        return m.world.names.get((self.namespace, self.name))


def is_mirror(m: Moment) -> bool:
    """The manifest that was sent is that of a mirror pod."""
    return m.manifest is not None and MIRROR in (m.manifest.metadata.annotations or {})


def fresh_pod(m: Moment) -> Fresh | None:
    """The pod that this `pod` record makes wanted for the first time; None for any other record."""
    if type(m.record) is not PodChange:
        return None
    if m.memo is None:
        m.memo = _Looked(_fresh_pod(m))
    looked: _Looked = m.memo
    return looked.found


class _Looked(msgspec.Struct, frozen=True):
    """What a `pod` record brings, so that it is looked at once for all contracts."""

    found: Fresh | None


def _fresh_pod(m: Moment) -> Fresh | None:
    record, manifest, pod = m.record, m.manifest, m.pod
    if not isinstance(record, PodChange) or manifest is None or is_mirror(m):
        return None
    if manifest.metadata.deletion_timestamp is not None or manifest.metadata.name == "":
        return None
    if manifest.status is not None and manifest.status.terminal:
        return None
    if pod is not None and (pod.set_t is not None or pod.sandboxes or not pod.born):
        return None
    if m.replaced is not None and not m.replaced.uid:
        return None  # An edit of what has not been run yet, and may be waiting.
    namespace = manifest.metadata.namespace or "default"
    name = full_name(m.world, record.source, manifest.metadata.name)
    return Fresh(manifest.metadata.uid, namespace, name, record.source)


def _comes_from_a_manifest(m: Moment) -> bool:
    pod = fresh_pod(m)
    return pod is not None and pod.source != "api"


FRESH_STATIC: Pattern = pod_set().where(_comes_from_a_manifest)
"""A static pod is wanted for the first time."""


def host_ports(m: Moment) -> frozenset[tuple[str, int]]:
    """The ports of the node that the manifest asks for: protocol and number."""
    spec = m.manifest.spec if m.manifest is not None else None
    every = [port for one in (spec.containers if spec is not None else ()) for port in one.ports or ()]
    return frozenset((port.protocol, port.host_port) for port in every if port.host_port)


def can_start(m: Moment, pod: Fresh) -> bool:
    """The kubelet works and hears of the pod at once, and nothing in the manifest may keep it waiting or get
    it refused.
    """
    made_t = kubelet_view(m).made_t
    # Nobody may watch a folder that has just been made: it is listed from time to time.
    watched = made_t is None or m.t - made_t > FILE_POLL
    return (watched or pod.source != "file") and can_start_once_heard_of(m, pod)


def can_start_once_heard_of(m: Moment, pod: Fresh) -> bool:
    """As `can_start`, but the kubelet may hear of the pod later."""
    node, known, manifest = m.node, kubelet_view(m), m.manifest
    if manifest is None or not node.kubelet_up or node.relisted_t is None or node.listing_failed:
        return False
    if known.down_since(m.t) is not None or not m.world.past_known:
        return False
    if known.network_bad_t is not None and not manifest.spec.host_network:
        return False
    if pod.source == "api" and (known.api_away_t is not None or known.node_gone):
        return False
    return not manifest.spec.volumes and manifest.spec.runtime_class_name is None and not _waits(m, pod)


def _waits(m: Moment, pod: Fresh) -> bool:
    """A static pod of that name is still on its way out."""
    old = m.replaced or m.world.names.get((pod.namespace, pod.name))
    return old is not None and pod.source != "api" and old.static and bool(old.uid or old.sandboxes)


def starts(pod: Fresh, within: float, text: str) -> Answered:
    """The pod gets its sandbox within so many seconds, unless it is refused or called off."""
    about: Pattern = TERMINATION_ASKED.either(
        event(*sorted(_HINDRANCES)), status().where(_fails), pod_set()
    ).where(pod.is_about)
    return answered(
        by=call("RunPodSandbox").where(pod.asked),
        within=within,
        unless=about.either(FAULT, MAKES_ROOM),
        whole_node=True,
        text=text,
    )


def _fails(m: Moment) -> bool:
    return m.status is not None and m.status.terminal
