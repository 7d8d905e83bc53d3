"""Why a container is stopped, as far as a trace shows, and the grace that follows."""

import math
from typing import NamedTuple

import msgspec

from kubelet_conformance.contract import Answered, Container, Execution, Moment, Pod, PodStatus, Stop
from kubelet_conformance.contract.applicability import RESTART_ALL_GATE, ByVersion, is_on
from kubelet_conformance.contract.definition import answered, observer
from kubelet_conformance.contract.patterns import call, event, status
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts.container import is_hashed_otherwise
from kubelet_conformance.contracts.facts.kubelet import api_is_away
from kubelet_conformance.contracts.facts.probe import has_other_probes
from kubelet_conformance.contracts.facts.sandbox import GONE, why_replaced
from kubelet_conformance.contracts.facts.static_pod import is_of_a_former_instance
from kubelet_conformance.contracts.facts.status import terminal_phase_sent
from kubelet_conformance.contracts.facts.timing import API_POLL, REACTION, ROUNDING
from kubelet_conformance.contracts.tables.stop import MINIMUM_GRACE, Graces, Situation, stop_row
from kubelet_conformance.contracts.termination.deadline import time_may_be_over
from kubelet_conformance.trace.format.manifests import RESTART_ALL, ContainerSpec
from kubelet_conformance.trace.world.disruption import (
    disruption_of,
    events_may_be_missing,
    is_ended_by_the_kubelet,
    suspect_disruption,
)
from kubelet_conformance.trace.world.images import image_origin
from kubelet_conformance.trace.world.in_flight import since_when_at_work
from kubelet_conformance.trace.world.kubelet_view import informed_by
from kubelet_conformance.trace.world.missed_updates import is_missed
from kubelet_conformance.trace.world.pod_cgroups import PodCgroup
from kubelet_conformance.trace.world.previous_specs import former_container

ORPHAN_GRACE = ByVersion({"1.22..1.26": 1, ">=1.28": 2})
"""StopContainer timeout for a pod that no source knows."""
_FORCED_GRACE = ByVersion({"1.22..1.26": "whole", ">=1.31": "least"})


class Reason(msgspec.Struct, frozen=True):
    """A reason for a kill that the trace shows, and the seconds that the kill starts from."""

    cause: str
    seconds: int
    pod_goes: bool = False
    """The whole pod is being terminated."""
    seq: int = 0
    """The record that shows it."""
    situation: Situation = "ended"
    """Its row in the table."""


class Wait(msgspec.Struct, frozen=True):
    """The waits between the begin of a kill and its StopContainer."""

    seconds: float
    turns: int
    """How many waits, each cut to whole seconds, this may have been."""
    least: float = 0.0
    """How long it took until there was nothing to wait for any more."""
    is_certain: bool = True
    """The trace shows every wait: there was no other one, and each of these took place."""


def forced(pod: Pod) -> bool:
    """An API pod whose object was deleted without a grace period, or with one of 0 seconds."""
    end = pod.termination
    if end is None or pod.static:
        return False
    return end.cause in {"forced", "removed"} or end.grace == 0


def deletion_grace(m: Moment, pod: Pod) -> int | None:
    """The grace that the pod's termination gives its containers; None where trace or row is silent."""
    end = pod.termination
    if end is None or pod.spec is None or not end.seen:
        return None
    if forced(pod):
        kind = _FORCED_GRACE.get(m.kubernetes)
        return None if kind is None else pod.spec.grace_seconds if kind == "whole" else MINIMUM_GRACE
    if end.grace is None:
        return max(1, pod.spec.grace_seconds)
    return end.grace if pod.deleted_t is None else None


_KILLS = frozenset({"call:StopContainer", "call:ExecSync"})
"""The moments at which most judges ask for the reasons."""


class _Looked(NamedTuple):
    """What was found at a kill, computed once for all contracts."""

    reasons: list[Reason]


def reasons(m: Moment) -> list[Reason]:
    """Every reason that the trace shows for stopping the moment's container; empty where there is none."""
    if m.keys[0] not in _KILLS:
        return _reasons(m)
    if m.memo is None:
        m.memo = _Looked(_reasons(m))
    looked: _Looked = m.memo
    return looked.reasons


def _reasons(m: Moment) -> list[Reason]:
    pod, container = m.pod, m.container
    if pod is None or container is None:
        return []
    found = _of_an_orphan(m) if pods.may_be_unknown(pod, m.node) else []
    if not pods.known_to_kubelet(pod, m.node):
        return found
    end = pod.termination
    if end is not None:
        grace = deletion_grace(m, pod)
        if grace is None:
            return []
        found.append(_reason("deleted", f"the pod is {end.cause}", Graces(grace, grace), end.seq))
        if forced(pod) and pod.spec is not None and is_missed(m.node, pod):
            found.append(_reason("deleted", "the pod is gone", Graces(pod.spec.grace_seconds), end.seq))
        if since_when_at_work(pod, m.t) - informed_by(m, end.t) > REACTION:
            return found
    elif is_of_a_former_instance(container) and pod.spec is not None:
        grace = pod.spec.grace_seconds
        found.append(_reason("deleted", "its file was removed", Graces(grace, grace), pod.set_seq))
    spec = container.spec
    if pod.spec is not None and spec is not None:
        graces = Graces(pod.spec.grace_seconds)
        if terminal_phase_sent(pod):
            found.append(_reason("deleted", "the pod was sent as ended", graces, pod.set_seq))
        found += _reasons_of_a_living_pod(m, pod, container, spec, graces)
    return found


def _of_an_orphan(m: Moment) -> list[Reason]:
    grace = ORPHAN_GRACE.get(m.kubernetes)
    return [] if grace is None else [_reason("orphan", "no source knows the pod", Graces(grace))]


def _reason(situation: Situation, cause: str, graces: Graces, seq: int = 0) -> Reason:
    """A reason for a stop, with the seconds that its row in the table makes of the graces."""
    row = stop_row(situation)
    return Reason(cause, row.seconds(graces), row.pod_goes, seq, situation)


def _reasons_of_a_living_pod(
    m: Moment, pod: Pod, container: Container, spec: ContainerSpec, graces: Graces
) -> list[Reason]:
    found = list[Reason]()
    sandbox = container.sandbox
    if sandbox is not None and sandbox.state == "notready":
        found.append(_reason("dead sandbox", "its sandbox is dead", graces))
    elif (why := why_replaced(pod)) is not None:
        found.append(_reason("dead sandbox", f"its pod needs another sandbox: {why}", graces))
    lost = pod.note(PodCgroup).lost_seq
    if lost and container.create is not None and container.create.seq < lost:
        found.append(_reason("lost cgroup", "its pod's cgroup is missing", graces, lost))
    if pods.at_its_end(pod):
        found.append(_reason("ended", "the pod has come to its end", graces))
    if container.state == "unknown":
        found.append(_reason("unknown state", "its state is unknown", graces))
    is_other = is_hashed_otherwise(m, container) and not is_ended_by_the_kubelet(m, pod)
    if is_other or _may_have_changed(m, pod, container, spec):
        found.append(_reason("changed", "its image has changed", graces, pod.spec_changed_seq))
    for hook in pods.post_starts(container):
        if hook.failed:
            found.append(_reason("postStart failed", "its postStart hook failed", graces, hook.call.seq))
    handler = spec.lifecycle.post_start
    if handler is not None and handler.exec is None:
        cause = "its postStart hook, which does not pass through the runtime, may have failed"
        found.append(_reason("postStart failed", cause, graces))
    found += failing_probe(pod, container)
    return found


def _may_have_changed(m: Moment, pod: Pod, container: Container, spec: ContainerSpec) -> bool:
    """The container runs another image than the manifest names, or its spec may have changed.

    A sync that waits for a relist may still follow the manifest before the last.
    """
    named = image_origin(container)
    if named:
        former = former_container(pod, container.name)
        was_changed = former is not None and named != former.image and pod.spec_changed_t is not None
        return named != spec.image or (was_changed and m.t - (pod.spec_changed_t or 0.0) <= REACTION)
    if any(probe is not None and probe.exec is None for probe in (spec.liveness_probe, spec.startup_probe)):
        return False
    changed, created = pod.spec_changed_t, container.created_t
    return changed is not None and created is not None and changed > created


def failing_probe(pod: Pod, container: Container) -> list[Reason]:
    """The kills that a failing exec probe may lead to."""
    spec, found = container.spec, list[Reason]()
    if not container.probes_failed or spec is None or pod.spec is None:
        return found
    for probe in (spec.liveness_probe, spec.startup_probe):
        failed = probe and probe.exec and container.probes_failed.get(tuple(probe.exec.command))
        if probe is None or not failed:
            continue
        graces = Graces(pod.spec.grace_seconds, probe=probe.termination_grace_period_seconds)
        found.append(_reason("probe failed", "its probe fails", graces, failed.call.seq))
        if pod.restart_policy == "Never":
            found.append(_reason("probe failed for good", "its probe fails and the pod ends", graces))
    return found


def fails_as_a_whole(pod: Pod) -> bool:
    """A pod of policy Never fails: each app container has ended or fails a probe."""
    if pod.restart_policy != "Never" or pod.spec is None:
        return False
    apps = [pod.newest(spec.name) for spec in pod.spec.containers]
    return all(one is not None and (one.ended or _may_fail_a_probe(pod, one)) for one in apps)


def _may_fail_a_probe(pod: Pod, container: Container) -> bool:
    return has_other_probes(container, "liveness", "startup") or bool(failing_probe(pod, container))


def stopped_for_itself(m: Moment, pod: Pod, container: Container) -> bool:
    """The container was being stopped before its pod's termination, or just after for its own reason.

    The sync that stops it may have begun before the kubelet learned of the end, and creates it again. Its
    preStop hook comes first, and what that sync does for other containers.
    """
    end = pod.termination
    begun = [*_pre_stop_hooks(container)[:1], *(stop.call.t for stop in list(container.stops)[:1])]
    if m.container is container and m.keys[0] == "call:StopContainer":
        begun.append(m.t)
    if end is None or not begun:
        return False
    if min(*begun, since_when_at_work(pod, m.t)) - informed_by(m, end.t) > API_POLL:
        return False
    changed_t, created_t = pod.spec_changed_t, container.created_t
    is_changed = changed_t is not None and created_t is not None and changed_t > created_t
    if container.spec is not None and image_origin(container) not in {"", container.spec.image}:
        is_changed = True  # It was made by the manifest before the last.
    was_stopping = min(begun) < end.t - API_POLL
    if was_stopping or is_changed or failing_probe(pod, container):
        return True
    return pods.post_start_may_have_failed(container)


def wait_before_stop(m: Moment) -> Wait:
    """How long the kill of this container has waited: for its preStop hook, and for its turn."""
    pod, container = m.pod, m.container
    if pod is None or container is None:
        return Wait(0.0, 0)
    hook = _hook_before_stop(container)
    begun = [hook.call.t] if hook is not None else []
    waits_for_turn = container.kind == "sidecar" and _goes_whole(m, pod, container)
    if waits_for_turn:
        begun += _kills_of_siblings(pod, container, m.node.started_t or 0.0)
        if any(may_be_killed_alone(m, one, container) for one in pod.every_container()):
            return Wait(0.0, 1, is_certain=False)
    if not begun:
        return Wait(0.0, 0)
    # The hook comes last, and a busy machine stops the container a moment later.
    over_t = m.t if hook is None or hook.end_t is None else max(hook.end_t, m.t - ROUNDING / 2)
    return Wait(m.t - min(begun), (hook is not None) + waits_for_turn, least=over_t - min(begun))


def _goes_whole(m: Moment, pod: Pod, container: Container) -> bool:
    """The container is stopped together with the rest of its pod."""
    sandbox = container.sandbox
    if pod.termination is not None or pods.at_its_end(pod) or time_may_be_over(m, pod):
        return True
    if is_of_a_former_instance(container):
        return True
    return sandbox is None or sandbox.state != "ready"


def is_killed_already(m: Moment, container: Container) -> bool:
    """The container is being stopped, if only by its preStop hook, or waits for its turn in a pod's kill.

    A probe that fails then leads to nothing more.
    """
    pod, pre_stop = container.pod, pods.hook_command(container, "pre_stop")
    if container.stopping or pod is None:
        return True
    if container.kind == "sidecar" and (_goes_whole(m, pod, container) or is_ended_by_the_kubelet(m, pod)):
        return True
    first = pods.post_starts(container)
    open_ones = (one for one in container.hooks if one.call.id in container.hooks_open and one not in first)
    return any(one.cmd == pre_stop for one in open_ones)


def was_killed_alone(pod: Pod, container: Container) -> bool:
    """The container was stopped for its own hook or probe, and that ended the pod: none waited for it."""
    sandbox = container.sandbox
    if pod.termination is not None or sandbox is None:
        return False
    if sandbox.state != "ready":
        last = container.stops[-1].call.t if container.stops else math.inf
        is_alone = sandbox.died_t is not None and last < sandbox.died_t
        return is_alone and not is_of_a_former_instance(container)
    if _was_made_again(pod, container) or pods.has_unseen_hook(container.spec):
        return True  # The trace does not show what became of such a hook.
    if any(hook.failed for hook in pods.post_starts(container)):
        return True
    if failing_probe(pod, container):
        return pod.restart_policy != "Never" or _left_another(pod, container)
    return any(_went_on(one, container) for one in pod.of_kind("app") if one is not container)


def _was_made_again(pod: Pod, container: Container) -> bool:
    """A later one of its name was made in the same sandbox: the pod went on."""
    newest = pod.newest(container.name)
    return newest is not None and newest is not container and newest.sandbox is container.sandbox


def may_be_killed_alone(m: Moment, one: Container, sidecar: Container) -> bool:
    """A container was stopped alone or with its pod, whose sidecars wait for it: it is not known which."""
    pod = one.pod
    if pod is None or one.name == sidecar.name:
        return False
    if pod.termination is None:
        return (one.kind == "app" or pods.has_unseen_hook(one.spec)) and _killed_unseen(one, sidecar)
    since_t = pod.termination.t
    if not any(stop.call.t >= since_t for stop in one.stops):
        return False
    return pods.has_unseen_hook(one.spec) or stopped_for_itself(m, pod, one)


def stops_of_its_pod(container: Container) -> list[Stop]:
    """The container's stops but the one that ends its start when its postStart hook fails."""
    stops, failed = list(container.stops), [hook for hook in pods.post_starts(container) if hook.failed]
    by_its_start = stops and any((hook.end_t or 0.0) <= stops[0].call.t for hook in failed)
    return stops[1:] if by_its_start else stops


def _killed_unseen(one: Container, sidecar: Container) -> bool:
    """A container was stopped while the sidecar ran, alone or with its pod: it is not known which.

    So it is with probes that do not pass through the runtime.
    """
    pod, since = one.pod, sidecar.started_seq or 0
    is_unseen = pods.has_unseen_hook(one.spec) or has_other_probes(one, "liveness", "startup")
    if pod is None or not is_unseen or not any(stop.call.seq > since for stop in one.stops):
        return False
    return not any(_went_on(other, one) for other in pod.of_kind("app") if other is not one)


def _left_another(pod: Pod, stopped: Container) -> bool:
    """Another app container ran on when this one was stopped, so that it did not take its pod with it."""
    last = stopped.stops[-1].call.t if stopped.stops else math.inf
    others = (one for one in pod.of_kind("app") if one.name != stopped.name and one.started_t is not None)
    running = (one for one in others if one.exit is None or one.exit.t > last)
    kills = ([*_pre_stop_hooks(one), *(stop.call.t for stop in one.stops)] for one in running)
    return any(not any(abs(t - last) <= REACTION for t in begun) for begun in kills)


def _went_on(one: Container, stopped: Container) -> bool:
    """The first container ran on, and was not stopped, after the last stop of the other."""
    last = stopped.stops[-1].call.seq if stopped.stops else math.inf
    ended = math.inf if one.exit is None and one.started_seq else one.exit.seq if one.exit is not None else 0
    return ended > last and not one.stops and _hook_before_stop(one) is None


def _pre_stop_hooks(container: Container) -> list[float]:
    """When the container's preStop hook was begun, each time."""
    return [hook.call.t for hook in pods.pre_stops(container)]


def _hook_before_stop(container: Container) -> Execution | None:
    """The preStop hook before this StopContainer."""
    last_stop = container.stops[-1].call.t if container.stops else -1.0
    begun = pods.pre_stops(container)
    return begun[-1] if begun and begun[-1].call.t > last_stop else None


def _kills_of_siblings(pod: Pod, container: Container, life: float) -> list[float]:
    end = pod.former_end if is_of_a_former_instance(container) else pod.termination
    since = max(life, end.t if end is not None else container.started_t or 0.0)
    others = [c for c in pod.every_container() if c.name != container.name and not was_killed_alone(pod, c)]
    stops = [
        stop.call.t
        for c in others
        for stop in stops_of_its_pod(c)
        if stop.call.t >= since and stop.call.seq > (container.started_seq or 0)
    ]
    since = max(since, container.started_t or 0.0)  # What began before was an earlier kill.
    return stops + [t for c in others for t in _pre_stop_hooks(c) if t >= since]


def explained(m: Moment, *, probes: bool = True) -> bool:
    """The trace shows something that may be the reason for stopping the moment's container now.

    With `probes=False` what its own exec probes say is left out. True wherever the trace shows too little.
    """
    pod, container = m.pod, m.container
    if pod is None or container is None or pod.spec is None or not pod.born or not container.born:
        return True
    if pod.termination is not None or pod.finished or not pod.wanted or container.state != "running":
        return True
    if is_ended_by_the_kubelet(m, pod):
        return True
    if pod.spec.active_deadline_seconds is not None or has_other_probes(container, "liveness", "startup"):
        return True
    if any(probes or "probe" not in reason.cause for reason in reasons(m)):
        return True
    return _another_ended(pod, container) or fails_as_a_whole(pod) or begins_anew(m, pod)


def begins_anew(m: Moment, pod: Pod) -> bool:
    """A container has ended with a code for which its rule restarts the whole pod."""
    if not is_on(RESTART_ALL_GATE, m.header.feature_gates, m.kubernetes):
        return False
    return any(asks_for_all(one) for one in pod.every_container())


def asks_for_all(one: Container) -> bool:
    """The container has ended with a code for which a rule of its own restarts the whole pod (RESTART-22)."""
    code = one.exit.code if one.exit is not None else None
    return one.spec is not None and code is not None and one.spec.rule_for(code) == RESTART_ALL


def _another_ended(pod: Pod, container: Container) -> bool:
    """An init container may have failed for good, or its siblings may have come to their end."""
    if pod.restart_policy == "Always":
        return False
    return any(c is not container and c.state != "running" for c in pod.every_container())


@observer(on=call("StopContainer", "StopPodSandbox"), last=True)
def _pod_may_be_killed(m: Moment, pod: Pod) -> None:
    """A ready sandbox or a container in it is stopped for no reason that the trace shows."""
    if pod.termination is not None or not pod.wanted or not events_may_be_missing(m):
        return
    if m.sandbox is None or m.sandbox.state != "ready" or why_replaced(pod) is not None:
        return
    is_explained = explained(m) if m.container is not None else pods.at_its_end(pod)
    if not is_explained:
        suspect_disruption(pod)


@observer(on=status())
def _pod_may_have_failed(m: Moment, pod: Pod, status: PodStatus) -> None:
    """A status that treats the pod as failed, or says as little as that of a refused one."""
    if not events_may_be_missing(m) or pod.sandbox is None:
        return
    if not status.conditions or any(one.reason == "PodFailed" for one in status.conditions):
        suspect_disruption(pod)


_GOES_ON = call("RunPodSandbox", "CreateContainer", "StartContainer")
"""A step that a kubelet takes only for a pod that it has not killed for good."""

KILL_IS_REPORTED = event("Evicted", "Preempting", "TerminationByKubelet", "DeadlineExceeded")
"""The event of a kill by the kubelet's own decision."""


def to_be_explained(m: Moment, text: str, *because: int) -> Answered:
    """A stop that nothing explains is wrong, unless a forced deletion or an event is recorded just after it.

    The kubelet sends the event of a preemption before it stops anything, and does not wait until it has
    arrived. Where events may be missing, that is proven only when the kubelet goes on with the pod: it has
    not killed it for good.
    """
    if events_may_be_missing(m):
        return answered(by=pods.NOBODY, not_before=_GOES_ON, unless=GONE, text=text, because=because)
    unless = pods.TERMINATION_ASKED.either(KILL_IS_REPORTED)
    return answered(by=pods.NOBODY, within=API_POLL, unless=unless, text=text, because=because)


def is_ended_for_a_reason(m: Moment, pod: Pod) -> bool:
    """The kubelet ends the pod by its own decision, and not for node labels that it could not read."""
    ended = disruption_of(pod)
    is_blind = ended is not None and ended.reason == "NodeAffinity" and api_is_away(m)
    return time_may_be_over(m, pod) or (is_ended_by_the_kubelet(m, pod) and not is_blind)
