"""How far the init containers of a pod with sidecars have come, and what is to be done for each.

A sidecar is an init container that never ends: it has done its part once it runs and its startup probe, if
it has one, has succeeded (SIDECAR-02). From then on it is kept up beside the others, whatever the policy of
its pod (SIDECAR-07).

The init containers are walked through from the last to the first. The last one of which anything is known
decides how far the pod has come: it is waited for, tried again, or the one after it is next. All before it
are past, which means that of these only sidecars are looked after (SIDECAR-10). For each container the rows
are tried from the top, and the first that fits gives its step; only S9 and S10 let the search go on, for a
sidecar that has started may have to go all the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Flag, auto

import msgspec
from lightkube.models.core_v1 import Container, Pod

from kubelet_reference.api import pods
from kubelet_reference.api.records import ContainerRecord, ContainerState, PodRecords
from kubelet_reference.api.restart_policy import fails_for_good
from kubelet_reference.api.results import KillReason, ProbeOutcome
from kubelet_reference.kuberuntime.actions.container_hash import container_hash
from kubelet_reference.kuberuntime.actions.init_containers import has_failed
from kubelet_reference.kuberuntime.actions.sync_input import Kill, SyncInput
from kubelet_reference.util.decision_table import Row, Table

UNKNOWN, CREATED = ContainerState.UNKNOWN, ContainerState.CREATED


class Step(Flag):
    """What is done for one init container."""

    START = auto()
    """Start it."""
    KILL = auto()
    """Stop the instance that there is."""
    NEXT = auto()
    """Start the one after it."""
    INITIALIZED = auto()
    """It is the last, and through: the app containers may come."""
    END = auto()
    """Kill the pod."""
    DECIDED = auto()
    """All before it are past."""


_NOTHING = Step(0)
RESTART = Step.KILL | Step.START


class InitContainerFacts(msgspec.Struct, frozen=True):
    """What is seen of one init container; `state` is None where the runtime has no record of it.

    `decided` says that a later container, or a running app container, has shown how far the pod has come.
    `startup` is the published outcome of the startup probe, if there is such a probe (`has_startup`).
    """

    state: ContainerState | None
    sidecar: bool
    decided: bool
    last: bool
    failed: bool
    never: bool
    changed: bool
    has_startup: bool
    startup: ProbeOutcome | None
    liveness: ProbeOutcome | None

    @property
    def runs(self) -> bool:
        """Whether its process runs."""
        return self.state is ContainerState.RUNNING

    @property
    def ended(self) -> bool:
        """Whether its process has ended."""
        return self.state is ContainerState.EXITED

    @property
    def has_started(self) -> bool:
        """Whether it is a sidecar that has done its part."""
        startup_done = not self.has_startup or self.startup is ProbeOutcome.SUCCESS
        return self.runs and self.sidecar and startup_done


@dataclass(frozen=True, slots=True)
class SidecarRow(Row[InitContainerFacts, Step]):
    """Where `when` holds, the step `then` is taken; `why` is the reason of a kill.

    `goes_on` rows do not end the search.
    """

    why: KillReason = KillReason.UNKNOWN
    goes_on: bool = False


_STARTUP, _LIVENESS = KillReason.STARTUP_PROBE, KillReason.LIVENESS_PROBE
_FAILURE = ProbeOutcome.FAILURE

SIDECAR_ROWS = Table[InitContainerFacts, SidecarRow](
    SidecarRow("S1", lambda c: c.state is None and c.sidecar and c.decided, Step.START),
    SidecarRow("S2", lambda c: c.state is None, _NOTHING),
    SidecarRow("S3", lambda c: not c.sidecar and c.decided, _NOTHING),
    SidecarRow("S4", lambda c: c.state is CREATED, Step.START | Step.DECIDED),
    SidecarRow("S5", lambda c: c.runs and not c.sidecar, Step.DECIDED),
    SidecarRow("S6", lambda c: c.runs and c.has_startup and c.startup is None, Step.DECIDED),
    SidecarRow(
        "S7", lambda c: c.runs and c.has_startup and c.startup is _FAILURE, RESTART | Step.DECIDED, _STARTUP
    ),
    SidecarRow("S8", lambda c: c.runs and not c.has_started, Step.DECIDED),
    SidecarRow("S9", lambda c: c.runs and c.last, Step.INITIALIZED | Step.DECIDED, goes_on=True),
    SidecarRow("S10", lambda c: c.runs and not (c.last or c.decided), Step.NEXT | Step.DECIDED, goes_on=True),
    SidecarRow("S11", lambda c: c.runs and c.changed, RESTART | Step.DECIDED),
    SidecarRow("S12", lambda c: c.runs and c.liveness is _FAILURE, RESTART | Step.DECIDED, _LIVENESS),
    SidecarRow("S13", lambda c: c.ended and c.sidecar, Step.START | Step.DECIDED),
    SidecarRow("S14", lambda c: c.ended and c.failed, Step.START | Step.DECIDED),
    SidecarRow("S15", lambda c: c.ended and c.last, Step.INITIALIZED | Step.DECIDED),
    SidecarRow("S16", lambda c: c.ended, Step.NEXT | Step.DECIDED),
    SidecarRow("S17", lambda c: c.state is UNKNOWN and c.sidecar, RESTART | Step.DECIDED),
    SidecarRow("S18", lambda c: c.state is UNKNOWN and c.never, Step.END),
    SidecarRow("S19", lambda c: c.state is UNKNOWN, RESTART | Step.DECIDED),
)
"""The rows by their names; a container that runs, has started and is as desired is kept."""


class SidecarProgress(msgspec.Struct, frozen=True):
    """Whether the pod is initialized, and what is started and stopped, in the order of the spec.

    `kill_pod` says that an init container failed for good.
    """

    initialized: bool = False
    kill_pod: bool = False
    to_start: tuple[Container, ...] = ()
    to_kill: tuple[Kill, ...] = ()


@dataclass(slots=True)
class _Walk:
    """What the walk has found so far; containers are known by their place in the spec."""

    initialized: bool
    decided: bool
    starts: set[int] = field(default_factory=set[int])
    kills: list[Kill] = field(default_factory=list[Kill])


class SidecarRules:
    """The walk over the init containers; each rule is a method that a subclass may override."""

    def progress(self, now: SyncInput) -> SidecarProgress:
        """What is to be done for the init containers of a pod with sidecars."""
        inits = pods.init_containers(now.pod)
        proven = self.is_proven(now.pod, now.records)
        walk = _Walk(initialized=proven, decided=proven)
        for index in reversed(range(len(inits))):
            facts = self.facts(now, index, decided=walk.decided)
            for row in self.rows_for(facts):
                if Step.END in row.then:
                    return SidecarProgress(kill_pod=True)
                self._take(now, walk, index, row)
        if not walk.decided:
            walk.starts.add(0)
        starts = tuple(inits[index] for index in sorted(walk.starts))
        return SidecarProgress(walk.initialized, to_start=starts, to_kill=tuple(reversed(walk.kills)))

    def is_proven(self, pod: Pod, records: PodRecords) -> bool:
        """Whether an app container shows that the pod has been initialized: one that is made or runs.

        One that ended may be of the sandbox before, so it proves nothing (SIDECAR-26).
        """
        newest = (records.newest(one.name) for one in pods.containers(pod))
        return any(one is not None and (one.is_running or one.state is CREATED) for one in newest)

    def facts(self, now: SyncInput, index: int, *, decided: bool) -> InitContainerFacts:
        """What is seen of the init container at this place of the spec."""
        inits = pods.init_containers(now.pod)
        one = inits[index]
        record = now.records.newest(one.name)
        return InitContainerFacts(
            state=record.state if record is not None else None,
            sidecar=pods.is_sidecar(one),
            decided=decided,
            last=index == len(inits) - 1,
            failed=record is not None and has_failed(record),
            never=record is not None and fails_for_good(now.pod, one, record.exit_code, now.behaviour),
            changed=record is not None and self.has_changed(now, one, record),
            has_startup=one.startupProbe is not None,
            startup=now.startup(record.id) if record is not None else None,
            liveness=now.liveness(record.id) if record is not None else None,
        )

    def has_changed(self, now: SyncInput, one: Container, record: ContainerRecord) -> bool:
        """Whether the instance is of another definition than the spec's (SIDECAR-20)."""
        known = record.hash == container_hash(one, now.behaviour)
        return not known and now.behaviour.restarts_changed_sidecars

    def rows_for(self, facts: InitContainerFacts) -> Iterator[SidecarRow]:
        """The rows that are followed: the first that fits, and before it those that let the search go on."""
        for row in SIDECAR_ROWS.fitting(facts):
            yield row
            if not row.goes_on:
                return

    def _take(self, now: SyncInput, walk: _Walk, index: int, row: SidecarRow) -> None:
        """Note what a row says."""
        one = pods.init_containers(now.pod)[index]
        record = now.records.newest(one.name)
        if Step.START in row.then:
            walk.starts.add(index)
        if Step.NEXT in row.then:
            walk.starts.add(index + 1)
        if Step.KILL in row.then and record is not None:
            walk.kills.append(Kill(record, one, row.why, _message(one, record, row)))
        walk.initialized = walk.initialized or Step.INITIALIZED in row.then
        walk.decided = walk.decided or Step.DECIDED in row.then


def _message(one: Container, record: ContainerRecord, row: SidecarRow) -> str:
    """The text of the Killing event."""
    if record.state is UNKNOWN:
        return f'Init container is in "{record.state}" state, try killing it before restart'
    what = {_STARTUP: "failed startup probe", _LIVENESS: "failed liveness probe"}
    return f"Init container {one.name} {what.get(row.why, 'definition changed')}"


def app_was_made(pod: Pod, records: PodRecords) -> bool:
    """Whether any app container has a record of one that was made, runs or ended (SIDECAR-23)."""
    newest = (records.newest(one.name) for one in pods.containers(pod))
    return any(one is not None and one.state is not UNKNOWN for one in newest)
