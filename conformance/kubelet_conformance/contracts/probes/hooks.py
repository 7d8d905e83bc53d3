"""HOOK: when lifecycle hooks run, what waits for them, and the effects of their failure."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Execution, Finding, Moment, Pod, Predicate
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import call, done, event, exited, failed, status
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.backoff import retry_bound
from kubelet_conformance.contracts.facts.kills import failing_probe, forced, reasons
from kubelet_conformance.contracts.facts.probe import post_start_in_flight
from kubelet_conformance.contracts.facts.timing import REACTION, RELIST, TOGETHER
from kubelet_conformance.trace.format.bodies import ExecSyncReply, ExecSyncRequest
from kubelet_conformance.trace.format.manifests import PodStatus
from kubelet_conformance.trace.format.records import Event

POST_START = call("ExecSync").where(pods.runs_post_start)
PRE_STOP = call("ExecSync").where(pods.runs_pre_stop)
EVENT_SLACK = 10.0
"""How late a Kubernetes event may be recorded: they are sent in the background and rate limited."""


def _of_container(command: list[str] | None, container: Container) -> list[Execution]:
    return [hook for hook in container.hooks if hook.cmd == command]


def _succeeded(m: Moment) -> bool:
    return m.reply.error is None and m.response(ExecSyncReply).exit_code == 0


_ENDED = done("ExecSync").either(failed("ExecSync"))
_HOOK_GETS_MINIMUM_SINCE = (1, 28)
"""The least grace of a termination is for the preStop hook too, and no more for StopContainer alone."""


@contract("HOOK-01", on=POST_START, needs=(CRI, PODS), clause="once")
def post_start_runs_once(_: Moment, container: Container) -> Findings:
    """The postStart hook runs right after its container was started, once for each started instance.

    A preStop hook comes after it.
    """
    if not container.born:
        return None
    if container.started_t is None:
        return broken("expected StartContainer to be answered before the postStart hook")
    earlier = _of_container(pods.hook_command(container, "post_start"), container)
    if earlier and pods.hook_command(container, "post_start") != pods.hook_command(container, "pre_stop"):
        return broken("the postStart hook ran already for this instance", earlier[0].call.seq)
    stopping = pods.pre_stops(container)
    return broken("the preStop hook came first", stopping[0].call.seq) if stopping else KEPT


@post_start_runs_once.clause("follows", on=done("StartContainer"))
def post_start_follows_the_start(_: Moment, container: Container) -> Findings:
    """A container with an exec postStart hook gets it before anything else is made in its pod."""
    if not container.born or pods.hook_command(container, "post_start") is None:
        return None
    return answered(
        by=POST_START.where(pods.about(container)),
        within=REACTION,
        not_before=call("CreateContainer", "StartContainer", "RunPodSandbox"),
        text=f"the postStart hook of {container.name} runs",
    )


@contract("HOOK-02", on=call("CreateContainer", "StartContainer"), needs=(CRI, PODS), clause="waits")
def next_container_waits_for_the_hook(_: Moment, pod: Pod) -> Findings:
    """The container after one with a postStart hook is created only when the hook has returned; exec hooks
    are called without a timeout.
    """
    hook = post_start_in_flight(pod)
    if hook is not None:
        return broken("expected the running postStart hook to be awaited", hook.call.seq)
    with_hook = (c for c in pod.every_container() if pods.hook_command(c, "post_start") is not None)
    return KEPT if any(c.hooks for c in with_hook) else None


@next_container_waits_for_the_hook.clause("no-timeout", on=POST_START.either(PRE_STOP))
def exec_hook_has_no_timeout(m: Moment) -> Findings:
    """ExecSync for a hook has the timeout 0."""
    timeout = m.request(ExecSyncRequest).timeout
    return KEPT if timeout == 0 else broken(f"expected timeout 0 for a hook, got {timeout}")


@contract("HOOK-03", on=_ENDED.where(pods.runs_post_start), needs=(CRI, PODS), clause="kill")
def failed_post_start_kills(m: Moment, container: Container) -> Findings:
    """A container whose postStart hook fails is killed with its grace, its preStop hook first, and a
    FailedPostStartHook event reports it.
    """
    if container.state != "running" or _succeeded(m):
        return None
    return answered(
        by=call("StopContainer").where(pods.about(container)).either(PRE_STOP.where(pods.about(container))),
        within=REACTION,
        unless=exited().where(pods.about(container)),
        not_before=call("CreateContainer"),
        text=f"container {container.name} is killed after its postStart hook failed",
    )


@failed_post_start_kills.clause("event", on=_ENDED.where(pods.runs_post_start))
def failed_post_start_is_reported(m: Moment) -> Findings:
    """A FailedPostStartHook event reports the failure."""
    if m.container is None or _succeeded(m) or m.header.channels.events == "none":
        return None
    return answered(by=event("FailedPostStartHook"), within=EVENT_SLACK, text="FailedPostStartHook is sent")


@failed_post_start_kills.clause("again", on=done("StopContainer"))
def killed_one_is_made_again(m: Moment, pod: Pod, container: Container) -> Findings:
    """Under the policy Always it is made again, after its back-off."""
    if container.kind != "app" or pod.restart_policy != "Always":
        return None
    if not any(hook.failed for hook in pods.post_starts(container)) or not pods.to_run(m):
        return None
    if containers.waits_for_sidecars(container):
        return None
    return answered(
        by=containers.creation_of(container.name),
        within=retry_bound(m, container.name),
        unless=containers.HELD_UP.either(containers.SIDECAR_ENDS, pods.another_image(container)),
        text=f"{container.name} is made again after its postStart hook failed",
    )


@contract("HOOK-04", on=status(), needs=(CRI, PODS, STATUS))
def container_is_not_published_running_in_its_hook(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """While its postStart hook runs, a container's status is not yet Running."""
    hook = post_start_in_flight(pod)
    if hook is None:
        return None
    request = hook.call.request.view(ExecSyncRequest)
    for shown in status.container_statuses or ():
        if shown.state.running is not None and shown.runtime_id == request.container_id:
            return broken(f"{shown.name} is shown as running in its postStart hook", hook.call.seq)
    return KEPT


def _ends_without_grace(pod: Pod) -> bool:
    """The pod is terminated with the grace of its spec, which is 0."""
    end = pod.termination
    return end is not None and end.grace is None and pod.spec is not None and not pod.spec.grace_seconds


def _gets_a_hook(container: Container, pod: Pod, m: Moment) -> bool:
    if container.state != "running" or pods.hook_command(container, "pre_stop") is None:
        return False
    is_old = m.kubernetes is not None and m.kubernetes < _HOOK_GETS_MINIMUM_SINCE
    if is_old and (forced(pod) or _ends_without_grace(pod)):
        return False  # The grace of 0 leaves no time for it, though the stop gets more.
    return not pods.may_be_unknown(pod, m.node) and all(reason.seconds > 0 for reason in reasons(m))


@contract("HOOK-05", on=call("StopContainer"), needs=(CRI, PODS), clause="first")
def pre_stop_before_the_stop(m: Moment, pod: Pod, container: Container) -> Findings:
    """Whenever the kubelet stops a running container, its preStop hook has run, or begun, before."""
    if not _gets_a_hook(container, pod, m):
        return None
    started = container.started_t or 0.0
    command = pods.hook_command(container, "pre_stop")
    ran = [hook for hook in _of_container(command, container) if hook.call.t >= started]
    if command == pods.hook_command(container, "post_start"):
        ran = ran[1:]
    if not ran and container.born:
        return broken(f"expected the preStop hook of {container.name} before its stop", container.start)
    return KEPT if ran else None


@pre_stop_before_the_stop.clause("once", on=PRE_STOP)
def pre_stop_runs_once_a_kill(m: Moment, container: Container) -> Findings:
    """One kill runs the hook once; another kubelet may run it anew."""
    stopped_seq = container.stops[-1].call.seq if container.stops else 0
    since = max(m.node.started_t or 0.0, container.started_t or 0.0)
    commands = pods.hook_command(container, "pre_stop"), pods.hook_command(container, "post_start")
    hooks = _of_container(commands[0], container)
    earlier = [hook for hook in hooks if hook.call.t >= since and hook.call.seq > stopped_seq]
    if earlier and commands[0] != commands[1]:
        return broken(f"the preStop hook of {container.name} runs a second time", earlier[-1].call.seq)
    return KEPT


@pre_stop_before_the_stop.clause("then-the-stop", on=_ENDED.where(pods.runs_pre_stop))
def stop_follows_the_hook(m: Moment) -> Findings:
    """The stop follows the hook at once."""
    return _stop_is_due(m) if _succeeded(m) else None


def _stop_is_due(m: Moment) -> Findings:
    container, pod = m.container, m.pod
    if container is None or pod is None or container.kind == "sidecar":
        return None
    if container.stops and container.stops[-1].call.seq > m.call.seq:
        return None
    if container.state == "removed":
        return None  # Its record vanished meanwhile; whether it is the one stopped then is not known.
    return answered(
        by=call("StopContainer").where(pods.about(container)),
        within=REACTION,
        text=f"container {container.name} is stopped after its preStop hook",
    )


@contract("HOOK-06", on=_ENDED.where(pods.runs_pre_stop), needs=(CRI, PODS), clause="stop")
def failed_pre_stop_does_not_keep_the_container(m: Moment) -> Findings:
    """When a preStop hook fails, the stop follows all the same, and a FailedPreStopHook event reports it."""
    return None if _succeeded(m) else _stop_is_due(m)


@failed_pre_stop_does_not_keep_the_container.clause("event", on=_ENDED.where(pods.runs_pre_stop))
def failed_pre_stop_is_reported(m: Moment, pod: Pod) -> Findings:
    """A FailedPreStopHook event reports the failure."""
    if m.container is None or _succeeded(m) or m.header.channels.events == "none":
        return None
    return answered(
        by=event("FailedPreStopHook").where(_is_about(pod)),
        within=EVENT_SLACK,
        whole_node=True,
        text="FailedPreStopHook is sent",
    )


def _is_about(pod: Pod) -> Predicate:
    """The event is about this pod, of which nothing else may be left: the hook may outlast the grace."""
    return lambda m: m.pod is pod or (isinstance(m.record, Event) and m.record.uid == pod.uid)


@contract("HOOK-07", on=call("ExecSync"), needs=(CRI, PODS))
def hook_command_is_not_touched(m: Moment, container: Container) -> Findings:
    """The command of an exec hook reaches the runtime word for word, with no shell around it."""
    request = m.request(ExecSyncRequest)
    if request.timeout != 0:
        return None
    hooks = [
        c for c in (pods.hook_command(container, "post_start"), pods.hook_command(container, "pre_stop")) if c
    ]
    if not hooks:
        return None
    return KEPT if request.cmd in hooks else broken(f"expected {hooks}, got {request.cmd}")


@contract("HOOK-14", on=PRE_STOP, needs=(CRI, PODS))
def pre_stop_hooks_run_together(m: Moment, pod: Pod, container: Container) -> Iterator[Finding]:
    """When a pod is terminated, the preStop hooks of its containers begin at one time."""
    if pod.termination is None or not pod.born or container.kind == "sidecar":
        return
    if failing_probe(pod, container):
        return
    since = max(pod.termination.t, m.node.started_t or 0.0)
    for sibling in pod.every_container():
        command = pods.hook_command(sibling, "pre_stop")
        if sibling is container or sibling.kind == "sidecar" or sibling.state != "running" or command is None:
            continue
        if all(hook.call.t < since for hook in _of_container(command, sibling)):
            yield answered(
                by=PRE_STOP.where(pods.about(sibling)),
                within=TOGETHER,
                unless=containers.end_is_read(sibling),
                text=f"the preStop hook of {sibling.name} runs together with that of {container.name}",
            )


@contract("TERM-08", on=PRE_STOP, needs=(CRI, PODS), clause="running")
def pre_stop_is_for_running_containers(m: Moment, container: Container) -> Findings:
    """The preStop hook runs only in containers that run, not in one that has exited.

    Where the postStart hook fails, the start itself kills the container (kuberuntime_container.go
    startContainer), and no step of a start looks at the records again.
    """
    if container.end_read_t is not None and m.t - container.end_read_t > RELIST:
        if not container.stops and pods.post_start_may_have_failed(container):
            return None
        return broken("the container had exited before its preStop hook", container.end_read_seq)
    return KEPT if container.state == "running" else None
