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

__all__ = (
    "ActionRules",
    "Actions",
    "Kill",
    "SandboxChange",
    "Situation",
    "Verdict",
    "compute_actions",
    "sandbox_changed",
)


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


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one app container: it is kept, stopped, started, or stopped and started."""

    kept: bool = False
    kill: Kill | None = None
    start: bool = False


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


class ActionRules:
    """Tables 27.2 and 27.3, each rule a method of its own: whoever decides otherwise overrides that one."""

    def compute(self, now: Situation) -> Actions:
        """What is to be done for a pod that is meant to run (SYNC-03, step 1)."""
        return self.in_new_sandbox(now) if now.sandbox.changed else self.in_same_sandbox(now)

    def in_new_sandbox(self, now: Situation) -> Actions:
        """Table 27.2: the pod is stopped, and comes back if something is left to run (SANDBOX-05..08)."""
        pod, change = now.pod, now.sandbox
        stopped = Actions(change.attempt, old_sandbox_id=change.old_id, kill_pod=True)
        if self.has_had_its_run(now):
            return stopped
        to_start = tuple(one for one in pods.containers(pod) if not self.is_done(now, one))
        if not to_start and self.init_progress(now).done:
            return stopped
        inits = pods.init_containers(pod)
        if inits:
            return replace(stopped, create_sandbox=True, next_init=inits[0])
        return replace(stopped, create_sandbox=True, to_start=to_start)

    def has_had_its_run(self, now: Situation) -> bool:
        """Whether a pod with policy Never has had containers: it gets no second sandbox (SANDBOX-06)."""
        return not restarts_on_failure(now.pod) and now.sandbox.attempt != 0 and bool(now.records.containers)

    def is_done(self, now: Situation, container: Container) -> bool:
        """Whether an app container has succeeded and by policy OnFailure does not run again (SANDBOX-07)."""
        record = now.records.newest(container.name)
        if pods.restart_policy(now.pod) != pods.ON_FAILURE or record is None or record.exit_code != 0:
            return False
        return record.has_exited if now.behaviour.succeeded_means_exited else not record.is_running

    def in_same_sandbox(self, now: Situation) -> Actions:
        """Table 27.3: ephemeral containers, then initialization, then the app containers."""
        change, ephemeral = now.sandbox, self.ephemeral_to_start(now)
        found = Actions(change.attempt, change.old_id, change.old_id, ephemeral=ephemeral)
        progress = self.init_progress(now)
        return self.app_actions(now, found) if progress.done else self.init_actions(now, found, progress)

    def ephemeral_to_start(self, now: Situation) -> tuple[EphemeralContainer, ...]:
        """An ephemeral container is started once: when nothing is known of it (EPH-01, EPH-02)."""
        known = {record.name for record in now.records.containers}
        return tuple(one for one in pods.ephemeral_containers(now.pod) if one.name not in known)

    def init_progress(self, now: Situation) -> InitProgress:
        """How far the init containers have come (table 27.4)."""
        return init_progress(now.pod, now.records)

    def init_actions(self, now: Situation, found: Actions, progress: InitProgress) -> Actions:
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

    def app_actions(self, now: Situation, found: Actions) -> Actions:
        """Each app container by itself (RESTART-17); a pod in which none is kept or started is killed."""
        verdicts = [(one, self.verdict(now, one)) for one in pods.containers(now.pod)]
        to_start = tuple(one for one, verdict in verdicts if verdict.start)
        to_kill = tuple(verdict.kill for _, verdict in verdicts if verdict.kill is not None)
        over = not to_start and not any(verdict.kept for _, verdict in verdicts)
        return replace(found, kill_pod=over, to_kill=to_kill, to_start=to_start)

    def verdict(self, now: Situation, one: Container) -> Verdict:
        """Rows B1 to B15 of table 27.3."""
        record = now.records.newest(one.name)
        if record is not None and record.is_running:
            return self.verdict_on_running(now, one, record)
        start = self.should_restart(now, one, record)
        if start and record is not None and record.state is ContainerState.UNKNOWN:
            kill = Kill(record, one, KillReason.UNKNOWN, f"Container {_lost(record)}")
            return Verdict(kill=kill, start=True)
        return Verdict(start=start)

    def should_restart(self, now: Situation, one: Container, record: ContainerRecord | None) -> bool:
        """Whether a container that does not run is started (RESTART-01..06)."""
        return should_restart(now.pod, one, record)

    def verdict_on_running(self, now: Situation, one: Container, record: ContainerRecord) -> Verdict:
        """A running container is kept, unless its definition changed or a probe gave it up.

        A changed definition restarts under every policy (RESTART-07), a failed probe as the policy says
        (RESTART-09, RESTART-10).
        """
        restart = restarts_on_failure(now.pod)
        if self.has_changed(now, one, record):
            reason, what, restart = KillReason.UNKNOWN, "definition changed", True
        elif now.liveness(record.id) is ProbeOutcome.FAILURE:
            reason, what = KillReason.LIVENESS_PROBE, "failed liveness probe"
        elif now.startup(record.id) is ProbeOutcome.FAILURE:
            reason, what = KillReason.STARTUP_PROBE, "failed startup probe"
        else:
            return Verdict(kept=True)
        message = f"Container {one.name} {what}{', will be restarted' if restart else ''}"
        return Verdict(kill=Kill(record, one, reason, message), start=restart)

    def has_changed(self, now: Situation, one: Container, record: ContainerRecord) -> bool:
        """Whether the instance is of another definition than the wanted one (RESTART-07, RESTART-08)."""
        return record.hash != container_hash(one, now.behaviour)


def _lost(record: ContainerRecord) -> str:
    """Says that nobody knows whether the instance still runs: it is stopped before another starts."""
    return f'is in "{record.state.lower()}" state, try killing it before restart'


def compute_actions(now: Situation) -> Actions:
    """What is to be done for a pod that is meant to run, by the rules as they are."""
    return _RULES.compute(now)


_RULES = ActionRules()
