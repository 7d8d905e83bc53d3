"""RESIZE: the order of changes, how statuses report them, how they are checked, and what restarts keep."""

import math
from collections import deque
from collections.abc import Iterator

from msgspec import field

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pod, Predicate
from kubelet_conformance.contract.applicability import CRI, PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, failed, happened, kubelet, pod_set, status
from kubelet_conformance.contracts.facts.node_pressure import amount
from kubelet_conformance.contracts.facts.pod import END, TERMINATION_ASKED, about, to_run, worker_is_busy
from kubelet_conformance.contracts.facts.resources import (
    CPU,
    GATE,
    MEMORY,
    Caps,
    asks_the_impossible,
    awaits_resize,
    caps_of,
    changed,
    has_now,
    reported_caps,
    restarts,
    updated,
    wants,
)
from kubelet_conformance.contracts.facts.timing import KUBELET_START, REACTION, RELIST
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.trace.format.bodies import ContainerStatusReply
from kubelet_conformance.trace.format.manifests import ContainerStatus, Manifest, PodSpec, PodStatus
from kubelet_conformance.trace.world.kubelet_view import kubelet_view, receives_events

_UPDATE = call("UpdateContainerResources")
_UPDATED = done("UpdateContainerResources")
_OVER = kubelet("ended", "killed", "stopped").either(END)
"""A kubelet instance ends, or the trace ends."""
_READING_FAILED = failed("ListPodSandbox", "ListContainers", "PodSandboxStatus", "ContainerStatus")
_MILLICORE = 100
"""A thousandth of a core, in microseconds of each 100 ms."""
_LATE = 2.0
"""What a loaded machine may add to a relist."""
_READS_MAX = 4
"""How often a container may be read within REACTION though nothing is waited for any more."""


class _Shrunk(Note):
    """What of the pod's containers was made smaller, and since which change of its spec."""

    seq: int = 0
    resources: dict[str, int] = {}
    changed_t: float = -math.inf
    hasty_t: float = -math.inf
    """When the spec was last changed twice in a short time: it is not known which change is acted on."""


@contract("RESIZE-04", on=_UPDATE, needs=(CRI, PODS), versions=since("1.27"), gate=GATE)
def what_shrinks_goes_first(m: Moment, pod: Pod, container: Container) -> Iterator[Finding]:
    """Among the containers of a pod those that get less of a resource come before those that get more."""
    has = has_now(container)
    if has is None:
        return
    new = updated(m)
    shrunk = pod.note(_Shrunk)
    if m.t - shrunk.hasty_t < 2 * REACTION:
        return
    for what in changed(has, new):
        if not has.grows_to(new, what):
            continue
        waiting = [one.name for one in _to_shrink(pod, what) if one is not container]
        if waiting:
            yield broken(f"{container.name} gets more {what} before {waiting[0]} gets less")
        elif what in shrunk.resources and shrunk.seq == pod.spec_changed_seq:
            yield KEPT


def _to_shrink(pod: Pod, what: str) -> Iterator[Container]:
    """The running containers that are still to get less of a resource, as they run."""
    for spec in pod.spec.containers if pod.spec is not None else ():
        container = pod.newest(spec.name)
        has = has_now(container) if container is not None and container.state == "running" else None
        if container is None or has is None or what not in changed(has, wants(spec)):
            continue
        if not has.grows_to(wants(spec), what) and not restarts(spec, [what]):
            yield container


@observer(on=pod_set())
def _(m: Moment, pod: Pod, spec: PodSpec, manifest: Manifest) -> None:
    if spec == manifest.spec:
        return
    shrunk = pod.note(_Shrunk)
    if m.t - shrunk.changed_t < REACTION:
        shrunk.hasty_t = m.t
    shrunk.changed_t = m.t


@observer(on=_UPDATE, last=True)
def _(m: Moment, pod: Pod, container: Container) -> None:
    has = has_now(container)
    if has is None:
        return
    shrunk, new = pod.note(_Shrunk), updated(m)
    if shrunk.seq != pod.spec_changed_seq:
        shrunk.seq, shrunk.resources = pod.spec_changed_seq, {}
    for what in changed(has, new):
        if not has.grows_to(new, what):
            shrunk.resources[what] = m.seq


class _Reported(Note):
    """All resource limits that the runtime has reported for a container."""

    quotas: set[int] = set()
    limits: set[int] = set()


@contract("RESIZE-06", on=status(), needs=(CRI, STATUS), versions=since("1.32"), gate=GATE)
def status_shows_what_is(_: Moment, pod: Pod, status: PodStatus) -> Iterator[Finding]:
    """A status shows the resources that the runtime reported for a running container, not the
    desired ones.
    """
    if pod.spec_changed_t is None or not pod.born:
        return
    for said in status.container_statuses or ():
        container = pod.newest(said.name)
        if container is None or container.id != said.runtime_id or said.state.running is None:
            continue
        finding = _judged(said, container.note(_Reported))
        if finding is not None:
            yield finding


def _judged(said: ContainerStatus, reported: _Reported) -> Finding | None:
    limits = (said.resources.limits if said.resources is not None else None) or {}
    if CPU in limits and reported.quotas:
        quota = amount(str(limits[CPU])) * 100_000
        if not any(abs(quota - one) < _MILLICORE for one in reported.quotas):
            return broken(f"{said.name} is shown with {limits[CPU]} CPU, which the runtime never reported")
    if MEMORY in limits and reported.limits and int(amount(str(limits[MEMORY]))) not in reported.limits:
        return broken(
            f"{said.name} is shown with {limits[MEMORY]} of memory, which the runtime never reported"
        )
    return KEPT if (CPU in limits and reported.quotas) or (MEMORY in limits and reported.limits) else None


@status_shows_what_is.clause("follows", on=done("ContainerStatus"))
def status_follows_the_runtime(m: Moment, pod: Pod, container: Container) -> Findings:
    """When the runtime reports other resources than before, the next status shows them."""
    now = _read(m)
    before = reported_caps(container)
    if now is None or before is None or container.state != "running":
        return None
    spec, known = container.spec, kubelet_view(m)
    limits = (spec.resources.limits if spec is not None else None) or {}
    seen = [what for what in changed(before, now) if what in limits]
    if not seen or (seen == [CPU] and before.quota == now.quota) or not to_run(m) or worker_is_busy(pod):
        return None
    if known.is_cut_off(m.t) or receives_events(m):
        return None
    return answered(
        by=status().where(_shows(container, now)),
        within=RELIST + REACTION,
        unless=TERMINATION_ASKED.either(pod_set(), _READING_FAILED, _UPDATE),
        text=f"a status shows what {container.name} has now",
    )


def _shows(container: Container, caps: Caps) -> Predicate:
    def shows(m: Moment) -> bool:
        said = m.status.by_name.get(container.name) if m.status is not None else None
        limits = (said.resources.limits if said is not None and said.resources is not None else None) or {}
        quota = amount(str(limits.get(CPU, 0))) * 100_000
        fits = CPU not in limits or abs(quota - caps.quota) < _MILLICORE
        return fits and (MEMORY not in limits or int(amount(str(limits[MEMORY]))) == caps.memory)

    return shows


@observer(on=done("ContainerStatus"), gate=GATE)
def _(m: Moment) -> None:
    caps = _read(m)
    if caps is not None and m.container is not None:
        reported = m.container.note(_Reported)
        reported.quotas.add(caps.quota)
        reported.limits.add(caps.memory)


def _read(m: Moment) -> Caps | None:
    record = m.response(ContainerStatusReply).status
    reported = record.resources if record is not None else None
    return caps_of(reported.linux) if reported is not None and reported.linux is not None else None


@contract("COND-09", on=status(), needs=(STATUS, PODS), versions=since("1.27"))
def resize_is_reported_in_the_words_of_its_version(m: Moment, status: PodStatus) -> Findings:
    """The conditions PodResizePending and PodResizeInProgress report a resize; up to 1.32 the field `resize`
    does. A pod whose spec has never changed has none.
    """
    if m.kubernetes is None:
        return None
    by_condition = status.condition("PodResizePending") or status.condition("PodResizeInProgress")
    if not by_condition and not status.resize:
        return None
    if m.kubernetes >= (1, 33):
        # A kubelet that starts does not know what containers of another version were given.
        if m.pod is not None and m.pod.born and m.pod.spec_changed_t is None and m.node.lives <= 1:
            return broken("a resize is reported, and the spec of the pod was never changed")
        if by_condition is not None and by_condition.status != "True":
            return broken(f"the condition {by_condition.type} is {by_condition.status}")
        return broken(f"the field resize says {status.resize}") if status.resize else KEPT
    return broken("a condition reports the state of a resize") if by_condition else KEPT


judges_waits(resize_is_reported_in_the_words_of_its_version)


class _Watched(Note):
    """The resources a container was given last, and when the runtime had reported them."""

    wanted: Caps | None = None
    is_unsure: bool = False
    """A call failed that may have had an effect: what it has is not known."""
    met_t: float | None = None
    reads: deque[float] = field(default_factory=lambda: deque(maxlen=_READS_MAX + 1))


@contract("PLEG-17", on=_UPDATED, needs=(CRI,), versions=since("1.32"), gate=GATE)
def resized_container_is_watched(m: Moment, container: Container) -> Findings:
    """After a resize the pod is inspected at each relist until the runtime reports it, and not after that."""
    if receives_events(m) or container.note(_Watched).is_unsure:
        return None
    return _inspected_soon(container)


def _inspected_soon(container: Container) -> Finding:
    return answered(
        by=done("ContainerStatus").where(about(container)),
        within=RELIST + _LATE,
        unless=_READING_FAILED.either(
            call("StopContainer", "RemoveContainer").where(about(container)), happened("removed"), _UPDATE
        ),
        whole_node=True,
        text=f"{container.name} is inspected, which was given other resources",
    )


@resized_container_is_watched.clause("until", on=done("ContainerStatus"))
def watched_until_it_is_reported(m: Moment, container: Container) -> Findings:
    """A resize that is not reported yet is checked again at the next relist; a reported one is not."""
    caps = _read(m)
    watched = container.note(_Watched)
    if watched.wanted is None or caps is None:
        return None
    if watched.met_t is None and container.state == "running" and not container.stops:
        if not changed(caps, watched.wanted):
            watched.met_t = m.t
            return KEPT
        return None if receives_events(m) else _inspected_soon(container)
    if watched.met_t is not None and m.t - watched.met_t > _LATE:
        watched.reads.append(m.t)
        if len(watched.reads) > _READS_MAX and m.t - watched.reads[0] < REACTION:
            return broken(f"{container.name} is inspected on and on, though its resize was reported")
    return None


@observer(on=call("UpdateContainerResources"), gate=GATE)
def _(_: Moment, container: Container) -> None:
    # One without an answer, or with an error, may have an effect, and nothing is watched for it.
    container.note(_Watched).wanted = None


@observer(on=failed("UpdateContainerResources"), gate=GATE)
def _(_: Moment, container: Container) -> None:
    container.note(_Watched).is_unsure = True


@observer(on=_UPDATED, gate=GATE)
def _(_: Moment, container: Container) -> None:
    watched = container.note(_Watched)
    watched.wanted, watched.met_t = None if watched.is_unsure else has_now(container), None
    watched.reads.clear()


_ACTS = call("UpdateContainerResources", "StopContainer")


@contract("RESTARTKUBELET-16", on=_ACTS.either(_OVER), needs=(CRI, PODS), versions=since("1.27"), gate=GATE)
def allocations_outlive_the_kubelet(m: Moment) -> Iterator[Finding]:
    """A restarted kubelet does not repeat a resize that was done already, nor one found infeasible."""
    node = m.node
    if node.lives < 2 or node.started_t is None:  # noqa: PLR2004 - the first instance has none before it
        return
    if not m.keys[0].startswith("call:"):
        if node.kubelet_up and m.t - node.started_t > KUBELET_START:
            yield from (KEPT for pod in m.world.pods.values() if _stood(pod, node.started_t))
        return
    if m.pod is None or m.container is None or not _stood(m.pod, node.started_t):
        return
    if m.call.rpc != "StopContainer":
        yield broken(f"{m.container.name} is resized after a restart")
    elif m.t - node.started_t < KUBELET_START and _wants_too_much(m.pod):
        yield broken(f"{m.container.name} is stopped after a restart, as if its resize had been granted")


def _stood(pod: Pod, started_t: float) -> bool:
    """The pod's spec has not changed since, and every earlier change is completed."""
    if pod.spec is None or pod.spec_changed_t is None or pod.spec_changed_t > started_t:
        return False
    if pod.termination is not None or not pod.wanted:
        return False
    if _wants_too_much(pod):
        return True
    # A restarted kubelet knows what was done from the runtime alone, which may not report it yet.
    return not awaits_resize(pod) and all(_is_as_wanted(pod, one.name) for one in pod.spec.containers)


def _wants_too_much(pod: Pod) -> bool:
    """The container was resized to what no node has, and has no probe that might stop it."""
    return pod.spec is not None and asks_the_impossible(pod.spec) and "probe" not in (pod.traits or ())


def _is_as_wanted(pod: Pod, name: str) -> bool:
    container, spec = pod.newest(name), pod.container_spec(name)
    has = has_now(container) if container is not None else None
    return spec is not None and has is not None and not changed(has, wants(spec))


class _Mirrored(Note):
    """When a mirror was sent with other resources than its static pod has."""

    t: float | None = None
    seq: int = 0


@contract("STATIC-24", on=_UPDATE.either(_OVER), needs=(CRI, PODS), versions=since("1.27"), gate=GATE)
def static_pod_is_not_resized(m: Moment) -> Iterator[Finding]:
    """A static pod keeps its resources, whatever happens to its mirror."""
    if m.keys[0] != "call:UpdateContainerResources":
        for pod in m.world.pods.values():
            sent_t = pod.note(_Mirrored).t
            if pod.static and sent_t is not None and m.t - sent_t > REACTION and m.node.kubelet_up:
                yield KEPT
    elif m.pod is not None and m.pod.static:
        yield broken(f"a container of the static pod {m.pod.name} is resized", m.pod.note(_Mirrored).seq)


@observer(on=pod_set())
def _(m: Moment, manifest: Manifest) -> None:
    if not manifest.metadata.is_mirror:
        return
    meta = manifest.metadata
    pod = m.world.pod_of_object(meta.uid, meta.namespace or "default", meta.name)
    if pod is None or pod.spec is None:
        return
    sizes = [[wants(one) for one in spec.containers] for spec in (pod.spec, manifest.spec)]
    if sizes[0] != sizes[1]:
        mirrored = pod.note(_Mirrored)
        mirrored.t, mirrored.seq = m.t, m.seq
