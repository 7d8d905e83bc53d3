"""The spec that a pod had before its last change: a sync that has begun by then still follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubelet_conformance.trace.manifests import ContainerSpec, PodSpec
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Pod

__all__ = ("former_container", "spec_is_sent")


class _Former:
    def __init__(self) -> None:
        self.spec: PodSpec | None = None


def spec_is_sent(moment: Moment) -> None:
    """The pod is sent anew, perhaps with another spec than the one known so far."""
    pod, manifest = moment.pod, moment.manifest
    if pod is not None and pod.spec is not None and manifest is not None and pod.spec != manifest.spec:
        pod.note(_Former).spec = pod.spec


def former_container(pod: Pod, name: str) -> ContainerSpec | None:
    """The spec that an init or app container had before the last change of its pod's spec."""
    spec = pod.note(_Former).spec
    _, found = spec.entries.get(name, ("", None)) if spec is not None else ("", None)
    return found
