"""TERM: the timeout of StopContainer, and what a preStop hook or a stop order leaves of the grace."""

import math
from collections import deque
from collections.abc import Iterator

from msgspec import field

from kubelet_conformance.contract import Broken, Container, Execution, Finding, Moment, Note, Pod
from kubelet_conformance.contract.applicability import CRI, PODS, ByVersion
from kubelet_conformance.contract.definition import KEPT, Findings, Kept, answered, broken, contract, observer
from kubelet_conformance.contract.patterns import call, deleted, done, exited, failed, pod_set
from kubelet_conformance.contracts.facts import kills
from kubelet_conformance.contracts.facts.pod import (
    has_pre_stop,
    hook_command,
    may_be_unknown,
    pre_stops,
    runs_pre_stop,
)
from kubelet_conformance.contracts.facts.timing import API_POLL, CALL_TIMEOUT, REACTION, ROUNDING
from kubelet_conformance.contracts.tables.stop import MINIMUM_GRACE, OVERRIDES, stop_row, stop_timeouts
from kubelet_conformance.trace.format.bodies import StopContainerRequest
from kubelet_conformance.trace.format.manifests import Manifest, PodSpec
from kubelet_conformance.trace.world.kubelet_view import informed_by
from kubelet_conformance.trace.world.missed_updates import is_missed

_READ = ByVersion({"1.22..1.26": True, ">=1.28": True})
_APART_KEPT = 16


STOP = call("StopContainer").where(lambda m: m.container is not None and m.container.state == "running")


def _timeout(m: Moment) -> int:
    return m.request(StopContainerRequest).timeout


def _overridden(m: Moment, reason: kills.Reason) -> bool:
    return reason.pod_goes and bool(OVERRIDES.get(m.kubernetes))


def _floor(m: Moment, reason: kills.Reason) -> int:
    return stop_timeouts(stop_row(reason.situation), reason.seconds, (0, 0), m.kubernetes)[0]


def _one_of(m: Moment, allowed: dict[int, kills.Reason]) -> Kept | Broken:
    got = _timeout(m)
    if got in allowed:
        return KEPT
    said = " or ".join(f"{seconds} ({reason.cause})" for seconds, reason in allowed.items())
    return broken(f"expected timeout {said}, got {got}", *(r.seq for r in allowed.values()))


class _Graces(Note):
    """The graces that deletions of a pod have asked for, in order."""

    asked: list[tuple[int, int, float]] = []
    """Each grace, the record that asked for it, and when."""


@observer(on=pod_set())
def _graces_are_remembered(m: Moment, pod: Pod, manifest: Manifest) -> None:
    """Remember each grace that is asked for, once for all contracts."""
    grace = manifest.metadata.deletion_grace_period_seconds
    if grace is None:
        return
    asked = pod.note(_Graces).asked
    if not asked or asked[-1][1] != m.seq:
        asked.append((grace, m.seq, m.t))


@contract("TERM-03", on=STOP, needs=(CRI, PODS), versions=_READ)
def grace_follows_the_reason(m: Moment, container: Container) -> Findings:
    """A container is stopped with the pod's deletion grace period if the pod is being deleted, else after a
    failing liveness or startup probe with the probe's own grace period if it has one, else with the pod's; at
    least 2 s, but for a terminated pod in 1.22 to 1.26.
    """
    why = kills.reasons(m)
    if not why or kills.wait_before_stop(m).turns:
        return None
    if has_pre_stop(container):
        return None
    if _timeout(m) in _timeouts_in_force(m):
        return KEPT
    return _one_of(m, {_floor(m, reason): reason for reason in why})


def _timeouts_in_force(m: Moment) -> set[int]:
    """The timeouts of a kill that began before the kubelet received another grace."""
    return {max(grace, MINIMUM_GRACE) for grace in _graces_in_force(m)}


def _graces_in_force(m: Moment) -> set[int]:
    """The graces of such a kill."""
    asked = m.pod.note(_Graces).asked if m.pod is not None else []
    is_new = len(asked) > 1 and m.t - informed_by(m, asked[-1][2]) <= API_POLL
    return {grace for grace, _, _ in asked} if is_new else set()


@grace_follows_the_reason.clause("whole", on=done("StopContainer").either(failed("StopContainer")))
def stop_is_not_given_up(m: Moment, container: Container) -> Findings:
    """A call that lasts that long is not given up after the usual two minutes."""
    error = m.reply.error
    lasted, timeout = m.t - m.call.t, m.request(StopContainerRequest).timeout
    if timeout <= CALL_TIMEOUT + REACTION or lasted < CALL_TIMEOUT - REACTION:
        return None
    if error is not None and error.code == "DEADLINE_EXCEEDED" and lasted < timeout:
        return broken(f"the stop of {container.name} is given up after {lasted:.0f} s of {timeout} s")
    return KEPT


@contract("TERM-04", on=STOP, needs=(CRI, PODS), versions=_READ)
def deletion_grace_wins_over_a_probes(m: Moment, pod: Pod, container: Container) -> Findings:
    """While the pod is being deleted, a probe's own grace period plays no part."""
    if pod.termination is None or container.spec is None:
        return None
    grace = kills.deletion_grace(m, pod)
    probes = (container.spec.liveness_probe, container.spec.startup_probe)
    own = {p.termination_grace_period_seconds for p in probes if p} - {None, grace}
    if grace is None or not own or m.t - pod.termination.t <= ROUNDING:
        return None
    if _timeout(m) > max(grace, MINIMUM_GRACE):
        text = f"expected at most the deletion's {grace} s, got {_timeout(m)}"
        return broken(text, pod.termination.seq)
    return KEPT


def _left(m: Moment, wait: kills.Wait, reason: kills.Reason) -> range:
    """The seconds that may be left of the grace; each wait is cut to whole seconds."""
    longest = math.floor(wait.seconds + ROUNDING / 2)
    shortest = math.ceil(max(0.0, wait.least - wait.turns * ROUNDING))
    return stop_timeouts(stop_row(reason.situation), reason.seconds, (shortest, longest), m.kubernetes)


@contract("TERM-05", on=STOP, needs=(CRI, PODS), versions=_READ)
def waiting_is_taken_off_the_grace(m: Moment) -> Findings:
    """The timeout is what the preStop hook and the wait for the container's turn have left of the grace, at
    least 2 s; for a terminated pod in 1.22 to 1.26 see TERM-11.
    """
    why = kills.reasons(m)
    wait = kills.wait_before_stop(m) if why else None
    if wait is None or not wait.turns or not wait.is_certain:
        return None
    if any(_overridden(m, reason) for reason in why):
        return None
    got = _timeout(m)
    former = [kills.Reason("former grace", grace, situation="deleted") for grace in _graces_in_force(m)]
    if any(got in _left(m, wait, reason) for reason in (*why, *former)):
        return KEPT
    left = _left(m, wait, why[0])
    text = (
        f"expected {left[0]} to {left[-1]} s left of {why[0].seconds} after {wait.seconds:.1f} s, got {got}"
    )
    return broken(text, why[0].seq)


def _open_pre_stop(container: Container) -> Execution | None:
    return next((hook for hook in pre_stops(container) if hook.end_t is None), None)


@contract("TERM-06", on=STOP, needs=(CRI, PODS), versions=_READ)
def hook_is_awaited_no_longer_than_the_grace(m: Moment, container: Container) -> Findings:
    """A preStop hook that outlasts the grace is left at the grace's end, not before, and the container is
    stopped with 2 s; in 1.22 to 1.26 a terminated pod's with the whole grace once more.
    """
    hook = _open_pre_stop(container)
    why = kills.reasons(m) if hook is not None else []
    if hook is None or not why:
        return None
    if all(m.t - hook.call.t < reason.seconds - ROUNDING for reason in why):
        waited = f"{m.t - hook.call.t:.1f} s of {why[0].seconds}"
        return broken(f"expected the hook to be awaited, was stopped after {waited}", hook.call.seq)
    return _one_of(m, {_floor(m, r) if _overridden(m, r) else MINIMUM_GRACE: r for r in why})


@hook_is_awaited_no_longer_than_the_grace.clause("left", on=call("ExecSync").where(runs_pre_stop))
def hook_is_left_at_the_end_of_the_grace(m: Moment, container: Container) -> Findings:
    """The stop of the container comes while the hook still runs."""
    hook_call, why = m.call, kills.reasons(m)
    if not why:
        return None
    limit = max(MINIMUM_GRACE, *(reason.seconds for reason in why))
    return answered(
        by=call("StopContainer").where(lambda n: n.container is container),
        within=limit + REACTION,
        unless=done("ExecSync")
        .either(failed("ExecSync"))
        .where(lambda n: n.call is hook_call)
        .either(exited().where(lambda n: n.container is container)),
        text=f"container {container.name} is stopped when its preStop hook outlasts the grace",
    )


@contract("TERM-07", on=STOP, needs=(CRI, PODS))
def no_hook_without_grace(m: Moment, pod: Pod, container: Container) -> Findings:
    """A container that is killed with a grace of 0 s while its pod goes on gets no preStop hook."""
    if pod.termination is not None:
        return None
    command, why = hook_command(container, "pre_stop"), kills.reasons(m)
    if command is None or not why or any(reason.seconds > 0 for reason in why):
        return None
    ran = next((h for h in container.hooks if h.cmd == command), None)
    if ran is not None:
        return broken("expected no preStop hook with a grace of 0", ran.call.seq)
    return KEPT


@contract("TERM-11", on=STOP, needs=(CRI, PODS), versions=ByVersion({"1.22..1.26": True}))
def whole_grace_after_the_hook(m: Moment) -> Findings:
    """A terminated pod's container gets the whole grace after its preStop hook, however long that took."""
    why = kills.reasons(m)
    if not why or not kills.wait_before_stop(m).turns or not all(_overridden(m, reason) for reason in why):
        return None
    return _one_of(m, {_floor(m, reason): reason for reason in why})


@contract("WORK-07", on=STOP, needs=(CRI, PODS), versions=_READ)
def grace_only_shrinks(m: Moment, pod: Pod) -> Findings:
    """Of several graces asked for one after another the smallest holds, and a later longer one is ignored."""
    asked = [one for one in pod.note(_Graces).asked if one[0] > 0]
    if len({grace for grace, _, _ in asked}) < 2 or pod.spec is None:  # noqa: PLR2004 - several
        return None
    wait = kills.wait_before_stop(m)
    if not wait.is_certain:
        return None
    # A grace that was asked for when the kill began, or later, may come too late for it.
    received = [one for one in asked if m.t - wait.seconds - informed_by(m, one[2]) > API_POLL]
    if not received and _fits_another_reason(m):
        return None
    least, seq, _ = min(received) if received else max(asked)
    if _timeout(m) > max(least, MINIMUM_GRACE):
        return broken(f"expected at most {least} s, got {_timeout(m)}", seq)
    return KEPT


@contract("WORK-08", on=STOP, needs=(CRI, PODS), versions=ByVersion({"1.22..1.26": True, ">=1.31": True}))
def grace_of_a_forced_deletion(m: Moment, pod: Pod) -> Findings:
    """A forced deletion (grace 0) stops containers with the pod's own grace up to 1.26, with the least from
    1.31 on.
    """
    if not kills.forced(pod) or may_be_unknown(pod, m.node) or kills.wait_before_stop(m).turns:
        return None
    if is_missed(m.node, pod):
        return None  # All that is reported is that it is gone: WORK-33.
    if _timeout(m) in _timeouts_in_force(m) or _fits_another_reason(m):
        return None
    sandbox = m.container.sandbox if m.container is not None else None
    if sandbox is not None and sandbox.died_t is not None:
        return None  # It may be killed for that: a sync that had begun before the kubelet learned of the end.
    return _as_forced(m, pod.termination.seq if pod.termination else 0, _timeout(m))


def _fits_another_reason(m: Moment) -> bool:
    """The sync that stops it may have begun before the kubelet learned of the end, for something else."""
    others = [reason for reason in kills.reasons(m) if reason.situation != "deleted"]
    return bool(others) and _timeout(m) in [_floor(m, reason) for reason in others]


class _Apart(Note):
    """The stops of a pod for which something else is a reason than its end, by the record of their call."""

    seqs: deque[int] = field(default_factory=lambda: deque(maxlen=_APART_KEPT))


@observer(on=STOP)
def _stops_for_another_reason_are_remembered(m: Moment, pod: Pod) -> None:
    """Remember which they are: that the pod is to go may be reported just after one of them."""
    if _fits_another_reason(m):
        pod.note(_Apart).seqs.append(m.seq)


@grace_of_a_forced_deletion.clause("reported-late", on=deleted())
def grace_of_a_forced_deletion_reported_late(m: Moment, pod: Pod) -> Iterator[Finding]:
    """The same rule, where the removal of the object was seen just after the stop that it caused."""
    if not pod.born or pod.static or pod.termination is not None:
        return
    apart = pod.note(_Apart).seqs
    for container in pod.every_container():
        for stop in container.stops:
            if stop.call.seq in apart:
                continue
            if stop.end_t is None and m.t - stop.call.t <= API_POLL and stop.timeout is not None:
                yield from filter(None, (_as_forced(m, stop.call.seq, stop.timeout),))


def _as_forced(m: Moment, seq: int, got: int) -> Kept | Broken | None:
    pod = m.pod
    if pod is None or pod.spec is None:
        return None
    whole = bool(OVERRIDES.get(m.kubernetes))
    expected = pod.spec.grace_seconds if whole else MINIMUM_GRACE
    if got != expected:
        return broken(f"expected timeout {expected} for a forced deletion, got {got}", seq)
    return KEPT


@contract("WORK-33", on=STOP, needs=(CRI, PODS), versions=_READ)
def removed_manifest_leaves_the_grace(m: Moment, pod: Pod, spec: PodSpec, container: Container) -> Findings:
    """A pod whose manifest was removed is stopped with its own grace period, not at once."""
    if not pod.static or pod.termination is None:
        return None
    if pod.termination.cause != "removed" or may_be_unknown(pod, m.node):
        return None
    if kills.wait_before_stop(m).turns or has_pre_stop(container) or _fits_another_reason(m):
        return None
    expected = max(spec.grace_seconds, MINIMUM_GRACE)
    if _timeout(m) not in {expected, spec.grace_seconds}:
        return broken(f"expected timeout {expected}, got {_timeout(m)}", pod.termination.seq)
    return KEPT
