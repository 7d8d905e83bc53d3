"""The keys of what a kubelet writes on pods, sandboxes and containers."""

from collections.abc import Mapping

STATIC_SOURCES = frozenset({"file", "http"})
"""Where static pods come from, as `Annotation.SOURCE` names it."""


class Label:
    """Label keys the kubelet puts on what it creates (kuberuntime/labels.go)."""

    POD_NAME = "io.kubernetes.pod.name"
    POD_NAMESPACE = "io.kubernetes.pod.namespace"
    POD_UID = "io.kubernetes.pod.uid"
    CONTAINER_NAME = "io.kubernetes.container.name"


class Annotation:
    """Annotation keys the kubelet puts on pods, and on containers (kuberuntime/labels.go)."""

    SOURCE = "kubernetes.io/config.source"
    MIRROR = "kubernetes.io/config.mirror"
    SEEN = "kubernetes.io/config.seen"
    HASH = "io.kubernetes.container.hash"
    RESTART_COUNT = "io.kubernetes.container.restartCount"
    TERMINATION_MESSAGE_PATH = "io.kubernetes.container.terminationMessagePath"
    TERMINATION_MESSAGE_POLICY = "io.kubernetes.container.terminationMessagePolicy"
    POD_GRACE = "io.kubernetes.pod.terminationGracePeriod"
    POD_DELETION_GRACE = "io.kubernetes.pod.deletionGracePeriod"
    PRE_STOP_HANDLER = "io.kubernetes.container.preStopHandler"
    PORTS = "io.kubernetes.container.ports"


def shown(entries: Mapping[str, object], key: str) -> str:
    """The value of a label, an annotation or another field, quoted, or that it is absent."""
    return repr(entries[key]) if key in entries else "absent"
