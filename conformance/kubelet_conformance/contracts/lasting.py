"""What a kubelet keeps in memory by a pod's UID, and so for a static pod that goes and comes back.

One that is sent again with the same content has the same UID (STATIC-02), though nothing was left of it
meanwhile: its back-offs go on (kuberuntime/helpers.go GetStableKey, images/image_manager.go).
"""

from __future__ import annotations

from typing import Any, TypeVar

from kubelet_conformance.trace.moment import Moment
from kubelet_conformance.trace.views import Latest, Pod

N = TypeVar("N")


class _Lasting:
    """The notes by their kind and the pod's UID."""

    def __init__(self) -> None:
        self.notes = Latest[tuple[type, str], Any]()


def lasting(m: Moment, pod: Pod, kind: type[N]) -> N:
    """The judge's own memory about this pod, which for a static one outlives it: one value of each kind."""
    note = pod.note(kind)
    if not pod.static or not pod.uid:
        return note
    found: N = m.node.note(_Lasting).notes.setdefault((kind, pod.uid), note)
    return found
