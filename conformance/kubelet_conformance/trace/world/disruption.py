"""Disruptions: pods that the kubelet itself ends, as events and faults show."""

from __future__ import annotations

import msgspec

from kubelet_conformance.trace.format.records import Event, Fault
from kubelet_conformance.trace.world.moment import Moment
from kubelet_conformance.trace.world.views import Node, Pod

REFUSALS = frozenset(
    {
        "AppArmor",
        "Evicted",
        "Forbidden",
        "HostPort",
        "InitContainerRestartPolicyForbidden",
        "InvalidNodeInfo",
        "NodeAffinity",
        "NodeName",
        "NodePorts",
        "NodeShutdown",
        "OutOfcpu",
        "OutOfephemeral-storage",
        "OutOfmemory",
        "OutOfpods",
        "PodFeatureUnsupported",
        "PodLevelResourcesNotSupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "SupplementalGroupsPolicyNotSupported",
        "SysctlForbidden",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
    }
)
"""Reasons with which a pod is refused at admission (lifecycle/predicate.go and its other handlers)."""
_REFUSED_UNDER_PRESSURE = "The node had condition: "
"""A kubelet that starts under pressure refuses pods as Evicted: that is no eviction (eviction_manager.go)."""
SHUTDOWN = "the node shuts down"
"""The fault text that says that the machine is about to shut down."""


class Disruption(msgspec.Struct, frozen=True):
    """A kill of a pod by the kubelet itself, known from its event.

    The reason is `Evicted`, `Preempting` or a refusal: a kubelet that starts admits running pods anew.
    """

    reason: str
    t: float
    seq: int
    message: str = ""
    before: Disruption | None = None
    """The one before it."""

    @property
    def is_refusal(self) -> bool:
        """The kubelet has refused the pod at its own start."""
        return is_refusal(self)


def is_refusal(event: Event | Disruption) -> bool:
    """A pod is refused, and not killed for a reason that came up later."""
    under_pressure = event.message.startswith(_REFUSED_UNDER_PRESSURE)
    return event.reason in REFUSALS and (event.reason != "Evicted" or under_pressure)


class _Disruptions:
    """What is known of a pod, or of the node."""

    def __init__(self) -> None:
        self.disruption: Disruption | None = None
        self.may_be_unseen = False
        self.shutdown: Fault | None = None


def disruption_of(pod: Pod) -> Disruption | None:
    """Why the kubelet itself last killed the pod; None if it did not."""
    return pod.note(_Disruptions).disruption


def may_be_disrupted(pod: Pod) -> bool:
    """The kubelet itself has killed the pod, or may have: its event may be missing, or before the trace."""
    known = pod.note(_Disruptions)
    return known.disruption is not None or known.may_be_unseen or pod.work_unknown


def shutdown_of(node: Node) -> Fault | None:
    """The record that announced the machine's shutdown, if one did."""
    return node.note(_Disruptions).shutdown


def is_ended_by_the_kubelet(moment: Moment, pod: Pod) -> bool:
    """Whether the kubelet may be ending the pod without a request to do so."""
    return may_be_disrupted(pod) or moment.node.note(_Disruptions).shutdown is not None


def disruption_is_reported(moment: Moment) -> None:
    """A pod that has been started is evicted, preempted or refused; one that was not is only refused."""
    pod, record = moment.pod, moment.record
    if pod is not None and pod.sandboxes and isinstance(record, Event) and record.type == "Warning":
        known = pod.note(_Disruptions)
        known.disruption = Disruption(record.reason, moment.t, moment.seq, record.message, known.disruption)


def events_may_be_missing(moment: Moment) -> bool:
    """Whether an event that the trace does not show may have been sent."""
    return moment.header.channels.events != "full"


def suspect_disruption(pod: Pod) -> None:
    """The pod looks as one that the kubelet itself kills: an event that is missing may say so."""
    pod.note(_Disruptions).may_be_unseen = True


def pod_goes_on(moment: Moment) -> None:
    """A kubelet begins nothing for a pod that it has killed for good."""
    if moment.pod is not None:
        moment.pod.note(_Disruptions).may_be_unseen = False


def shutdown_is_announced(moment: Moment) -> None:
    """From now on pods are ended."""
    if isinstance(moment.record, Fault) and moment.record.what == SHUTDOWN:
        moment.node.note(_Disruptions).shutdown = moment.record
