"""CRI, calls that are held up by others: seen where one pod is stopped while another is started."""

from __future__ import annotations

from collections import deque

from kubelet_conformance.contract import Moment, Pod
from kubelet_conformance.contract.frame import KEPT, Findings, broken, observer
from kubelet_conformance.contract.words import call, done, failed, kubelet
from kubelet_conformance.contracts.runtime_expected import calls_for_other_pods_do_not_wait
from kubelet_conformance.contracts.situations import FAULT
from kubelet_conformance.contracts.timing import REACTION, SAME_MOMENT
from kubelet_conformance.trace.records import Call

_STOPS_KEPT = 100
_QUICK = ("RunPodSandbox", "CreateContainer", "StartContainer")
"""Calls that wait for nobody."""


class _Stops:
    """The StopContainer calls that are under way, and those that have ended lately."""

    def __init__(self) -> None:
        self.open: dict[str, tuple[Call, Pod]] = {}
        self.ended: deque[tuple[float, float, str, int]] = deque(maxlen=_STOPS_KEPT)
        """When it began and ended, the UID of its pod, and the seq of the reply."""
        self.disturbed = False
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
    under_way = any(stop.t < began and pod is not m.pod for stop, pod in stops.open.values())
    return KEPT if under_way else None


@observer(on=call("StopContainer"))
def _(m: Moment) -> None:
    if m.pod is not None:
        m.node.note(_Stops).open[m.call.id] = m.call, m.pod


@observer(on=done("StopContainer").either(failed("StopContainer")))
def _(m: Moment) -> None:
    stops = m.node.note(_Stops)
    begun = stops.open.pop(m.call.id, None)
    if begun is not None:
        stops.ended.append((begun[0].t, m.t, begun[1].uid, m.seq))


@observer(on=kubelet("killed", "stopped"))
def _(m: Moment) -> None:
    """Nobody hears any more when they end."""
    m.node.note(_Stops).open.clear()


@observer(on=FAULT)
def _(m: Moment) -> None:
    m.node.note(_Stops).disturbed = True
