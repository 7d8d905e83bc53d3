"""PHASE: the phase of a pod, as it follows from its container statuses."""

from collections.abc import Callable

from kubelet_conformance.contract import Container, Exit, Moment, Pod, PodStatus
from kubelet_conformance.contract.applicability import PODS, STATUS, since
from kubelet_conformance.contract.definition import KEPT, Findings, answered, broken, contract, kept_if
from kubelet_conformance.contract.patterns import call, done, exited, failed, status
from kubelet_conformance.contracts.facts import pod as pods
from kubelet_conformance.contracts.facts import status as statuses
from kubelet_conformance.contracts.facts.container import may_have_started, starts_are_reported
from kubelet_conformance.contracts.facts.kills import is_killed_already
from kubelet_conformance.contracts.facts.static_pod import end_is_made_up, has_no_mirror
from kubelet_conformance.contracts.facts.timing import REACTION
from kubelet_conformance.contracts.runtime.expected import judges_waits
from kubelet_conformance.contracts.sync_loop.kubelet_restart import LIFE_ENDS
from kubelet_conformance.contracts.tables.status import seen
from kubelet_conformance.contracts.termination.deadline import time_may_be_over

NEEDS = (STATUS, PODS)
HANDLED = frozenset({"Evicted", "DeadlineExceeded", "Preempting", "NodeShutdown", "Terminated"})
"""Reasons that kubelet handlers give together with the phase Failed."""


def _all_stopped(m: Moment) -> bool:
    now = statuses.written(m)
    return now is not None and now.counts.all_stopped


STOPPED = status().where(_all_stopped)


def _judged(m: Moment, situation: Callable[[statuses.Written], bool]) -> Findings:
    """In the situation the written phase is the one its containers amount to."""
    now = statuses.written(m)
    if now is None or now.pod.finished or not situation(now):
        return None
    if now.lost and any(end_is_made_up(m, now.pod, one) for one in now.lost):
        return None
    if now.status.phase in now.allowed:
        return KEPT
    is_old = statuses.shows_probes_only(m) or statuses.shows_its_sandbox_only(m)
    if is_old and now.before is not None and now.status.phase == now.before.phase:
        return _follows(now)
    expected, row = " or ".join(sorted(now.allowed)), now.row
    if row.name == "P3" and (late := may_have_started(now.pod, now.status)):
        return starts_are_reported(late)
    return broken(
        f"phase is {now.status.phase}, expected {expected}: {row.why} ({row.name})", now.pod.set_seq
    )


def _follows(now: statuses.Written) -> Findings:
    """The result of a probe is reported at once, and the phase with the sync that it triggers."""
    if pods.worker_is_busy(now.pod):
        return None
    phase = " or ".join(sorted(now.allowed))
    return answered(
        by=status().where(lambda m: m.status is not None and m.status.phase in now.allowed),
        within=REACTION,
        unless=exited().either(pods.TERMINATION_ASKED, pods.FAULT, LIFE_ENDS),
        text=f"phase {phase} follows the result of a probe",
    )


def _ended(pod: Pod, *, badly: bool) -> bool:
    """Every container of the pod has ended for good: with `badly` one of them by a failure, else none."""
    if not pods.at_its_end(pod):
        return False
    exits = [c.exit for spec in (pod.spec.containers if pod.spec else ()) if (c := pod.newest(spec.name))]
    codes = [e.code for e in exits if e is not None]
    return None not in codes and any(codes) == badly


_KILLED = done("StopPodSandbox").where(pods.to_run)


def _owed(m: Moment, phase: str) -> Findings:
    """The terminal phase is written soon, for a pod that is not deleted."""
    if m.pod is None or m.pod.spec is None or m.pod.spec.active_deadline_seconds is not None:
        return None  # A pod with a deadline may have failed by that.
    if has_no_mirror(m, m.pod):
        return None
    return answered(
        by=status().where(lambda now: now.status is not None and now.status.phase == phase),
        within=REACTION,
        unless=pods.TERMINATION_ASKED.either(call("RunPodSandbox"), failed("NodeUnprepareResources")),
        text=f"phase {phase} is written",
    )


@contract("PHASE-01", on=status(), needs=NEEDS)
def ephemeral_containers_do_not_count(m: Moment) -> Findings:
    """Ephemeral containers have no part in the phase."""
    return _judged(m, lambda now: bool(now.status.ephemeral_container_statuses))


@ephemeral_containers_do_not_count.clause("in the end", on=exited())
def end_does_not_wait_for_debugging(m: Moment, pod: Pod, container: Container, ended: Exit) -> Findings:
    """A pod whose app containers have all ended for good ends, though an ephemeral one runs."""
    if container.kind != "app" or not pods.to_run(m):
        return None
    debugging = any(c.state == "running" for c in pod.of_kind("ephemeral"))
    if not debugging or not pods.at_its_end(pod, container, ended.code) or not m.node.kubelet_up:
        return None
    if ended.commanded or is_killed_already(m, container):
        return None  # The sync that kills it for a reason may make it again, whatever its exit code.
    return answered(
        by=status().where(pods.of(pod)).where(lambda now: now.status is not None and now.status.terminal),
        within=REACTION + (pod.spec.grace_seconds if pod.spec is not None else 0),
        unless=pods.TERMINATION_ASKED.where(pods.of(pod)).either(pods.FAULT),
        whole_node=True,
        text=f"{pod.name}, whose app containers have ended, ends",
    )


@contract("PHASE-02", on=status(), needs=NEEDS)
def unstarted_container_makes_pending(m: Moment) -> Findings:
    """A pod with an app container that waits and has never run is Pending, even if others run."""
    return _judged(m, lambda now: now.row.name == "P4" and "waiting" in now.counts.apps)


@unstarted_container_makes_pending.clause("all started", on=status())
def started_containers_make_running(m: Moment) -> Findings:
    """A pod whose app containers have all been started, one of which runs, is Running."""
    return _judged(m, lambda now: now.row.name == "P5")


@contract("PHASE-03", on=status(), needs=NEEDS)
def crash_loop_is_running(m: Moment) -> Findings:
    """A container that waits after having run counts as stopped, so a crash loop under Always is Running."""

    def crash_loop(now: statuses.Written) -> bool:
        apps = now.counts.apps
        return ("again" in apps or "again after 0" in apps) and "waiting" not in apps

    return _judged(m, crash_loop)


@contract("PHASE-05", on=STOPPED, needs=NEEDS)
def always_never_succeeds(m: Moment) -> Findings:
    """A pod with policy Always whose containers have all stopped is Running, unless it is being deleted."""
    return _judged(m, lambda now: now.row.name == "P8" and now.pod.termination is None)


@contract("PHASE-06", on=STOPPED, needs=NEEDS)
def all_ended_well_is_succeeded(m: Moment) -> Findings:
    """A pod that is not restarted always and whose containers have all ended with 0 is Succeeded."""
    return _judged(m, lambda now: now.counts.policy != "Always" and now.counts.all_succeeded)


@all_ended_well_is_succeeded.clause("in the end", on=_KILLED)
def success_is_written_in_the_end(m: Moment) -> Findings:
    """Succeeded is written once the sandbox of such a pod is stopped."""
    return _owed(m, "Succeeded") if m.pod is not None and _ended(m.pod, badly=False) else None


@contract("PHASE-07", on=STOPPED, needs=NEEDS)
def failure_is_final_only_under_never(m: Moment) -> Findings:
    """With all containers stopped and one failed, a pod is Failed under Never and Running under OnFailure."""

    def has_failed(now: statuses.Written) -> bool:
        counts = now.counts
        return counts.policy != "Always" and counts.all_stopped and not counts.all_succeeded

    return _judged(m, has_failed)


@failure_is_final_only_under_never.clause("in the end", on=_KILLED)
def failure_is_written_in_the_end(m: Moment) -> Findings:
    """Failed is written once the sandbox of such a pod is stopped."""
    return _owed(m, "Failed") if m.pod is not None and _ended(m.pod, badly=True) else None


judges_waits(failure_is_final_only_under_never)


@contract("PHASE-08", on=status(), needs=NEEDS)
def no_failure_while_another_runs(m: Moment) -> Findings:
    """Under Never, a pod with a failed container is Running for as long as another one runs."""

    def one_failed_one_runs(now: statuses.Written) -> bool:
        counts = now.counts
        return counts.policy == "Never" and "ended badly" in counts.apps and counts.running > 0

    return _judged(m, one_failed_one_runs)


@contract("PHASE-09", on=status(), needs=NEEDS)
def initialization_decides_first(m: Moment) -> Findings:
    """A pod is Pending until its init containers are done, and Failed when one failed under Never."""
    return _judged(m, lambda now: now.counts.pending_init > 0 or now.counts.failed_init > 0)


@initialization_decides_first.clause("in the end", on=_KILLED)
def init_failure_is_written_in_the_end(m: Moment, pod: Pod) -> Findings:
    """Failed is written once the sandbox of a pod is stopped whose init container failed under Never."""
    if pod.restart_policy != "Never":
        return None
    exits = [c.exit for c in pod.of_kind("init") if c is pod.newest(c.name)]
    return _owed(m, "Failed") if any(e is not None and e.code for e in exits) else None


@contract("PHASE-10", on=statuses.END_SHOWN, needs=NEEDS)
def init_that_waits_after_success_is_done(m: Moment) -> Findings:
    """An init container that waits, and ended with 0 before, counts as done."""

    def waits_after_success(now: statuses.Written) -> bool:
        return any(seen(s) == "again after 0" for s in now.status.init_container_statuses or ())

    return _judged(m, waits_after_success)


@contract("PHASE-11", on=status(), needs=NEEDS)
def terminal_phase_is_final(m: Moment) -> Findings:
    """Once Succeeded or Failed was written for a pod, no other phase is.

    Over a phase that another client has written, the kubelet may write its own once more. That phase
    is held back then, until all is stopped, in statuses whose conditions say that the pod has ended.
    """
    pod = m.pod
    finished = (pod.finished or statuses.terminal_phase_sent(pod)) if pod is not None else ""
    if pod is None or m.status is None or not finished:
        return None
    if m.status.phase == finished:
        return KEPT
    if pod.finished and statuses.phase_of_another(pod) == finished:
        return None
    is_held_back = any(one.reason == statuses.UNREADY_AS[finished] for one in m.status.conditions or ())
    if not pod.finished and (is_held_back or statuses.is_written_back(pod, m.status)):
        return None
    was_removed = pod.termination is not None and not pod.wanted
    was_forgotten = pod.static and (was_removed or (pod.status is not None and pod.status.phase != finished))
    if was_forgotten or pods.end_is_forgotten(pod, m.node) or _reaches_its_deadline(m, pod):
        return None
    return broken(f"phase goes from {finished} to {m.status.phase}", pod.status_seq)


def _reaches_its_deadline(m: Moment, pod: Pod) -> bool:
    """The pod's deadline passes just after it has succeeded: its worker may not know of the phase."""
    is_exceeded = m.status is not None and m.status.reason == "DeadlineExceeded"
    is_just_over = pod.status_t is not None and m.t - pod.status_t <= REACTION
    return is_exceeded and is_just_over and time_may_be_over(m, pod)


@contract("PHASE-12", on=statuses.AGAIN, needs=NEEDS)
def running_may_become_pending(m: Moment) -> Findings:
    """A pod that was Running is Pending again when its init containers have to run once more."""

    def was_running(now: statuses.Written) -> bool:
        return now.before is not None and now.before.phase == "Running" and now.row.then == "Pending"

    return _judged(m, was_running)


@contract("PHASE-13", on=status(), needs=NEEDS)
def handlers_decide_before_containers(_: Moment, pod: Pod, status: PodStatus) -> Findings:
    """A pod that was evicted, shut down or ended at its deadline is Failed, whatever its containers say."""
    if status.reason not in HANDLED or pod.finished:
        return None
    if status.reason == "Terminated" and status.phase == "Succeeded":
        return None  # SHUT-02: what had succeeded before a shutdown stays so.
    return kept_if(status.phase == "Failed", f"phase is {status.phase} with reason {status.reason}")


@contract("PHASE-14", on=STOPPED, needs=NEEDS, versions=since("1.27"))
def deleted_pod_ends_by_its_exit_codes(m: Moment) -> Findings:
    """A deleted pod whose containers have all stopped becomes Succeeded if all ended with 0, else Failed.

    Its restart policy has no part in it. Static pods are exempt, and those that another client has ended.
    """

    def being_deleted(now: statuses.Written) -> bool:
        return now.pod.termination is not None and not now.pod.static and now.counts.all_stopped

    finding = _judged(m, being_deleted)
    now = statuses.written(m)
    if finding is not KEPT or now is None or now.status.phase != "Failed" or not now.counts.all_succeeded:
        return finding
    if statuses.phase_of_another(now.pod):
        return None
    return broken("phase is Failed, and all containers ended with 0")


@contract("PHASE-15", on=status(), needs=NEEDS)
def nothing_started_is_pending(m: Moment) -> Findings:
    """A pod none of whose containers was ever created is Pending."""

    def nothing_there(now: statuses.Written) -> bool:
        of_apps = () if now.counts.app_was_up else now.status.container_statuses or ()
        return bool(of_apps) and all(seen(s) == "waiting" and not s.container_id for s in of_apps)

    return _judged(m, nothing_there)
