"""Static pods that go and come back by the same file, and so with the same UID: they have several lives.

The status manager forgets a pod with the next housekeeping after its file is gone, though it may still be on
its way out (kubelet_pods.go removeOrphanedPodStatuses); what it writes of it after that begins with what the
mirror last told, if there still is one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.views import Pod

__all__ = ("last_told_in_a_former_life", "mirror_goes", "static_pod_returns")


class _Return:
    """When the pod last came back, and when its last mirror went."""

    def __init__(self) -> None:
        self.t: float | None = None
        self.mirror_gone_t = -math.inf


def static_pod_returns(m: Moment) -> None:
    """Take in, at each `pod_set`, that the file of a pod is back."""
    pod = m.pod
    if pod is not None and pod.static and not pod.wanted:
        pod.note(_Return).t = m.t


def mirror_goes(m: Moment) -> None:
    """Take in, at each `deleted`, that what a mirror told is gone with it."""
    if m.pod is not None and m.pod.static:
        m.pod.note(_Return).mirror_gone_t = m.t


def last_told_in_a_former_life(m: Moment, pod: Pod) -> bool:
    """The pod is a static one, and its latest status may have been forgotten: its file went after that.

    So it is where both the mirror that told it and the kubelet that wrote it are gone.
    """
    if not pod.static or pod.status_t is None:
        return False
    if pod.note(_Return).mirror_gone_t >= pod.status_t and (m.node.started_t or 0.0) > pod.status_t:
        return True
    back_t = pod.note(_Return).t
    if not pod.wanted or back_t is None:
        return not pod.wanted
    run = pod.sandbox.run if pod.sandbox is not None else None
    return run is None or run.t < back_t or pod.status_t < run.t
