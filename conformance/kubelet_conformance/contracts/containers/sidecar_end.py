"""SIDECAR: how restartable init containers are stopped when their pod is terminated."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Exit, Finding, Moment, Note, Pod, PodStatus
from kubelet_conformance.contract.applicability import CRI, EVERY_EVENT, PODS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import Pattern, call, done, event, exited, pod_set
from kubelet_conformance.contracts.facts import container as containers
from kubelet_conformance.contracts.facts import kills
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.pod import has_pre_stop
from kubelet_conformance.contracts.facts.sandbox import FINISHED
from kubelet_conformance.contracts.facts.timing import POSTED, REACTION, ROUNDING
from kubelet_conformance.contracts.pod_workers.kill_pod import REVIVES_A_SIDECAR
from kubelet_conformance.contracts.tables.stop import MINIMUM_GRACE
from kubelet_conformance.trace.format.bodies import StopContainerRequest
from kubelet_conformance.trace.world.kubelet_view import informed_by
from kubelet_conformance.trace.world.missed_updates import is_missed

_ON = since("1.29")


def _possible_waits(m: Moment, pod: Pod, sidecar: Container) -> list[float]:
    """How long a sidecar may have waited: since one of the app containers was asked to stop, while it ran.

    Which of these began the kill of the pod cannot be seen where a sync was still at work on one of them. A
    kubelet that was restarted meanwhile begins the kill anew.
    """
    since_t = pod.termination.t if pod.termination else m.t
    began = max(sidecar.started_seq or 0, m.node.started_seq)
    steps = [step for one in pod.of_kind("app") for step in _kill_steps(one, since_t, began)]
    return [m.t - step for step in steps] or [m.t - _kill_began(pod, m.t, began)]


def _goes(pod: Pod) -> bool:
    """The pod is being killed as a whole: it was asked to, or the kubelet knows that it came to its end."""
    return pod.termination is not None or (
        pods.at_its_end(pod) and all(containers.last_read_as(one, "EXITED") for one in pod.of_kind("app"))
    )


def _may_go_alone(m: Moment, pod: Pod) -> bool:
    """The sidecar is stopped for a reason of its own, maybe by a sync that did not know of the pod's end."""
    if pod.termination is not None or all(reason.pod_goes for reason in kills.reasons(m)):
        return False
    return any(containers.decided_before_end(m, one) for one in pod.of_kind("app"))


def running_one(pod: Pod, name: str) -> Container | None:
    """The instance of that name that still runs."""
    newest = containers.recorded(pod, name)
    return newest if newest is not None and newest.state == "running" else None


def ahead_of(pod: Pod, name: str) -> list[Container]:
    """What must have ended before this sidecar's turn: running app containers and later sidecars."""
    names = [spec.name for spec in containers.sidecars(pod)]
    later = names[names.index(name) + 1 :]
    apps = [spec.name for spec in pod.spec.containers] if pod.spec else []
    found = (running_one(pod, one) for one in (*apps, *later))
    return [one for one in found if one is not None]


def holding_up(pod: Pod, name: str, t: float) -> list[Container]:
    """What this sidecar has to wait for in the kill of its pod: containers that stop before it and still run.

    A sidecar waits for the app containers and the sidecar after it, which waits for the next. Where one did
    not run when the kill began, those after it delay no sidecar before it (kuberuntime_termination_order.go
    newTerminationOrdering).
    """
    began, links = _kill_began(pod, t), list[str]()
    for spec in containers.sidecars(pod)[[one.name for one in containers.sidecars(pod)].index(name) + 1 :]:
        newest = containers.recorded(pod, spec.name)
        if newest is None or (newest.exit.t < began if newest.exit else newest.state != "running"):
            break
        links.append(spec.name)
    return [one for one in ahead_of(pod, name) if one.kind != "sidecar" or one.name in links]


def _kill_began(pod: Pod, t: float, after_seq: int = 0) -> float:
    """When the first container of the pod was asked to stop, in the kill in progress, after that record."""
    ends = [_went_t(pod, one, one.exit.t) for one in pod.of_kind("app") if one.exit is not None]
    since_t = pod.termination.t if pod.termination else max(ends, default=t)
    every = pod.every_container()
    return min([t, *(step for one in every for step in _kill_steps(one, since_t, after_seq))])


def _went_t(pod: Pod, app: Container, end_t: float) -> float:
    """When the kill of the pod reached this app container: with its stop, if it was not stopped alone."""
    steps = [t for t in _kill_steps(app, app.started_t or 0.0) if t <= end_t]
    return end_t if not steps or kills.was_killed_alone(pod, app) else steps[-1]


def _kill_steps(container: Container, since_t: float, after_seq: int = 0) -> list[float]:
    """When it was asked to stop, or its preStop hook began, at `since_t` or later, and after that record."""
    command = pods.hook_command(container, "pre_stop")
    calls = [stop.call for stop in kills.stops_of_its_pod(container)]
    calls += [hook.call for hook in container.hooks if hook.cmd == command]
    return [call.t for call in calls if call.t >= since_t and call.seq > after_seq]


def grace_is_used_up(pod: Pod, t: float) -> bool:
    """The pod is being killed, and no container has to wait for its turn any more."""
    if not pod.born and (pod.termination is None or not pod.termination.seen):
        return True  # Its kill may have begun before the trace.
    began, every = _kill_began(pod, t), pod.every_container()
    if pod.termination is not None and any(has_pre_stop(one) and not _runs_its_hook(one) for one in every):
        began = pod.termination.t  # The trace does not show when such a hook began.
    return t - began >= _grace(pod) - MINIMUM_GRACE - ROUNDING


def _runs_its_hook(container: Container) -> bool:
    """The container's preStop hook passes through the runtime."""
    return pods.hook_command(container, "pre_stop") is not None


def _grace(pod: Pod) -> int:
    asked_for = pod.termination.grace if pod.termination else None
    return asked_for if asked_for is not None else pod.spec.grace_seconds if pod.spec else 0


@contract("SIDECAR-11", on=exited(), needs=(CRI, PODS), versions=_ON)
def does_not_keep_the_pod(m: Moment, pod: Pod, container: Container, ended: Exit) -> Iterator[Finding]:
    """Sidecars do not keep a pod alive: when the app containers have ended for good, they are stopped.

    The pod's phase follows from the app containers alone.
    """
    if container.kind != "app" or not containers.to_watch(m):
        return
    sandbox = container.sandbox
    if sandbox is None or sandbox.state != "ready" or not pods.at_its_end(pod, container, ended.code):
        return
    running = [
        one for one in (running_one(pod, spec.name) for spec in containers.sidecars(pod)) if one is not None
    ]
    if running:
        yield answered(
            by=containers.stop_of(running[-1]),
            within=REACTION + (_grace(pod) if has_pre_stop(running[-1]) else 0),
            unless=containers.exit_of(running[-1]).either(REVIVES_A_SIDECAR),
            text=f"sidecar {running[-1].name} is stopped after the last app container ended",
        )


@does_not_keep_the_pod.clause("phase", on=FINISHED)
def _(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """A pod of sidecars ends as Succeeded exactly when all its app containers exited with 0."""
    if not status.terminal or status.reason or not any(containers.sidecars(pod)):
        return None
    ended = [one.state.terminated for one in status.container_statuses or ()]
    inits = [one for one in status.init_container_statuses or () if pod.kind_of(one.name) == "init"]
    if not ended or any(not one.ready for one in inits):
        return None
    good = all(one is not None and one.exit_code == 0 for one in ended)
    if (status.phase == "Succeeded") != good:
        codes = [one.exit_code if one else None for one in ended]
        return broken(f"phase {status.phase} though the app containers exited with {codes}")
    return KEPT


@contract("SIDECAR-12", on=call("StopContainer"), needs=(CRI, PODS), versions=_ON)
def stopped_in_reverse(m: Moment, pod: Pod, container: Container) -> Findings:
    """When a pod is terminated, a sidecar is stopped after every app container and later sidecar has ended.

    Only when the grace period is used up is it stopped without waiting.
    """
    if container.kind != "sidecar" or not _goes(pod):
        return None
    if container.sandbox is not None and container.sandbox.state != "ready":
        return None
    # Without its manifest the sidecars and their order are not known.
    if pods.may_be_unknown(pod, m.node) or _may_go_alone(m, pod):
        return None
    ahead = holding_up(pod, container.name, m.t)
    if not ahead:
        return KEPT
    if grace_is_used_up(pod, m.t):
        return None
    names = " and ".join(one.name for one in ahead)
    return broken(f"sidecar {container.name} is stopped while {names} runs", *(one.start for one in ahead))


@stopped_in_reverse.clause("turn-comes", on=done("StopContainer"))
def _(m: Moment, pod: Pod, container: Container) -> Findings:
    """A sidecar is stopped soon after all that has to end before it has ended."""
    if not pod.born or not _goes(pod):
        return None
    if pod.termination is None and containers.was_changed(container):
        return None  # It was stopped for its new definition, and the sync that did so creates it again.
    if _may_go_alone(m, pod):
        return None
    for spec in reversed(list(containers.sidecars(pod))):
        waiting = running_one(pod, spec.name)
        if waiting is None or waiting is container or waiting.stops or not waiting.born:
            continue
        if any(one is not container for one in ahead_of(pod, spec.name)):
            return None
        return answered(
            by=containers.stop_of(waiting),
            within=REACTION + (_grace(pod) if has_pre_stop(waiting) else 0),
            unless=containers.exit_of(waiting),
            text=f"sidecar {waiting.name} is stopped in its turn",
        )
    return None


@contract("SIDECAR-13", on=call("StopContainer"), needs=(CRI, PODS), versions=_ON)
def hooks_do_not_wait(m: Moment, pod: Pod, container: Container) -> Iterator[Finding]:
    """When a pod is terminated, the preStop hooks of its sidecars begin at once; only the stop waits."""
    if container.kind != "app" or not pod.termination or pods.may_be_unknown(pod, m.node):
        return
    for spec in containers.sidecars(pod):
        waiting = running_one(pod, spec.name)
        command = pods.hook_command(waiting, "pre_stop") if waiting else None
        if waiting is None or command is None or _hook_ran(waiting, command, pod.termination.t):
            continue
        yield answered(
            by=call("ExecSync").where(pods.runs_pre_stop).where(pods.about(waiting)),
            within=REACTION,
            unless=containers.exit_of(waiting),
            not_before=containers.stop_of(waiting),
            text=f"the preStop hook of sidecar {waiting.name} runs",
        )


def _hook_ran(container: Container, command: list[str], since_t: float) -> bool:
    return any(hook.cmd == command and hook.call.t >= since_t for hook in container.hooks)


def _may_be_of_a_sync(m: Moment, pod: Pod, container: Container) -> bool:
    """The pod's termination began a moment ago, and there was another reason to stop the container before."""
    end = informed_by(m, pod.termination.t) if pod.termination is not None else 0.0
    if pod.termination is None or m.t - end > REACTION:
        return False
    dead = container.sandbox is not None and container.sandbox.state != "ready"
    was_through = pods.at_its_end(pod) and all(one.exit and one.exit.t <= end for one in pod.of_kind("app"))
    has_failed = bool(kills.failing_probe(pod, container)) or pods.post_start_may_have_failed(container)
    return dead or was_through or has_failed


class _Asked(Note):
    """The graces that the pod's deletion was asked for with; a shorter one holds for the next attempt."""

    graces: set[int] = set()


@contract("SIDECAR-14", on=call("StopContainer"), needs=(CRI, PODS), versions=_ON)
def waiting_uses_up_the_grace(m: Moment, pod: Pod, container: Container) -> Findings:
    """The time a sidecar waits for its turn is taken from its grace, down to the minimum of 2 s."""
    if container.kind != "sidecar" or not pod.termination:
        return None
    if not pod.born or pod.termination.cause == "forced" or has_pre_stop(container):
        return None
    if pods.may_be_unknown(pod, m.node) or _may_be_of_a_sync(m, pod, container):
        return None
    if any(kills.may_be_killed_alone(m, one, container) for one in pod.every_container()):
        return None
    waits = _possible_waits(m, pod, container)
    timeout = m.request(StopContainerRequest).timeout
    asked = {_grace(pod), *pod.note(_Asked).graces}
    if pod.spec is not None and is_missed(m.node, pod):
        asked.add(pod.spec.grace_seconds)  # To the kubelet the termination may just have begun.
    graces = [max(MINIMUM_GRACE, grace - waited) for waited in waits for grace in asked]
    waited, expected = max(waits), min(graces)
    if all(abs(timeout - grace) > ROUNDING for grace in graces):
        return broken(
            f"sidecar {container.name} waited {waited:.1f} s and has timeout {timeout}, "
            f"expected {expected:.0f} of {_grace(pod)}",
            pod.termination.seq,
        )
    return KEPT if waited >= ROUNDING else None


@observer(on=pods.POD_IS_TO_GO)
def _(m: Moment) -> None:
    """Record each grace."""
    grace = m.manifest.metadata.deletion_grace_period_seconds if m.manifest is not None else None
    if m.pod is not None and grace is not None:
        m.pod.note(_Asked).graces.add(grace)


@contract("SIDECAR-16", on=pods.POD_IS_TO_GO, needs=(CRI, PODS), versions=_ON)
def ended_ones_delay_no_other(m: Moment, pod: Pod) -> Findings:
    """A container that does not run when its pod's termination begins delays no sidecar."""
    if not containers.to_watch(m) or pod.deleted_t is not None:
        return None
    running = [
        one for one in (running_one(pod, spec.name) for spec in containers.sidecars(pod)) if one is not None
    ]
    if not running or any(one.state == "running" for one in pod.of_kind("app")):
        return None
    last = running[-1]
    if not any(one.ended for one in pod.every_container()) or has_pre_stop(last):
        return None
    return answered(
        by=containers.stop_of(last),
        within=REACTION,
        unless=containers.exit_of(last).either(pod_set().where(pods.of(pod)).where(_is_desired)),
        text=f"sidecar {last.name} is stopped at once",
    )


@contract("SIDECAR-27", on=pods.POD_IS_TO_GO, needs=(CRI, PODS, EVERY_EVENT), versions=_ON)
def every_kill_has_its_event_at_once(m: Moment, pod: Pod) -> Iterator[Finding]:
    """When a pod is terminated, its sidecars too get their Killing event at once, before their turn to stop.

    A file that is back before the kubelet has looked counts as never removed.
    """
    if not containers.to_watch(m):
        return
    for spec in containers.sidecars(pod):
        waiting = running_one(pod, spec.name)
        if waiting is not None and waiting.born and ahead_of(pod, spec.name):
            yield answered(
                by=event("Killing").where(pods.is_on(spec.name)),
                within=REACTION,
                unless=containers.exit_of(waiting).either(pod_set().where(pods.of(pod)).where(_is_desired)),
                not_before=_late_stop(m, pod, waiting),
                text=f"a Killing event names sidecar {spec.name}",
            )


def _late_stop(m: Moment, pod: Pod, waiting: Container) -> Pattern:
    """The stop of a sidecar; a process posts its events beside what it does, but not after it."""
    asked_t, is_wall = m.t, m.header.clock == "wall"

    def is_late(n: Moment) -> bool:
        stops = (stop.call.t for one in pod.every_container() for stop in one.stops)
        return not is_wall or n.t - min((t for t in stops if t >= asked_t), default=n.t) > POSTED

    return containers.stop_of(waiting).where(is_late)


def _is_desired(m: Moment) -> bool:
    """The pod is sent by its source, and is not being terminated."""
    return m.manifest is not None and not pods.is_mirror(m) and m.manifest.metadata.deletion_timestamp is None
