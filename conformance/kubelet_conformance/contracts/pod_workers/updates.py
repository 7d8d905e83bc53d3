"""WORK: how a busy pod worker handles updates that queue up, and when it syncs its pod again."""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise

from msgspec import field

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod, Predicate, Sandbox
from kubelet_conformance.contract.applicability import CRI, EVENTS, PODS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, event, failed, pod_set, pod_unset, status
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.backoff import retry_bound
from kubelet_conformance.contracts.facts.container import asked
from kubelet_conformance.contracts.facts.kubelet import api_is_away
from kubelet_conformance.contracts.facts.sandbox import CONTAINER_EVENT, FINISHED, READ_AS_READY
from kubelet_conformance.contracts.facts.timing import REACTION, RESYNC, RETRY, RETRY_SLACK
from kubelet_conformance.contracts.images.pull_policy import pulled_image
from kubelet_conformance.contracts.tables.stop import MINIMUM_GRACE
from kubelet_conformance.contracts.termination.grace import STOP
from kubelet_conformance.trace.format.bodies import CreateContainerRequest, StopContainerRequest
from kubelet_conformance.trace.format.manifests import Manifest
from kubelet_conformance.trace.format.records import ApiWrite
from kubelet_conformance.trace.world.kubelet_view import kubelet_view
from kubelet_conformance.trace.world.runtime_reports import reported_sandbox

_STEPS = ("RunPodSandbox", "PullImage", "CreateContainer", "StartContainer")
_VERSIONS_KEPT = 16
_RECEIVED_WITHIN = 1.0
"""What is written to the API server reaches the kubelet within this time (s)."""


class _Version:
    """A manifest as it was sent: the images it names, and the steps of a sync that were in progress."""

    def __init__(self, m: Moment, pod: Pod, manifest: Manifest) -> None:
        self.t, self.seq = m.t, m.seq
        self.images = {spec.image for _, spec in manifest.spec.entries.values()}
        self.in_flight = {one.id for one in pod.calls_open.values() if one.rpc in _STEPS}
        self.reached_it = not api_is_away(m)
        self.skipped = False


class _Versions(Note):
    """The last versions of a pod, oldest first."""

    sent: deque[_Version] = field(default_factory=lambda: deque(maxlen=_VERSIONS_KEPT))


@contract("WORK-02", on=call("CreateContainer", "PullImage"), needs=(CRI, PODS))
def newest_update_replaces_the_others(m: Moment, pod: Pod) -> Findings:
    """Of several updates that come during one step of a sync only the newest is carried out."""
    if not pod.born:
        return None
    sent, image = pod.note(_Versions).sent, _image(m)
    those = [one for one in sent if image in one.images]
    if those and all(one.skipped for one in those):
        return broken(f"{m.call.rpc} with {image}, which a newer update had replaced", those[-1].seq)
    return KEPT if those and any(one.skipped for one in sent) else None


def _image(m: Moment) -> str:
    """The image that is pulled or run; up to 1.27 requests do not name the one that is run."""
    if m.call.rpc == "PullImage":
        return pulled_image(m)
    return asked(m).image.user_specified_image


@observer(on=pod_set())
def _versions_are_remembered(m: Moment) -> None:
    """Remember what was sent, and in which step of a sync."""
    if m.pod is not None and m.manifest is not None and not m.pod.static:
        m.pod.note(_Versions).sent.append(_Version(m, m.pod, m.manifest))


@observer(on=done(*_STEPS).either(failed(*_STEPS)))
def _replaced_versions_are_remembered(m: Moment) -> None:
    """Remember the versions that came and were replaced while one and the same step lasted."""
    sent = m.pod.note(_Versions).sent if m.pod is not None else ()
    for one, newer in pairwise(sent) if len(sent) > 1 else ():
        if (
            newer.reached_it
            and m.call.id in one.in_flight & newer.in_flight
            and m.t - newer.t >= _RECEIVED_WITHIN
        ):
            one.skipped = True


class _Shortened(Note):
    """The least grace that was asked for while a stop of the container was in progress."""

    grace: int | None = None
    t: float = 0.0
    seq: int = 0


@contract("WORK-09", on=STOP, needs=(CRI, PODS), versions=since("1.22"))
def next_stop_has_the_shorter_grace(m: Moment, container: Container) -> Findings:
    """A grace that is shortened while a StopContainer lasts holds for the next one of that container."""
    short = container.note(_Shortened)
    if short.grace is None or m.t - short.t < _RECEIVED_WITHIN:
        return None
    got = m.request(StopContainerRequest).timeout
    if got > max(short.grace, MINIMUM_GRACE):
        return broken(f"expected at most {short.grace} s, asked for in the meantime, got {got}", short.seq)
    return KEPT


@observer(on=pod_set())
def _shorter_graces_are_remembered(m: Moment, pod: Pod) -> None:
    """Remember a grace that is less than that of the stop in progress."""
    grace = m.manifest.metadata.deletion_grace_period_seconds if m.manifest else None
    if not grace or api_is_away(m):
        return
    for container in pod.every_container():
        stop = container.stops[-1] if container.stopping else None
        short = container.note(_Shortened)
        least = short.grace if short.grace is not None else stop.timeout if stop else None
        if stop is not None and least is not None and grace < least:
            short.grace, short.t, short.seq = grace, m.t, m.seq


def _is_alive(m: Moment) -> bool:
    return m.node.kubelet_up and pods.to_run(m)


@contract("WORK-15", on=failed("RunPodSandbox", "CreateContainer"), needs=(CRI, PODS), clause="retry")
def failed_sync_is_repeated(m: Moment, pod: Pod) -> Findings:
    """A sync that failed is repeated within 16 s, and a pod whose syncs go well has one every 90 s."""
    if not _is_alive(m) or pod.static or _is_not_made_again(m, pod) or _may_be_made(m, pod):
        return None
    ends = pods.FAULT.either(pods.TERMINATION_ASKED, FINISHED)
    if m.call.rpc == "RunPodSandbox":
        ends = ends.either(READ_AS_READY)
    return answered(
        by=pods.starts_or_creates().either(call("StopPodSandbox")),
        within=_retried_within(m),
        unless=ends.where(lambda n: n.pod is None or n.pod is pod),
        text=f"{m.call.rpc} of {pod.name} failed, and its sync comes again",
    )


def _retried_within(m: Moment) -> float:
    """How late the retry shows: that of a container that has ended before waits for its back-off too."""
    if m.call.rpc == "CreateContainer":
        return retry_bound(m, asked(m).metadata.name)
    return RETRY + RETRY_SLACK


def _is_not_made_again(m: Moment, pod: Pod) -> bool:
    """The container was killed for a change of it, and by the pod's policy what has ended so stays ended."""
    return m.call.rpc == "CreateContainer" and pods.will_not_restart(pod, asked(m).metadata.name)


def _may_be_made(m: Moment, pod: Pod) -> bool:
    """An ephemeral container may be there all the same: it is made once, and then left as it is."""
    if m.call.rpc != "CreateContainer" or not m.reply.effect or pod.spec is None:
        return False
    name = m.request(CreateContainerRequest).config.metadata.name
    return any(one.name == name for one in pod.spec.ephemeral_containers or ())


@failed_sync_is_repeated.clause("resync", on=pods.API_BACK)
def healthy_pod_is_looked_at_again(m: Moment) -> Iterator[Finding]:
    """A mirror pod that could not be made, which fails no sync, is made with the next one."""
    if not m.node.kubelet_up or kubelet_view(m).lacks_node:
        return
    for pod in m.world.pods.values():
        runs = any(c.state == "running" for c in pod.every_container())
        if not pod.static or not pod.wanted or not pod.born or pod.mirror_uid or pod.termination or not runs:
            continue
        # A create that failed may have taken place: then a status can be written to it.
        is_made = Pattern(frozenset({"api"})).where(_makes_mirror_of(pod))
        yield answered(
            by=is_made.either(status().where(pods.of(pod))),
            within=RESYNC,
            unless=pods.FAULT.either(pod_unset(), pods.LAST_END.where(pods.of(pod))),
            whole_node=True,
            text=f"{pod.name} is synced again, and has its mirror",
        )


def _makes_mirror_of(pod: Pod) -> Predicate:
    name = f'"{pod.name}"'.encode()

    def makes(m: Moment) -> bool:
        write = m.record
        if not isinstance(write, ApiWrite) or write.resource != "pods" or write.verb.lower() != "create":
            return False
        return name in bytes(write.body)

    return makes


class _Blind(Note):
    """The sandboxes of a pod that could not be read twice or more in a row, and since when."""

    failures: dict[str, int] = {}
    t: float | None = None
    seq: int = 0


_LOOKED = done("PodSandboxStatus").either(failed("PodSandboxStatus"))
_IN_A_ROW = 2
"""One failed reading may be that of the sync which made the sandbox; a relist repeats its own."""


def _is_blind(m: Moment, pod: Pod) -> bool:
    """The kubelet's cache entry of the pod is an error, and has been for a while."""
    blind = pod.note(_Blind)
    return blind.t is not None and m.t - blind.t > REACTION


@contract("WORK-18", on=pod_set(), needs=(CRI, PODS, EVENTS), clause="reported")
def unreadable_pod_is_reported(m: Moment, pod: Pod) -> Findings:
    """A sync that cannot read the state of its pod does nothing, sends a FailedSync event, and is
    tried again.
    """
    if pod.static or not _is_alive(m) or pods.worker_is_busy(pod) or not _is_blind(m, pod):
        return None
    if api_is_away(m):
        return None
    return answered(
        by=event("FailedSync"),
        within=RETRY + RETRY_SLACK,
        unless=pods.FAULT.either(done("PodSandboxStatus").where(pods.of(pod))),
        not_before=_ACTIONS.where(pods.of(pod)),
        text=f"a FailedSync event says that {pod.name} cannot be read",
    )


_ACTIONS = call("RunPodSandbox", "CreateContainer", "StopContainer")


@unreadable_pod_is_reported.clause("nothing", on=_ACTIONS)
def nothing_is_done_blindly(m: Moment, pod: Pod) -> Findings:
    """Nothing of a pod whose state cannot be read is made or stopped."""
    if not _is_blind(m, pod) or not _is_alive(m) or _worker_was_busy(m, pod):
        return None
    blind = pod.note(_Blind)
    return broken(f"{m.call.rpc} of {pod.name}, whose state cannot be read", blind.seq)


def _worker_was_busy(m: Moment, pod: Pod) -> bool:
    """A step of a sync that began before the pod became unreadable has ended only now."""
    return pod.note(_LastStep).t > (pod.note(_Blind).t or 0.0) or m.t - pod.note(_LastStep).t < REACTION


class _LastStep(Note):
    """When a step of the pod's syncs was last answered."""

    t: float = float("-inf")


@observer(on=done(*_STEPS).either(failed(*_STEPS)))
def _steps_are_remembered(m: Moment, pod: Pod) -> None:
    """Remember when a step was answered."""
    pod.note(_LastStep).t = m.t


@observer(on=_LOOKED)
def _looks_are_remembered(m: Moment, pod: Pod, sandbox: Sandbox) -> None:
    """Remember which sandboxes cannot be read."""
    error = m.reply.error
    blind = pod.note(_Blind)
    if error is None or error.code == "NOT_FOUND":
        blind.failures.pop(sandbox.id, None)
    else:
        blind.failures[sandbox.id] = blind.failures.get(sandbox.id, 0) + 1
    _settle(m, blind)


@observer(on=CONTAINER_EVENT)
def _events_are_remembered(m: Moment, pod: Pod) -> None:
    """A container event brings the state of its sandbox along: nothing need be read for that."""
    record, blind = reported_sandbox(m), pod.note(_Blind)
    if record is not None:
        blind.failures.pop(record.id, None)
        _settle(m, blind)


def _settle(m: Moment, blind: _Blind) -> None:
    """Record whether the pod is unreadable now, and since when."""
    if not blind.failures or max(blind.failures.values()) < _IN_A_ROW:
        blind.t = None
    elif blind.t is None:
        blind.t, blind.seq = m.t, m.seq
