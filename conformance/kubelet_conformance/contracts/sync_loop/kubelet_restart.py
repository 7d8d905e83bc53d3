"""RESTARTKUBELET: what a kubelet that starts again keeps, and what it catches up with.

RESTARTKUBELET: pods that were deleted or removed while the kubelet was down.
"""

from collections.abc import Iterator

from kubelet_conformance.contract import (
    Container,
    Finding,
    Moment,
    Node,
    Note,
    Pattern,
    Pod,
    PodStatus,
    Predicate,
    Sandbox,
)
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, exited, kubelet, pod_set
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.kills import (
    ORPHAN_GRACE,
    is_ended_for_a_reason,
    reasons,
    to_be_explained,
)
from kubelet_conformance.contracts.facts.probe import has_other_probes
from kubelet_conformance.contracts.facts.static_pod import status_may_be_forgotten
from kubelet_conformance.contracts.facts.status import AGAIN
from kubelet_conformance.contracts.facts.timing import KUBELET_START
from kubelet_conformance.contracts.tables.stop import MINIMUM_GRACE
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.labels import Annotation
from kubelet_conformance.trace.world.disruption import is_ended_by_the_kubelet
from kubelet_conformance.trace.world.in_flight import is_the_workers

LIFE_ENDS: Pattern = pods.END.either(kubelet("ended", "killed", "stopped"))
_SETTLED = 5.0
"""A kubelet has had its first relist and its first syncs after this long."""


def _again(node: Node) -> bool:
    """The kubelet has started before."""
    return node.lives > 1 and node.started_t is not None and node.kubelet_up


def _before(node: Node, t: float | None) -> bool:
    """The entity existed before the current kubelet instance."""
    return t is not None and node.started_t is not None and t < node.started_t


def _settled_pods(m: Moment) -> Iterator[Pod]:
    """Living pods that this kubelet has found at its start and had time to look at."""
    node = m.node
    if not _again(node) or node.started_t is None or m.t - node.started_t < _SETTLED:
        return
    for pod in m.world.pods.values():
        if not pod.born or not pod.wanted or pod.termination is not None or pod.sandbox is None:
            continue
        if _before(node, pod.set_t) and _before(node, pod.sandbox.ready_t):
            yield pod


def _healthy(container: Container, node: Node) -> bool:
    """The container has run since before the kubelet's start, in a sandbox that is ready."""
    sandbox = container.sandbox
    ready = sandbox is not None and sandbox.state == "ready" and sandbox.born
    return container.state == "running" and _before(node, container.started_t) and ready


@contract("RESTARTKUBELET-01", on=call("StopContainer"), needs=(CRI, PODS), clause="no-stop")
def healthy_container_is_not_stopped(m: Moment, pod: Pod, container: Container) -> Findings:
    """A kubelet that starts again stops, recreates and restarts no healthy container or sandbox."""
    return unexplained_stop(m, pod, container)


def unexplained_stop(m: Moment, pod: Pod, container: Container) -> Findings:
    """The stop of a container that has run since before the kubelet's start, if nothing explains it."""
    if not _again(m.node) or not _healthy(container, m.node):
        return None
    spec = container.spec
    if pod.termination is not None or not pod.born or spec is None or reasons(m):
        return None
    if container.stopping or has_other_probes(container, "liveness", "startup"):
        return None
    if is_ended_for_a_reason(m, pod):
        return None
    text = f"there is a reason to stop container {container.name}, which ran before the kubelet's start,"
    return to_be_explained(m, text)


@healthy_container_is_not_stopped.clause("no-sandbox", on=call("RunPodSandbox", "StopPodSandbox"))
def healthy_sandbox_is_not_replaced(m: Moment, pod: Pod) -> Findings:
    """A sandbox that is ready and has an address is neither stopped nor replaced."""
    sandbox = pod.sandbox
    if sandbox is None or not _again(m.node) or not pod.born or pod.termination is not None:
        return None
    if sandbox.state != "ready" or not sandbox.ip or not _before(m.node, sandbox.ready_t) or sandbox.stops:
        return None
    if pod.finished or is_ended_for_a_reason(m, pod):
        return None
    if m.call.rpc == "StopPodSandbox" and m.sandbox is not sandbox:
        return None
    if not any(_healthy(container, m.node) for container in sandbox.containers.values()):
        return None
    return to_be_explained(m, f"there is a reason for {m.call.rpc} on the ready sandbox of {pod.name}")


@healthy_container_is_not_stopped.clause("no-restart", on=containers.REMAKING)
def healthy_container_is_not_made_again(m: Moment, pod: Pod) -> Findings:
    """No container is created beside one that has run since before the start."""
    if not _again(m.node):
        return None
    newest = pod.newest(m.request(bodies.CreateContainerRequest).config.metadata.name)
    if newest is None or not _healthy(newest, m.node):
        return None
    return broken(f"container {newest.name} is created again, though it runs", newest.started_seq)


@healthy_container_is_not_stopped.clause("lives-on", on=LIFE_ENDS)
def healthy_containers_live_on(m: Moment) -> Iterator[Finding]:
    """A container that ran before the start continues to run."""
    yield from kept_containers(m)


def kept_containers(m: Moment) -> Iterator[Finding]:
    """KEPT for each container that has run since before the kubelet's start."""
    for pod in _settled_pods(m):
        for container in pod.every_container():
            if _healthy(container, m.node):
                yield KEPT


@contract("RESTARTKUBELET-03", on=containers.REMAKING, needs=(CRI, PODS))
def restart_count_is_found_again(m: Moment, pod: Pod) -> Findings:
    """A container made again after the kubelet's restart counts on from the attempt at the runtime."""
    config = m.request(bodies.CreateContainerRequest).config
    every = pod.containers.get(config.metadata.name, ())
    # One that the former kubelet did not live to see made is known from a listing only: without its order.
    newest = max(every, key=lambda one: one.attempt, default=None)
    if newest is not pod.newest(config.metadata.name):
        return None  # An earlier one came to be later: that is the newest to the kubelet.
    if newest is None or not _again(m.node) or not newest.born or not _before(m.node, newest.created_t):
        return None
    if newest.state == "removed":
        return None
    expected = newest.attempt + 1
    reported = config.annotations.get(Annotation.RESTART_COUNT)
    if config.metadata.attempt != expected or reported not in {None, str(expected)}:
        got = f"attempt {config.metadata.attempt}, restartCount {reported}"
        return broken(f"expected attempt {expected}, got {got}", newest.create)
    return KEPT


def _died_while_down(container: Container, node: Node) -> bool:
    end, down, up = container.exit, node.down_t, node.started_t
    if end is None or end.commanded:
        return False
    return down is not None and up is not None and down <= end.t <= up


_COMES_FIRST = (
    call("PullImage", "StopContainer", "ExecSync").where(is_the_workers).either(containers.SIDECAR_ENDS)
)
"""A sync works in order: it kills before it starts, and waits for images and for hooks."""


_ENDS_THE_POD = call("StopPodSandbox").where(lambda m: m.pod is not None and is_ended_for_a_reason(m, m.pod))
"""Its deadline has passed, or the kubelet has another reason of its own."""


@contract("RESTARTKUBELET-04", on=containers.REMAKING, needs=(CRI, PODS), clause="policy")
def policy_decides_on_what_exited_meanwhile(m: Moment, pod: Pod) -> Findings:
    """A container that exited while the kubelet was down is treated by restart policy and exit code."""
    newest = pod.newest(m.request(bodies.CreateContainerRequest).config.metadata.name)
    if newest is None or newest.kind != "app" or not _died_while_down(newest, m.node):
        return None
    end, sandbox = newest.exit, newest.sandbox
    if end is None or end.code is None or sandbox is not pod.sandbox or newest.state == "removed":
        return None
    if pods.will_not_run_again(pod, newest.name, end.code):
        text = f"container {newest.name} exited with {end.code}; {pod.restart_policy} does not restart it"
        return broken(text, end.seq)
    return KEPT


@policy_decides_on_what_exited_meanwhile.clause("restarted", on=kubelet("started"))
def what_exited_meanwhile_is_restarted(m: Moment) -> Iterator[Finding]:
    """A container that exited while the kubelet was down is made again where the restart policy says so."""
    for pod in list(m.world.pods.values()):
        if not pod.born or not pod.wanted or pod.termination or pod.finished or pod.sandbox is None:
            continue
        for container in list(pod.of_kind("app")):
            if not _is_to_be_made_again(container, pod, m.node):
                continue
            yield answered(
                by=containers.creation_of(container.name).where(pods.of(pod)),
                within=KUBELET_START,
                unless=pods.TERMINATION_ASKED.either(
                    _COMES_FIRST, _ENDS_THE_POD, containers.INIT_FIRST
                ).where(pods.of(pod)),
                text=f"container {container.name}, which exited while the kubelet was down, is made again",
            )


def _is_to_be_made_again(container: Container, pod: Pod, node: Node) -> bool:
    end, sandbox = container.exit, container.sandbox
    if end is None or end.code is None or node.down_t is None or end.t < node.down_t:
        return False
    if container is not pod.newest(container.name) or sandbox is None or sandbox.state != "ready":
        return False
    if containers.waits_for_sidecars(container):
        return False
    return container.spec is not None and not pods.will_not_run_again(pod, container.name, end.code)


class _Ended(Note):
    """Whether the pod had ended when this kubelet started."""

    was_ended: bool = False


@observer(on=kubelet("started"))
def _which_have_ended(m: Moment) -> None:
    for pod in m.world.pods.values():
        sent = pod.sent_status
        # Another client may have written another phase since, and no kubelet corrected it yet.
        is_undone = sent is not None and not sent.terminal and pod.changed_seq > pod.status_seq
        pod.note(_Ended).was_ended = bool(pod.finished) and not is_undone


@contract("RESTARTKUBELET-05", on=LIFE_ENDS, needs=(CRI, PODS, STATUS), clause="stays")
def ended_pods_stay_ended(m: Moment) -> Iterator[Finding]:
    """A pod that had ended before the kubelet's restart is not started again."""
    node = m.node
    if not _again(node) or node.started_t is None or m.t - node.started_t < _SETTLED:
        return
    for pod in m.world.pods.values():
        if pod.born and pod.wanted and pod.finished and pod.note(_Ended).was_ended:
            yield KEPT


@ended_pods_stay_ended.clause(
    "nothing",
    on=call("RunPodSandbox", "CreateContainer", "StartContainer").where(pods.has_ended),
)
def ended_pod_is_not_started(m: Moment, pod: Pod) -> Findings:
    """No sandbox or container is created for a pod that had ended."""
    if not pod.born or not pod.finished or not _again(m.node) or pods.end_is_forgotten(pod, m.node):
        return None
    return broken(f"{m.call.rpc} for pod {pod.name}, which has ended", pod.status_seq)


@ended_pods_stay_ended.clause("left alone", on=call("StopPodSandbox"))
def ended_pod_is_not_stopped_again(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """Of a pod that had ended, and of which nothing runs, the last sandbox is not stopped again."""
    if not pod.born or not pod.finished or not _again(m.node) or not pod.note(_Ended).was_ended:
        return None
    if pod.static or not pod.wanted or pod.termination is not None or pods.end_is_forgotten(pod, m.node):
        return None
    if pod.status is None or pod.status.reason or sandbox is not pod.sandbox or sandbox.state == "ready":
        return None
    if any(one.state not in {"exited", "removed"} for one in pod.every_container()):
        return None
    return broken(f"the sandbox of pod {pod.name}, which has ended, is stopped again", pod.status_seq)


@contract("RESTARTKUBELET-11", on=AGAIN, needs=(CRI, PODS, STATUS))
def address_and_start_time_live_on(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """The statuses that a restarted kubelet writes keep podIP and startTime of the ones before."""
    before = pod.status
    if before is None or not _again(m.node):
        return None
    if not _before(m.node, pod.status_t) or pod.sandbox is None or not _before(m.node, pod.sandbox.ready_t):
        return None
    is_lost = pod.sandbox.state == "removed" or pod.sandbox.died_t is not None
    # The status of a pod that is refused shows its containers no more; the event that tells it may follow.
    shows_none = bool(before.container_statuses) and not status.container_statuses
    is_refused = is_ended_by_the_kubelet(m, pod) or shows_none
    if is_lost or status_may_be_forgotten(m, pod) or is_refused:
        return None  # Its address is no longer known, or it has none.
    # No manifest has what the kubelet before has reported of a static pod; its mirror may come too late.
    if not pod.static and before.start_time and status.start_time != before.start_time:
        return broken(f"startTime was {before.start_time}, is {status.start_time}", pod.status_seq)
    # A stopped sandbox has no address, and only the runtime is asked for it.
    is_reported = pod.sandbox.state == "ready"
    # The status before may be about another sandbox.
    is_its_own = pod.sandbox.run is None or pod.status_seq > pod.sandbox.run.seq
    address = pod.sandbox.ip or (before.pod_ip if is_its_own else "")
    if is_reported and before.pod_ip and before.pod_ip == address != status.pod_ip:
        return broken(f"podIP was {before.pod_ip}, is {status.pod_ip or 'gone'}", pod.status_seq)
    return KEPT


def _was_initialized(pod: Pod, node: Node) -> bool:
    sandbox = pod.sandbox
    if sandbox is None or sandbox.state != "ready":
        return False
    return any(_healthy(container, node) for container in pod.of_kind("app"))


@contract("RESTARTKUBELET-12", on=call("CreateContainer"), needs=(CRI, PODS), clause="not-again")
def init_containers_are_not_run_again(m: Moment, pod: Pod) -> Findings:
    """The init containers of a pod that was initialized before the kubelet's restart are not run again."""
    if not _again(m.node) or not pod.born:
        return None
    name = m.request(bodies.CreateContainerRequest).config.metadata.name
    if pod.kind_of(name) != "init" or not _was_initialized(pod, m.node):
        return None
    run = pod.sandbox.run.seq if pod.sandbox and pod.sandbox.run else None
    return broken(f"init container {name} is run again in an initialized pod", run)


@init_containers_are_not_run_again.clause("done", on=LIFE_ENDS)
def initialized_pods_stay_initialized(m: Moment) -> Iterator[Finding]:
    """An initialized pod stays initialized for as long as this kubelet instance runs."""
    for pod in _settled_pods(m):
        inits = pod.spec.init_containers if pod.spec else None
        if any(not c.is_sidecar for c in inits or ()) and _was_initialized(pod, m.node):
            yield KEPT


@contract("RESTARTKUBELET-13", on=kubelet("started"), needs=(CRI, PODS))
def dead_sandbox_is_replaced_after_a_reboot(m: Moment) -> Iterator[Finding]:
    """A pod whose sandbox died while the kubelet was down gets a new one with the next attempt number, unless
    it is to run only once.
    """
    node = m.node
    for pod in list(m.world.pods.values()):
        sandbox = pod.sandbox
        if sandbox is None or not pod.born or not pod.wanted or pod.termination or pod.finished:
            continue
        if pod.restart_policy != "Always" or sandbox.died_t is None or node.down_t is None:
            continue
        if sandbox.died_t < node.down_t or (pod.spec and pod.spec.active_deadline_seconds is not None):
            continue
        if pod.manifest is not None and pod.manifest.status is not None and pod.manifest.status.terminal:
            continue  # Another client has ended it meanwhile.
        run = call("RunPodSandbox").where(pods.of(pod))
        yield answered(
            by=run.where(_is_attempt(sandbox.attempt + 1)),
            within=KUBELET_START + (pod.spec.grace_seconds if pod.spec else 0),
            unless=pods.TERMINATION_ASKED.where(pods.of(pod)),
            not_before=run,
            text=f"a sandbox of {pod.name} is run as attempt {sandbox.attempt + 1}",
        )


def _is_attempt(attempt: int) -> Predicate:
    return lambda m: m.request(bodies.RunPodSandboxRequest).config.metadata.attempt == attempt


@contract(
    "RESTARTKUBELET-14", on=call("ExecSync").where(pods.runs_post_start), needs=(CRI, PODS), clause="hook"
)
def post_start_is_not_run_again(m: Moment, container: Container) -> Findings:
    """The postStart hook of a container that ran before the kubelet's restart is not run again."""
    if not _again(m.node) or not _before(m.node, container.started_t):
        return None
    return broken(f"the postStart hook of {container.name} runs again", container.started_seq)


@post_start_is_not_run_again.clause("done", on=LIFE_ENDS)
def post_start_hooks_stay_done(m: Moment) -> Iterator[Finding]:
    """A container that ran before the kubelet's restart goes on without another postStart hook."""
    for pod in _settled_pods(m):
        for container in pod.every_container():
            if _healthy(container, m.node) and pods.hook_command(container, "post_start") is not None:
                yield KEPT


def _asked_while_down(pod: Pod, node: Node) -> bool:
    end, down = pod.termination, node.down_t
    return end is not None and down is not None and end.t >= down


@contract("RESTARTKUBELET-06", on=kubelet("started"), needs=(CRI, PODS), clause="stopped")
def pod_deleted_meanwhile_is_stopped(m: Moment) -> Iterator[Finding]:
    """A pod that was deleted while the kubelet was down is stopped after its start: with its grace while the
    object exists, else with the least and without hooks.
    """
    if m.node.lives < 1:
        return
    for pod in list(m.world.pods.values()):
        if not pod.born or pod.static or not _asked_while_down(pod, m.node):
            continue
        yield from _stops_due(pod, "deleted")


def _is_back(m: Moment) -> bool:
    """A source has the pod again."""
    return m.manifest is not None and m.manifest.metadata.deletion_timestamp is None


def _stops_due(pod: Pod, how: str) -> Iterator[Finding]:
    for container in pod.of_kind("app", "init"):
        if container.state == "running" and container.born:
            yield answered(
                by=call("StopContainer")
                .where(pods.about(container))
                .either(call("ExecSync").where(pods.runs_pre_stop).where(pods.about(container))),
                within=KUBELET_START,
                unless=exited().where(pods.about(container)).either(pod_set().where(_is_back)),
                text=f"container {container.name} of a pod {how} while the kubelet was down is stopped",
            )


@pod_deleted_meanwhile_is_stopped.clause("grace", on=call("StopContainer"))
def pod_deleted_meanwhile_has_its_grace(m: Moment, pod: Pod, container: Container) -> Findings:
    """The grace is the object's, or the least."""
    if container.state != "running" or not pod.born or pod.static:
        return None
    end, node = pod.termination, m.node
    if end is None or node.lives <= 1 or node.started_t is None or node.down_t is None or end.t < node.down_t:
        return None
    if end.seq > node.started_seq:
        return None
    got = m.request(bodies.StopContainerRequest).timeout
    if pods.known_to_kubelet(pod, node):
        if end.grace is None or pods.has_pre_stop(container) or container.kind == "sidecar":
            return None
        expected = {end.grace, max(end.grace, MINIMUM_GRACE)}
    else:
        least = ORPHAN_GRACE.get(m.kubernetes)
        expected = {least} if least is not None else set[int]()
    if expected and got not in expected:
        return broken(f"expected timeout {max(expected)}, got {got}", end.seq)
    return KEPT if expected else None


@contract("RESTARTKUBELET-07", on=kubelet("started"), needs=(CRI, PODS))
def pod_removed_meanwhile_is_stopped(m: Moment) -> Iterator[Finding]:
    """A static pod whose manifest was removed while the kubelet was down is stopped after its start."""
    for pod in list(m.world.pods.values()):
        if pod.born and pod.static and not pod.wanted and _asked_while_down(pod, m.node):
            yield from _stops_due(pod, "removed")
