"""CRI: how the runtime answers calls: what it accepts, what it refuses, in what time and with which ids."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Pod, Sandbox
from kubelet_conformance.contract.applicability import since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, failed, happened, kubelet, newly_reported
from kubelet_conformance.contracts.facts.pod import is_new_reply
from kubelet_conformance.contracts.facts.timing import CALL_TIMEOUT, EXEC_SLACK, SAME_MOMENT, STOP_SLACK
from kubelet_conformance.contracts.runtime.expected import judges_expectations
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.records import RuntimeEvent
from kubelet_conformance.trace.world.kubelet_view import has_injected_fault

_NO_ANSWER = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"})


def refusal(m: Moment) -> str | None:
    """The code of an error that the runtime itself returned, neither injected nor of the connection."""
    error = m.reply.error
    if error is None or error.code in _NO_ANSWER:
        return None
    injected = not m.reply.effect and error.code != "NOT_FOUND"
    return None if injected or has_injected_fault(m) else error.code


@contract("CRI-01", on=done("Version").where(is_new_reply))
def version_is_answered_in_full(m: Moment) -> Findings:
    """Version answers 0.1.0 with the runtime's name, its version and the version of its API."""
    reply = m.response(bodies.VersionReply)
    if reply.version != "0.1.0":
        return broken(f"version is {reply.version!r}, expected 0.1.0")
    missing = [
        name
        for name in ("runtime_name", "runtime_version", "runtime_api_version")
        if not getattr(reply, name)
    ]
    return broken(f"{', '.join(missing)} is missing") if missing else KEPT


@contract("CRI-02", on=done("Status").where(is_new_reply))
def status_has_both_conditions(m: Moment) -> Findings:
    """Status lists the conditions RuntimeReady and NetworkReady."""
    status = m.response(bodies.StatusReply).status
    have = {condition.type for condition in status.conditions} if status else set[str]()
    missing = {"RuntimeReady", "NetworkReady"} - have
    return broken(f"condition {', '.join(sorted(missing))} is missing") if missing else KEPT


def _answered(m: Moment) -> Findings:
    """A running runtime answers these calls."""
    code = refusal(m)
    return broken(f"{m.call.rpc} is answered by {code}") if code else None


version_is_answered_in_full.clause("answered", on=failed("Version"))(_answered)
status_has_both_conditions.clause("answered", on=failed("Status"))(_answered)


@contract("CRI-03", on=done("RunPodSandbox"))
def sandbox_run_is_new_and_ready(m: Moment) -> Findings:
    """RunPodSandbox returns the id of a new sandbox, which is READY when it is read at once."""
    sandbox_id = m.response(bodies.RunPodSandboxReply).pod_sandbox_id
    if not sandbox_id:
        return broken("the sandbox id is empty")
    if m.sandbox is not None and m.sandbox.run is not m.call:
        return broken(f"{sandbox_id[:12]} is the id of another sandbox", m.sandbox.run)
    return KEPT


@sandbox_run_is_new_and_ready.clause("ready", on=newly_reported("sandbox"))
def new_sandbox_is_ready(m: Moment) -> Iterator[Finding]:
    """The first status read after RunPodSandbox says READY."""
    for one in m.sandboxes_reported:
        known = one.known
        if one.state != "ready" or known is None or known.ready_t is None or known.status_t is not None:
            continue
        if one.whole and known.ready_t <= m.call.t <= known.ready_t + SAME_MOMENT:
            ready = one.record.state == "SANDBOX_READY"
            because = known.run
            yield KEPT if ready else broken("the new sandbox is not READY", because)


judges_expectations(sandbox_run_is_new_and_ready)


@contract("CRI-04", on=done("RunPodSandbox").either(failed("RunPodSandbox")))
def no_twin_sandbox(m: Moment, pod: Pod) -> Findings:
    """A second RunPodSandbox of the same pod and attempt fails as long as the first sandbox is recorded."""
    attempt = m.request(bodies.RunPodSandboxRequest).config.metadata.attempt
    others = (s for s in pod.sandboxes if s.run is not m.call)
    twins = [s for s in others if s.attempt == attempt and s.state != "removed"]
    if not twins or pod.sandboxes[-1].vanished:
        return None
    if m.reply.error is not None:
        return KEPT
    return broken(f"attempt {attempt} of this pod is run a second time", twins[0].run)


@contract("CRI-05", on=newly_reported("sandbox"))
def stopped_sandbox_is_notready(m: Moment) -> Iterator[Finding]:
    """After StopPodSandbox the sandbox is NOTREADY and none of its containers runs.

    Stopping it again, or one that is gone, is no error.
    """
    for one in m.sandboxes_reported:
        if one.state == "notready" and one.known is not None:
            stop = next(s.end_seq for s in one.known.stops if s.succeeded)
            stopped = one.record.state == "SANDBOX_NOTREADY"
            yield KEPT if stopped else broken(f"sandbox {one.known.id[:12]} was stopped and is READY", stop)


@stopped_sandbox_is_notready.clause("containers", on=newly_reported("container"))
def stopped_sandbox_runs_nothing(m: Moment) -> Iterator[Finding]:
    """No container runs in a stopped sandbox."""
    for one in m.containers_reported:
        sandbox = one.known.sandbox if one.known else None
        if sandbox is None or not sandbox.stops:
            continue
        stop = next((s.end_seq for s in sandbox.stops if s.succeeded and s.end_seq < m.call.seq), None)
        if stop is not None:
            running = one.record.state == "CONTAINER_RUNNING"
            yield broken(f"{one.record.metadata.name} runs in a stopped sandbox", stop) if running else KEPT


@stopped_sandbox_is_notready.clause("idempotent", on=done("StopPodSandbox").either(failed("StopPodSandbox")))
def stopping_a_sandbox_twice_is_no_error(m: Moment) -> Findings:
    """Stopping a sandbox that is stopped or gone is no error."""
    gone = m.sandbox is None and m.world.past_known
    if not gone and not (m.sandbox and m.sandbox.stopped):
        return None
    if m.reply.error is None:
        return KEPT
    code = refusal(m)
    return broken(f"StopPodSandbox of a stopped sandbox is answered by {code}") if code else None


@contract("CRI-07", on=failed("ContainerStatus", "PodSandboxStatus"))
def unknown_id_is_not_found(m: Moment) -> Findings:
    """The status of an id that the runtime does not have is answered by NOT_FOUND and nothing else."""
    error = m.reply.error
    if m.container or m.sandbox or error is None or not m.world.past_known:
        return None
    if error.code == "NOT_FOUND":
        return KEPT
    code = refusal(m)
    return broken(f"{m.call.rpc} of an unknown id is answered by {code}") if code else None


class _Removed(dict[str, tuple[float, int]]):
    """When each entity was removed (s, seq): kept as long as a call about it may be in progress."""

    def add(self, name: str, t: float, seq: int) -> None:
        """Record a removal, and forget the oldest ones."""
        self.pop(name, None)
        self[name] = t, seq
        while t - self[oldest := next(iter(self))][0] > CALL_TIMEOUT:
            del self[oldest]


def _id_of(m: Moment) -> str:
    if m.call.rpc in {"ContainerStatus", "RemoveContainer"}:
        return m.request(bodies.ContainerRequest).container_id
    return m.request(bodies.SandboxRequest).pod_sandbox_id


@observer(on=done("RemoveContainer", "RemovePodSandbox").either(happened("removed")))
def _something_is_removed(m: Moment) -> None:
    record = m.record
    gone = record.container_id or record.sandbox_id if isinstance(record, RuntimeEvent) else _id_of(m)
    m.node.note(_Removed).add(gone, m.t, m.seq)


@unknown_id_is_not_found.clause("found", on=done("ContainerStatus", "PodSandboxStatus"))
def unknown_id_has_no_status(m: Moment) -> Findings:
    """An id that no call returned and no list has named has no status."""
    if m.container or m.sandbox or not (m.header.from_start and m.node.listed):
        return None
    _, removed_seq = m.node.note(_Removed).get(_id_of(m), (0.0, 0))
    if removed_seq > m.call.seq:
        return None  # It was there when it was asked for.
    return broken(f"{m.call.rpc} of an id that was never given out is answered by a status")


@contract("CRI-08", on=done("StopContainer").either(failed("StopContainer")))
def stop_of_unknown_container_is_harmless(m: Moment) -> Findings:
    """StopContainer of a container that the runtime does not have succeeds or is answered by NOT_FOUND."""
    if m.container is not None or not m.world.past_known:
        return None
    if m.reply.error is None:
        return KEPT
    code = refusal(m)
    if code is None:
        return None
    return KEPT if code == "NOT_FOUND" else broken(f"StopContainer of an unknown id is answered by {code}")


@contract("CRI-11", on=done("CreateContainer"))
def container_is_created_in_a_ready_sandbox(m: Moment) -> Findings:
    """CreateContainer needs a READY sandbox and returns the id of a new container.

    The new container is CREATED and does not run before it is started.
    """
    container_id = m.response(bodies.CreateContainerReply).container_id
    sandbox = m.sandbox
    if not container_id:
        return broken("the container id is empty")
    if m.container is not None and m.container.create is not m.call:
        return broken(f"{container_id[:12]} is the id of another container", _created(m))
    if sandbox is None:
        known = m.header.from_start and m.node.listed
        return broken("a container was created in a sandbox that no call has run") if known else None
    stop = next((s for s in sandbox.stops if s.succeeded and s.end_seq < m.call.seq), None)
    if stop is not None:
        return broken("a container was created in a stopped sandbox", stop.end_seq)
    return KEPT


def _created(m: Moment) -> int | None:
    return m.container.create.seq if m.container and m.container.create else None


@container_is_created_in_a_ready_sandbox.clause("not started", on=newly_reported("container"))
def created_container_does_not_run(m: Moment) -> Iterator[Finding]:
    """A container that was not started does not run; UNKNOWN, as of one half written, says neither."""
    for one in m.containers_reported:
        if one.state == "created" and one.known is not None and one.record.state != "CONTAINER_UNKNOWN":
            runs = one.record.state != "CONTAINER_CREATED" or one.record.started_at > 0
            yield broken(f"{one.known.name} was never started and runs", one.known.create) if runs else KEPT


@container_is_created_in_a_ready_sandbox.clause("exit", on=happened("exited"))
def unstarted_container_does_not_exit(m: Moment, container: Container) -> Findings:
    """A container that was never started, nor stopped, does not exit."""
    if not container.born or container.start is not None or container.stops:
        return None
    if container.sandbox is not None and container.sandbox.stops:
        return None
    return broken(f"{container.name} exits and was never started", _created(m))


@contract("CRI-12", on=done("StartContainer").either(failed("StartContainer")))
def start_is_for_created_containers_only(m: Moment) -> Findings:
    """StartContainer succeeds once, for a CREATED container, which then has started_at.

    From any other state it is an error.
    """
    container = m.container
    if container is None:
        known = m.header.from_start and m.node.listed and m.reply.error is None
        return broken("a container that no call has created was started") if known else None
    if not container.born or m.call is not container.start:
        return None
    if container.started_seq:
        return KEPT if m.reply.error else broken(f"{container.name} was started twice", container.started_seq)
    if container.exit is not None and container.exit.seq < m.call.seq:
        return KEPT if m.reply.error else broken(f"{container.name} was started again", container.exit.seq)
    return None if m.reply.error else KEPT


@start_is_for_created_containers_only.clause("started_at", on=newly_reported("container"))
def started_container_has_started_at(m: Moment) -> Iterator[Finding]:
    """A started container's status has started_at."""
    for one in m.containers_reported:
        if one.whole and one.known is not None and 0 < one.known.started_seq < m.call.seq:
            because = one.known.started_seq
            has_it = one.record.started_at >= one.record.created_at
            yield KEPT if has_it else broken(f"{one.known.name} was started: no started_at", because)


@contract("CRI-13", on=done("StopContainer"))
def stop_returns_within_its_timeout(m: Moment) -> Findings:
    """StopContainer returns when the container has stopped: at the latest when its timeout expires."""
    if m.container is None:
        return None
    timeout, took = m.request(bodies.StopContainerRequest).timeout, m.t - m.call.t
    if took > max(timeout, 0) + STOP_SLACK and not has_injected_fault(m):
        return broken(f"StopContainer with a timeout of {timeout} s took {took:.1f} s")
    return KEPT


@stop_returns_within_its_timeout.clause("after the exit", on=happened("exited"))
def stop_does_not_return_before_the_exit(m: Moment) -> Findings:
    """No container exits after its StopContainer has returned."""
    stops = m.container.stops if m.container and m.container.started_seq else ()
    stop = next((s for s in stops if s.succeeded), None)
    if stop is None or stop.end_t is None or m.t - stop.end_t <= SAME_MOMENT:
        return None
    return broken(f"the container exits {m.t - stop.end_t:.1f} s after StopContainer returned", stop.end_seq)


judges_expectations(stop_returns_within_its_timeout)


@contract("CRI-26", on=done("ExecSync").either(failed("ExecSync")))
def exec_keeps_its_timeout(m: Moment) -> Findings:
    """ExecSync with a timeout answers before the timeout expires, or then with DEADLINE_EXCEEDED.

    ExecSync without a timeout has no limit.
    """
    if has_injected_fault(m) or (m.reply.error is not None and not _is_over_time(m)):
        return None
    timeout, took = m.request(bodies.ExecSyncRequest).timeout, m.t - m.call.t
    if timeout > 0 and took > timeout + EXEC_SLACK:
        return broken(f"ExecSync with a timeout of {timeout} s answered after {took:.1f} s")
    return KEPT


@exec_keeps_its_timeout.clause("deadline", on=failed("ExecSync"))
def exec_is_not_cut_short(m: Moment) -> Findings:
    """DEADLINE_EXCEEDED comes when the timeout expires, and no earlier."""
    if not _is_over_time(m) or has_injected_fault(m):
        return None
    timeout, took = m.request(bodies.ExecSyncRequest).timeout, m.t - m.call.t
    if timeout <= 0:
        return broken(f"ExecSync without a timeout ended with DEADLINE_EXCEEDED after {took:.1f} s")
    if took < timeout - SAME_MOMENT:
        return broken(f"ExecSync with a timeout of {timeout} s ended after {took:.1f} s")
    return KEPT


def _is_over_time(m: Moment) -> bool:
    error = m.reply.error
    return error is not None and error.code == "DEADLINE_EXCEEDED" and m.reply.effect


judges_expectations(exec_keeps_its_timeout)


@contract("CRI-27", on=done("ExecSync").either(failed("ExecSync")))
def exec_needs_a_running_container(m: Moment, container: Container) -> Findings:
    """ExecSync in a container that does not run is an error."""
    if not container.born:
        return None
    ended = container.exit is not None and container.exit.seq < m.call.seq
    if not ended and container.start is not None:
        return None
    said = f"ExecSync ran in {container.name}, which does not run"
    return KEPT if m.reply.error else broken(said, container.exit)


@contract("CRI-37", on=done("CreateContainer"))
def target_is_in_the_same_sandbox(m: Moment, sandbox: Sandbox) -> Findings:
    """A container that shares a target's process namespace is created only if that is in the same sandbox."""
    options = m.request(bodies.CreateContainerRequest).config.linux.security_context.namespace_options
    if options.pid != "TARGET" or not sandbox.born:
        return None
    if options.target_id not in sandbox.containers:
        return broken(f"target {options.target_id[:12] or 'without id'} is no container of the sandbox")
    return KEPT


@contract("CRI-41", on=call("RemovePodSandbox"))
def sandbox_is_stopped_before_removal(_: Moment, sandbox: Sandbox) -> Findings:
    """RemovePodSandbox is called only for a sandbox that StopPodSandbox was called for at least once."""
    if not sandbox.born:
        return None
    if sandbox.stopped:
        return KEPT
    return broken("the sandbox is removed without having been stopped", sandbox.run)


@contract("CRI-42", on=kubelet("started"), versions=since("1.28"))
def runtime_config_is_asked(_: Moment) -> Findings:
    """A kubelet asks for RuntimeConfig before it runs any sandbox: upstream's way to the cgroup driver."""
    return answered(
        by=call("RuntimeConfig"),
        not_before=call("RunPodSandbox"),
        whole_node=True,
        text="RuntimeConfig is asked",
    )
