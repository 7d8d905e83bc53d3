"""RESTARTKUBELET and STATIC: how a kubelet that starts again handles the pods and mirrors it finds."""

from collections.abc import Iterator

from msgspec import field

from kubelet_conformance.contract import Container, Finding, Manifest, Moment, Note, Pattern, Pod, Predicate
from kubelet_conformance.contract.applicability import CRI, EVERY_EVENT, EVERY_STATUS, PODS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, kubelet, pod_set, pod_unset
from kubelet_conformance.contracts.facts import static_pod as static_pods
from kubelet_conformance.contracts.facts.kills import explained, to_be_explained
from kubelet_conformance.contracts.facts.kubelet import api_is_away, is_of_another_version
from kubelet_conformance.contracts.facts.pod import FAULT, REFUSED, TERMINATION_ASKED, of
from kubelet_conformance.contracts.facts.probe import exec_probes, runs_of
from kubelet_conformance.contracts.facts.timing import KUBELET_START, RETRY
from kubelet_conformance.contracts.sync_loop.housekeeping import age
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.trace.format.records import ApiWrite
from kubelet_conformance.trace.world.kubelet_view import kubelet_view
from kubelet_conformance.trace.world.views import Latest

_ALREADY_EXISTS = 409
_API_WRITE = Pattern(frozenset({"api"}))
_WHILE = 50.0
"""A sync that went well is followed by the next after 60 s at the earliest, if nothing wakes the worker."""
_STORM = 4


@contract("RESTARTKUBELET-02", on=kubelet("started"), needs=(CRI, PODS, EVERY_EVENT))
def running_pods_are_admitted_again(m: Moment) -> Iterator[Finding]:
    """A kubelet that starts admits the pods that run already anew, the oldest first: one whose host port an
    older pod has claimed in the meantime is refused.
    """
    if api_is_away(m) or kubelet_view(m).lacks_node:
        return
    wanted = [pod for pod in m.world.pods.values() if _is_to_be_admitted(pod)]
    for pod in wanted:
        rivals = [other for other in wanted if other is not pod and _ports(other) & _ports(pod)]
        if pod.sandboxes and any(not other.sandboxes and age(other) < age(pod) for other in rivals):
            yield answered(
                by=REFUSED.where(of(pod)),
                within=KUBELET_START,
                unless=FAULT.either(TERMINATION_ASKED, pod_unset()),
                whole_node=True,
                text=f"pod {pod.name}, which runs, is refused for the older one that asks for its port",
            )


def _is_to_be_admitted(pod: Pod) -> bool:
    """The pod is from the API server, desired, and has not ended."""
    return pod.source == "api" and pod.wanted and pod.born and not pod.finished and pod.termination is None


def _ports(pod: Pod) -> frozenset[tuple[str, int]]:
    containers = pod.spec.containers if pod.spec is not None else ()
    return frozenset(
        (port.protocol, port.host_port) for c in containers for port in c.ports or () if port.host_port
    )


@contract("RESTARTKUBELET-08", on=call("StopContainer"), needs=(CRI, PODS))
def liveness_is_counted_anew(m: Moment, container: Container) -> Findings:
    """A container that ran before the kubelet's start is killed for its liveness probe only when that has
    failed as often as its threshold says since the start.
    """
    begun = m.node.started_t
    if begun is None or container.state != "running":
        return None
    if container.started_t is None or container.started_t >= begun:
        return None
    if "liveness" not in exec_probes(container):
        return None
    if explained(m, probes=False) or runs_of(container, "startup", m).published is False:
        return None
    if runs_of(container, "liveness", m).published is False:
        return KEPT
    return to_be_explained(
        m, f"there is a reason to stop {container.name}, whose probe has not failed enough,"
    )


class _Going(Note):
    """Mirrors that a client has deleted: a mirror that is being deleted is replaced (STATIC-15)."""

    mirrors: Latest[str, float] = field(default_factory=Latest[str, float])


@contract("RESTARTKUBELET-15", on=kubelet("started"), needs=(CRI, PODS, EVERY_STATUS))
def mirrors_are_kept(m: Moment) -> Iterator[Finding]:
    """A kubelet that starts keeps the mirror pods that it finds: it does not replace them."""
    if is_of_another_version(m):
        return  # To a kubelet of another version they stand for other pods.
    for pod in m.world.pods.values():
        known = static_pods.latest_mirror(m, pod)
        if known is None or not pod.wanted or pod.finished:
            continue
        if pod.deleted_t is not None or pod.termination is not None or not pod.sandboxes:
            continue
        if known in m.node.note(_Going).mirrors:
            continue
        yield answered(
            by=LIFE_ENDS,
            unless=FAULT.either(pod_set().where(_is_of(pod)), pod_unset()),
            not_before=_API_WRITE.where(_deletes(known)),
            whole_node=True,
            text=f"the mirror of {pod.name} is left alone",
        )


@observer(on=static_pods.MIRROR_IS_TO_GO)
def _mirror_is_to_go(m: Moment, manifest: Manifest) -> None:
    """Record which mirrors are to go."""
    m.node.note(_Going).mirrors[manifest.metadata.uid] = m.t


def _is_of(pod: Pod) -> Predicate:
    """A manifest or a mirror of that name."""

    def names(m: Moment) -> bool:
        meta = m.manifest.metadata if m.manifest is not None else None
        return meta is not None and pod.name.startswith(meta.name)

    return names


def _deletes(uid: str) -> Predicate:
    def deletes(m: Moment) -> bool:
        record = m.record
        if not isinstance(record, ApiWrite) or record.resource != "pods" or record.verb.lower() != "delete":
            return False
        return uid in {record.uid, record.precondition}

    return deletes


@contract("STATIC-14", on=static_pods.CREATES_A_MIRROR, needs=(CRI, PODS, EVERY_STATUS))
def mirror_that_is_there_is_a_success(m: Moment, write: ApiWrite) -> Iterator[Finding]:
    """A mirror pod that turns out to be there already, with the right hash, is no failure: it is not tried
    again every 10 to 15 s.
    """
    if write.code != _ALREADY_EXISTS:
        return
    for pod in m.world.pods.values():
        if static_pods.is_create_of(m, pod) and static_pods.latest_mirror(m, pod) is not None and pod.wanted:
            tries = pod.note(_Tries).times
            tries[:] = [t for t in tries if m.t - t < _WHILE]
            if not tries or m.t - tries[-1] > RETRY / 2:
                tries.append(m.t)
            quiet = all(c.state == "running" and (c.started_t or 0) < tries[0] for c in pod.every_container())
            storm = len(tries) >= _STORM and quiet
            yield broken(f"the mirror of {pod.name} is created again and again") if storm else KEPT


class _Tries(Note):
    """When the kubelet found last that a mirror was there already; tries in a row count once."""

    times: list[float] = []
