"""Which pods matter more than others: priorities, and what is critical to the node."""

from __future__ import annotations

from lightkube.models.core_v1 import Pod

from kubelet_reference import pods

SYSTEM_CRITICAL = 2_000_000_000
"""From this priority on a pod is critical: that of the class system-cluster-critical."""


def priority(pod: Pod) -> int:
    """The pod's priority, 0 if it has none."""
    return pods.spec(pod).priority or 0


def is_critical(pod: Pod) -> bool:
    """Whether the node cannot do without the pod: static, a mirror, or of system priority (STATIC-23)."""
    return pods.is_static(pod) or pods.is_mirror(pod) or priority(pod) >= SYSTEM_CRITICAL


def may_preempt(pod: Pod, other: Pod) -> bool:
    """Whether a pod that needs room may take that of the other one (ADMIT-08)."""
    if is_critical(pod) and not is_critical(other):
        return True
    ranks = pods.spec(pod).priority, pods.spec(other).priority
    return ranks[0] is not None and ranks[1] is not None and ranks[0] > ranks[1]
