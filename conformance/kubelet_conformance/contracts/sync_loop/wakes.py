"""LOOP: what wakes the kubelet's main loop, and what never holds it up."""

from kubelet_conformance.contract import Container, Exit, Moment, Note, Pod, Predicate
from kubelet_conformance.contract.applicability import CRI, EVERY_STATUS, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import (
    call,
    done,
    exited,
    failed,
    kubelet,
    pod_set,
    sandbox_died,
    status,
)
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.container import HELD_UP
from kubelet_conformance.contracts.facts.kubelet import api_is_away, is_informed
from kubelet_conformance.contracts.facts.probe import PROBES, probe_at
from kubelet_conformance.contracts.facts.timing import REACTION, RELIST
from kubelet_conformance.contracts.garbage.containers import being_removed, stays_unread
from kubelet_conformance.trace.format.bodies import RunPodSandboxRequest
from kubelet_conformance.trace.format.records import Call
from kubelet_conformance.trace.world.kubelet_view import kubelet_view

_SERVERS_MAX, _SEARCHES_MAX, _SEARCH_CHARS_MAX = 3, 32, 2048
"""Limits of resolv.conf (apis/core/validation)."""


@contract("LOOP-09", on=exited(), needs=(CRI, PODS, EVERY_STATUS))
def exit_wakes_the_worker(m: Moment, pod: Pod, container: Container, ended: Exit) -> Findings:
    """A container that exits gets its pod synced at once: its next status reports the exit."""
    if pod.static or not pods.to_run(m) or ended.commanded:
        return None
    if not container.seen_running or container is not pod.newest(container.name) or not _works(m):
        return None
    if pods.worker_is_busy(pod) or pods.has_ended_for_good(pod):
        return None  # A hook, a pull or a stop of another container comes first.
    return answered(
        by=status().where(_shows_otherwise(container)),
        within=RELIST + REACTION,
        unless=HELD_UP,
        text=f"a status says that {container.name} has ended",
    )


def _works(m: Moment) -> bool:
    """The kubelet is informed of changes, and can use its disk."""
    return is_informed(m) and not kubelet_view(m).disk_fails


def _shows_otherwise(container: Container) -> Predicate:
    def shows(m: Moment) -> bool:
        every = m.status.every_container if m.status is not None else ()
        mine = [one for one in every if one.name == container.name]
        return any(one.state.running is None or one.runtime_id != container.id for one in mine)

    return shows


@contract("LOOP-10", on=exited(), needs=(CRI, PODS))
def older_dead_instances_go(m: Moment, pod: Pod, container: Container) -> Findings:
    """When an instance of a container dies, its oldest dead one is removed soon, and before the newest."""
    if container is not pod.newest(container.name):
        return None
    if container.sandbox is None or container.sandbox.died_t is not None:
        return None  # With a new sandbox init records go in any order (SANDBOX-05).
    records = [c for c in pod.containers[container.name] if c.state == "exited" and c.born]
    if not records or not pods.to_run(m) or not _works(m):
        return None
    going = being_removed(m, pod)  # Asked to go before this death: no second call is owed.
    records = [c for c in records if c not in going]
    if not records or container in records:
        return None
    oldest, name = records[0], container.name
    newest = call("RemoveContainer").where(
        lambda n: n.container is not None and n.pod is pod and n.container is pod.newest(name)
    )
    return answered(
        by=call("RemoveContainer").where(pods.about(oldest)),
        within=RELIST + REACTION,
        unless=pods.TERMINATION_ASKED.either(sandbox_died(), call("StopPodSandbox"), stays_unread(oldest)),
        not_before=newest,
        text=f"attempt {oldest.attempt} of {name} is removed",
    )


@contract("LOOP-12", on=PROBES, needs=(CRI, PODS, EVERY_STATUS))
def readiness_wakes_the_worker(m: Moment, pod: Pod) -> Findings:
    """When a readiness probe changes its result, a status says so at once, not at the next resync."""
    probed = probe_at(m)
    if probed is None or probed.name != "readiness" or not probed.reached or pod.static:
        return None
    if probed.before.published is probed.runs.published or not pods.to_run(m) or not _works(m):
        return None
    container, ready = probed.container, probed.outcome == "success"
    if container.state != "running" or _shown(pod, container) is ready:
        return None

    def says(n: Moment) -> bool:
        every = n.status.every_container if n.status is not None else ()
        return any(one.runtime_id == container.id and one.ready is ready for one in every)

    return answered(
        by=status().where(says),
        within=REACTION,
        unless=pods.TERMINATION_ASKED.either(exited(), call("StopContainer", "StopPodSandbox")),
        text=f"a status says that {container.name} is {'' if ready else 'not '}ready",
    )


def _shown(pod: Pod, container: Container) -> bool | None:
    """How the latest status shows the container."""
    for one in pod.status.every_container if pod.status is not None else ():
        if one.runtime_id == container.id:
            return one.ready
    return None


class _Stops(Note):
    """The StopContainer calls that are in progress, by call id."""

    open: dict[str, Call] = {}


@contract("LOOP-13", on=pod_set(), needs=(CRI, PODS))
def slow_stop_holds_up_nobody_else(m: Moment) -> Findings:
    """While a container of one pod is being stopped, another pod that is new is started at once."""
    pod = pods.new_pod(m)
    if pod is None or not m.node.note(_Stops).open or not pods.can_start(m, pod) or pods.host_ports(m):
        return None
    return pods.starts(pod, REACTION, f"pod {pod.name} is started while another one is stopped")


@observer(
    on=call("StopContainer").either(
        done("StopContainer"), failed("StopContainer"), kubelet("started", "killed", "stopped")
    )
)
def _stops_in_flight(m: Moment) -> None:
    """Record which StopContainer calls are in flight."""
    stops, key = m.node.note(_Stops).open, m.keys[0]
    if key == "call:StopContainer":
        stops[m.call.id] = m.call
    elif key.endswith("StopContainer"):
        stops.pop(m.call.id, None)
    elif key.startswith("kubelet:"):
        stops.clear()


@contract("LOOP-01", on=pods.NEW_STATIC_POD, needs=(CRI, PODS), clause="file")
def silent_source_holds_up_no_other(m: Moment) -> Findings:
    """While the API server cannot be reached, pods of other sources are started, and containers that end are
    run again.
    """
    pod = pods.new_pod(m)
    if pod is None or not api_is_away(m) or pod.source != "file" or not pods.can_start(m, pod):
        return None
    return None if pods.host_ports(m) else pods.starts(pod, REACTION, f"static pod {pod.name} is started")


@silent_source_holds_up_no_other.clause("exit", on=exited())
def exit_is_seen_without_the_api(m: Moment, pod: Pod, container: Container, ended: Exit) -> Findings:
    """The first end of a container that is to run always is followed by its next instance."""
    known = kubelet_view(m)
    if known.api_away_t is None or not pods.to_run(m):
        return None
    if ended.commanded or container.attempt or container.kind != "app":
        return None
    if pod.restart_policy != "Always" or not container.seen_running or m.node.listing_failed:
        return None
    if m.node.started_t is None or m.node.started_t > known.api_away_t or known.down_since(m.t) is not None:
        return None
    return answered(
        by=call("CreateContainer", "PullImage"),
        within=RELIST + REACTION,
        unless=pods.TERMINATION_ASKED.either(call("StopContainer", "StopPodSandbox")),
        text=f"container {container.name} is run again",
    )


@contract("LOOP-21", on=call("RunPodSandbox"))
def resolver_limits_hold(m: Moment) -> Findings:
    """A sandbox gets no more name servers and search domains than resolv.conf allows."""
    dns = m.request(RunPodSandboxRequest).config.dns_config
    if len(dns.servers) > _SERVERS_MAX:
        return broken(f"{len(dns.servers)} name servers, at most {_SERVERS_MAX} are allowed")
    if len(dns.searches) > _SEARCHES_MAX or len(" ".join(dns.searches)) > _SEARCH_CHARS_MAX:
        return broken(f"{len(dns.searches)} search domains are more or longer than allowed")
    return KEPT if dns.servers or dns.searches else None
