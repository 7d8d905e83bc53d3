"""Which containers a sync starts, stops and resizes, and whether it needs a new sandbox.

Nothing here acts: `compute_actions` is a pure function of a `SyncInput`. Each table is
tried from the top, and the first row that fits decides. `NEW_SANDBOX` says what becomes of a pod whose
sandbox is of no more use: in any case it is stopped. `RUNNING` says why a container that runs is
stopped, if it is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter

import msgspec
from lightkube.models.core_v1 import Container, EphemeralContainer
from msgspec.structs import replace

from kubelet_reference.allocation.resize_rules import (
    ResourceChange,
    in_order,
    needs_restart,
    resource_changes,
)
from kubelet_reference.api import pods
from kubelet_reference.api.records import ContainerRecord, ContainerState
from kubelet_reference.api.restart_policy import (
    RESTART_ALL,
    fails_for_good,
    policy_of,
    restarts_on_failure,
    rule_for,
    should_restart,
)
from kubelet_reference.api.results import KillReason, ProbeOutcome
from kubelet_reference.kuberuntime.actions.container_hash import container_hash
from kubelet_reference.kuberuntime.actions.init_containers import InitProgress, init_progress
from kubelet_reference.kuberuntime.actions.sidecars import SidecarRules, app_was_made
from kubelet_reference.kuberuntime.actions.sync_input import Kill, SyncInput
from kubelet_reference.util.decision_table import Row, Table


class Next(Enum):
    """What follows when a pod is stopped because its sandbox is no longer usable."""

    NOTHING = "it stays stopped"
    INIT = "a new sandbox, and the first init container in it"
    APPS = "a new sandbox, and the app containers that are left to run"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The facts that decide what follows when a pod is stopped.

    `had_its_run`: it is not to be restarted, and has had containers. `has_more`: an app container is left to
    run. `initialized`: its init containers were through. `has_inits`: it has init containers.
    """

    had_its_run: bool
    has_more: bool
    initialized: bool
    has_inits: bool


NEW_SANDBOX = Table[Stopped, Row[Stopped, Next]](
    Row("A1", lambda s: s.had_its_run, Next.NOTHING),
    Row("A4", lambda s: not s.has_more and s.initialized, Next.NOTHING),
    Row("A3, A5, A7", lambda s: s.has_inits, Next.INIT),
    Row("A2, A6", lambda _: True, Next.APPS),
)


class Running(msgspec.Struct, frozen=True):
    """What is known of a running container: whether it matches its spec, its probes, and its resources."""

    has_changed: bool
    liveness_failed: bool
    startup_failed: bool
    needs_restart_to_resize: bool


@dataclass(frozen=True, slots=True)
class RunningRow(Row[Running, KillReason | None]):
    """Where `when` holds the container is stopped for that reason; None is one that is kept.

    `comes_again` says that it is started again under every restart policy, and not only as that says.
    """

    text: str = ""
    comes_again: bool = False


RUNNING = Table[Running, RunningRow](
    RunningRow("B9", lambda r: r.has_changed, KillReason.UNKNOWN, "definition changed", comes_again=True),
    RunningRow("B10, B11", lambda r: r.liveness_failed, KillReason.LIVENESS_PROBE, "failed liveness probe"),
    RunningRow("B12, B13", lambda r: r.startup_failed, KillReason.STARTUP_PROBE, "failed startup probe"),
    RunningRow(
        "B14",
        lambda r: r.needs_restart_to_resize,
        KillReason.UNKNOWN,
        "resize requires restart",
        comes_again=True,
    ),
    RunningRow("B15", lambda _: True, None),
)


class PodActions(msgspec.Struct, frozen=True):
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
    inits: tuple[Container, ...] = ()
    to_start: tuple[Container, ...] = ()
    resizes: tuple[ResourceChange, ...] = ()
    to_reset: tuple[ContainerRecord, ...] = ()
    """All instances of a pod that restarts in its sandbox, in the order in which they are removed."""


class ContainerDecision(msgspec.Struct, frozen=True):
    """What becomes of one app container: it is kept, stopped, started, or stopped and started.

    One that is kept may be given other resources while it runs.
    """

    kept: bool = False
    kill: Kill | None = None
    start: bool = False
    resizes: tuple[ResourceChange, ...] = ()


class ActionRules:
    """`compute_actions` as methods: each rule may be overridden by a subclass.

    `sidecars` decides about the init containers of pods that have some.
    """

    def __init__(self, sidecars: SidecarRules | None = None) -> None:
        self.sidecars = sidecars or SidecarRules()

    def compute(self, now: SyncInput) -> PodActions:
        """What is to be done for a pod that is meant to run (SYNC-03, step 1)."""
        return self.in_new_sandbox(now) if now.sandbox.changed else self.in_same_sandbox(now)

    def in_new_sandbox(self, now: SyncInput) -> PodActions:
        """By `NEW_SANDBOX`: the pod is stopped, and restarts if something is left to run (SANDBOX-05..08)."""
        pod, change = now.pod, now.sandbox
        stopped = PodActions(change.attempt, old_sandbox_id=change.old_id, kill_pod=True)
        to_start = tuple(one for one in pods.containers(pod) if not self.is_done(now, one))
        inits = pods.init_containers(pod)
        facts = Stopped(
            had_its_run=self.has_had_its_run(now),
            has_more=bool(to_start),
            initialized=self.was_initialized(now),
            has_inits=bool(inits),
        )
        match NEW_SANDBOX.row(facts).then:
            case Next.NOTHING:
                return stopped
            case Next.INIT:
                return replace(stopped, create_sandbox=True, inits=(inits[0],))
            case Next.APPS:
                return replace(stopped, create_sandbox=True, to_start=to_start)

    def has_had_its_run(self, now: SyncInput) -> bool:
        """Whether a pod with policy Never has had containers: it gets no second sandbox (SANDBOX-06)."""
        return not restarts_on_failure(now.pod) and now.sandbox.attempt != 0 and bool(now.records.containers)

    def is_done(self, now: SyncInput, container: Container) -> bool:
        """Whether an app container has succeeded and by policy OnFailure does not run again (SANDBOX-07)."""
        record = now.records.newest(container.name)
        if pods.restart_policy(now.pod) != pods.ON_FAILURE or record is None or record.exit_code != 0:
            return False
        return record.has_exited if now.behaviour.succeeded_means_exited else not record.is_running

    def in_same_sandbox(self, now: SyncInput) -> PodActions:
        """Ephemeral containers, then initialization, then the app containers."""
        change, ephemeral = now.sandbox, self.ephemeral_to_start(now)
        found = PodActions(change.attempt, change.old_id, change.old_id, ephemeral=ephemeral)
        if self.asks_for_all(now):
            return replace(found, to_reset=self.all_instances(now))
        if pods.has_sidecars(now.pod):
            return self.with_sidecars(now, found)
        progress = self.init_progress(now)
        return self.app_actions(now, found) if progress.done else self.init_actions(now, found, progress)

    def asks_for_all(self, now: SyncInput) -> bool:
        """Whether the end of a container is to restart all of its pod (RESTART-22)."""
        if not now.behaviour.restarts_all_containers or pods.deletion_asked(now.pod):
            return False
        containers = (*pods.init_containers(now.pod), *pods.containers(now.pod))
        return any(
            self.asks(now, one, record)
            for one in containers
            if (record := now.records.newest(one.name)) is not None
        )

    def asks(self, now: SyncInput, container: Container, record: ContainerRecord) -> bool:
        """Whether a rule of the container says for the end of this instance that all restart."""
        rule = rule_for(now.pod, container, record.exit_code, now.behaviour)
        return record.has_exited and rule == RESTART_ALL

    def all_instances(self, now: SyncInput) -> tuple[ContainerRecord, ...]:
        """All instances of a pod's containers, those that ask for the restart last (RESTART-22).

        Where one that comes before them cannot be removed, the next sync still knows that the pod restarts.
        """
        found = [
            (self.asks(now, one, record), record)
            for one in (*pods.containers(now.pod), *pods.init_containers(now.pod))
            for record in now.records.containers
            if record.name == one.name
        ]
        return tuple(record for _, record in sorted(found, key=itemgetter(0)))

    def ephemeral_to_start(self, now: SyncInput) -> tuple[EphemeralContainer, ...]:
        """An ephemeral container is started once: when nothing is known of it (EPH-01, EPH-02)."""
        known = {record.name for record in now.records.containers}
        return tuple(one for one in pods.ephemeral_containers(now.pod) if one.name not in known)

    def with_sidecars(self, now: SyncInput, found: PodActions) -> PodActions:
        """Sidecars are looked after at all times, the app containers once the pod is initialized.

        They do not keep a pod: where no app container is kept or started they go with it (SIDECAR-11).
        """
        progress = self.sidecars.progress(now)
        if progress.kill_pod:
            return replace(found, kill_pod=True)
        inits = replace(found, inits=progress.to_start, to_kill=progress.to_kill)
        if not progress.initialized:
            return inits
        apps = self.app_actions(now, found)
        if apps.kill_pod:
            return apps
        return replace(apps, inits=inits.inits, to_kill=(*inits.to_kill, *apps.to_kill))

    def was_initialized(self, now: SyncInput) -> bool:
        """Whether the records of a pod whose sandbox is no good show that it has been initialized."""
        if pods.has_sidecars(now.pod):
            return app_was_made(now.pod, now.records)
        return self.init_progress(now).done

    def init_progress(self, now: SyncInput) -> InitProgress:
        """How far the init containers have come, by `INIT_ROWS`."""
        return init_progress(now.pod, now.records)

    def init_actions(self, now: SyncInput, found: PodActions, progress: InitProgress) -> PodActions:
        """The next init container is started, alone; a failed one under Never ends the pod (INIT-01..11)."""
        one, record = progress.next, progress.record
        if one is None:
            return found
        if record is None:
            return replace(found, inits=(one,))
        if progress.failed and fails_for_good(now.pod, one, record.exit_code, now.behaviour):
            return replace(found, kill_pod=True)
        if record.state is ContainerState.UNKNOWN:
            kill = Kill(record, one, KillReason.UNKNOWN, f"Init container {_lost(record)}")
            return replace(found, inits=(one,), to_kill=(kill,))
        return replace(found, inits=(one,))

    def app_actions(self, now: SyncInput, found: PodActions) -> PodActions:
        """Each app container by itself (RESTART-17); a pod in which none is kept or started is killed."""
        decisions = [(one, self.app_decision(now, one)) for one in pods.containers(now.pod)]
        to_start = tuple(one for one, app_decision in decisions if app_decision.start)
        to_kill = tuple(app_decision.kill for _, app_decision in decisions if app_decision.kill is not None)
        over = not to_start and not any(app_decision.kept for _, app_decision in decisions)
        resizes = self.in_order(change for _, app_decision in decisions for change in app_decision.resizes)
        return replace(found, kill_pod=over, to_kill=to_kill, to_start=to_start, resizes=resizes)

    def in_order(self, resizes: Iterable[ResourceChange]) -> tuple[ResourceChange, ...]:
        """Changes of several containers, in the order in which they are made (RESIZE-04)."""
        return in_order(resizes)

    def app_decision(self, now: SyncInput, one: Container) -> ContainerDecision:
        """What becomes of one app container, by `RUNNING` if it runs and by `RESTARTS` if it does not."""
        record = now.records.newest(one.name)
        if record is not None and record.is_running:
            return self.running_decision(now, one, record)
        start = self.should_restart(now, one, record)
        if start and record is not None and record.state is ContainerState.UNKNOWN:
            kill = Kill(record, one, KillReason.UNKNOWN, f"Container {_lost(record)}")
            return ContainerDecision(kill=kill, start=True)
        return ContainerDecision(start=start)

    def should_restart(self, now: SyncInput, one: Container, record: ContainerRecord | None) -> bool:
        """Whether a container that does not run is started (RESTART-01..06)."""
        return should_restart(now.pod, one, record, now.behaviour)

    def running_decision(self, now: SyncInput, one: Container, record: ContainerRecord) -> ContainerDecision:
        """A running container is kept, unless its definition changed or a probe gave it up.

        A changed definition restarts under every policy (RESTART-07), a failed probe as the policy says
        (RESTART-09, RESTART-10).
        """
        row = RUNNING.row(
            Running(
                has_changed=self.has_changed(now, one, record),
                liveness_failed=now.liveness(record.id) is ProbeOutcome.FAILURE,
                startup_failed=now.startup(record.id) is ProbeOutcome.FAILURE,
                needs_restart_to_resize=self.must_restart_to_resize(now, one, record),
            )
        )
        if row.then is None:
            return ContainerDecision(kept=True, resizes=self.resizes(now, one, record))
        restart = row.comes_again or policy_of(now.pod, one, now.behaviour) != pods.NEVER
        message = f"Container {one.name} {row.text}{', will be restarted' if restart else ''}"
        return ContainerDecision(kill=Kill(record, one, row.then, message), start=restart)

    def resizes(self, now: SyncInput, one: Container, record: ContainerRecord) -> tuple[ResourceChange, ...]:
        """What a running container is given or taken (RESIZE-01); in a static pod nothing (STATIC-24)."""
        if not now.behaviour.resizes_in_place or pods.is_static(now.pod):
            return ()
        return resource_changes(now.pod, one, record)

    def must_restart_to_resize(self, now: SyncInput, one: Container, record: ContainerRecord) -> bool:
        """Whether by its policy the container gets other resources only as another instance (B14)."""
        return needs_restart(one, self.resizes(now, one, record))

    def has_changed(self, now: SyncInput, one: Container, record: ContainerRecord) -> bool:
        """Whether the instance is of another definition than the spec's (RESTART-07, RESTART-08)."""
        return record.hash != container_hash(one, now.behaviour)


def _lost(record: ContainerRecord) -> str:
    """Says that it is unknown whether the instance still runs: it is stopped before another starts."""
    return f'is in "{record.state}" state, try killing it before restart'


def compute_actions(now: SyncInput) -> PodActions:
    """What is to be done for a pod that is meant to run, by the rules as they are."""
    return _RULES.compute(now)


_RULES = ActionRules()
