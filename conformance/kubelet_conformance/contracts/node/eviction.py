"""EVICT: when the kubelet evicts for lack of memory or disk, which pod, and with what grace period."""

from collections.abc import Iterator

from kubelet_conformance.contract import Container, Finding, Moment, Note, Pattern, Pod
from kubelet_conformance.contract.applicability import CRI, EVENTS, EVERY_EVENT, PODS, STATUS, ByVersion
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, done, event, expects, failed
from kubelet_conformance.contracts.facts import node_pressure as pressure
from kubelet_conformance.contracts.facts.kills import wait_before_stop
from kubelet_conformance.contracts.facts.pod import FAULT, TERMINATION_ASKED, has_pre_stop, of
from kubelet_conformance.contracts.facts.sandbox import FINISHED
from kubelet_conformance.contracts.facts.timing import REACTION
from kubelet_conformance.contracts.runtime.expected import as_expected
from kubelet_conformance.contracts.tables.stop import whole_graces
from kubelet_conformance.contracts.termination.grace import STOP
from kubelet_conformance.trace.format.bodies import StopContainerRequest
from kubelet_conformance.trace.format.records import Event, Expect, Fault
from kubelet_conformance.trace.world.disruption import disruption_of, is_refusal, shutdown_of

EVICTION_PASS = 10.0
"""How often the kubelet checks whether a pod must be evicted (kubelet.go)."""
_GRACE = ByVersion({"1.22..1.30": "as the pod has it", ">=1.31": "short"})
"""The grace of a hard eviction: up to 1.30, 0 seconds were taken for an unset value."""


_GOES = event("Evicted").where(lambda m: m.pod is not None and bool(m.pod.sandboxes))
"""An eviction, or a refusal by a kubelet that starts; a pod that was never started was refused."""
EVICTED: Pattern = _GOES.where(lambda m: isinstance(m.record, Event) and not is_refusal(m.record))
"""An eviction."""


def _is_above_its_limits(m: Moment, pod: Pod) -> bool:
    used = pressure.node_pressure(m).usage.get(pod.uid)
    return used is not None and pod.spec is not None and pressure.exceeds_its_limits(pod.spec, used)


def _may_go(pod: Pod) -> bool:
    return pressure.runs(pod) and not pressure.is_critical(pod) and disruption_of(pod) is None


class _Last(Note):
    """The eviction before, and what the node could have freed by itself."""

    pod: Pod | None = None
    t: float = 0.0
    seq: int = 0
    dead: list[Container] = []


@contract("EVICT-01", on=EVICTED, needs=(CRI, PODS, EVERY_EVENT), clause="one-at-a-time")
def one_pod_a_pass(m: Moment) -> Findings:
    """A kubelet that is short of memory or disk evicts a pod within 10 s, one at a time, and on a disk only
    after it has removed what no pod needs.
    """
    last, pod = m.node.note(_Last), m.pod
    before, t, seq = last.pod, last.t, last.seq
    last.pod, last.t, last.seq = pod, m.t, m.seq
    if before is None or pod is None or before is pod or not pressure.node_pressure(m).low:
        return None
    if _is_above_its_limits(m, pod) or _is_above_its_limits(m, before):
        return None
    if m.t - t < pressure.LEAST_KILL_TIMEOUT - REACTION and any(
        c.state == "running" for c in before.every_container()
    ):
        return broken(f"pod {pod.name} is evicted while {before.name} is still being stopped", seq)
    return KEPT


@one_pod_a_pass.clause("acts", on=FAULT)
def too_little_memory_makes_a_pod_go(m: Moment) -> Findings:
    """If a pod can be evicted, one is evicted."""
    record, known = m.record, pressure.node_pressure(m)
    if not isinstance(record, Fault) or not m.node.kubelet_up or shutdown_of(m.node) is not None:
        return None
    low = next((one for one in known.low.values() if one.seq == m.seq), None)
    if low is None or low.of_disk or not pressure.is_hard(m, low):
        return None
    if not m.world.has_every_pod or not any(_may_go(pod) for pod in m.world.pods.values()):
        return None
    return answered(
        by=_GOES,
        within=EVICTION_PASS + REACTION,
        unless=FAULT,
        whole_node=True,
        text=f"with {low.available} of {low.signal} left, a pod is evicted",
    )


@one_pod_a_pass.clause("thresholds", on=expects("EVICT-01"))
def pods_go_below_the_thresholds(m: Moment, expect: Expect) -> Findings:
    """A pod goes as soon as there is less of something than its threshold, and no pod before."""
    return as_expected(m, expect)


@one_pod_a_pass.clause("reclaims-first", on=EVICTED)
def the_node_helps_itself_first(m: Moment) -> Findings:
    """Dead containers of pods that have ended go before a pod that runs."""
    dead = m.node.note(_Last).dead
    if not dead or not any(low.of_disk for low in pressure.node_pressure(m).low.values()):
        return None
    left = [c.name for c in dead if c.state == "exited"]
    m.node.note(_Last).dead = []
    return broken(f"dead containers are still there: {', '.join(left)}") if left else KEPT


@observer(on=FAULT)
def _what_could_be_freed(m: Moment) -> None:
    """Record which containers are not needed when the disk runs short."""
    low = next(
        (one for one in pressure.node_pressure(m).low.values() if one.seq == m.seq and one.of_disk), None
    )
    if low is not None:
        ended = [
            pod for pod in m.world.pods.values() if pod.finished and m.t - (pod.status_t or m.t) > REACTION
        ]
        every = [c for pod in ended for c in pod.every_container()]
        m.node.note(_Last).dead = [c for c in every if c.state == "exited" and c.born]


@observer(on=failed("RemoveContainer"))
def _what_could_not_be_freed(m: Moment, container: Container) -> None:
    """Leave out what the node has tried to remove."""
    last = m.node.note(_Last)
    last.dead = [one for one in last.dead if one is not container]


def eviction_grace(m: Moment, pod: Pod) -> int | None:
    """The seconds that an evicted pod is to get; None where that is not certain."""
    kind, known = _GRACE.get(m.kubernetes), pressure.node_pressure(m)
    if kind is None or pod.spec is None or pod.termination is not None:
        return None
    own = pod.spec.grace_seconds
    hard = [pressure.is_hard(m, low) for low in known.low.values()]
    soft = [pressure.is_soft(m, low) for low in known.low.values()]
    if _is_above_its_limits(m, pod) or (hard and all(hard)):
        return 1 if kind == "short" else own
    most = pressure.setting(m, "evictionMaxPodGracePeriod", 0)
    if not soft or not all(soft) or most is None:
        return None
    if most < 0:
        return own
    if kind == "short":
        return min(int(most), own)
    return int(most) or None


@contract("EVICT-03", on=STOP, needs=(CRI, PODS, EVERY_EVENT), versions=_GRACE)
def evicted_pod_has_its_grace(m: Moment, pod: Pod, container: Container) -> Findings:
    """A pod that is evicted because a hard threshold or a limit of its own is exceeded is stopped with the
    least grace from 1.31 on, with its own before; one that goes for a soft threshold has the configured
    maximum, from 1.31 on no more than its own grace. A negative maximum leaves it its own.
    """
    disruption = disruption_of(pod)
    if disruption is None or disruption.reason != "Evicted" or disruption.is_refusal:
        return None
    if disruption.before is not None or wait_before_stop(m).turns or has_pre_stop(container):
        return None
    grace = eviction_grace(m, pod)
    if grace is None:
        return None
    expected = whole_graces(grace, m.kubernetes)
    got = m.request(StopContainerRequest).timeout
    if got not in expected:
        return broken(f"expected timeout {expected[0]} for the eviction, got {got}", disruption.seq)
    return KEPT


@contract("EVICT-04", on=EVICTED, needs=(CRI, PODS, EVENTS))
def critical_pods_are_spared(m: Moment, pod: Pod) -> Findings:
    """A static pod, or one of system priority, is not evicted, however much it uses."""
    if pressure.is_critical(pod):
        return broken(f"pod {pod.name} is critical to the node, and is evicted")
    others = [one for one in pressure.every_pod(m) if one is not pod]
    return KEPT if any(pressure.is_critical(one) and pressure.runs(one) for one in others) else None


@contract("EVICT-08", on=FAULT, needs=(CRI, PODS, EVERY_EVENT), clause="goes")
def pod_above_its_limits_goes(m: Moment) -> Findings:
    """A pod that uses more ephemeral storage than its limits allow is evicted within 10 s, whatever the node
    has left, and no other pod with it.
    """
    record = m.record
    pod = m.world.pods.get(record.uid) if isinstance(record, Fault) and record.uid else None
    if pod is None or not m.node.kubelet_up or not _may_go(pod) or not _is_above_its_limits(m, pod):
        return None
    return answered(
        by=_GOES.where(of(pod)),
        within=EVICTION_PASS + REACTION,
        unless=TERMINATION_ASKED.where(of(pod)),
        whole_node=True,
        text=f"pod {pod.name}, which is above its limits, is evicted",
    )


@pod_above_its_limits_goes.clause("alone", on=EVICTED)
def others_stay(m: Moment, pod: Pod) -> Findings:
    """Without any pressure on the node no other pod is evicted."""
    known = pressure.node_pressure(m)
    if not known.is_recorded or known.low or m.t - known.eased_t < EVICTION_PASS + REACTION:
        return None
    if _is_above_its_limits(m, pod):
        return KEPT
    return broken(f"pod {pod.name} is evicted, and the node is short of nothing")


@contract("WORK-20", on=event("Evicted", "Preempting"), needs=(CRI, PODS, EVERY_EVENT, STATUS))
def kill_is_not_awaited_for_ever(m: Moment, pod: Pod) -> Findings:
    """A caller that has a pod killed waits no longer than one and a half times its grace, at least 10 s;
    after that the event ExceededGracePeriod is sent.
    """
    kill_timeout = _kill_timeout(m, pod) if pod.sandboxes else None
    if kill_timeout is None or not any(c.state == "running" for c in pod.every_container()):
        return None
    return answered(
        by=event("ExceededGracePeriod"),
        within=kill_timeout + REACTION,
        unless=done("StopPodSandbox").either(FINISHED),
        text=f"after {kill_timeout:g} s an event says that pod {pod.name} is not gone",
    )


def _kill_timeout(m: Moment, pod: Pod) -> float | None:
    """How long the caller waits for the kill, in seconds; None where that is not certain."""
    if pod.spec is None or not isinstance(m.record, Event):
        return None
    if m.record.reason == "Preempting":
        return pressure.kill_timeout(pod.spec.grace_seconds)
    # Up to 1.30 the eviction manager waits as if the pod were to go at once.
    grace = eviction_grace(m, pod) if _GRACE.get(m.kubernetes) == "short" else None
    return None if grace is None else pressure.kill_timeout(grace)


@kill_is_not_awaited_for_ever.clause("not-early", on=event("ExceededGracePeriod"))
def nobody_gives_up_early(m: Moment, pod: Pod) -> Findings:
    """ExceededGracePeriod is not sent any earlier."""
    disruption = disruption_of(pod)
    if disruption is None or pod.spec is None or not pod.born:
        return None
    grace = pod.spec.grace_seconds if disruption.reason == "Preempting" else 0
    if m.t - disruption.t < pressure.kill_timeout(grace) - 1:
        return broken(f"given up {m.t - disruption.t:.1f} s after the kill began", disruption.seq)
    return KEPT


@kill_is_not_awaited_for_ever.clause("goes-on", on=event("ExceededGracePeriod"))
def the_kill_goes_on(m: Moment) -> Iterator[Finding]:
    """The kill continues after that event."""
    pod = m.pod
    if pod is not None and any(c.state == "running" for c in pod.every_container()):
        yield answered(
            by=call("StopPodSandbox"),
            not_before=call("CreateContainer", "RunPodSandbox"),
            text=f"pod {pod.name} is stopped",
        )
