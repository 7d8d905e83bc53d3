"""Bugs of sidecars: when they start and come back, and what waits for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

from lightkube.models.core_v1 import Container, LifecycleHandler, Pod, PodStatus
from msgspec import structs

from kubelet_bugs.bug import Bug
from kubelet_reference import pods
from kubelet_reference.admission import HANDLERS, sidecars_allowed
from kubelet_reference.hooks import Hooks
from kubelet_reference.parts import Parts
from kubelet_reference.pod_actions import ActionRules, Actions
from kubelet_reference.pods import AnyContainer
from kubelet_reference.ports import HttpGet
from kubelet_reference.probe_worker import ProbeWorker
from kubelet_reference.prober import Prober
from kubelet_reference.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.restart_policy import restarts_on_failure
from kubelet_reference.results import KillReason, ProbeKind, ProbeOutcome
from kubelet_reference.runtime_manager import INIT, RuntimeManager
from kubelet_reference.runtime_side import RuntimeParts
from kubelet_reference.runtime_tools import RuntimeTools
from kubelet_reference.sidecar_progress import InitSight, SidecarProgress, SidecarRow, SidecarRules, Step
from kubelet_reference.status_manager import StatusManager
from kubelet_reference.status_rules import resurrected
from kubelet_reference.sync_input import Situation


class _ExitedAppsAreProof(SidecarRules):
    """Takes an app container that ended, in whatever sandbox, for a sign that the pod is initialized."""

    def is_proven(self, pod: Pod, records: PodRecords) -> bool:
        names = {one.name for one in pods.containers(pod)}
        return any(record.name in names for record in records.containers)


class _StartedIsEnough(SidecarRules):
    """Does not look at startup probes."""

    def sight(self, now: Situation, index: int, *, decided: bool) -> InitSight:
        return structs.replace(super().sight(now, index, decided=decided), has_startup=False)


class _UnprobedHasFailed(SidecarRules):
    """Takes a startup probe that has not been run yet for one that failed."""

    def sight(self, now: Situation, index: int, *, decided: bool) -> InitSight:
        seen = super().sight(now, index, decided=decided)
        unknown = seen.startup in {None, ProbeOutcome.UNKNOWN}
        return structs.replace(seen, startup=ProbeOutcome.FAILURE) if unknown else seen


class _FailureIsAnAnswer(SidecarRules):
    """Goes on when the startup probe has come to a result, whichever."""

    def sight(self, now: Situation, index: int, *, decided: bool) -> InitSight:
        seen = super().sight(now, index, decided=decided)
        failed = seen.startup is ProbeOutcome.FAILURE
        return structs.replace(seen, startup=ProbeOutcome.SUCCESS) if failed else seen


class _PodGoesWithItsSidecar(SidecarRules):
    """Kills the whole pod for a sidecar that failed its liveness probe."""

    def progress(self, now: Situation) -> SidecarProgress:
        found = super().progress(now)
        failed = any(kill.reason is KillReason.LIVENESS_PROBE for kill in found.to_kill)
        return SidecarProgress(kill_pod=True) if failed else found


class _Without(SidecarRules):
    """Knows the table but for some rows, which do nothing."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def rows_for(self, sight: InitSight) -> Iterator[SidecarRow]:
        for row in super().rows_for(sight):
            if row.name not in self._names:
                yield row
            elif Step.DECIDED in row.step:
                yield replace(row, step=Step.DECIDED)


class _PolicyOfThePod(SidecarRules):
    """Applies the restart policy of the pod to its sidecars."""

    def rows_for(self, sight: InitSight) -> Iterator[SidecarRow]:
        for row in super().rows_for(sight):
            over = row.name == "S13" and (sight.never or not sight.failed)
            yield replace(row, step=Step.DECIDED) if over else row


class _BesideAppsOnly(SidecarRules):
    """Brings sidecars back only once the app containers are there."""

    def progress(self, now: Situation) -> SidecarProgress:
        found = super().progress(now)
        if found.initialized:
            return found
        known = {record.name for record in now.records.containers if record.has_exited}
        left = (one for one in found.to_start if not (pods.is_sidecar(one) and one.name in known))
        return structs.replace(found, to_start=tuple(left))


class _ChangesAreForApps(SidecarRules):
    """Does not compare the definition of sidecars."""

    def has_changed(self, now: Situation, one: Container, record: ContainerRecord) -> bool:
        return False


class _SidecarBesideTheLost(SidecarRules):
    """Starts another instance of a sidecar beside one of which nobody knows whether it runs."""

    def rows_for(self, sight: InitSight) -> Iterator[SidecarRow]:
        for row in super().rows_for(sight):
            yield replace(row, step=row.step & ~Step.KILL) if row.name == "S18" else row


class _SidecarsKeepThePod(ActionRules):
    """Lets a pod go on for as long as its sidecars do."""

    def with_sidecars(self, now: Situation, found: Actions) -> Actions:
        decided = super().with_sidecars(now, found)
        progress = self.sidecars.progress(now)
        if not decided.kill_pod or progress.kill_pod:
            return decided
        return structs.replace(found, inits=progress.to_start, to_kill=progress.to_kill)


class _NeverInitialized(ActionRules):
    """Sees no sign of a finished run in a pod with sidecars whose sandbox died."""

    def was_initialized(self, now: Situation) -> bool:
        return not pods.has_sidecars(now.pod) and super().was_initialized(now)


class _BeginsWithTheApps(ActionRules):
    """Counts sidecars as started in a new sandbox too, and begins with what comes after them."""

    def in_new_sandbox(self, now: Situation) -> Actions:
        found = super().in_new_sandbox(now)
        regular = tuple(one for one in pods.init_containers(now.pod) if not pods.is_sidecar(one))
        return structs.replace(found, inits=regular[:1]) if found.inits and regular else found


class _NoAppAfterTheFirst(ActionRules):
    """Takes a sidecar that runs for a sign of an initialization under way, though app containers ended."""

    def with_sidecars(self, now: Situation, found: Actions) -> Actions:
        decided = super().with_sidecars(now, found)
        apps = [now.records.newest(one.name) for one in pods.containers(now.pod)]
        unproven = any(apps) and not any(one and one.state is ContainerState.RUNNING for one in apps)
        return structs.replace(decided, to_start=()) if unproven else decided


class _EverySidecarIsNeeded(RuntimeManager):
    """Starts nothing more when a sidecar could not be."""

    def is_needed(self, container: AnyContainer, kind: str) -> bool:
        return kind == INIT


class _HooksInPassing(Hooks):
    """Lets the postStart hook of a sidecar run by itself."""

    def __init__(
        self, tools: RuntimeTools, http: HttpGet | None, pod_ip: Callable[[Pod], Awaitable[str]]
    ) -> None:
        super().__init__(tools, http, pod_ip)
        self._spawn = tools.spawn

    async def run(
        self, pod: Pod, container: AnyContainer, container_id: str, handler: LifecycleHandler
    ) -> None:
        hook = super().run(pod, container, container_id, handler)
        is_post_start = container.lifecycle is not None and handler is container.lifecycle.postStart
        if pods.is_sidecar(container) and is_post_start:
            self._spawn(hook)
        else:
            await hook


class _EndsWithThePolicy(ProbeWorker):
    """Ends when a container ended in a pod that runs once, though a sidecar comes again."""

    def restarts(self) -> bool:
        return restarts_on_failure(self.pod)


class _ProbesByPolicy(Prober):
    """Asks the pod's policy whether there is something to probe any more."""

    worker_type = _EndsWithThePolicy

    def _forget(self, uid: str, key: tuple[str, ProbeKind]) -> None:
        """Take the worker for one that goes on."""


class _EndsAreForEver(StatusManager):
    """Takes the end of a sidecar for final where it would be so for an app container."""

    def _resurrected(self, pod: Pod, before: PodStatus, status: PodStatus) -> str | None:
        plain = [structs.replace(one, restartPolicy=None) for one in pods.init_containers(pod)]
        spec = structs.replace(pods.spec(pod), initContainers=plain)
        return resurrected(structs.replace(pod, spec=spec), before, status, self._behaviour)


def _deciding(rules: ActionRules) -> Parts:
    return Parts(runtime=RuntimeParts(compute_actions=rules.compute))


def _walking(rules: SidecarRules) -> Parts:
    return _deciding(ActionRules(rules))


BUGS: tuple[Bug, ...] = (
    Bug(
        "K8S-136969",
        "App containers are not run again beside a running sidecar once all of them have ended.",
        lambda: _deciding(_NoAppAfterTheFirst()),
        ("RESTART-05",),
        ("K8S-137146", "K8S-137885"),
    ),
    Bug(
        "K8S-132826",
        "The startup probe of a sidecar is not run again for its next instance in a pod that runs once.",
        lambda: Parts(prober=_ProbesByPolicy),
        ("SIDECAR-04",),
        ("K8S-133072", "K8S-134800"),
    ),
    Bug(
        "K8S-123323",
        "The status of a sidecar stays at its first end in a pod that runs once.",
        lambda: Parts(status_manager=_EndsAreForEver),
        ("SIDECAR-04",),
        ("K8S-123709",),
    ),
    Bug(
        "K8S-120269",
        "App containers that ended pass for a finished initialization of a pod with sidecars.",
        lambda: _walking(_ExitedAppsAreProof()),
        ("SIDECAR-26",),
    ),
    Bug(
        "MUT-SIDECAR-01",
        "Pods with sidecars are run though the gate SidecarContainers is off.",
        lambda: Parts(admission_handlers=tuple(one for one in HANDLERS if one is not sidecars_allowed)),
        ("SIDECAR-01",),
    ),
    Bug(
        "MUT-SIDECAR-02",
        "What comes after a sidecar does not wait for its startup probe.",
        lambda: _walking(_StartedIsEnough()),
        ("SIDECAR-02", "SIDECAR-04", "SIDECAR-05"),
    ),
    Bug(
        "MUT-SIDECAR-03",
        "What comes after a sidecar does not wait for its postStart hook.",
        lambda: Parts(runtime=RuntimeParts(hooks=_HooksInPassing)),
        ("SIDECAR-03",),
    ),
    Bug(
        "MUT-SIDECAR-04",
        "A sidecar is stopped because its startup probe has not been run yet.",
        lambda: _walking(_UnprobedHasFailed()),
        ("SIDECAR-04",),
    ),
    Bug(
        "MUT-SIDECAR-05",
        "A sidecar whose startup probe failed counts as started.",
        lambda: _walking(_FailureIsAnAnswer()),
        ("SIDECAR-02", "SIDECAR-05"),
    ),
    Bug(
        "MUT-SIDECAR-06",
        "The whole pod is killed when a sidecar fails its liveness probe.",
        lambda: _walking(_PodGoesWithItsSidecar()),
        ("SIDECAR-06",),
    ),
    Bug(
        "MUT-SIDECAR-07",
        "The restart policy of the pod is applied to its sidecars.",
        lambda: _walking(_PolicyOfThePod()),
        ("SIDECAR-07",),
    ),
    Bug(
        "MUT-SIDECAR-08",
        "A sidecar that cannot be started holds up all that come after it.",
        lambda: Parts(runtime=RuntimeParts(runtime_manager=_EverySidecarIsNeeded)),
        ("SIDECAR-08",),
    ),
    Bug(
        "MUT-SIDECAR-09",
        "A sidecar whose record was lost is not made again.",
        lambda: _walking(_Without("S1")),
        ("SIDECAR-09",),
    ),
    Bug(
        "MUT-SIDECAR-10",
        "A sidecar that ends during the initialization comes back only after it.",
        lambda: _walking(_BesideAppsOnly()),
        ("SIDECAR-10",),
    ),
    Bug(
        "MUT-SIDECAR-11",
        "A pod whose app containers are done goes on for as long as its sidecars do.",
        lambda: _deciding(_SidecarsKeepThePod()),
        ("SIDECAR-11",),
    ),
    Bug(
        "MUT-SIDECAR-20",
        "A sidecar runs on with its old image.",
        lambda: _walking(_ChangesAreForApps()),
        ("SIDECAR-20",),
    ),
    Bug(
        "MUT-SIDECAR-21",
        "A sidecar that was created and could not be started is left so.",
        lambda: _walking(_Without("S4")),
        ("SIDECAR-21",),
    ),
    Bug(
        "MUT-SIDECAR-22",
        "A sidecar of unknown state is replaced without having been stopped.",
        lambda: _walking(_SidecarBesideTheLost()),
        ("SIDECAR-22",),
    ),
    Bug(
        "MUT-SIDECAR-23-ORDER",
        "A new sandbox begins with the regular init containers, without the sidecars before them.",
        lambda: _deciding(_BeginsWithTheApps()),
        ("SIDECAR-23",),
    ),
    Bug(
        "MUT-SIDECAR-23",
        "A pod with sidecars that has had its run gets another sandbox when that of its last one died.",
        lambda: _deciding(_NeverInitialized()),
        ("SIDECAR-23",),
    ),
)
