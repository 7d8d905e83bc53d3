"""The decision of a pod sync: what is there, what is wanted, and so what is to be done.

Nothing here acts: `compute_actions` is a pure function of a `Situation` (tables 27.1 to 27.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kubelet_reference import pods
from kubelet_reference.container_hash import container_hash
from kubelet_reference.init_progress import init_progress
from kubelet_reference.records import ContainerState
from kubelet_reference.restart_policy import restarts_on_failure, should_restart
from kubelet_reference.results import KillReason, ProbeOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightkube.models.core_v1 import Container, EphemeralContainer, Pod

    from kubelet_reference.init_progress import InitProgress
    from kubelet_reference.pods import AnyContainer
    from kubelet_reference.records import ContainerRecord, PodRecords, SandboxRecord
    from kubelet_reference.versions import Behaviour

__all__ = ("Actions", "Kill", "SandboxChange", "Situation", "compute_actions", "sandbox_changed")


@dataclass(frozen=True, slots=True)
class SandboxChange:
    """Whether a new sandbox is needed, its attempt number, and the id of the one that is there.

    `old_id` is "" where there is none, or where only the network mode differs (SANDBOX-09).
    """

    changed: bool
    attempt: int
    old_id: str


@dataclass(frozen=True, slots=True)
class Kill:
    """A container to stop; `message` is the text of its Killing event."""

    record: ContainerRecord
    container: AnyContainer
    reason: KillReason
    message: str


@dataclass(frozen=True, slots=True)
class Situation:
    """All that the decision depends on.

    `liveness` and `startup` give the published outcome of a probe by container id, None if there is none.
    """

    pod: Pod
    records: PodRecords
    liveness: Callable[[str], ProbeOutcome | None]
    startup: Callable[[str], ProbeOutcome | None]
    behaviour: Behaviour
    sandbox: SandboxChange


@dataclass(frozen=True, slots=True)
class Actions:
    """What a sync does, in the order of the seven steps (SYNC-03).

    `sandbox_id` is the sandbox that goes on being used, "" if a new one is needed.
    """

    attempt: int
    sandbox_id: str = ""
    old_sandbox_id: str = ""
    kill_pod: bool = False
    create_sandbox: bool = False
    to_kill: tuple[Kill, ...] = ()
    ephemeral: tuple[EphemeralContainer, ...] = ()
    next_init: Container | None = None
    to_start: tuple[Container, ...] = ()


def sandbox_changed(pod: Pod, records: PodRecords) -> SandboxChange:
    """Whether the pod needs a new sandbox (table 27.1, SANDBOX-02, SANDBOX-03).

    Sandboxes are judged by the newest, by creation time; a second ready one makes it unusable as well.
    """
    if not records.sandboxes:
        return SandboxChange(changed=True, attempt=0, old_id="")
    newest = records.sandboxes[0]
    replaced = SandboxChange(changed=True, attempt=newest.attempt + 1, old_id=newest.id)
    if sum(sandbox.ready for sandbox in records.sandboxes) > 1 or not newest.ready:
        return replaced
    if newest.host_network != pods.host_network(pod):
        return SandboxChange(changed=True, attempt=newest.attempt + 1, old_id="")
    if _has_no_address(newest):
        return replaced
    return SandboxChange(changed=False, attempt=newest.attempt, old_id=newest.id)


def _has_no_address(sandbox: SandboxRecord) -> bool:
    """Whether the runtime reports the sandbox's own network, and no IP in it."""
    return not sandbox.host_network and sandbox.ips is not None and not sandbox.ips


def compute_actions(now: Situation) -> Actions:
    """What is to be done for a pod that is meant to run (SYNC-03, step 1)."""
    return _in_new_sandbox(now) if now.sandbox.changed else _in_same_sandbox(now)


def _in_new_sandbox(now: Situation) -> Actions:
    """Table 27.2: the pod is stopped, and comes back only if something is left to run (SANDBOX-05..08)."""
    pod, change = now.pod, now.sandbox
    stopped = Actions(change.attempt, old_sandbox_id=change.old_id, kill_pod=True)
    if not restarts_on_failure(pod) and change.attempt != 0 and now.records.containers:
        return stopped
    to_start = tuple(one for one in pods.containers(pod) if not _is_done(now, one))
    if not to_start and init_progress(pod, now.records).done:
        return stopped
    inits = pods.init_containers(pod)
    return Actions(
        change.attempt,
        old_sandbox_id=change.old_id,
        kill_pod=True,
        create_sandbox=True,
        next_init=inits[0] if inits else None,
        to_start=() if inits else to_start,
    )


def _is_done(now: Situation, container: Container) -> bool:
    """Whether an app container has succeeded and, by policy OnFailure, is not to run again (SANDBOX-07)."""
    record = now.records.newest(container.name)
    if pods.restart_policy(now.pod) != pods.ON_FAILURE or record is None or record.exit_code != 0:
        return False
    return record.has_exited if now.behaviour.succeeded_means_exited else not record.is_running


def _in_same_sandbox(now: Situation) -> Actions:
    """Table 27.3: ephemeral containers, then initialization, then the app containers."""
    change = now.sandbox
    found = Actions(change.attempt, change.old_id, change.old_id, ephemeral=_ephemeral_to_start(now))
    progress = init_progress(now.pod, now.records)
    return _app_actions(now, found) if progress.done else _init_actions(now, found, progress)


def _ephemeral_to_start(now: Situation) -> tuple[EphemeralContainer, ...]:
    """An ephemeral container is started once: when nothing is known of it (EPH-01, EPH-02)."""
    known = {record.name for record in now.records.containers}
    return tuple(one for one in pods.ephemeral_containers(now.pod) if one.name not in known)


def _init_actions(now: Situation, found: Actions, progress: InitProgress) -> Actions:
    """The next init container is started, alone; a failed one under Never ends the pod (INIT-01..11)."""
    one, record = progress.next, progress.record
    if one is None:
        return found
    if progress.failed and not restarts_on_failure(now.pod):
        return replace(found, kill_pod=True)
    if record is not None and record.state is ContainerState.UNKNOWN:
        kill = Kill(record, one, KillReason.UNKNOWN, f"Init container {_lost(record)}")
        return replace(found, next_init=one, to_kill=(kill,))
    return replace(found, next_init=one)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What becomes of one app container: it is kept, stopped, started, or stopped and started."""

    kept: bool = False
    kill: Kill | None = None
    start: bool = False


def _app_actions(now: Situation, found: Actions) -> Actions:
    """Each app container by itself (RESTART-17); a pod in which none is kept or started is killed."""
    verdicts = [(one, _verdict(now, one)) for one in pods.containers(now.pod)]
    to_start = tuple(one for one, verdict in verdicts if verdict.start)
    to_kill = tuple(verdict.kill for _, verdict in verdicts if verdict.kill is not None)
    over = not to_start and not any(verdict.kept for _, verdict in verdicts)
    return replace(found, kill_pod=over, to_kill=to_kill, to_start=to_start)


def _verdict(now: Situation, one: Container) -> _Verdict:
    """Rows B1 to B15 of table 27.3."""
    record = now.records.newest(one.name)
    if record is not None and record.is_running:
        return _verdict_on_running(now, one, record)
    start = should_restart(now.pod, one, record)
    if start and record is not None and record.state is ContainerState.UNKNOWN:
        kill = Kill(record, one, KillReason.UNKNOWN, f"Container {_lost(record)}")
        return _Verdict(kill=kill, start=True)
    return _Verdict(start=start)


def _verdict_on_running(now: Situation, one: Container, record: ContainerRecord) -> _Verdict:
    """A running container is kept, unless its definition changed or a probe gave it up.

    A changed definition restarts under every policy (RESTART-07), a failed probe as the policy says
    (RESTART-09, RESTART-10).
    """
    restart = restarts_on_failure(now.pod)
    if record.hash != container_hash(one, now.behaviour):
        reason, what, restart = KillReason.UNKNOWN, "definition changed", True
    elif now.liveness(record.id) is ProbeOutcome.FAILURE:
        reason, what = KillReason.LIVENESS_PROBE, "failed liveness probe"
    elif now.startup(record.id) is ProbeOutcome.FAILURE:
        reason, what = KillReason.STARTUP_PROBE, "failed startup probe"
    else:
        return _Verdict(kept=True)
    message = f"Container {one.name} {what}{', will be restarted' if restart else ''}"
    return _Verdict(kill=Kill(record, one, reason, message), start=restart)


def _lost(record: ContainerRecord) -> str:
    """Says that nobody knows whether the instance still runs: it is stopped before another starts."""
    return f'is in "{record.state.lower()}" state, try killing it before restart'
