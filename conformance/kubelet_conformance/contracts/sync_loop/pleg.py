"""PLEG: how the kubelet notices changes at the runtime, and how it handles a listing that fails.

PLEG: a kubelet that cannot list its runtime starts no pod; one that is behind continues to relist.
"""

import math
from collections import deque
from collections.abc import Iterator

from msgspec import field

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod, Predicate, Sandbox
from kubelet_conformance.contract.applicability import CRI, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import (
    call,
    done,
    exited,
    failed,
    happened,
    kubelet,
    late,
    listed_all,
    pod_set,
    read_as,
    sandbox_died,
)
from kubelet_conformance.contracts.facts.kubelet import sees_its_runtime
from kubelet_conformance.contracts.facts.pod import END, TERMINATION_ASKED, about, of, worker_is_busy
from kubelet_conformance.contracts.facts.resources import awaits_resize
from kubelet_conformance.contracts.facts.status import WholeList
from kubelet_conformance.contracts.facts.timing import KUBELET_START, REACTION, RELIST
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.format.manifests import Manifest
from kubelet_conformance.trace.format.records import RuntimeEvent
from kubelet_conformance.trace.world.in_flight import WORK
from kubelet_conformance.trace.world.kubelet_view import kubelet_view, receives_events
from kubelet_conformance.trace.world.resolve import LATE_SECONDS

_INSPECTIONS = frozenset({"PodSandboxStatus", "ContainerStatus"})
_RELIST_SLACK = 2.0
"""What a loaded machine may add to a relist."""
_PAUSE = 0.5
"""Between two inspections of one relist less time passes, and more before the next relist."""
_INSPECTIONS_MAX = 3
"""How often a pod may be inspected within REACTION though nothing about it changed."""


def lists_all_sandboxes(m: Moment) -> bool:
    """The ListPodSandbox that begins or ends here has no filter."""
    return m.request(bodies.ListPodSandboxRequest).everything


def lists_all_containers(m: Moment) -> bool:
    """The ListContainers that begins or ends here has no filter."""
    return m.request(bodies.ListContainersRequest).everything


LISTING_FAILED = failed("ListPodSandbox", "ListContainers")
LISTED = done("ListPodSandbox", "ListContainers")
_LISTED_SLOWLY = LISTED.where(lambda m: m.t - m.call.t >= RELIST)
"""The runtime itself was slow, and each relist takes as much longer."""


def _replaces_what_runs(m: Moment) -> bool:
    """A second sandbox or container is made beside one that is there."""
    pod = m.pod
    if pod is None or pod.termination is not None or not pod.born:
        return False
    if m.call.rpc == "RunPodSandbox":
        return pod.sandbox is not None and pod.sandbox.state == "ready" and not pod.sandbox.stops
    newest = pod.newest(m.request(bodies.CreateContainerRequest).config.metadata.name)
    return newest is not None and newest.state == "running" and not newest.stops


class _Relist(Note):
    """The last listing of all sandboxes that no listing of all containers has followed yet."""

    t: float | None = None
    seq: int = 0

    @property
    def is_open(self) -> bool:
        """All sandboxes were listed, and not all containers since."""
        return self.t is not None


@contract("PLEG-01", on=call("ListContainers").either(END), clause="both")
def relist_asks_for_both(m: Moment) -> Findings:
    """A relist lists all sandboxes, then all containers; from a listing that fails no death is concluded."""
    relist, is_listing = m.node.note(_Relist), m.keys[0] == "call:ListContainers"
    if (is_listing and not lists_all_containers(m)) or not relist.is_open:
        return None
    late = _not_followed(m, relist)
    if late is not None or not is_listing or not relist.is_open:
        return late
    relist.t = None
    return KEPT


def _not_followed(m: Moment, relist: _Relist) -> Findings:
    """A relist that has begun should have gone on by now, but for a runtime that was away or held it up."""
    if relist.t is not None and (relist.t <= m.node.cut_off_until or _waits_for_inspection(m)):
        relist.t = None
    if relist.t is None or m.t - relist.t <= REACTION or receives_events(m):
        return None
    relist.t = None
    return broken(
        f"no listing of all containers follows that of all sandboxes within {REACTION:g} s", relist.seq
    )


@relist_asks_for_both.clause("both", on=listed_all("ListPodSandbox"))
def relist_begins(m: Moment) -> Findings:
    """All sandboxes are listed; garbage collection does that too, behind a relist or in the middle of it."""
    relist = m.node.note(_Relist)
    if m.t - m.call.t > RELIST:
        relist.t = None  # What held up this one held up the relist.
    late = _not_followed(m, relist) if relist.is_open else None
    # Once all containers are listed, garbage collection lists the sandboxes.
    is_new = not relist.is_open and late is None and m.call.t > m.node.note(WholeList).t
    if is_new and not _is_in_the_middle(m):
        relist.t, relist.seq = m.t, m.seq
    return late


def _is_in_the_middle(m: Moment) -> bool:
    """All containers are being listed."""
    in_flight = [one for one in m.world.calls_open.values() if one.rpc == "ListContainers"]
    return any(one.request.view(bodies.ListContainersRequest).everything for one in in_flight)


def _waits_for_inspection(m: Moment) -> bool:
    """An inspection is not answered: a relist that waits for it lists nothing, others do."""
    return any(one.rpc in _INSPECTIONS and m.t - one.t > LATE_SECONDS for one in m.world.calls_open.values())


@observer(
    on=failed("ListPodSandbox", "ListContainers").either(
        late(*sorted(_INSPECTIONS)), kubelet("ended", "killed", "stopped")
    )
)
def relist_is_given_up(m: Moment) -> None:
    """A listing that fails ends the relist, and an inspection that was late held it up: the next one begins
    anew.
    """
    m.node.note(_Relist).t = None


@relist_asks_for_both.clause("failed", on=LISTING_FAILED)
def failed_listing_is_no_death(m: Moment) -> Findings:
    """Nothing that runs is made again while listings fail."""
    if not any(c.state == "running" for c in m.world.containers.values()):
        return None
    return answered(
        by=LISTED,
        not_before=call("RunPodSandbox", "CreateContainer").where(_replaces_what_runs),
        whole_node=True,
        text="a listing succeeds",
    )


class _Quiet(Note):
    """Since when nothing about a pod has changed, and when it was inspected."""

    since: float = float("inf")
    inspected: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_INSPECTIONS_MAX + 1))


_CHANGES = call(*sorted(WORK - {"ExecSync"})).either(
    done("RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "PullImage"),
    failed("RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "PullImage"),
    failed("PodSandboxStatus", "ContainerStatus"),
    happened("exited", "oom", "sandbox-died", "removed"),
    pod_set(),
    Pattern(frozenset({"status"})),
)


@contract("PLEG-02", on=call("PodSandboxStatus"), clause="rarely")
def unchanged_pod_is_not_inspected(m: Moment, pod: Pod) -> Findings:
    """A pod of which nothing has changed is not inspected at each relist: upstream's way of few calls."""
    if m.node.started_t is None or m.t - m.node.started_t < KUBELET_START:
        return None
    quiet = pod.note(_Quiet)
    if m.t - quiet.since < REACTION or awaits_resize(pod):
        return None
    quiet.inspected.append((m.t, m.seq))
    first, seq = quiet.inspected[0]
    if len(quiet.inspected) > _INSPECTIONS_MAX and m.t - first < REACTION:
        return broken(
            f"{len(quiet.inspected)} inspections in {m.t - first:.1f} s, nothing having changed", seq
        )
    return None


@unchanged_pod_is_not_inspected.clause("changed", on=_CHANGES)
def pod_was_left_alone_till_it_changed(m: Moment, pod: Pod) -> Findings:
    """The pod was not inspected for some time before this change."""
    quiet = pod.note(_Quiet)
    calm = m.t - quiet.since
    quiet.since = m.t
    quiet.inspected.clear()
    return KEPT if calm > 2 * REACTION else None


@contract("PLEG-04", on=sandbox_died(), needs=(CRI, PODS))
def death_of_a_sandbox_wakes_the_worker(m: Moment, pod: Pod, sandbox: Sandbox) -> Findings:
    """A sandbox that dies is noticed within a relist: the pod's worker stops what is left of the pod."""
    if sandbox is not pod.sandbox or not pod.born or not sees_its_runtime(m):
        return None
    if pod.termination is not None or pod.finished or not pod.wanted or worker_is_busy(pod):
        return None
    return answered(
        by=call("StopContainer", "StopPodSandbox", "ExecSync"),
        within=REACTION,
        unless=TERMINATION_ASKED,
        text=f"what is left of {pod.name} is stopped after its sandbox died",
    )


@contract("PLEG-05", on=failed("ContainerStatus", "PodSandboxStatus"))
def failed_inspection_is_repeated(m: Moment, pod: Pod, container: Container) -> Findings:
    """An inspection that fails after a change is repeated at the next relist, so that no death is lost."""
    error = m.reply.error
    if error is None or error.code == "NOT_FOUND" or not container.born:
        return None
    end, record = container.exit, container.record
    if end is None or (record is not None and record.state == "CONTAINER_EXITED"):
        return None
    if m.t - end.t > REACTION or container.state != "exited":
        return None
    return answered(
        by=call("ContainerStatus", "PodSandboxStatus").where(of(pod)),
        within=RELIST + REACTION,
        unless=LISTING_FAILED.either(call("RemoveContainer").where(about(container))),
        whole_node=True,
        text=f"the pod of {container.name} is inspected again",
    )


_CONTAINER_READ, _REMOVAL = done("ContainerStatus"), call("RemoveContainer")
_READING_FAILED = LISTING_FAILED.either(failed("ContainerStatus", "PodSandboxStatus"), happened("removed"))


class _Inspections(Note):
    """When the relist that lists or inspects was last answered."""

    t: float = -math.inf


@observer(on=listed_all("ListContainers").either(done(*sorted(_INSPECTIONS))))
def take_inspections(m: Moment) -> None:
    """A relist inspects one pod after another, without a pause."""
    inspections, listed = m.node.note(_Inspections), m.call.rpc == "ListContainers"
    if listed or m.t - inspections.t < _PAUSE:
        inspections.t = m.t


def _inspects_for_long(m: Moment) -> bool:
    """A relist still inspects pods when the next one would be due: that comes a period after its end."""
    is_its = m.t - m.node.note(_Inspections).t < _PAUSE
    return is_its and m.t - m.node.note(WholeList).t > RELIST + _PAUSE


_INSPECTED_SLOWLY = done(*sorted(_INSPECTIONS)).where(_inspects_for_long)


@contract("PLEG-13", on=exited())
def exit_is_noticed_within_a_relist(m: Moment, container: Container) -> Findings:
    """The kubelet reads the state of a container within a relist after it exited."""
    if not isinstance(m.record, RuntimeEvent) or not container.seen_running:
        return None
    if not sees_its_runtime(m) or receives_events(m):
        return None
    is_it = about(container)
    return answered(
        by=_CONTAINER_READ.where(is_it),
        within=RELIST + _RELIST_SLACK,
        unless=_READING_FAILED.either(_LISTED_SLOWLY, _INSPECTED_SLOWLY, _REMOVAL.where(is_it)),
        whole_node=True,
        text=f"the exit of {container.name} is read",
    )


@contract("PLEG-18", on=kubelet("started"))
def first_relist_inspects_every_pod(m: Moment) -> Iterator[Finding]:
    """After a start the kubelet inspects every pod that has records at the runtime."""
    if m.node.lives < 1:
        return
    for sandbox in list(m.world.sandboxes.values()):
        if sandbox.state in {"ready", "notready"} and sandbox.born:
            yield answered(
                by=done("PodSandboxStatus").either(failed("PodSandboxStatus")).where(_reads(sandbox)),
                within=KUBELET_START,
                unless=LISTING_FAILED.either(happened("removed"), _lacks(sandbox)),
                text=f"sandbox {sandbox.id[:12]} is inspected",
            )
    for container in list(m.world.containers.values()):
        if container.state in {"running", "exited"} and container.born:
            yield answered(
                by=done("ContainerStatus").either(failed("ContainerStatus")).where(about(container)),
                within=KUBELET_START,
                unless=LISTING_FAILED.either(happened("removed"), _lacks(container)),
                text=f"container {container.name} is inspected",
            )


def _reads(sandbox: Sandbox) -> Predicate:
    return lambda m: m.sandbox is sandbox


def _lacks(removed: Container | Sandbox) -> Pattern:
    """A list of all lacks it: it was removed by a call that was not answered before the start."""

    def lacks(m: Moment) -> bool:
        if m.call.rpc == "ListContainers":
            return all(one.id != removed.id for one in m.response(bodies.ListContainersReply).containers)
        return all(one.id != removed.id for one in m.response(bodies.ListPodSandboxReply).items)

    return listed_all("ListContainers" if isinstance(removed, Container) else "ListPodSandbox").where(lacks)


_THRESHOLD = 180.0
"""After this time without a good relist the PLEG is not healthy (generic.go)."""
_EVENTED_THRESHOLD = 600.0
"""The same where container events are received (evented.go)."""


@contract("PLEG-08", on=pod_set(), needs=(CRI, PODS))
def blind_kubelet_begins_nothing(m: Moment, manifest: Manifest) -> Findings:
    """When no relist has succeeded for three minutes, no new pod is started until one has."""
    relist = m.node.note(WholeList)
    if relist.seq <= m.node.started_seq or m.pod is not None or not m.node.kubelet_up:
        return None
    evented = receives_events(m)
    threshold = _EVENTED_THRESHOLD if evented else _THRESHOLD
    if manifest.metadata.is_mirror or m.t - relist.t < threshold + REACTION:
        return None
    uid, name = manifest.metadata.uid, manifest.metadata.name
    return answered(
        by=done("ListContainers"),
        not_before=call("RunPodSandbox").where(lambda n: n.pod is not None and n.pod.uid == uid),
        whole_node=True,
        text=f"{name} waits until a relist has succeeded",
    )


@contract("PLEG-09", on=read_as("exited"), needs=(CRI,))
def relist_waits_for_nobody(m: Moment, container: Container) -> Findings:
    """Events that the loop does not take, since the runtime is not ready, do not hold up the relists."""
    if container.record is not None and container.record.state == "CONTAINER_EXITED":
        return None
    if kubelet_view(m).bad_t is None or not m.node.kubelet_up or receives_events(m):
        return None
    return answered(
        by=call("ListPodSandbox").where(lists_all_sandboxes),
        within=RELIST + REACTION,
        unless=failed("ListPodSandbox", "ListContainers", "PodSandboxStatus", "ContainerStatus"),
        whole_node=True,
        text="the runtime is listed again",
    )
