"""CRI: resource limits of a container: they are updated at once, all or none.

CRI: calls that wait for other calls: one pod is stopped while another is started.
"""

from collections import deque

from msgspec import field

from kubelet_conformance.contract import Container, Moment, Note, Pod
from kubelet_conformance.contract.definition import KEPT, Findings, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, failed, kubelet
from kubelet_conformance.contracts.facts.pod import FAULT
from kubelet_conformance.contracts.facts.timing import REACTION, SAME_MOMENT
from kubelet_conformance.contracts.runtime.calls import refusal
from kubelet_conformance.contracts.runtime.expected import (
    calls_for_other_pods_do_not_wait,
    judges_expectations,
)
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.records import Call


class _Limits(Note):
    """The resources of a container, as last reported and as requested since."""

    reported: dict[str, int] = {}
    owed: dict[str, int] = {}
    """The values that the next status must have, for what updates named."""
    seq: int = 0
    in_flight: int = 0


def _given(linux: bodies.LinuxResources) -> dict[str, int]:
    values = {name: getattr(linux, name) for name in bodies.LinuxResources.__struct_fields__}
    return {name: value for name, value in values.items() if value}


@contract("CRI-28", on=done("ContainerStatus"))
def update_is_seen_at_once(m: Moment, container: Container) -> Findings:
    """After UpdateContainerResources a status that reports resources has the new values.

    After an update that failed it has all the old values.
    """
    status = m.response(bodies.ContainerStatusReply).status
    linux = status.resources.linux if status and status.resources else None
    if linux is None:
        return None
    limits = container.note(_Limits)
    if limits.in_flight or m.call.seq < limits.seq:
        return None
    limits.reported = _given(linux)
    for name, value in limits.owed.items():
        if limits.reported.get(name, 0) != value:
            said = limits.reported.get(name, "not reported")
            return broken(f"{name} of {container.name} has to be {value} and is {said}", limits.seq)
    return KEPT if limits.owed else None


@observer(on=call("UpdateContainerResources"))
def _(_: Moment, container: Container) -> None:
    container.note(_Limits).in_flight += 1


@observer(on=done("UpdateContainerResources").either(failed("UpdateContainerResources")))
def _(m: Moment, container: Container) -> None:
    limits, asked = container.note(_Limits), _given(m.request(bodies.UpdateContainerResourcesRequest).linux)
    limits.in_flight -= 1
    limits.seq = m.seq
    if m.reply.error is None:
        limits.owed |= asked
    elif refusal(m) is None:
        limits.owed, limits.reported = {}, {}
    else:
        limits.owed |= {name: limits.reported[name] for name in asked if name in limits.reported}


judges_expectations(update_is_seen_at_once)


_STOPS_KEPT = 100
_QUICK = ("RunPodSandbox", "CreateContainer", "StartContainer")
"""Calls that must not wait for other pods."""


class _Stops(Note):
    """The StopContainer calls in progress, and those that have ended lately."""

    open: dict[str, tuple[Call, Pod]] = {}
    ended: deque[tuple[float, float, str, int]] = field(default_factory=lambda: deque(maxlen=_STOPS_KEPT))
    """When it began and ended, the UID of its pod, and the seq of the reply."""
    disturbed: bool = False
    """A fault was injected: a call may be late for that."""


@calls_for_other_pods_do_not_wait.clause("calls", on=done(*_QUICK))
def quick_calls_do_not_wait_for_a_stop(m: Moment) -> Findings:
    """While a container of one pod is being stopped, sandboxes and containers of others are made and started.

    One that began under such a stop, waited long, and is answered as that ends, has waited for it.
    """
    stops, began = m.node.note(_Stops), m.call.t
    if m.pod is None:
        return None
    if m.t - began > REACTION and not stops.disturbed:
        for stop_t, end_t, uid, seq in stops.ended:
            at_its_end = end_t <= m.t <= end_t + SAME_MOMENT
            if uid != m.pod.uid and stop_t < began and at_its_end:
                return broken(f"{m.call.rpc} of another pod waited {m.t - began:.1f} s for this stop", seq)
    if not stops.open:
        return None
    in_flight = any(stop.t < began and pod is not m.pod for stop, pod in stops.open.values())
    return KEPT if in_flight else None


@observer(on=call("StopContainer"))
def _(m: Moment, pod: Pod) -> None:
    m.node.note(_Stops).open[m.call.id] = m.call, pod


@observer(on=done("StopContainer").either(failed("StopContainer")))
def _(m: Moment) -> None:
    stops = m.node.note(_Stops)
    begun = stops.open.pop(m.call.id, None)
    if begun is not None:
        stops.ended.append((begun[0].t, m.t, begun[1].uid, m.seq))


@observer(on=kubelet("ended", "killed", "stopped"))
def _(m: Moment) -> None:
    """Their ends are no longer observed."""
    m.node.note(_Stops).open.clear()


@observer(on=FAULT)
def _(m: Moment) -> None:
    m.node.note(_Stops).disturbed = True
