"""Sandboxes of a pod: which ones stand, why the newest is replaced, and what keeps a kubelet from it."""

import math
from functools import lru_cache
from ipaddress import ip_address
from typing import Literal, NamedTuple

from kubelet_conformance.contract import Container, Metadata, Moment, Node, Note, Pattern, Pod, Sandbox
from kubelet_conformance.contract.definition import observer
from kubelet_conformance.contract.patterns import call, done, failed, status
from kubelet_conformance.contracts.facts.pod import TERMINATION_ASKED, may_be_unknown
from kubelet_conformance.contracts.tables.table import Row, Table
from kubelet_conformance.trace.format import bodies
from kubelet_conformance.trace.world.kubelet_view import EVENTS_GATE
from kubelet_conformance.trace.world.pod_cgroups import PodCgroup
from kubelet_conformance.trace.world.runtime_reports import event_of, reported_sandbox

BLIND: Pattern = failed("ListPodSandbox", "ListContainers")
"""The kubelet cannot see what is at the runtime."""


def _not_ready(m: Moment) -> bool:
    reply = m.response(bodies.StatusReply).status
    return reply is None or not all(condition.status for condition in reply.conditions)


NOT_READY: Pattern = failed("Status").either(done("Status").where(_not_ready))
"""The runtime says that it, or the pod network, is not ready."""


def _is_ready(m: Moment) -> bool:
    record = m.response(bodies.PodSandboxStatusReply).status
    return record is not None and record.state == "SANDBOX_READY"


READ_AS_READY = done("PodSandboxStatus").where(_is_ready)
"""The kubelet reads a sandbox that is ready: one that it could not run may be there all the same."""
CONTAINER_EVENT = Pattern(frozenset({"message"}))
"""A kubelet that receives this event knows the sandbox and the containers in it, and need not read them
(pleg/evented.go).
"""
FINISHED: Pattern = status().where(lambda m: m.status is not None and m.status.terminal)
"""A terminal phase is written: the pod is rejected, evicted or done."""


GONE: Pattern = TERMINATION_ASKED.either(FINISHED)
"""The pod is asked to terminate, or a terminal phase is written."""


def sandbox_asked(m: Moment) -> bodies.PodSandboxConfig:
    """The config of the sandbox that a RunPodSandbox asks for."""
    return m.request(bodies.RunPodSandboxRequest).config


def full_names(meta: Metadata, node: str | None) -> tuple[tuple[str, str], ...]:
    """The namespace and the names that this pod may have; static pods are called <name>-<node>."""
    namespace = meta.namespace or "default"
    return (namespace, meta.name), (namespace, f"{meta.name}-{(node or '').lower()}")


def run_of(names: tuple[tuple[str, str], ...]) -> Pattern:
    """A RunPodSandbox for the pod with one of these names (`full_names`)."""

    def fits(m: Moment) -> bool:
        asked = sandbox_asked(m).metadata
        return (asked.namespace, asked.name) in names

    return call("RunPodSandbox").where(fits)


def standing(pod: Pod) -> list[Sandbox]:
    """The sandboxes that the runtime still has, oldest first."""
    return [sandbox for sandbox in pod.sandboxes if sandbox.state != "removed"]


def lost_its_cgroup(sandbox: Sandbox | None) -> bool:
    """Its pod's cgroup vanished while there was the sandbox: a kill for that is tried once (kubelet.go)."""
    if sandbox is None or sandbox.pod is None or sandbox.run is None:
        return False
    return sandbox.pod.note(PodCgroup).lost_seq > sandbox.run.seq


@lru_cache(maxsize=1024)
def is_address(text: str) -> bool:
    """The text is a valid IP address: a kubelet shows no other (kuberuntime_sandbox.go)."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def reported_ips(record: bodies.SandboxRecord | None) -> list[str]:
    """All addresses that the runtime reports for a sandbox, the primary one first."""
    network = record.network if record is not None else None
    if network is None:
        return []
    found = [network.ip] if network.ip else []
    if network.additional_ips:
        found += [one.ip for one in network.additional_ips if one.ip]
    return found


def stop_of_sandbox(sandbox: Sandbox | None) -> Pattern:
    """A StopPodSandbox of this sandbox, and of no other of its pod."""
    return call("StopPodSandbox").where(lambda m: m.sandbox is sandbox)


def event_with(sandbox: Sandbox) -> Pattern:
    """An event that has the status of this sandbox."""

    def shows(m: Moment) -> bool:
        reported = reported_sandbox(m)
        return reported is not None and reported.id == sandbox.id

    return CONTAINER_EVENT.where(shows)


class _LastEvent(Note):
    """Of which sandbox the pod's last container event was, and when it came."""

    sandbox_id: str = ""
    t: float = -math.inf


class _Inspected(Note):
    """When the status of a container was last read."""

    t: float = -math.inf


@observer(on=CONTAINER_EVENT, gate=EVENTS_GATE)
def _event_comes(m: Moment, pod: Pod) -> None:
    event, reported = event_of(m), reported_sandbox(m)
    # A removal changes nothing that the kubelet knows of what is left (processCRIEvents).
    if event is None or reported is None or event.container_event_type == "CONTAINER_DELETED_EVENT":
        return
    last = pod.note(_LastEvent)
    last.sandbox_id, last.t = reported.id, m.t


@observer(on=done("ContainerStatus"), gate=EVENTS_GATE)
def _container_is_inspected(m: Moment, container: Container) -> None:
    container.note(_Inspected).t = m.t


def is_hidden_by_event(container: Container) -> bool:
    """The pod's last container event was of another sandbox than this container's.

    To a kubelet that uses events it is the status of the whole pod, and has the containers of its sandbox
    alone, until these are inspected again (GeneratePodStatus).
    """
    if container.pod is None or container.sandbox is None:
        return False
    last = container.pod.note(_LastEvent)
    return last.sandbox_id not in {"", container.sandbox.id} and container.note(_Inspected).t < last.t


def network_mode(pod: Pod) -> str:
    """The network namespace that the manifest asks for."""
    return "NODE" if pod.spec is not None and pod.spec.host_network else "POD"


def runs_containers(pod: Pod) -> bool:
    """Some container of the pod runs, as far as the trace shows."""
    return any(container.state == "running" for container in pod.every_container())


def wants_to_run(pod: Pod) -> bool:
    """The pod's policy is Always, it was born in the trace, is desired, and was not asked to terminate."""
    alive = pod.born and pod.wanted and pod.termination is None and not pod.finished
    return alive and pod.spec is not None and pod.restart_policy == "Always"


def is_ready(sandbox: Sandbox) -> bool:
    """The sandbox is ready, or the runtime still says so after a StopPodSandbox that succeeded."""
    if sandbox.state == "ready":
        return True
    ended_seq = sandbox.stops[-1].end_seq if sandbox.stops else 0
    if not ended_seq or sandbox.record is None or sandbox.state == "removed":
        return False
    return sandbox.status_seq > ended_seq and sandbox.record.state == "SANDBOX_READY"


def may_be_stopped(sandbox: Sandbox) -> bool:
    """A stop of it is in progress, or has failed and may have taken place: its status was not read since."""
    stop = sandbox.stops[-1] if sandbox.stops else None
    return stop is not None and (stop.end_t is None or sandbox.status_seq <= stop.end_seq)


class StandingSeen(NamedTuple):
    """Inputs: a pod, and its sandboxes that the runtime still has."""

    pod: Pod
    stand: list[Sandbox]


def _has_other_network(s: StandingSeen) -> bool:
    """The newest sandbox has another network namespace than the pod asks for.

    What was asked for is not known of one whose call failed, or was before the trace: then what it has.
    """
    config, record = s.stand[-1].config, s.stand[-1].record
    if config is not None:
        return config.linux.security_context.namespace_options.network != network_mode(s.pod)
    return record is not None and record.linux.namespaces.options.network != network_mode(s.pod)


def _has_no_address(s: StandingSeen) -> bool:
    """The newest sandbox has a network of its own, and no address in it."""
    record = s.stand[-1].record
    if network_mode(s.pod) != "POD" or record is None or record.network is None:
        return False
    return not record.network.ip


REPLACEMENTS = Table[StandingSeen, Literal["run another", "use it"]](
    Row("none", lambda s: not s.stand, "run another", "it has none"),
    Row("not ready", lambda s: not is_ready(s.stand[-1]), "run another", "the newest is not ready"),
    Row("several", lambda s: sum(map(is_ready, s.stand)) > 1, "run another", "more than one is ready"),
    Row("network", _has_other_network, "run another", "its network namespace is another one"),
    Row("address", _has_no_address, "run another", "it has no IP"),
    Row("usable", lambda _: True, "use it", ""),
)
"""Whether the pod needs another sandbox than those that stand."""


def why_replaced(pod: Pod) -> str | None:
    """Why the pod needs another sandbox than those that stand; None where it needs none."""
    return REPLACEMENTS.row(StandingSeen(pod, standing(pod))).why or None


def is_dead_orphan(pod: Pod, sandbox: Sandbox, node: Node) -> bool:
    """The pod may be unknown, and its sandbox died: nothing runs that could be killed, it is garbage."""
    return sandbox.died_t is not None and may_be_unknown(pod, node)
