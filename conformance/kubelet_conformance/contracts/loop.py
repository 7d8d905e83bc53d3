"""LOOP: what the kubelet's main loop waits for, what it does not wait for, and what wakes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubelet_conformance.contract.frame import KEPT, answered, broken, contract
from kubelet_conformance.contract.needs import CRI, EVERY_STATUS, PODS
from kubelet_conformance.contract.words import call, done, event, exited, failed, kubelet, pod_set, status
from kubelet_conformance.contracts.fresh import Fresh, can_start, fresh_pod, host_ports, starts
from kubelet_conformance.contracts.outside import API_BACK, OUTSIDE, outside
from kubelet_conformance.contracts.probe_runs import PROBES, probe_at
from kubelet_conformance.contracts.situations import (
    END,
    FAULT,
    TERMINATION_ASKED,
    about,
    of,
    to_run,
    worker_is_busy,
)
from kubelet_conformance.contracts.timing import KUBELET_START, REACTION, RELIST
from kubelet_conformance.trace.bodies import RunPodSandboxRequest, StatusReply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubelet_conformance.contract.frame import Finding, Findings
    from kubelet_conformance.contract.words import Pattern, Predicate
    from kubelet_conformance.trace.moment import Moment
    from kubelet_conformance.trace.records import Call
    from kubelet_conformance.trace.views import Container, Pod

_PASS = 1.5
"""A pass of the loop that began before the runtime failed may still take one input; the sync tick of 1 s
ends its wait."""
_SLEEP_MAX = 5.0
"""The longest the loop sleeps between two looks at an unhealthy runtime (kubelet.go)."""
_STATUS_PERIOD = 5.0
"""How often the runtime is asked for its Status (kubelet.go)."""
_STATUS_SLACK = 2.0
"""What a loaded machine may add to it."""
_SERVERS_MAX, _SEARCHES_MAX, _SEARCH_CHARS_MAX = 3, 32, 2048
"""Limits of resolv.conf (apis/core/validation)."""


def _says_ready(m: Moment) -> bool:
    reply = m.response(StatusReply).status
    return reply is not None and any(one.type == "RuntimeReady" and one.status for one in reply.conditions)


_READY: Pattern = done("Status").where(_says_ready, "the runtime is ready")


class _Waiting:
    """New pods that the kubelet cannot look at yet."""

    def __init__(self) -> None:
        self.pods: list[Fresh] = []


@contract("LOOP-03", on=pod_set(), needs=(CRI, PODS), clause="new-pod")
def unhealthy_runtime_stops_the_loop(m: Moment) -> Findings:
    """While the runtime says that it is not ready, or has given no good Status for 30 s, nothing new is taken
    up; within 5 s of its recovery work goes on.
    """
    pod, since = fresh_pod(m), outside(m).down_since(m.t)
    if pod is None or since is None or m.t - since < _PASS or not m.node.kubelet_up:
        return None
    m.node.note(_Waiting).pods.append(pod)
    return answered(
        by=_READY,
        not_before=call("RunPodSandbox").where(pod.asked),
        whole_node=True,
        text=f"the runtime is ready again, and pod {pod.name} waits for it,",
    )


@unhealthy_runtime_stops_the_loop.clause("deletion", on=TERMINATION_ASKED)
def unhealthy_runtime_stops_kills(m: Moment) -> Findings:
    """A deletion is not taken up either."""
    pod, since = m.pod, outside(m).down_since(m.t)
    if pod is None or since is None or m.t - since < _PASS or pod.termination is not None or not pod.born:
        return None
    if worker_is_busy(pod) or not any(c.state == "running" for c in pod.every_container()):
        return None
    if not m.node.kubelet_up or pod.spec is None or pod.spec.active_deadline_seconds is not None:
        return None
    return answered(
        by=_READY,
        not_before=call("StopContainer", "StopPodSandbox").where(of(pod)),
        whole_node=True,
        text=f"the runtime is ready again, and the deletion of {pod.name} waits for it,",
    )


@unhealthy_runtime_stops_the_loop.clause("recovery", on=_READY)
def loop_goes_on_after_recovery(m: Moment) -> Iterator[Finding]:
    """What has waited is taken up soon."""
    waiting, known = m.node.note(_Waiting), m.node.note(_Down)
    if not known.down:
        return
    pods, waiting.pods = waiting.pods, []
    for pod in pods:
        found = pod.known(m)
        if found is not None and to_run(_At(m, found)) and outside(m).network_bad_t is None:
            yield starts(pod, _SLEEP_MAX + REACTION, f"pod {pod.name} is started after the runtime's recovery")
