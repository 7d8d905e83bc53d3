"""Static pods as records tell of them: which manifest was sent, which sandbox is a static pod's."""

from __future__ import annotations

from typing import TypeAlias

from kubelet_conformance.contract import Moment
from kubelet_conformance.trace.bodies import PodSandboxConfig
from kubelet_conformance.trace.looking import full_name
from kubelet_conformance.trace.records import PodChange

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


def kubelet_works(m: Moment) -> bool:
    """The kubelet is up, has seen what runs, and goes on seeing it."""
    node = m.node
    return node.kubelet_up and node.relisted_t is not None and not node.listing_failed
