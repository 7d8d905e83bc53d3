"""COND: the conditions of a pod, compared with the container statuses that are written with them."""

from collections.abc import Container, Iterable
from typing import NamedTuple

from msgspec.structs import replace

from kubelet_conformance.contract import Finding, Moment, Note, Pod
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, ByVersion, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import deleted, done, failed, happened, pod_set, status
from kubelet_conformance.contracts.facts import status as statuses
from kubelet_conformance.contracts.facts.container import may_have_started, sidecars, starts_are_reported
from kubelet_conformance.contracts.facts.pod import FAULT, TERMINATION_ASKED, of, to_run
from kubelet_conformance.contracts.facts.sandbox import is_ready, may_be_stopped, why_replaced
from kubelet_conformance.contracts.facts.static_pod import is_forgotten
from kubelet_conformance.contracts.facts.timing import REACTION
from kubelet_conformance.trace.format.bodies import PullImageRequest
from kubelet_conformance.trace.format.manifests import ContainerState, ContainerStatus, PodStatus
from kubelet_conformance.trace.format.records import Call
from kubelet_conformance.trace.world.disruption import is_ended_by_the_kubelet
from kubelet_conformance.trace.world.kubelet_view import receives_events

NEEDS = (STATUS, PODS)


class Expected(NamedTuple):
    """An expected condition: status, reason and message."""

    status: str
    reason: str = ""
    message: str = ""


_TRUE = Expected("True")
_COMPLETED = Expected("True", "PodCompleted")


def _list_of(names: list[str], what: str) -> str:
    """How the kubelet lists containers in a condition's message (generate.go)."""
    return f"containers with {what} status: [{' '.join(names)}]" if names else ""


def _not_so(reason: str, *messages: str) -> Expected:
    return Expected("False", reason, ", ".join(message for message in messages if message))


def _judged(now: statuses.Written, kind: str, expected: Iterable[Expected]) -> Finding:
    """The condition is one of those expected; they are computed one after another if that takes long."""
    said = now.status.condition(kind)
    if said is None:
        return broken(f"condition {kind} is missing")
    reported = said.status, said.reason, said.message
    others: list[Expected] = []
    for one in expected:
        if reported == one:
            return KEPT
        others.append(one)
    text = " or ".join(f"{e.status} {e.reason} {e.message}".strip() for e in others)
    return broken(f"{kind} is {said.status} {said.reason} {said.message!r}, expected {text}")


@contract("COND-01", on=status(), needs=NEEDS)
def pod_scheduled_is_always_true(m: Moment) -> Findings:
    """Every status that a kubelet writes has the condition PodScheduled, and it is True."""
    now = statuses.written(m)
    return _judged(now, "PodScheduled", [_TRUE]) if now is not None else None


def _initialized(
    now: statuses.Written,
    phase: str,
    *,
    app_suffices: bool,
    before: PodStatus | None = None,
    late: Container[str] = (),
) -> Expected:
    """The condition Initialized for a generated phase.

    A startup probe that succeeds is reported at once, and the condition follows with the next sync: with
    `before` sidecars count as started if that status said so, and those in `late` do without.
    """
    unknown: list[str] = []
    incomplete: list[str] = []
    by_name = now.statuses
    for c in now.pod.spec.init_containers or () if now.pod.spec else ():
        said = by_name.get(c.name)
        if said is None:
            unknown.append(c.name)
        elif not (_started(said, before) or said.name in late if c.is_sidecar else said.ready):
            incomplete.append(c.name)
    if phase == "Succeeded" and not unknown:
        return _COMPLETED
    if app_suffices and now.counts.app_was_up:
        return _TRUE
    if not unknown and not incomplete:
        return _TRUE
    if not now.status.init_container_statuses:
        return Expected("False", "UnknownContainerStatuses")
    return _not_so(_NOT_INITIALIZED, _list_of(unknown, "unknown"), _list_of(incomplete, "incomplete"))


def _started(said: ContainerStatus, before: PodStatus | None) -> bool:
    old = (one for one in before.init_container_statuses or () if one.name == said.name) if before else ()
    return bool(next(iter(old), said).started)


def stays_initialized(m: Moment, pod: Pod, now: PodStatus) -> bool | None:
    """The pod was reported as initialized and stays so.

    None where the kubelet may have forgotten it, or where a status that was not sampled may have said so.
    """
    if not statuses.carries_on(m):
        return False
    before = pod.status.condition("Initialized") if pod.status is not None else None
    if before is not None and before.status == "True":
        return None if is_forgotten(m, pod) else True
    return None if statuses.are_sampled(m) and _was_done(now) else False


def _was_done(now: PodStatus) -> bool:
    """Each init container has ended with 0, now or before it was made again."""
    inits = now.init_container_statuses or ()
    ends = [(one.state.terminated, one.last_state.terminated) for one in inits]
    return all(any(end is not None and end.exit_code == 0 for end in both) for both in ends)


def _waited(said: ContainerStatus | None) -> bool:
    return said is not None and said.state.waiting is not None


def _is_ended_with_its_pod(m: Moment, now: statuses.Written) -> bool:
    """A container is shown as ended only because its pod has: it was never created, or waited in back-off.

    The conditions stay as they were before that (status_manager.go TerminatePod). Where statuses are
    sampled, the one that showed it waiting may be missing.
    """
    if not now.lost:
        return False
    before = now.before.lasting_by_name if now.before is not None else {}
    if statuses.are_sampled(m) and any(one.name not in before for one in now.lost):
        return True
    return any(one.name not in now.pod.containers or _waited(before.get(one.name)) for one in now.lost)


_NOT_INITIALIZED = "ContainersNotInitialized"
APP_MEANS_INITIALIZED = ByVersion({"<=1.26": False, ">=1.28": True})
"""An app container that has started proves that the init containers were done."""


@contract("COND-02", on=status(), needs=NEEDS, versions=APP_MEANS_INITIALIZED)
def initialized_follows_the_init_containers(m: Moment) -> Findings:
    """Initialized is True once every init container is done and every sidecar started, else False with names.

    From 1.28 on it is also True once an app container has started, and from 1.36 on it stays True. A pod that
    has succeeded has the reason PodCompleted.
    """
    now = statuses.written(m)
    if now is None or _is_ended_with_its_pod(m, now):
        return None
    if now.pod.status is None and not now.pod.born and any(sidecars(now.pod)):
        return None  # Which sidecars had started at the sync before is not known.
    app_suffices = APP_MEANS_INITIALIZED.at(m.kubernetes)
    views = _views(m, now) if m.pod is not None and sidecars(m.pod) else (None,)
    expected = [
        _initialized(now, phase, app_suffices=app_suffices, before=view)
        for phase in now.phases
        for view in views
    ]
    stays = stays_initialized(m, now.pod, now.status)
    if stays is not False:
        stayed = [_TRUE if one.reason == _NOT_INITIALIZED else one for one in expected]
        expected = stayed if stays else expected + stayed
    found = _judged(now, "Initialized", expected)
    late = may_have_started(now.pod, now.status) if found is not KEPT else None
    if not late:
        return found
    begun = (_initialized(now, phase, app_suffices=app_suffices, late=late) for phase in now.phases)
    return starts_are_reported(late) if _judged(now, "Initialized", begun) is KEPT else found


class _Synced(Note):
    """The last status that changed more than results of probes, and when the first of these came after it."""

    status: PodStatus | None = None
    until_t: float | None = None


def _views(m: Moment, now: statuses.Written) -> tuple[PodStatus | None, ...]:
    """By which statuses a sidecar may count as started.

    Results of several probes may be reported before the next sync, which waits for a relist; a kubelet that
    receives events may wait 5 s. Only a sync computes anew what is initialized. The sync before the first
    status that was written is not in sight.
    """
    before, synced = now.pod.status, now.pod.note(_Synced)
    if before is None:
        synced.status, synced.until_t = now.status, None
        return None, _before_the_probes(now)
    if synced.status is None or _by_syncs(before) != _by_syncs(now.status):
        synced.status, synced.until_t = now.status, None
    elif synced.until_t is None:
        synced.until_t = m.t
    is_soon = synced.until_t is None or m.t - synced.until_t <= REACTION
    return (None, before, synced.status) if is_soon or receives_events(m) else (None, before)


def _before_the_probes(now: statuses.Written) -> PodStatus:
    """The status as it was before a startup probe of a sidecar succeeded."""
    probed = {one.name for one in sidecars(now.pod) if one.startup_probe is not None}
    inits = tuple(
        replace(one, started=False) if one.name in probed else one
        for one in now.status.init_container_statuses or ()
    )
    return replace(now.status, init_container_statuses=inits)


def _by_syncs(status: PodStatus) -> tuple[list[tuple[str, str, ContainerState]], Expected | None]:
    """The fields of a status that no result of a probe changes by itself."""
    stages = [(one.name, one.runtime_id, one.state) for one in status.every_container]
    said = status.condition("Initialized")
    return stages, Expected(said.status, said.reason, said.message) if said is not None else None


def _containers_ready(now: statuses.Written, phase: str) -> Expected:
    """The condition ContainersReady for a generated phase."""
    unknown: list[str] = []
    unready: list[str] = []
    spec, by_name = now.pod.spec, now.statuses
    for c in (*spec.sidecars, *spec.containers) if spec is not None else ():
        said = by_name.get(c.name)
        if said is None:
            unknown.append(c.name)
        elif not said.ready:
            unready.append(c.name)
    if phase == "Failed" or (phase == "Succeeded" and not unknown):
        return Expected("False", statuses.UNREADY_AS[phase])
    if not unknown and not unready:
        return _TRUE
    if not now.status.container_statuses:
        return Expected("False", "UnknownContainerStatuses")
    return _not_so("ContainersNotReady", _list_of(unknown, "unknown"), _list_of(unready, "unready"))


@contract("COND-03", on=status(), needs=NEEDS, versions=since("1.23"))
def containers_ready_follows_the_containers(m: Moment) -> Findings:
    """ContainersReady is True when every app container and sidecar is ready, else False with their names.

    At the end its reason is PodCompleted or PodFailed, by the phase that the containers amount to.
    """
    now = statuses.written(m)
    if now is None or _ends_by_the_kubelet(m) or _is_ended_with_its_pod(m, now):
        return None
    return _judged(now, "ContainersReady", [_containers_ready(now, phase) for phase in now.phases])


def _ends_by_the_kubelet(m: Moment) -> bool:
    """The kubelet that kills the pod treats it as Failed already; no written status says so while it runs."""
    if m.pod is None or m.status is None or m.status.terminal:
        return False
    return is_ended_by_the_kubelet(m, m.pod)


@contract("COND-04", on=status(), needs=NEEDS)
def ready_needs_every_gate(m: Moment) -> Findings:
    """A pod with readiness gates is Ready only when ContainersReady and the condition of every gate are True.

    A gate whose condition is missing counts as False; the reason is then ReadinessGatesNotReady. What a
    client says of a gate meanwhile is merged into the status that the kubelet writes, and Ready follows.
    """
    now = statuses.written(m)
    gates = now.pod.spec.readiness_gates or () if now is not None and now.pod.spec is not None else ()
    containers = now.status.condition("ContainersReady") if now is not None else None
    if now is None or not gates or containers is None or containers.status != "True":
        return None
    conditions = [now.status.condition(gate.condition_type) for gate in gates]
    open_ = all(c is not None and c.status == "True" for c in conditions)
    ready = now.status.condition("Ready")
    if ready is None:
        return broken("condition Ready is missing")
    if open_:
        return KEPT if ready.status == "True" else _follows(now.pod)
    if ready.status == "True" or ready.reason != "ReadinessGatesNotReady":
        return broken(f"a gate is not True, and Ready is {ready.status} {ready.reason}")
    return KEPT


def _follows(pod: Pod) -> Findings:
    def is_settled(m: Moment) -> bool:
        ready = m.status.condition("Ready") if m.pod is pod and m.status is not None else None
        return ready is not None and (ready.status == "True" or ready.reason != "ReadinessGatesNotReady")

    return answered(
        by=status().where(is_settled),
        within=REACTION,
        unless=TERMINATION_ASKED.either(FAULT, pod_set()),
        text=f"every gate of {pod.name} is True, and it becomes Ready",
    )


@contract("COND-05", on=status(), needs=NEEDS)
def ready_copies_containers_ready(m: Moment) -> Findings:
    """Without readiness gates, or with ContainersReady not True, Ready has its status, reason and message."""
    now = statuses.written(m)
    containers = now.status.condition("ContainersReady") if now is not None else None
    if now is None or containers is None:
        return None
    if now.pod.spec is not None and now.pod.spec.readiness_gates and containers.status == "True":
        return None
    return _judged(now, "Ready", [Expected(containers.status, containers.reason, containers.message)])


@contract("COND-06", on=status(), needs=(*NEEDS, CRI), versions=since("1.29"))
def ready_to_start_means_a_usable_sandbox(m: Moment) -> Findings:
    """PodReadyToStartContainers is True only while the pod has a ready sandbox, False again once it is gone.

    It is True with every status that is built from containers in a sandbox that needs no replacement.
    """
    now = statuses.written(m)
    if now is None or not now.pod.born:
        return None
    said = now.status.condition(statuses.READY_TO_START)
    if said is None:
        return broken(f"condition {statuses.READY_TO_START} is missing")
    if said.status == "True":
        return _true(m, now)
    if now.pod.sandboxes and _is_in_use(now) and why_replaced(now.pod) is None:
        return broken(
            f"{statuses.READY_TO_START} is False, and containers are in a ready sandbox", now.pod.set_seq
        )
    return KEPT


@ready_to_start_means_a_usable_sandbox.clause("in the end", on=deleted())
def sandbox_is_gone_in_the_end(m: Moment, pod: Pod) -> Findings:
    """The last status of a pod that was stopped does not say that it has a sandbox."""
    if pod.static or not pod.born or not pod.sandboxes or m.header.channels.api != "full":
        return None
    if pod.termination is not None and pod.termination.grace == 0:
        return None  # Somebody has deleted the object at once, perhaps before the last status was written.
    said = pod.status.condition(statuses.READY_TO_START) if pod.status is not None else None
    if pod.status is None or said is None or not pod.status.terminal or pod.status.reason:
        return None
    if any(is_ready(sandbox) for sandbox in pod.sandboxes):
        return None
    is_so = said.status == "True"
    return broken(f"{statuses.READY_TO_START} is True to the end", pod.status_seq) if is_so else KEPT


def _true(m: Moment, now: statuses.Written) -> Finding:
    sandboxes = now.pod.sandboxes
    if "ready" in [s.state for s in sandboxes]:
        return KEPT
    if not any(s.ready_t is not None or not s.born for s in sandboxes):
        return broken(f"{statuses.READY_TO_START} is True, and no sandbox was ever run", now.pod.set_seq)
    newest = sandboxes[-1]
    ends = [stop.end_t for stop in newest.stops if stop.succeeded and stop.end_t is not None]
    gone_t = min([*ends, *(t for t in (newest.died_t, newest.removed_t) if t is not None)], default=m.t)
    if newest.state != "removed" and (newest.status_t is None or newest.status_t < gone_t):
        return KEPT  # The kubelet has not been able to inspect it since.
    if m.t - gone_t > REACTION and not _may_be_old(m, now, gone_t):
        return broken(f"{statuses.READY_TO_START} is True, the sandbox is gone", newest.run)
    return KEPT


def _may_be_old(m: Moment, now: statuses.Written, gone_t: float) -> bool:
    """The status shows the sandbox as before, which no sync can have read since."""
    before = now.before.condition(statuses.READY_TO_START) if now.before is not None else None
    return statuses.may_be_old(m, gone_t, is_same=before is not None and before.status == "True")


def _is_in_use(now: statuses.Written) -> bool:
    """The status is built from a container of the newest sandbox, which no call has tried to stop."""
    newest, status = now.pod.sandboxes[-1], now.status
    every = status.lasting_containers
    return any(said.runtime_id in newest.containers for said in every) and not may_be_stopped(newest)


@contract("COND-07", on=status(), needs=(*NEEDS, CRI), versions=statuses.REPORTED_AT_ONCE)
def new_sandbox_is_reported_by_the_next_sync(m: Moment, pod: Pod, status: PodStatus) -> Findings:
    """Up to 1.35 PodReadyToStartContainers comes with the next sync, which a long pull puts off.

    From 1.36 on it is reported as soon as the sandbox runs, before any image is pulled.
    """
    said = status.condition(statuses.READY_TO_START)
    if said is None or said.status != "True" or not pod.born:
        return None
    before = pod.status.condition(statuses.READY_TO_START) if pod.status is not None else None
    if before is not None and before.status == "True":
        return None
    if statuses.REPORTED_AT_ONCE.at(m.kubernetes) or not _still_in_first_sync(m, pod):
        return KEPT
    return broken(
        f"{statuses.READY_TO_START} is True while the sync that created the sandbox still pulls an image"
    )


class _Unread(Note):
    """The last failure to read a sandbox of the pod."""

    seq: int = 0


@observer(on=failed("PodSandboxStatus"))
def _sandbox_is_not_read(m: Moment, pod: Pod) -> None:
    """Record it: a sync that cannot read the sandbox that it has run ends with that."""
    pod.note(_Unread).seq = m.seq


def _still_in_first_sync(m: Moment, pod: Pod) -> bool:
    """The sync that ran the newest sandbox pulls the image of its first container."""
    run = pod.sandbox.run if pod.sandbox is not None else None
    if run is None or run.seq < m.node.started_seq:
        return False  # A kubelet before this one has run it.
    if pod.note(_Unread).seq > run.seq:
        return False
    pulls = any(c.rpc == "PullImage" and not _is_pulled_again(pod, c, run) for c in pod.calls_open.values())
    return pulls and (pod.create is None or pod.create.seq < run.seq)


def _is_pulled_again(pod: Pod, pull: Call, run: Call) -> bool:
    """A pull of this image has failed since the sandbox was run: this is a later sync."""
    earlier = pod.pulls.get(pull.request.view(PullImageRequest).image.image)
    return earlier is not None and earlier.failed_seq > run.seq


@new_sandbox_is_reported_by_the_next_sync.clause("at once", on=done("RunPodSandbox"))
def new_sandbox_is_reported_at_once(m: Moment, pod: Pod) -> Findings:
    """From 1.36 on the condition does not wait for the sync that created the sandbox."""
    if not statuses.REPORTED_AT_ONCE.at(m.kubernetes) or not to_run(m) or pod.static:
        return None
    said = pod.status.condition(statuses.READY_TO_START) if pod.status is not None else None
    if said is not None and said.status == "True":
        return None

    def shows(n: Moment) -> bool:
        reported = n.status.condition(statuses.READY_TO_START) if n.status is not None else None
        return n.pod is pod and reported is not None and reported.status == "True"

    return answered(
        by=status().where(shows),
        within=REACTION,
        unless=FAULT.either(TERMINATION_ASKED.where(of(pod)), happened("sandbox-died", "removed")),
        whole_node=True,
        text=f"{pod.name} is reported to have a sandbox",
    )
