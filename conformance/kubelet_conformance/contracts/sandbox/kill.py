"""SANDBOX: how a whole pod is killed, and what happens to its address."""

import math

from kubelet_conformance.contract import Answered, Container, Moment, Note, Pod, PodStatus, Sandbox
from kubelet_conformance.contract.applicability import CRI, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, failed, pod_set, status
from kubelet_conformance.contracts.facts.kills import stops_of_its_pod
from kubelet_conformance.contracts.facts.pod import goes_on_in, may_be_unknown
from kubelet_conformance.contracts.facts.sandbox import (
    FINISHED,
    is_address,
    is_dead_orphan,
    lost_its_cgroup,
    reported_ips,
    standing,
    stop_of_sandbox,
)
from kubelet_conformance.contracts.facts.static_pod import is_left_to_itself
from kubelet_conformance.contracts.facts.status import is_held_up
from kubelet_conformance.contracts.facts.timing import API_POLL, REACTION, RETRY, RETRY_SLACK, TOGETHER

WITHHELD_SINCE = (1, 22)
"""From here on a terminal phase waits until the kill has succeeded (status_manager.go)."""


def _to_be_stopped(m: Moment, container: Container) -> bool:
    """The container runs, or was running when the kubelet last read its status.

    One whose start failed may come to run only when the kill has begun, and what that is about is known.
    """
    pod = container.pod
    if not container.born or pod is None or (pod.manifest is not None and container.kind == "unknown"):
        return False  # What the spec does not have cannot be stopped by itself (TERM-13).
    record = container.record
    believed = record is not None and record.state == "CONTAINER_RUNNING" and not container.start_failed
    return container.state == "running" or (believed and not may_be_unknown(pod, m.node))


@contract("SANDBOX-18", on=call("StopPodSandbox"))
def containers_are_stopped_before_their_sandbox(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A pod is killed by stopping all its running containers and, when that is answered, its sandbox."""
    if not sandbox.born:
        return None
    stopped = False
    for container in sandbox.containers.values():
        if any(stop.call.id in pod.calls_open for stop in container.stops):
            return broken(f"StopContainer of {container.name} still runs", container.stops[-1].call.seq)
        if _to_be_stopped(m, container) and not container.stops:
            return broken(
                f"container {container.name} runs and was not stopped before its sandbox", container.start
            )
        stopped = stopped or bool(container.stops)
    return KEPT if stopped else None


def _kills_the_pod(m: Moment) -> Sandbox | None:
    """The sandbox of which the StopContainer answered here was the last of a pod-level kill."""
    pod, sandbox = m.pod, m.sandbox
    if pod is None or sandbox is None or not sandbox.born or sandbox.stopped:
        return None
    reported = m.container.record if m.container else None
    if is_dead_orphan(pod, sandbox, m.node) or (
        reported is not None and reported.state == "CONTAINER_UNKNOWN"
    ):
        return None  # A kill leaves it to the sandbox's stop; a stop of its own is another matter (GC-04).
    end, record = pod.termination, sandbox.record
    going = end is not None and m.call.t > end.t
    dead = record is not None and record.state == "SANDBOX_NOTREADY"
    if not going and not dead:
        return None
    for other in sandbox.containers.values():
        if other is m.container:
            continue
        if any(stop.call.id in pod.calls_open for stop in other.stops):
            return None
        if other.state == "running" and not other.stops:
            return None
    return sandbox


def _follows(m: Moment, sandbox: Sandbox, text: str) -> Answered:
    """StopPodSandbox is owed, before any record of the pod is removed and before its terminal phase."""
    early = call("RemoveContainer").where(lambda n: n.sandbox is sandbox and _is_newest(n))
    if _withholds(m):
        early = early.either(FINISHED)
    return answered(
        by=stop_of_sandbox(sandbox), within=REACTION, unless=goes_on_in(sandbox), not_before=early, text=text
    )


def _withholds(m: Moment) -> bool:
    return m.kubernetes is not None and m.kubernetes >= WITHHELD_SINCE


def _is_newest(m: Moment) -> bool:
    """The container is the newest of its name."""
    container, pod = m.container, m.pod
    return container is not None and pod is not None and pod.newest(container.name) is container


class _Edit(Note):
    """How long the pod before may take to end, where a file was edited into what this pod was sent as."""

    wait: float = 0.0


def _came_and_went(pod: Pod) -> bool:
    """The file of the pod was there for a moment only: the kubelet need not have seen it.

    Nor has it begun with a pod whose file was edited again while it waited for the end of the one before: a
    static pod starts when no other of its name is left, and asks for that again 10 s later (pod_workers.go).
    """
    if not pod.static or pod.termination is None or pod.changed_t is None:
        return False
    return pod.termination.t - pod.changed_t <= API_POLL + pod.note(_Edit).wait


@containers_are_stopped_before_their_sandbox.clause("records", on=call("RemoveContainer"))
def records_outlast_the_kill(m: Moment, pod: Pod, sandbox: Sandbox, container: Container) -> Findings:
    """The newest record of each container stays until the sandbox was stopped."""
    if not container.born or not _is_newest(m):
        return None
    if pod.termination is None or sandbox is not pod.sandbox or not sandbox.born:
        return None
    if sandbox.state != "ready" and (may_be_unknown(pod, m.node) or _came_and_went(pod)):
        return None  # A pod that no source knows, and of which nothing runs, is not killed.
    if not any(stop.is_done for stop in sandbox.stops):
        return broken(f"the record of {container.name} is removed before the kill is over")
    return KEPT


@observer(on=pod_set())
def _take_edit(m: Moment, pod: Pod) -> None:
    if not pod.static:
        return
    before = m.replaced.spec if m.replaced is not None else None
    pod.note(_Edit).wait = RETRY + 2 * before.grace_seconds if before is not None else 0.0


@containers_are_stopped_before_their_sandbox.clause("then", on=done("StopContainer"))
def sandbox_is_stopped_after_the_last_container(m: Moment) -> Findings:
    """The sandbox is stopped right after the last container."""
    sandbox = _kills_the_pod(m)
    if sandbox is None:
        return None
    return _follows(m, sandbox, "after its last container the pod's sandbox is stopped")


@contract("SANDBOX-19", on=failed("StopPodSandbox"))
def failed_sandbox_stop_is_retried(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A StopPodSandbox that fails, but for NotFound, is retried within 16 s.

    Until then the pod has no terminal phase and no other sandbox.
    """
    error = m.reply.error
    if not pod.born or error is None or error.code == "NOT_FOUND":
        return None
    if sandbox.stopped or pod.finished or is_dead_orphan(pod, sandbox, m.node) or is_left_to_itself(m, pod):
        return None
    if lost_its_cgroup(sandbox):
        return None
    early = call("RunPodSandbox")
    if _withholds(m):
        early = early.either(FINISHED)
    again = call("StopPodSandbox", "StopContainer")
    return answered(
        by=again,
        within=RETRY + RETRY_SLACK,
        not_before=early,
        text="the kill is tried again",
    )


@contract("SANDBOX-26", on=failed("StopContainer"))
def failed_container_stop_does_not_end_the_kill(m: Moment) -> Findings:
    """When a StopContainer of a pod-level kill fails, the sandbox is stopped all the same.

    The kill is repeated even if that succeeded.
    """
    sandbox = _kills_the_pod(m)
    if sandbox is None or (m.reply.error is not None and m.reply.error.code == "NOT_FOUND"):
        return None
    return _follows(m, sandbox, "the sandbox is stopped although a container's stop failed")


@failed_container_stop_does_not_end_the_kill.clause("again", on=done("StopPodSandbox"))
def kill_with_a_failure_is_repeated(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A kill in which a stop failed has failed as a whole."""
    if not sandbox.born or sandbox.stopped or is_left_to_itself(m, pod):
        return None
    before = [stop.call.t for stop in sandbox.stops if stop.call is not m.call]
    since = before[-1] if before else 0.0
    if pod.termination is None:
        since = max(since, sandbox.died_t or 0.0)  # Before its sandbox died a container was stopped alone.
    # And so was one before another was made in it.
    since = max([since, *(one.created_t or 0.0 for one in sandbox.containers.values())])
    last = [stops[-1] for one in sandbox.containers.values() if (stops := stops_of_its_pod(one))]
    if m.call.t - max((stop.end_t or m.call.t for stop in last), default=0.0) > TOGETHER:
        return None  # Those were stopped alone, such as for a hook that failed.
    if not any(stop.failed and not stop.not_found and stop.call.t > since for stop in last):
        return None
    return answered(
        by=stop_of_sandbox(sandbox), within=RETRY + RETRY_SLACK, text="the failed kill is repeated"
    )


class _Address(Note):
    """The sandbox that stood when an address of the pod was last shown."""

    sandbox: Sandbox | None = None
    reported: set[str] = set()


class _FailedReading(Note):
    """When the kubelet last read something of the runtime and failed."""

    t: float = -math.inf


@observer(on=failed("ListPodSandbox", "ListContainers", "ContainerStatus", "PodSandboxStatus"))
def _reading_has_failed(m: Moment) -> None:
    m.node.note(_FailedReading).t = m.t


@contract("SANDBOX-20", on=status(), needs=(CRI, STATUS))
def address_outlives_the_sandbox(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """A pod's status shows the IP that its sandbox was read with, and keeps it when that has stopped.

    Only when every record has vanished is it dropped until the next sandbox was read. A kubelet that failed
    to read the pod after its sandbox had ended may have forgotten it, and so has one to which an older
    sandbox is ready.
    """
    if not pod.born or (pod.spec is not None and pod.spec.host_network):
        return None
    memory = pod.note(_Address)
    # Another kubelet's status does not show what this one has read (RESTARTKUBELET-11).
    by_this_one = pod.status_t is not None and pod.status_t >= (m.node.started_t or 0.0)
    old = pod.status.pod_ip if pod.status and by_this_one else ""
    newest, kept_by = pod.sandbox, memory.sandbox
    if not status.pod_ip or status.pod_ip != old:
        memory.reported |= _addresses(pod.sandboxes)
    if not status.pod_ip:
        stands = newest is not None and newest.state != "removed"
        followed = newest is not None and (newest is kept_by or newest.attempt > 0)
        older = (one.record for one in standing(pod) if one is not newest)
        older_is_ready = any(record is not None and record.state == "SANDBOX_READY" for record in older)
        if old and stands and followed and not older_is_ready and not _may_be_forgotten(m, kept_by):
            return broken(f"podIP {old} is gone, and the pod still has a sandbox", pod.status_seq)
        return None
    memory.sandbox = newest
    if status.pod_ip != old and status.pod_ip not in memory.reported and not is_held_up(m):
        return broken(f"podIP is {status.pod_ip}, which no sandbox of the pod was read with")
    memory.reported = {status.pod_ip} | _addresses(standing(pod))
    return KEPT


def _may_be_forgotten(m: Moment, sandbox: Sandbox | None) -> bool:
    """Reading has failed since the sandbox of the address ended, so that it was not to be read again."""
    if sandbox is None:
        return False
    ends = [each.call.t for each in sandbox.stops]
    if sandbox.died_t is not None:
        ends.append(sandbox.died_t)
    return m.node.note(_FailedReading).t >= min(ends, default=math.inf)


def _addresses(sandboxes: list[Sandbox]) -> set[str]:
    """All addresses that these sandboxes were read with."""
    return {ip for one in sandboxes for ip in (one.ip, *reported_ips(one.record)) if ip}


@contract("SANDBOX-21", on=status(), needs=(CRI, STATUS))
def invalid_address_is_not_shown(m: Moment, status: PodStatus) -> Findings:
    """Where the runtime reports an IP that is no valid address, no IP is shown."""
    pod = m.pod
    sandbox = pod.sandbox if pod is not None else None
    reported = sandbox.ip if sandbox is not None else ""
    if not reported or is_address(reported):
        return None
    shown = {status.pod_ip, *(one.ip for one in status.pod_ips or ())}
    return broken(f"podIP is {reported}, which is no address") if reported in shown else KEPT
