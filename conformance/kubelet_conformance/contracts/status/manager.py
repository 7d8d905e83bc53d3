"""STATUS: which fields a status keeps from the one before, and which fields every status has."""

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from kubelet_conformance.contract import ContainerStatus, Finding, Moment, Note, Pod, PodSpec, PodStatus
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import done, exited, status
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.probe import runs_of
from kubelet_conformance.contracts.facts.sandbox import CONTAINER_EVENT, is_address, reported_ips
from kubelet_conformance.contracts.facts.static_pod import is_forgotten, status_may_be_forgotten
from kubelet_conformance.contracts.facts.status import (
    AGAIN,
    END_SHOWN,
    Reads,
    are_sampled,
    being_read,
    has_ended_for_good,
    is_held_up,
)
from kubelet_conformance.contracts.facts.timing import API_POLL, REACTION
from kubelet_conformance.trace.format.bodies import PodSandboxStatusReply
from kubelet_conformance.trace.format.records import ApiWrite, Status
from kubelet_conformance.trace.world.disruption import disruption_of
from kubelet_conformance.trace.world.kubelet_view import kubelet_view
from kubelet_conformance.trace.world.runtime_reports import reported_sandbox

OWNED = frozenset(
    {
        "PodScheduled",
        "Initialized",
        "ContainersReady",
        "Ready",
        "PodReadyToStartContainers",
        "PodHasNetwork",
        "PodResizePending",
        "PodResizeInProgress",
        "AllContainersRestarting",
        "DisruptionTarget",
    },
)
"""Conditions that the kubelet sets itself; the last it shares with others."""
_REFUSED = frozenset({403, 409, 422})
MESSAGE_BYTES_MAX = 12 * 1024
"""Of all termination messages of a pod together (status_manager.go)."""

# There are fewer T than quotes to begin a search at.
# A quote with a backslash before it is within a message, which may quote anything.
_FRACTION = re.compile(rb'T\d\d:\d\d:\d\d[.,]\d(?<=[^\\]"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.,]\d)')
_DATE_CHARS = len('"2024-01-01')


def _pair(m: Moment) -> tuple[Pod, PodStatus, PodStatus] | None:
    """The pod, the status before and the status now; None for the first one and what no kubelet wrote."""
    pod, now = m.pod, m.status
    if pod is None or now is None or pod.status is None or not now.conditions:
        return None
    return pod, pod.status, now


@contract("STATUS-06", on=AGAIN, needs=(STATUS,))
def conditions_of_others_are_kept(m: Moment) -> Iterator[Finding]:
    """A condition that the kubelet does not own stays as it is when the kubelet writes a status."""
    pair = _pair(m)
    if pair is None:
        return
    pod, before, now = pair
    reported = pod.sent_status
    # What others have written since the last status comes with the pod.
    latest = reported if reported is not None and (pod.changed_t or 0) >= (pod.status_t or 0) else before
    foreign = [c.type for c in latest.conditions or () if c.type not in OWNED]
    if not foreign or _is_of_another_writer(before, now):
        return
    for kind in foreign:
        yield KEPT if now.condition(kind) else broken(f"condition {kind} is gone", pod.status_seq)


def _is_of_another_writer(before: PodStatus, now: PodStatus) -> bool:
    """Nothing of the kubelet's has changed."""
    own, old = ([c for c in one.conditions or () if c.type in OWNED] for one in (now, before))
    return own == old and before.container_statuses == now.container_statuses and before.phase == now.phase


@contract("STATUS-07", on=status(), needs=(STATUS,), versions=since("1.26"))
def disruption_comes_with_the_end(_: Moment, status: PodStatus) -> Findings:
    """The kubelet sets DisruptionTarget only together with the terminal phase."""
    target = status.condition("DisruptionTarget")
    if target is None or target.reason != "TerminationByKubelet":
        return None
    return KEPT if status.terminal else broken(f"DisruptionTarget is there and the phase is {status.phase}")


@contract("STATUS-08", on=status(), needs=(STATUS,))
def start_time_never_changes(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """The startTime is set with the first status of a pod and never changes."""
    if not status.conditions:
        return None
    if not status.start_time:
        return broken("startTime is missing")
    before = pod.status.start_time if pod.status is not None else None
    if before is not None and before != status.start_time and not _is_unknown(m, pod):
        return broken(f"startTime goes from {before} to {status.start_time}", pod.status_seq)
    return KEPT


def _is_unknown(m: Moment, pod: Pod) -> bool:
    """The kubelet may not know the pod's latest status."""
    return status_may_be_forgotten(m, pod) or is_forgotten(m, pod) or _was_refused(m, pod)


def _was_refused(m: Moment, pod: Pod) -> bool:
    """A kubelet that was started since the latest status has refused the pod.

    That gives it a status without conditions, which may be lost.
    """
    last = disruption_of(pod)
    return last is not None and last.is_refusal and pod.status_seq < m.node.started_seq < last.seq


@contract("STATUS-09", on=AGAIN, needs=(STATUS,))
def transition_time_follows_the_value(m: Moment) -> Iterator[Finding]:
    """The lastTransitionTime of a condition changes only when its status does."""
    pair = _pair(m)
    if pair is None:
        return
    pod, before, now = pair
    for old in before.conditions or ():
        new = now.condition(old.type)
        if new is None:
            continue
        is_back = (new.last_transition_time or "") < (old.last_transition_time or "")
        if is_back and not _is_unknown(m, pod):
            yield broken(f"lastTransitionTime of {old.type} goes back", pod.status_seq)
        elif new.status != old.status:
            continue
        elif new.last_transition_time == old.last_transition_time:
            yield KEPT
        elif old.status == "False" and old.type in _READY and _is_probed(pod, now):
            yield _was_ready_between(pod, old.type)
        elif are_sampled(m):
            continue  # It may have flipped and come back between two samples.
        elif not _may_have_flipped(m, old.type, pod, before, now) and not _is_unknown(m, pod):
            yield broken(
                f"{old.type} stays {old.status}, lastTransitionTime goes from {old.last_transition_time} to "
                f"{new.last_transition_time}",
                pod.status_seq,
            )


_READY = frozenset({"Ready", "ContainersReady"})


def _is_probed(pod: Pod, now: PodStatus) -> bool:
    """A container that runs is not ready, and a readiness probe may have reported otherwise a moment ago."""
    specs = ((one, pod.container_spec(one.name)) for one in now.lasting_containers if one.state.running)
    return any(not one.ready and spec is not None and spec.readiness_probe for one, spec in specs)


def _was_ready_between(pod: Pod, condition: str) -> Finding:
    """A sync knew of a probe's success before the loop reported all its results, and the last comes soon."""

    def is_true(m: Moment) -> bool:
        reported = m.status.condition(condition) if m.status is not None else None
        return reported is not None and reported.status == "True"

    return answered(
        by=status().where(is_true),
        within=REACTION,
        unless=exited().either(pods.FAULT, pods.TERMINATION_ASKED),
        text=f"{condition} of {pod.name}, whose lastTransitionTime has moved, is reported as True",
    )


def _may_have_flipped(m: Moment, condition: str, pod: Pod, before: PodStatus, now: PodStatus) -> bool:
    """The condition may have been otherwise in a status that was never written.

    Writes may be left out where the next one follows soon, or while the API server is away. What has ended
    may have become ready just before. A busy kubelet may take up several results of a probe at once. What
    it is to set at the end of a pod it may write before it has read that end, and make the conditions anew.
    """
    if kubelet_view(m).api_was_faulty(pod.status_t or 0.0):
        return True
    if condition in _READY and before.terminal and any(s.state.running for s in before.lasting_containers):
        return True
    if condition in _READY and any(_was_probed_anew(m, pod, one) for one in now.lasting_containers):
        return True
    if condition == "PodReadyToStartContainers":
        made_t = kubelet_view(m).made_since(pod.status_t or 0)
        is_new = any((each.ready_t or 0) >= made_t for each in pod.sandboxes)
        if is_new or before.pod_ip != now.pod_ip:
            return True  # A sandbox was created, and another may have been removed before.
    ended = condition in _READY and any(s.state.terminated for s in now.lasting_containers)
    ids = {(s.name, s.container_id) for s in before.lasting_containers}
    others = {(s.name, s.container_id) for s in now.lasting_containers} - ids
    return (ended and _is_probed(pod, before)) or (condition != "PodScheduled" and bool(others))


def _was_probed_anew(m: Moment, pod: Pod, shown: ContainerStatus) -> bool:
    """Its readiness probe has come to another result since the status before, or just before that."""
    container = m.world.containers.get(shown.runtime_id)
    if container is None:
        return False
    runs = runs_of(container, "readiness", m)
    return runs.published_seq > pod.status_seq or m.t - runs.published_t <= API_POLL


@contract("STATUS-10", on=AGAIN, needs=(STATUS, PODS))
def ended_container_stays_ended(m: Moment) -> Findings:
    """A container that the policy never restarts stays terminated once it was shown so.

    That is every one under Never, and one that ended with 0 under OnFailure; sidecars are exempt.
    """
    pair = _pair(m) if m.pod is not None and m.pod.restart_policy != "Always" else None
    if pair is None or pair[0].spec is None:
        return None
    pod, before, now = pair
    ended = {s.name: s.state.terminated is not None for s in now.lasting_containers}
    return _still_ended(pod, before, ended)


def _still_ended(pod: Pod, before: PodStatus, ended: dict[str, bool]) -> Iterator[Finding]:
    for old in before.lasting_containers:
        is_ended = ended.get(old.name)
        if is_ended is None or not has_ended_for_good(pod, old):
            continue
        if is_ended:
            yield KEPT
        else:
            yield broken(f"{old.name} had ended for good and is not terminated any more", pod.status_seq)


@ended_container_stays_ended.clause("asked", on=pods.STATUS_WRITE)
def illegal_transition_is_not_requested(m: Moment) -> Iterator[Finding]:
    """The kubelet does not write another status either, which the API server would refuse.

    One that has just started may not know the mirror of its static pod, and with it what was shown, yet.
    """
    write, pod = m.record, pods.pod_of_write(m)
    if pod is None or pod.spec is None or pod.status is None or not isinstance(write, ApiWrite):
        return
    if _is_unknown(m, pod):
        return
    if write.code not in _REFUSED or not memoryview(write.body):
        return
    asked: dict[str, Any] = msgspec.json.decode(write.body).get("status", {})
    every = [*(asked.get("initContainerStatuses") or ()), *(asked.get("containerStatuses") or ())]
    yield from _still_ended(pod, pod.status, {one["name"]: "terminated" in one["state"] for one in every})


@contract("STATUS-11", on=status(), needs=(STATUS,))
def times_are_whole_seconds(m: Moment, status: PodStatus) -> Findings:
    """Every time in a status is a whole second."""
    if not status.start_time or type(m.record) is not Status:
        return None
    raw = bytes(m.record.status)
    found = _FRACTION.search(raw)
    if found is None:
        return KEPT
    stamp = raw[found.start() - _DATE_CHARS : found.end()].decode()
    return broken(f"a time has a fraction of a second: {stamp}...")


@contract("STATUS-12", on=END_SHOWN, needs=(STATUS,))
def messages_share_their_limit(_: Moment, status: PodStatus) -> Iterator[Finding]:
    """Termination messages have 12 KiB a pod, evenly shared by all its containers."""
    every = status.every_container
    for one in every:
        for ended in (one.state.terminated, one.last_state.terminated):
            size = len(ended.message.encode()) if ended else 0
            if size > MESSAGE_BYTES_MAX // len(every):
                yield broken(
                    f"the message of {one.name} has {size} bytes, {len(every)} containers share 12 KiB"
                )
            elif size:
                yield KEPT


class _Addresses(Note):
    """The IPs that the runtime gave for the pod's sandboxes, with when each was first seen."""

    first_t: dict[str, float] = {}


@contract("STATUS-16", on=status(), needs=(STATUS, PODS, CRI))
def addresses_are_those_of_the_sandbox(m: Moment, pod: Pod, spec: PodSpec, status: PodStatus) -> Findings:
    """Every status has qosClass and hostIP, from 1.30 on with hostIPs; podIP is an IP that the runtime gave
    for a sandbox of the pod.

    It is there once the sandbox has had one for a while, and podIPs begins with it. A pod on the host's
    network has the host's.
    """
    if not status.conditions or status.reason:
        return None
    # Without an API server, or an object of its node, a kubelet writes no hostIP.
    knows_host = m.header.channels.api != "served" and not kubelet_view(m).lacks_node
    has_host_ip = bool(status.host_ip) or not knows_host
    if not status.qos_class or not has_host_ip:
        return broken("qosClass is missing" if not status.qos_class else "hostIP is missing")
    if spec.host_network:
        if status.pod_ip in pod.note(_Addresses).first_t:
            return None  # It had a network of its own before its manifest changed.
        if status.pod_ip not in {"", status.host_ip}:
            return broken(f"podIP is {status.pod_ip}, not the host's")
        return KEPT
    return _wrong_address(m, pod, status) or KEPT


def _wrong_address(m: Moment, pod: Pod, now: PodStatus) -> Finding | None:
    given, newest = pod.note(_Addresses).first_t, pod.sandbox
    if now.pod_ip != (now.pod_ips[0].ip if now.pod_ips else ""):
        return broken(f"podIP is {now.pod_ip!r}, podIPs begins otherwise")
    if now.pod_ip and pod.born and now.pod_ip not in given and not is_held_up(m):
        return broken(f"podIP {now.pod_ip} is of no sandbox of the pod")
    if now.pod_ip or newest is None or not is_address(newest.ip) or newest.state != "ready":
        return None
    if _may_be_unknown(m, pod, given.get(newest.ip, m.t)):
        return None
    return broken(f"podIP is absent, the sandbox has {newest.ip}", newest.run)


def _may_be_unknown(m: Moment, pod: Pod, since_t: float) -> bool:
    """A status written during a sync, or before the next can begin or read, shows what was known before."""
    reads = m.node.note(Reads)
    is_late = pods.worker_is_busy(pod) or bool(being_read(m)) or pods.has_ended_for_good(pod, m.status)
    is_late = is_late or kubelet_view(m).api_was_faulty(since_t) or _may_run_a_hook(m, pod)
    return is_late or m.t - max(since_t, reads.held_up_t) <= REACTION


def _may_run_a_hook(m: Moment, pod: Pod) -> bool:
    """The sync may still be at a postStart hook: what runs is shown as waiting meanwhile."""
    shown = m.status.by_name if m.status is not None else {}
    waiting = {name for name, one in shown.items() if one.state.waiting is not None}
    return any(
        one.state == "running" and one.name in waiting and pods.has_unseen_hook(one.spec)
        for one in pod.every_container()
    )


@observer(on=done("PodSandboxStatus"))
def _addresses_given(m: Moment) -> None:
    record = m.response(PodSandboxStatusReply).status
    if m.pod is not None:
        given = m.pod.note(_Addresses).first_t
        for ip in reported_ips(record):
            if given.get(ip, math.inf) > m.t:
                given[ip] = m.t


@observer(on=CONTAINER_EVENT)
def _reported_addresses(m: Moment, pod: Pod) -> None:
    """The state in an event may be shown, and need not be: when the kubelet handles it is not known."""
    for ip in reported_ips(reported_sandbox(m)):
        pod.note(_Addresses).first_t.setdefault(ip, math.inf)


_HOST_IPS = since("1.30")
"""Since then hostIPs is always there; before that a gate decides (KEP-2681)."""


class _HostAddresses(msgspec.Struct, rename={"host_ip": "hostIP", "host_ips": "hostIPs"}):
    host_ip: Any = None
    host_ips: Any = None


class _StatusWrite(msgspec.Struct):
    """The part of a write that is judged: decoding no more of it is many times as fast."""

    status: _HostAddresses | None = None


_STATUS_WRITE = msgspec.json.Decoder(_StatusWrite)


@addresses_are_those_of_the_sandbox.clause("host's", on=pods.STATUS_WRITE)
def host_has_its_addresses(m: Moment) -> Findings:
    """A status write with hostIP also has hostIPs; an older API server does not keep them."""
    write = m.record
    if not isinstance(write, ApiWrite) or not memoryview(write.body) or not _HOST_IPS.get(m.kubernetes):
        return None
    reported = _STATUS_WRITE.decode(write.body).status
    if reported is None or not reported.host_ip:
        return None
    ips = [one.get("ip") for one in reported.host_ips or ()]
    if reported.host_ip not in ips:
        return broken(f"hostIP {reported.host_ip} is written, hostIPs is {ips}")
    return KEPT


@addresses_are_those_of_the_sandbox.clause("new sandbox", on=status())
def address_follows_the_sandbox(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """With a new sandbox the podIP is the new one's, once that has been known for a while."""
    newest = pod.sandbox
    if newest is None or not status.pod_ip:
        return None
    given = pod.note(_Addresses).first_t
    if newest.state != "ready" or newest.ip not in given or len(given) == 1:
        return None
    own = {newest.ip, *reported_ips(newest.record)}
    if own >= given.keys():
        return None
    if status.pod_ip in own or _may_be_unknown(m, pod, given[newest.ip]):
        return KEPT if status.pod_ip in own else None
    return broken(f"podIP is {status.pod_ip}, the new sandbox has {newest.ip}", newest.run)
