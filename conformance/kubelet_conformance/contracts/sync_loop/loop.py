"""LOOP: what the kubelet's main loop waits for before it syncs pods."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kubelet_conformance.contract import Finding, Moment, Note, Pattern, Pod, PodSpec
from kubelet_conformance.contract.applicability import CRI, PODS, ByVersion
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, event, exited, failed, kubelet, pod_set
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.kubelet import api_is_away
from kubelet_conformance.contracts.facts.timing import KUBELET_START, REACTION
from kubelet_conformance.trace.format.bodies import StatusReply
from kubelet_conformance.trace.format.records import Call, Fault
from kubelet_conformance.trace.world.in_flight import RUNTIME_AWAY
from kubelet_conformance.trace.world.kubelet_view import kubelet_view

_PASS = 1.5
"""A pass of the loop that began before the runtime failed may still take one input; the sync tick of 1 s
ends its wait.
"""
_SLEEP_MAX = 5.0
"""The longest the loop sleeps between two checks of an unhealthy runtime (kubelet.go)."""
_STATUS_PERIOD = 5.0
"""How often the runtime is asked for its Status (kubelet.go)."""
_STATUS_SLACK = 2.0
"""What a loaded machine may add to it."""
_POLLS_IN_A_SECOND = 30
"""Until the node is ready it is asked each 100 ms as well (kubelet.go fastNodeStatusUpdate)."""
_LISTS_TO_START = ByVersion({"<=1.26": 2, ">=1.27": 1})
"""How many lists the container manager starts with: one each of its CPU and memory managers, later one."""
_RUNTIME_BACK = "healed: the runtime is "


def _says_ready(m: Moment) -> bool:
    return m.response(StatusReply).says.get("RuntimeReady", False)


_READY: Pattern = done("Status").where(_says_ready)


def _is_down_for_long(m: Moment, since: float) -> bool:
    """The loop stands still; in a trace that begins in the middle that is not known before a Status."""
    return _PASS <= m.t - since < math.inf


class _Waiting(Note):
    """New pods that the kubelet cannot sync yet."""

    pods: list[pods.NewPod] = []


@contract("LOOP-03", on=pod_set(), needs=(CRI, PODS), clause="new-pod")
def unhealthy_runtime_stops_the_loop(m: Moment) -> Findings:
    """While the runtime says that it is not ready, or has given no good Status for 30 s, no new pod or update
    is handled; within 5 s of its recovery work continues.
    """
    pod, since = pods.new_pod(m), kubelet_view(m).down_since(m.t)
    if pod is None or since is None or not _is_down_for_long(m, since) or not m.node.kubelet_up:
        return None
    m.node.note(_Waiting).pods.append(pod)
    return answered(
        by=_READY,
        not_before=call("RunPodSandbox").where(pod.asked),
        whole_node=True,
        text=f"the runtime is ready again, and pod {pod.name} waits for it,",
    )


@unhealthy_runtime_stops_the_loop.clause("deletion", on=pods.TERMINATION_ASKED)
def unhealthy_runtime_stops_kills(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """A deletion is not handled either while the runtime is not ready."""
    since = kubelet_view(m).down_since(m.t)
    if since is None or not _is_down_for_long(m, since) or pod.termination is not None or not pod.born:
        return None
    if pods.worker_is_busy(pod) or not any(c.state == "running" for c in pod.every_container()):
        return None
    if not m.node.kubelet_up or spec.active_deadline_seconds is not None:
        return None
    return answered(
        by=_READY,
        not_before=call("StopContainer", "StopPodSandbox").where(pods.of(pod)),
        whole_node=True,
        text=f"the runtime is ready again, and the deletion of {pod.name} waits for it,",
    )


@unhealthy_runtime_stops_the_loop.clause("recovery", on=_READY)
def loop_goes_on_after_recovery(m: Moment) -> Findings:
    """Pods that waited for the runtime are started soon after its recovery."""
    waiting = m.node.note(_Waiting)
    if not waiting.pods:
        return None
    new, waiting.pods = waiting.pods, []
    return [
        pods.starts(pod, _SLEEP_MAX + REACTION, f"pod {pod.name} is started after the recovery")
        for pod in new
        if _has_still_to_begin(pod.known(m))
    ]


def _has_still_to_begin(pod: Pod | None) -> bool:
    return pod is not None and pod.wanted and pod.termination is None and not pod.sandboxes


@observer(on=kubelet("started"))
def _another_kubelet_starts(m: Moment) -> None:
    """A kubelet that starts again finds all pods anew."""
    m.node.note(_Waiting).pods = []


@contract("LOOP-04", on=pod_set(), needs=(CRI, PODS), clause="host-network")
def network_stops_nobody_on_the_host(m: Moment) -> Findings:
    """A network that is not ready holds up only pods that need it: one on the host's network starts."""
    pod = pods.new_pod(m)
    if pod is None or kubelet_view(m).network_bad_t is None or not pods.can_start(m, pod):
        return None
    if pods.host_ports(m):
        return None
    return pods.starts(pod, REACTION, f"pod {pod.name} on the host's network is started")


@network_stops_nobody_on_the_host.clause("event", on=event("NetworkNotReady"))
def only_others_get_an_event(_: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """Only the others get a NetworkNotReady event."""
    if spec.host_network:
        return broken(f"pod {pod.name} is on the host's network and has a NetworkNotReady event")
    return KEPT


class _Polls(Note):
    """The latest Status call of this kubelet instance, and when it was answered."""

    call: Call | None = None
    answered_t: float | None = None
    good: bool = False
    first_good_t: float = -math.inf
    begun_t: list[float] = []
    """When the latest calls began."""
    listed_s: float = 0.0
    """How long the longest list took since then: the kubelet first starts what needs a runtime, and only then
    waits for 5 s (kubelet.go updateRuntimeUp)."""


@contract("LOOP-05", on=call("RunPodSandbox", "CreateContainer", "StopContainer"), clause="first")
def nothing_happens_before_the_first_status(m: Moment) -> Findings:
    """The runtime is asked for its Status at least every 5 s, and before the first good answer no pod is
    synced.
    """
    if m.node.started_t is None or m.node.lives < 1 or not m.node.kubelet_up:
        return None  # A call of one that was killed may be recorded just after that.
    if not m.node.note(_Polls).good:
        return broken(f"{m.call.rpc} before the first good Status of this kubelet")
    return KEPT if m.call.rpc == "RunPodSandbox" else None


@nothing_happens_before_the_first_status.clause("poll", on=call("Status").either(pods.END))
def status_is_polled(m: Moment) -> Findings:
    """No more than 5 s pass between an answer and the next Status call."""
    polls = m.node.note(_Polls)
    if polls.answered_t is None or polls.call is not None or not m.node.kubelet_up:
        return None
    gap = m.t - polls.answered_t
    is_first = polls.answered_t - polls.first_good_t < _STATUS_PERIOD
    started_s = polls.listed_s * (_LISTS_TO_START.get(m.kubernetes) or 1) if is_first else 0.0
    if gap > _STATUS_PERIOD + _STATUS_SLACK + started_s:
        return broken(f"no Status call for {gap:.1f} s, expected one every {_STATUS_PERIOD:g} s")
    return KEPT if "end" not in m.keys else None


@nothing_happens_before_the_first_status.clause("pause", on=call("Status"))
def polls_have_a_pause(m: Moment) -> Findings:
    """The runtime has a pause between two polls."""
    begun_t = m.node.note(_Polls).begun_t
    if len(begun_t) < _POLLS_IN_A_SECOND or m.t - begun_t[0] >= 1:
        return None
    return broken(f"Status is called more than {_POLLS_IN_A_SECOND} times in a second")


@observer(
    on=call("Status").either(
        done("Status", "ListContainers"),
        failed("Status"),
        kubelet("started", "stopped", "killed"),
        pods.FAULT,
    ),
    last=True,
)
def _poll(m: Moment) -> None:
    """Record the Status calls and their answers."""
    polls, key = m.node.note(_Polls), m.keys[0]
    if type(m.record) is Fault:  # isinstance() is slow where it says no.
        _contact_changes(polls, m, m.record.what)
    elif key == "call:Status":
        polls.call = m.call
        polls.begun_t = [*polls.begun_t[1 - _POLLS_IN_A_SECOND :], m.t]
    elif key.startswith("kubelet:"):
        polls.call, polls.answered_t, polls.good = None, None, False
    elif key == "done:ListContainers":
        polls.listed_s = max(polls.listed_s, m.t - m.call.t)
    elif polls.call is m.call:
        polls.call, polls.answered_t = None, m.t
        if key == "done:Status" and _says_ready(m) and not polls.good:
            polls.good, polls.first_good_t, polls.listed_s = True, m.t, 0.0


def _contact_changes(polls: _Polls, m: Moment, what: str) -> None:
    """A poll without an answer leaves no record; the first one with an answer is due as long after contact as
    any.
    """
    if what == RUNTIME_AWAY:
        polls.call, polls.answered_t = None, None
    elif what.startswith(_RUNTIME_BACK):
        polls.answered_t, polls.first_good_t = m.t, -math.inf


@contract("LOOP-07", on=kubelet("started"), needs=(CRI, PODS))
def empty_sources_count_as_seen(m: Moment) -> Iterator[Finding]:
    """Sources without any pod count as seen: a kubelet that starts with none kills the containers that it
    finds running.
    """
    world = m.world
    if api_is_away(m) or any(pod.wanted for pod in world.names.values()):
        return
    for container in world.containers.values():
        if container.born and container.state == "running" and container.pod is not None:
            yield answered(
                by=call("StopContainer").where(pods.about(container)),
                within=KUBELET_START,
                unless=pods.FAULT.either(exited().where(pods.about(container)), pod_set()),
                whole_node=True,
                text=f"container {container.name}, which no source has, is stopped",
            )


def _of_the_api(m: Moment) -> bool:
    """What is stopped runs, and belongs to a pod that only the API server knows."""
    pod, container, sandbox = m.pod, m.container, m.sandbox
    if pod is None or pod.source != "api" or not pod.born:
        return False
    return (
        container.state == "running" if container is not None else bool(sandbox and sandbox.state == "ready")
    )


@contract("LOOP-08", on=kubelet("started"), needs=(CRI, PODS))
def silent_source_keeps_its_pods(m: Moment) -> Findings:
    """Until a kubelet that starts has received pods from every source, it kills nothing of a pod that it has
    not received.
    """
    known = kubelet_view(m)
    if known.api_away_t is None:
        return None
    running = (c.pod for c in m.world.containers.values() if c.born and c.state == "running")
    if not any(pod is not None and pod.source == "api" for pod in running):
        return None
    return answered(
        by=pods.API_BACK,
        not_before=call("StopContainer", "StopPodSandbox").where(_of_the_api),
        whole_node=True,
        text="the API server answers again",
    )
