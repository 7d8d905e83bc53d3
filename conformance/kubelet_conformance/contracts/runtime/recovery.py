"""CRI: what a runtime must do under failures: a late stop, a reboot, a broken record, a dead sandbox."""

import math
from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pod, Sandbox
from kubelet_conformance.contract.definition import KEPT, Findings, broken, kept_if, observer
from kubelet_conformance.contract.patterns import done, failed, happened, kubelet, newly_reported
from kubelet_conformance.contracts.facts.timing import LEFT_WORK, SAME_MOMENT, STOP_SLACK
from kubelet_conformance.contracts.runtime.calls import (
    container_is_created_in_a_ready_sandbox,
    exec_keeps_its_timeout,
    refusal,
    start_is_for_created_containers_only,
    stop_returns_within_its_timeout,
)
from kubelet_conformance.contracts.runtime.expected import work_goes_on_without_its_caller
from kubelet_conformance.contracts.runtime.lists import filters_are_obeyed
from kubelet_conformance.contracts.runtime.records import exit_data_is_whole_and_true
from kubelet_conformance.trace.format.bodies import StopContainerRequest
from kubelet_conformance.trace.world.kubelet_view import has_injected_fault

_KILLED = 137


@stop_returns_within_its_timeout.clause("given up", on=failed("StopContainer"))
def stop_is_not_given_up_on(m: Moment) -> Findings:
    """StopContainer returns soon after its timeout expired, so that no caller has to give up."""
    error, took = m.reply.error, m.t - m.call.t
    if m.container is None or error is None or error.code != "DEADLINE_EXCEEDED" or not m.reply.effect:
        return None
    timeout = max(m.request(StopContainerRequest).timeout, 0)
    if took <= timeout + STOP_SLACK or has_injected_fault(m):
        return None
    return broken(f"StopContainer with a timeout of {timeout} s had not returned after {took:.1f} s")


@exit_data_is_whole_and_true.clause("lost", on=happened("rebooted"))
def lost_end_is_no_success(m: Moment) -> Iterator[Finding]:
    """A container that a node failure ended has not exited with 0: its exit code is unknown (cri-o#3041)."""
    before = m.node.note(_WentDown).seq
    for container in m.world.containers.values():
        ended = container.exit
        if ended is None or ended.seq < before or m.t - ended.t > SAME_MOMENT:
            continue
        if container.started_seq:
            well = ended.code == 0
            yield kept_if(not well, f"{container.name} ended with the node and exited with 0", ended.seq)


class _WentDown(Note):
    """When the kubelet last went down; what had exited before did not end with the node."""

    seq: int = 0


@observer(on=kubelet("ended", "killed", "stopped"))
def _kubelet_went_down(m: Moment) -> None:
    m.node.note(_WentDown).seq = m.seq


@filters_are_obeyed.clause("robust", on=failed("ListContainers", "ListPodSandbox"))
def lists_do_not_fail(m: Moment) -> Findings:
    """One bad record does not prevent the listing of the others (cri-o#390)."""
    # A runtime that was down lists nothing before it has read its records: its Status is not ready yet.
    code = refusal(m) if m.node.cut_off_until < math.inf else None
    return broken(f"{m.call.rpc} is answered by {code}") if code else None


@exec_keeps_its_timeout.clause("container", on=failed("ExecSync"))
def late_command_ends_alone(m: Moment, container: Container) -> Findings:
    """Only the command that outlasts its timeout is ended: its container continues to run (pelagos#339)."""
    error = m.reply.error
    if error is None or error.code != "DEADLINE_EXCEEDED" or not m.reply.effect:
        return None
    ended = container.exit
    if ended is None:
        return KEPT
    at_once = m.t - ended.t <= SAME_MOMENT and ended.code == _KILLED and not container.stops
    return broken(f"{container.name} ended with a command that was late", ended.seq) if at_once else None


@container_is_created_in_a_ready_sandbox.clause("died", on=done("CreateContainer"))
def dead_sandbox_gets_no_container(m: Moment, sandbox: Sandbox) -> Findings:
    """Nothing is created in a sandbox that is NOTREADY without having been stopped (containerd#13599)."""
    if sandbox.died_t is None or sandbox.died_t >= m.call.t:
        return None
    return broken("a container was created in a sandbox that had died")


class _Left(Note):
    """When a kubelet last gave up waiting for a sandbox of the pod, and how often it has."""

    first_t: float = 0.0
    seq: int = 0
    times: int = 0


@work_goes_on_without_its_caller.clause("sandbox", on=failed("RunPodSandbox"))
def left_work_is_not_undone(m: Moment, pod: Pod) -> Findings:
    """A sandbox that the kubelet gave up on is made all the same, or its name is free again."""
    error = m.reply.error
    if error is None or not m.reply.effect or pod.sandboxes:
        return None
    # It is refused for what is asked, and would have been then; or a fault comes on top of another.
    if error.code == "INVALID_ARGUMENT" or (m.header.patient and has_injected_fault(m)):
        return None
    left, late = pod.note(_Left), m.t - pod.note(_Left).first_t
    if error.code != "DEADLINE_EXCEEDED":
        held = left.times and refusal(m) is not None and late > LEFT_WORK
        return (
            broken(f"{late:.0f} s after it was given up on the sandbox is still refused", left.seq)
            if held
            else None
        )
    left.times += 1
    if left.times == 1:
        left.first_t, left.seq = m.t, m.seq
    elif late > LEFT_WORK:
        return broken(f"{late:.0f} s after it was given up on there is no sandbox", left.seq)
    return None


@work_goes_on_without_its_caller.clause("found", on=newly_reported("sandbox"))
def left_work_is_found(m: Moment) -> Iterator[Finding]:
    """The runtime reports the sandbox that the kubelet gave up on."""
    for one in m.sandboxes_reported:
        pod = m.world.pods.get(one.record.metadata.uid)
        left = pod.note(_Left) if pod is not None else None
        if left is not None and left.times:
            left.times = 0
            yield KEPT


@start_is_for_created_containers_only.clause("failed", on=newly_reported("container"))
def failed_start_is_an_end(m: Moment) -> Iterator[Finding]:
    """A container that could not be started has ended, with a code that is not 0 (kubernetes#35344)."""
    for one in m.containers_reported:
        failure = one.known.note(_FailedStart) if one.known is not None else None
        if failure is None or not failure.seq or not one.whole or failure.seq > m.call.seq:
            continue
        ended = one.record.state == "CONTAINER_EXITED" and one.record.exit_code != 0
        yield kept_if(
            bool(ended), f"{one.record.metadata.name} could not be started and has not ended", failure.seq
        )


class _FailedStart(Note):
    """The runtime could not start the container, and said so."""

    seq: int = 0


@observer(on=failed("StartContainer"))
def _start_failed(m: Moment, container: Container) -> None:
    if refusal(m) is None or not m.reply.effect:
        return
    if container.born and m.call is container.start and container.exit is None:
        container.note(_FailedStart).seq = m.seq
