"""LOOP and EVENTS: what the next resync repairs, what comes first, and what nothing waits for."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Exit, Finding, Moment, Pod, PodSpec, Predicate
from kubelet_conformance.contract.applicability import CRI, EVENTS, EVERY_EVENT, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract
from kubelet_conformance.contract.patterns import (
    call,
    deleted,
    done,
    event,
    exited,
    failed,
    kubelet,
    newly_reported,
    pod_set,
)
from kubelet_conformance.contracts.facts import timing
from kubelet_conformance.contracts.facts.kubelet import api_is_away, is_informed, sees_its_runtime
from kubelet_conformance.contracts.facts.pod import FAULT, TERMINATION_ASKED, about, of, to_run
from kubelet_conformance.contracts.tables.stop import MINIMUM_GRACE
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.world.disruption import REFUSALS
from kubelet_conformance.trace.world.kubelet_view import kubelet_view

_NEWS = newly_reported("sandbox")
"""The runtime reports something new, perhaps a sandbox that was run though the call failed."""
_HINDERED = event(*sorted(REFUSALS | {"FailedMount", "FailedValidation"}))
_NO_PORT = event("NodePorts")
_HINDERED_OTHERWISE = event(*sorted(REFUSALS - {"NodePorts"} | {"FailedMount", "FailedValidation"}))
_CANNOT_START = event("BackOff", "ErrImageNeverPull", "Failed", "FailedMount", "InspectFailed")
"""Something keeps a container from being created."""
_READS_FAIL = failed(
    "ContainerStatus", "ImageStatus", "ListContainers", "ListPodSandbox", "PodSandboxStatus", "Status"
)


def _is_not_ready(m: Moment) -> bool:
    known = kubelet_view(m)
    return known.bad_t is not None or known.network_bad_t is not None


_NOT_READY = done("Status").where(_is_not_ready)
_DELAYED = FAULT.either(_READS_FAIL, _NOT_READY)
"""The kubelet is blocked, or cannot see the runtime."""


@contract("LOOP-11", on=failed("RunPodSandbox"), needs=(CRI, PODS))
def retry_comes_when_it_is_due(m: Moment, pod: Pod, spec: PodSpec) -> Findings:
    """The loop syncs the pods that are due, and no others: a pod whose sandbox could not be run is tried
    again 10 to 16 s later, and not before, as long as nothing new is observed of it.
    """
    if not to_run(m) or pod.source != "api" or pod.sandboxes or not sees_its_runtime(m):
        return None
    if pod.changed_t is None or pod.changed_t >= m.call.t or spec.readiness_gates:
        return None
    known = kubelet_view(m)
    if known.is_cut_off(m.t) or known.list_failed_since(pod.changed_t):
        return None  # A sync that waited for a relist may be that of before the change.
    due = m.t + timing.RETRY_LEAST - timing.SAME_MOMENT
    again = call("RunPodSandbox").where(of(pod))
    return answered(
        by=again.where(lambda n: n.t >= due),
        within=timing.RETRY + timing.RETRY_SLACK,
        not_before=again.where(lambda n: n.t < due),
        unless=_DELAYED.either(
            TERMINATION_ASKED.where(of(pod)), pod_set().where(of(pod)), _HINDERED.where(of(pod)), _NEWS
        ),
        whole_node=True,
        text=f"the sandbox of {pod.name} is tried again when that is due",
    )


@contract("LOOP-14", on=kubelet("started"), needs=(CRI, PODS, EVERY_EVENT))
def older_pod_comes_first(m: Moment) -> Iterator[Finding]:
    """Of pods that a kubelet first receives together and that ask for one host port, the oldest gets it."""
    known = kubelet_view(m)
    if known.api_away_t is not None or known.lacks_node:
        return
    wanted = [pod for pod in m.world.names.values() if _is_new(pod)]
    for older in wanted:
        rivals = [pod for pod in wanted if pod is not older and _ports(pod) & _ports(older)]
        if rivals and all(age(older) < age(pod) for pod in rivals) and not _taken(m, older):
            yield answered(
                by=call("RunPodSandbox").where(of(older)),
                within=timing.KUBELET_START,
                not_before=call("RunPodSandbox").where(_is_one_of(rivals)).either(_NO_PORT.where(of(older))),
                unless=_DELAYED.either(
                    TERMINATION_ASKED.where(of(older)), _HINDERED_OTHERWISE.where(of(older))
                ),
                whole_node=True,
                text=f"pod {older.name}, the oldest that asks for its port, is run",
            )


def _is_one_of(pods: list[Pod]) -> Predicate:
    return lambda m: m.pod in pods


def _is_new(pod: Pod) -> bool:
    """The pod came from the API server, and no kubelet instance has received it."""
    return pod.source == "api" and pod.wanted and pod.born and not pod.sandboxes and pod.termination is None


def age(pod: Pod) -> str:
    """When it was created: times in UTC, cut to seconds, which sort as text."""
    return (pod.manifest.metadata.creation_timestamp if pod.manifest is not None else None) or ""


def _ports(pod: Pod) -> frozenset[tuple[str, int]]:
    """The host ports that it asks for at every address."""
    containers = pod.spec.containers if pod.spec is not None else ()
    every = [port for one in containers for port in one.ports or ()]
    return frozenset((one.protocol, one.host_port) for one in every if one.host_port and not one.host_ip)


def _taken(m: Moment, pod: Pod) -> bool:
    """Another pod holds the port, or may hold it, as it ran before."""
    others = (other for other in m.world.names.values() if other.sandboxes or other.static)
    return not age(pod) or any(_ports(other) & _ports(pod) for other in others)


@contract("LOOP-15", on=call("StopContainer"), needs=(CRI, PODS), clause="deleted")
def deletion_is_graceful(m: Moment, pod: Pod, container: Container) -> Findings:
    """A pod that gets a deletion time is stopped with grace, and one whose object is gone is killed."""
    end = pod.termination
    if end is None or end.cause != "deleted" or pod.source != "api":
        return None
    if not pod.wanted or not end.grace or container.state != "running" or container.stops or not pod.born:
        return None
    least, got = min(end.grace, MINIMUM_GRACE), m.request(bodies.StopContainerRequest).timeout
    return KEPT if got >= least else broken(f"{container.name} is stopped with timeout {got}", end.seq)


@deletion_is_graceful.clause("gone", on=deleted())
def pod_without_object_is_killed(m: Moment, pod: Pod) -> Iterator[Finding]:
    """The running containers of a pod whose object is gone are stopped."""
    if pod.static or not pod.born or not pod.wanted or pod.termination is not None:
        return
    if not is_informed(m):
        return
    for container in pod.every_container():
        if container.state == "running" and container.born and not container.stopping:
            yield answered(
                by=call("StopContainer", "ExecSync").where(about(container)).either(exited()),
                within=timing.REACTION,
                unless=FAULT.either(call("StopPodSandbox")),
                text=f"container {container.name} of {pod.name}, whose object is gone, is stopped",
            )


@contract("LOOP-20", on=exited(), needs=(CRI, PODS, EVENTS))
def resync_makes_up_for_what_was_missed(
    m: Moment, pod: Pod, spec: PodSpec, container: Container, ended: Exit
) -> Findings:
    """A container that ended for the first time and is to run always is run again with the next resync at the
    latest, even if events about it were lost.
    """
    if ended.commanded:
        return None
    if container.attempt or container.kind != "app" or pod.restart_policy != "Always" or not container.born:
        return None
    if container is not pod.newest(container.name) or m.node.started_t is None or not m.node.kubelet_up:
        return None
    if kubelet_view(m).down_since(m.t) is not None or spec.active_deadline_seconds:
        return None
    if kubelet_view(m).network_bad_t is not None or not to_run(m):
        return None
    name = container.name
    return answered(
        by=call("CreateContainer", "PullImage"),
        within=timing.RESYNC,
        unless=_DELAYED.either(
            TERMINATION_ASKED, _CANNOT_START, call("StopPodSandbox"), failed("RunPodSandbox")
        ),
        text=f"container {name} is run again",
    )


@contract("EVENTS-05", on=done("CreateContainer"), needs=(CRI, PODS))
def nothing_waits_for_its_event(m: Moment) -> Findings:
    """While no event can be sent a container that was created, which is an event, is started all the same."""
    if not api_is_away(m) or not to_run(m):
        return None
    name = m.request(bodies.CreateContainerRequest).config.metadata.name
    made = m.response(bodies.CreateContainerReply).container_id
    return answered(
        by=call("StartContainer").where(lambda n: n.container is not None and n.container.id == made),
        within=timing.REACTION,
        unless=TERMINATION_ASKED.either(FAULT),
        text=f"container {name} is started",
    )
