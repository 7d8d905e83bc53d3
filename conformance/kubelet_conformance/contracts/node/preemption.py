"""ADMIT: room for new pods: preemption for critical pods, and admission on a node under pressure."""

from collections.abc import Iterable, Iterator

import msgspec

from kubelet_conformance.contract import Answered, Container, Finding, Moment, Pattern, Pod
from kubelet_conformance.contract.applicability import CRI, EVENTS, EVERY_EVENT, EVERY_STATUS, PODS, STATUS
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, event, pod_set, status
from kubelet_conformance.contracts.facts import node_pressure as pressure
from kubelet_conformance.contracts.facts.kills import wait_before_stop
from kubelet_conformance.contracts.facts.pod import (
    FAULT,
    TERMINATION_ASKED,
    NewPod,
    can_start,
    has_pre_stop,
    new_pod,
)
from kubelet_conformance.contracts.facts.sandbox import FINISHED
from kubelet_conformance.contracts.facts.timing import FILE_POLL, REACTION, STATUS_BATCH
from kubelet_conformance.contracts.node.eviction import EVICTED, EVICTION_PASS
from kubelet_conformance.contracts.tables.stop import whole_graces
from kubelet_conformance.contracts.termination.grace import STOP
from kubelet_conformance.trace.format.bodies import StopContainerRequest
from kubelet_conformance.trace.format.manifests import Manifest, PodSpec, PodStatus
from kubelet_conformance.trace.world.disruption import disruption_of, shutdown_of

_TRANSITION = 300.0
"""How long a pressure condition is kept at least once it was observed (evictionPressureTransitionPeriod)."""
_SETTLED = 60.0
"""Nothing was evicted for this long: the next eviction pass comes at its regular time."""
_COUNTED = ("cpu", "memory")
_TAINT = "node.kubernetes.io/memory-pressure"


class _Lately(msgspec.Struct):
    """The last eviction."""

    t: float = -1e9


def _new(m: Moment) -> tuple[NewPod, PodSpec] | None:
    """The new pod of this record and its spec, if only lack of room on the node can keep it from starting."""
    pod = new_pod(m)
    if pod is None or m.manifest is None or not can_start(m, pod) or shutdown_of(m.node) is not None:
        return None
    spec = m.manifest.spec
    if spec.init_containers or any(port.host_port for one in spec.containers for port in one.ports or ()):
        return None
    return pod, spec


def _is_refused(pod: NewPod) -> Pattern:
    def fails(m: Moment) -> bool:
        return m.status is not None and m.status.phase == "Failed" and pod.is_about(m)

    return status().where(fails)


def _is_started(pod: NewPod, within: float, text: str, *, before: Pattern | None = None) -> Answered:
    return answered(
        by=call("RunPodSandbox").where(pod.asked),
        within=within,
        unless=TERMINATION_ASKED.where(pod.is_about).either(FAULT),
        not_before=before or _is_refused(pod),
        whole_node=True,
        text=text,
    )


@contract("ADMIT-07", on=pod_set(), needs=(CRI, PODS, STATUS))
def unknown_resources_do_not_count(m: Moment, manifest: Manifest) -> Findings:
    """A pod that asks for an extended resource that the node does not know is admitted all the same."""
    known = m.header.allocatable
    if known is None:
        return None
    asked = {name for one in manifest.spec.containers for name in one.resources.requests or {}}
    unknown = sorted(name for name in asked - known.keys() if "/" in name and "kubernetes.io/" not in name)
    if not unknown or asked & known.keys() or pressure.node_pressure(m).low:
        return None
    new = _new(m)
    if new is None:
        return None
    return _is_started(new[0], REACTION, f"pod {new[0].name} starts, whatever {unknown[0]} is")


def _on_the_node(m: Moment) -> list[Pod]:
    return [
        pod
        for pod in pressure.every_pod(m)
        if pod.wanted and pod.spec is not None and pod.sandboxes and not pod.finished
    ]


def _room_is_made(m: Moment, *, static: bool) -> Findings:
    """A critical pod for which others have to go is started when they are gone."""
    has, fresh = m.header.allocatable, new_pod(m)
    if fresh is None or m.manifest is None or has is None or (fresh.source != "api") is not static:
        return None
    if not static and (m.manifest.spec.priority or 0) < pressure.SYSTEM_CRITICAL:
        return None
    new = _new(m)
    if new is None:
        return None
    pod, spec = new
    there = _on_the_node(m)
    lower = [one for one in there if pressure.runs(one) and not pressure.is_critical(one)]
    lacks = [
        r for r in _COUNTED if pressure.demand(spec, r) + _taken(there, r) > pressure.amount(has.get(r, ""))
    ]
    if not any(pressure.demand(spec, r) for r in lacks) or any(
        _taken(lower, r) < pressure.demand(spec, r) for r in lacks
    ):
        return None
    kill_timeout = sum(pressure.kill_timeout(one.spec.grace_seconds if one.spec else 0) for one in lower)
    text = f"pod {pod.name}, which is critical, gets its room"
    return _is_started(pod, FILE_POLL + REACTION + kill_timeout, text)


def _taken(pods: list[Pod], resource: str) -> float:
    return sum(pressure.demand(pod.spec, resource) for pod in pods if pod.spec is not None)


@contract("ADMIT-08", on=pod_set(), needs=(CRI, PODS, STATUS, EVERY_EVENT), clause="room")
def critical_pod_gets_its_room(m: Moment) -> Findings:
    """For a critical pod that does not fit, pods of lower priority are ended with their own grace, each with
    the event and the reason Preempting and the phase Failed, and then it starts.
    """
    return _room_is_made(m, static=False)


@critical_pod_gets_its_room.clause("whom", on=event("Preempting"))
def only_lesser_pods_have_to_go(m: Moment, pod: Pod) -> Findings:
    """No critical pod is preempted, unless one of a higher priority needs its room."""
    if not pod.sandboxes:
        return None
    if not pressure.is_critical(pod) or _matters_less(pod, pressure.every_pod(m)):
        return KEPT
    return broken(f"pod {pod.name} is critical, and is preempted")


def _matters_less(pod: Pod, others: Iterable[Pod]) -> bool:
    own = pod.spec.priority if pod.spec is not None else None
    specs = [other.spec for other in others if other.wanted and other.spec is not None]
    return own is not None and any((spec.priority or 0) > own for spec in specs)


@critical_pod_gets_its_room.clause("grace", on=STOP)
def preempted_pod_has_its_grace(m: Moment, container: Container) -> Findings:
    """The preempted pod gets its own grace period."""
    pod = _is_preempted(m)
    if pod is None or pod.spec is None or wait_before_stop(m).turns or container.spec is None:
        return None
    if has_pre_stop(container):
        return None
    expected = whole_graces(pod.spec.grace_seconds, m.kubernetes)
    got = m.request(StopContainerRequest).timeout
    if got not in expected:
        return broken(f"expected timeout {expected[0]} for the preemption, got {got}")
    return KEPT


def _is_preempted(m: Moment) -> Pod | None:
    """The moment's pod, if its preemption is all that ends it."""
    disruption = disruption_of(m.pod) if m.pod is not None else None
    if m.pod is None or disruption is None or disruption.reason != "Preempting":
        return None
    if disruption.before is not None:
        return None
    return m.pod if m.pod.born and m.pod.termination is None and not m.pod.finished else None


@critical_pod_gets_its_room.clause("reported", on=FINISHED)
def preempted_pod_is_failed(m: Moment, status: PodStatus) -> Findings:
    """The preempted pod is Failed with reason Preempting."""
    pod = _is_preempted(m)
    if pod is None or shutdown_of(m.node) is not None:
        return None
    if (status.phase, status.reason) != ("Failed", "Preempting"):
        return broken(f"expected Failed (Preempting), got {status.phase} ({status.reason})")
    return KEPT


@contract("STATIC-23", on=pod_set(), needs=(CRI, PODS, STATUS, EVENTS))
def static_pod_gets_its_room(m: Moment) -> Findings:
    """A static pod that does not fit is started all the same: pods that are not critical make room."""
    return _room_is_made(m, static=True)


@contract("ADMIT-09", on=pod_set(), needs=(CRI, PODS, EVERY_STATUS, EVERY_EVENT))
def short_node_takes_little(m: Moment) -> Iterator[Finding]:
    """A node that is short of memory refuses, as Evicted, a pod that asks for none and does not tolerate
    that, and takes others; one that is short of anything else takes critical pods only.
    """
    new = _new(m)
    if new is None or new[0].source != "api":
        return
    pod, spec = new
    low = [one for one in pressure.node_pressure(m).low.values() if pressure.is_hard(m, one)]
    if not low or not all(_is_known_by_now(m, one.t) for one in low) or _lacks_room(m, spec):
        return
    of_memory = all(one.signal.startswith("memory") for one in low)
    modest = of_memory and (not pressure.is_best_effort(spec) or _tolerates(spec))
    if modest or (spec.priority or 0) >= pressure.SYSTEM_CRITICAL:
        yield _is_started(pod, REACTION, f"pod {pod.name} starts in spite of the pressure")
    else:
        yield answered(
            by=_is_refused(pod).where(lambda n: n.status is not None and n.status.reason == "Evicted"),
            within=STATUS_BATCH + REACTION,
            unless=TERMINATION_ASKED.where(pod.is_about).either(FAULT),
            not_before=call("RunPodSandbox").where(pod.asked),
            whole_node=True,
            text=f"pod {pod.name} is refused, as {low[0].signal} is low",
        )


def _lacks_room(m: Moment, spec: PodSpec) -> bool:
    has = m.header.allocatable
    there = _on_the_node(m)
    return has is None or any(
        pressure.demand(spec, r) + _taken(there, r) > pressure.amount(has.get(r, "")) for r in _COUNTED
    )


def _is_known_by_now(m: Moment, t: float) -> bool:
    """The kubelet has checked the node since, and keeps the pressure condition."""
    if t - m.node.note(_Lately).t < _SETTLED or m.node.started_t is None or m.node.started_t > t:
        return False
    return EVICTION_PASS + REACTION < m.t - t < _TRANSITION


def _tolerates(spec: PodSpec) -> bool:
    return any(
        one.get("key") in {None, "", _TAINT} and one.get("effect") in {None, "", "NoSchedule"}
        for one in spec.tolerations or ()
    )


@observer(on=EVICTED)
def _somebody_is_evicted(m: Moment) -> None:
    """Remember an eviction for which no observed pressure is the reason."""
    if not any(
        one.t <= m.t <= one.t + EVICTION_PASS + REACTION for one in pressure.node_pressure(m).low.values()
    ):
        m.node.note(_Lately).t = m.t
