"""Results of the exec probes of a container, in the present run of the kubelet.

Other kinds of probes do not pass through the runtime. A probe is known by its command: one whose command
another probe or a hook of the container has too is not followed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, cast

import msgspec

from kubelet_conformance.contract import Answered, Container, Execution, Moment, Note, Pattern, Pod, Predicate
from kubelet_conformance.contract.definition import answered, observer
from kubelet_conformance.contract.patterns import call, done, exited, failed, happened
from kubelet_conformance.contracts.facts.pod import (
    TERMINATION_ASKED,
    about,
    hook_command,
    post_starts,
    runs_pre_stop,
)
from kubelet_conformance.contracts.facts.timing import REACTION, TOGETHER
from kubelet_conformance.trace.format.bodies import ExecSyncReply, ExecSyncRequest
from kubelet_conformance.trace.format.manifests import ContainerSpec, Probe
from kubelet_conformance.trace.format.records import Call
from kubelet_conformance.trace.world.disruption import is_ended_by_the_kubelet

Name = Literal["liveness", "readiness", "startup"]
PROBE_TRIES = 3
"""Executions of one tick, where the runtime gives no result (prober.go)."""
PROBED: Pattern = done("ExecSync").either(failed("ExecSync"))
"""An execution ended."""
PROBES: Pattern = call("ExecSync").either(PROBED)


class Runs(Note):
    """One probe of one container: the results of its executions in this run of the kubelet."""

    call: Call | None = None
    """The latest execution, as long as it is in progress."""
    total: int = 0
    ended_t: float = 0.0
    last: bool | None = None
    """The latest result."""
    count: int = 0
    """How often in a row it came."""
    errors: int = 0
    """How many executions in a row gave no result."""
    published: bool | None = None
    """The latest result that came as often as its threshold says."""
    published_seq: int = 0
    published_t: float = -math.inf
    """Since when it has been that."""


class _Worker(Note):
    """The prober worker of one probe of one container, over all its instances: its latest tick."""

    begun_t: float = 0.0
    """When the first of its executions began: there are up to three."""
    ended_t: float = 0.0
    late: float = 0.0
    """How long after its turn it began: the one after it comes when it is due."""
    off_grid: bool = False
    """It began as soon as one that had taken too long was over; the next comes when it is due."""


class _Workers(Note):
    """The prober workers of a pod by container and probe; each run of the kubelet has its own."""

    life: int = -1
    by_probe: dict[tuple[str, Name], _Worker] = {}


class _Probing(Note):
    """A container's probes; the kubelet keeps them in memory, so each run of it starts without."""

    life: int = -1
    seq: int = 0
    runs: dict[Name, Runs] = {}
    succeeded: set[Name] = set()
    """Those that have succeeded in any run of the kubelet."""
    now: Probed | None = None


class Before(msgspec.Struct, frozen=True):
    """The execution before the one that begins or ends here."""

    begun_t: float
    """When the tick that it belongs to began, in this instance of the container or an earlier one."""
    tick_ended_t: float
    ended_t: float
    total: int
    call: Call | None
    """It is in progress."""
    errors: int
    published: bool | None
    late: float
    off_grid: bool


class Probed(msgspec.Struct, frozen=True):
    """An execution that begins or ends here."""

    name: Name
    probe: Probe
    runs: Runs
    container: Container
    outcome: Literal["begins", "success", "failure", "error"]
    reached: bool
    """With this one the result has come as often in a row as its threshold says."""
    before: Before
    """As it was before this record."""


def probes_of(spec: ContainerSpec | None) -> Iterator[tuple[Name, Probe]]:
    """The probes of any kind that a container has."""
    if spec is not None:
        if spec.liveness_probe is not None:
            yield "liveness", spec.liveness_probe
        if spec.readiness_probe is not None:
            yield "readiness", spec.readiness_probe
        if spec.startup_probe is not None:
            yield "startup", spec.startup_probe


def exec_probes(container: Container) -> dict[Name, Probe]:
    """The probes of a container that can be followed: what they execute is what their spec says."""
    found: dict[Name, Probe] = {
        name: probe
        for name, probe in probes_of(container.spec)
        if probe.exec is not None and not any("$(" in word for word in probe.exec.command)
    }
    commands = [probe.exec.command for probe in found.values() if probe.exec is not None]
    commands += [c for hook in ("post_start", "pre_stop") if (c := hook_command(container, hook)) is not None]
    for name, probe in list(found.items()):
        if probe.exec is not None and commands.count(probe.exec.command) > 1:
            del found[name]
    return found


def has_other_probes(container: Container, *names: Name) -> bool:
    """The container has one of these probes, and its results cannot be followed."""
    asked = [name for name, _ in probes_of(container.spec) if name in names]
    return bool(asked) and not exec_probes(container).keys() >= set(asked)


def _probing(container: Container, m: Moment) -> _Probing:
    probing = container.note(_Probing)
    if probing.life != m.node.lives:
        probing.life, probing.runs = m.node.lives, {}
    return probing


def runs_of(container: Container, name: Name, m: Moment) -> Runs:
    """The results of that probe so far; before this moment if it is one of its executions."""
    return _probing(container, m).runs.get(name) or Runs()


def ever_succeeded(container: Container, name: Name) -> bool:
    """The probe has succeeded in some run of the kubelet."""
    return name in container.note(_Probing).succeeded


def may_have_a_former_worker(m: Moment, container: Container) -> bool:
    """A probe worker of the static pod's former instance may still be there, so that no other one is made.

    When a kubelet has just started, a worker first sleeps for a part of its period, whatever stops it
    (prober/worker.go run).
    """
    pod, began, created_t = container.pod, m.node.started_t, container.created_t
    if pod is None or began is None or created_t is None or pod.back_t < began:
        return False
    return created_t - began < 2 * max(
        (probe.period_seconds for _, probe in probes_of(container.spec)), default=0
    )


def probe_at(m: Moment) -> Probed | None:
    """Record an execution (call it for every moment of PROBES); return what it is, if it is a probe's."""
    container = m.container
    if container is None or not container.born or PROBES.keys.isdisjoint(m.keys):
        return None
    probing = _probing(container, m)
    if probing.seq != m.seq:
        probing.seq = m.seq
        probing.now = _taken(probing, container, m)
    return probing.now


@observer(on=PROBES)
def take_probe(m: Moment) -> None:
    """Record an execution."""
    probe_at(m)


def _taken(probing: _Probing, container: Container, m: Moment) -> Probed | None:
    command = m.request(ExecSyncRequest).cmd
    for name, probe in exec_probes(container).items():
        if probe.exec is None or probe.exec.command != command:
            continue
        runs = probing.runs.get(name)
        if runs is None:
            runs = probing.runs[name] = Runs()
        worker = _worker(container, name, m)
        tick = (worker.begun_t, worker.ended_t, runs.ended_t, runs.total, runs.call, runs.errors)
        old = Before(*tick, published=runs.published, late=worker.late, off_grid=worker.off_grid)
        if type(m.record) is Call:
            if not _is_tried_again(runs, probe, m.t):
                worker.off_grid = worker.ended_t - worker.begun_t >= probe.period_seconds
                if not runs.total:
                    # Its turns are a period apart from when its container began to run at the latest.
                    worker.late, worker.begun_t = (
                        0.0,
                        (container.started_t or m.t) + probe.initial_delay_seconds,
                    )
                worker.late = _lateness(worker, m.t, probe.period_seconds)
                worker.begun_t = m.t
            runs.call, runs.total = m.record, runs.total + 1
            return Probed(name, probe, runs, container, "begins", reached=False, before=old)
        if runs.call is not m.call:
            return None
        worker.ended_t = m.t
        probed = _ended(name, probe, runs, old, m)
        if probed.outcome == "success":
            probing.succeeded.add(name)
        return probed
    return None


_SKIPS = 0.25
"""A tick that is later by more may have left out turns: a ticker keeps one that is not taken, and no more."""


def _lateness(worker: _Worker, t: float, period: float) -> float:
    """How long after its turn a tick comes."""
    since = worker.late + t - worker.begun_t
    return since % period if since > period + _SKIPS else max(0.0, since - period)


def _worker(container: Container, name: Name, m: Moment) -> _Worker:
    pod = container.pod
    workers = pod.note(_Workers) if pod is not None else _Workers()
    if workers.life != m.node.lives:
        workers.life, workers.by_probe = m.node.lives, {}
    is_new = m.node.lives > 0 or pod is None or pod.born
    # A worker that was there before the trace may come from a tick that took too long.
    return workers.by_probe.setdefault((container.name, name), _Worker(0.0 if is_new else -math.inf))


def _is_tried_again(runs: Runs, probe: Probe, t: float) -> bool:
    """What gave no result is repeated in the same tick."""
    soon = t - runs.ended_t <= min(TOGETHER, probe.period_seconds / 2)
    return soon and runs.errors % PROBE_TRIES != 0


def _ended(name: Name, probe: Probe, runs: Runs, old: Before, m: Moment) -> Probed:
    runs.call, runs.ended_t = None, m.t
    error, container = m.reply.error, cast("Container", m.container)
    if error is not None and error.code != "DEADLINE_EXCEEDED":
        runs.errors += 1
        return Probed(name, probe, runs, container, "error", reached=False, before=old)
    good = error is None and m.response(ExecSyncReply).exit_code == 0
    runs.errors = 0
    runs.count = runs.count + 1 if runs.last is good else 1
    runs.last = good
    reached = runs.count == (probe.success_threshold if good else probe.failure_threshold)
    if reached and runs.published is not good:
        runs.published, runs.published_seq, runs.published_t = good, m.seq, m.t
    outcome: Literal["success", "failure"] = "success" if good else "failure"
    return Probed(name, probe, runs, container, outcome, reached=reached, before=old)


def runs_probe(container: Container, probe: Probe) -> Pattern:
    """The probe is executed in that container."""
    command = probe.exec.command if probe.exec is not None else None

    def runs(m: Moment) -> bool:
        return m.container is container and m.request(ExecSyncRequest).cmd == command

    return call("ExecSync").where(runs)


def kill_begins(container: Container) -> Pattern:
    """The container is stopped, or its preStop hook runs, which comes before that."""
    hook = call("ExecSync").where(runs_pre_stop)
    return call("StopContainer").either(hook).where(about(container))


def is_killed(container: Container, why: str, within: float = REACTION) -> Answered:
    """The container is killed soon, for the reason `why`, unless it ends or its pod is terminated."""
    return answered(
        by=kill_begins(container).either(call("StopPodSandbox")),
        within=within + unseen_hook_seconds(container),
        unless=exited().where(about(container)).either(TERMINATION_ASKED),
        text=f"container {container.name} is killed {why}",
    )


def post_start_in_flight(pod: Pod) -> Execution | None:
    """The postStart hook that some container of the pod is running."""
    running = (container for container in pod.every_container() if container.state == "running")
    for container in running:
        for hook in post_starts(container):
            if hook.end_t is None and hook.call.id in container.hooks_open:
                return hook
    return None


def unseen_hook_seconds(container: Container) -> int:
    """How long a preStop hook that does not pass through the runtime may take before the StopContainer."""
    spec, pod = container.spec, container.pod
    hook = spec.lifecycle.pre_stop if spec is not None else None
    if spec is None or pod is None or pod.spec is None or hook is None or hook.exec is not None:
        return 0
    probes = (spec.liveness_probe, spec.startup_probe)
    own = (probe.termination_grace_period_seconds for probe in probes if probe is not None)
    return max(pod.spec.grace_seconds if one is None else one for one in (*own, None))


def _its_pod(container: Container) -> Predicate:
    return lambda m: m.pod is container.pod


def no_more_probed(container: Container) -> Pattern:
    """What ends the probing of a container, or may hold it up."""
    kills = call("StopContainer", "RemoveContainer").where(about(container))
    stops = call("StopPodSandbox").where(_its_pod(container))
    ends = exited().where(about(container)).either(happened("removed", "unknown", "sandbox-died"))
    return kills.either(stops, ends, TERMINATION_ASKED.where(_its_pod(container)))


def counts_as_started(m: Moment) -> bool:
    """The pod is being terminated: no startup probe is executed, as if its containers had none."""
    pod = m.pod
    return pod is not None and (pod.termination is not None or is_ended_by_the_kubelet(m, pod))


def probes_have_ended(m: Moment) -> bool:
    """The pod has come to its end for the kubelet, though containers still run: it probes no more.

    A container without a result counts as ready then, which the condition Ready does not follow.
    """
    ready = m.status.condition("Ready") if m.status is not None else None
    return ready is not None and ready.reason in {"PodCompleted", "PodFailed"}
