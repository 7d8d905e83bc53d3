"""One probe of one container: what its worker does at each tick, as tables, and the worker that follows them.

A tick first asks `tick` what to do, given what the pod's status shows (the rows of two tables, first match
wins). If the answer is to probe, `probe_transition` says what the outcome means. Both are pure.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import msgspec
from lightkube.models.core_v1 import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    Pod,
    PodStatus,
    Probe,
)

from kubelet_reference.api import pods
from kubelet_reference.api.pods import is_terminal_phase
from kubelet_reference.api.records import NANOSECONDS
from kubelet_reference.api.restart_policy import has_own_rules, policy_of
from kubelet_reference.api.results import ProbeKind, ProbeOutcome
from kubelet_reference.prober.prober import ProbeTarget
from kubelet_reference.prober.results import ResultCache, kept_by_probe
from kubelet_reference.util.decision_table import Row, Table
from kubelet_reference.util.ports import Clock, Random
from kubelet_reference.util.ticker import Ticker
from kubelet_reference.util.versions import Behaviour

INITIAL = {
    ProbeKind.LIVENESS: ProbeOutcome.SUCCESS,
    ProbeKind.READINESS: ProbeOutcome.FAILURE,
    ProbeKind.STARTUP: ProbeOutcome.UNKNOWN,
}
"""What is published for a new instance of the container, before it is probed (PROBE-02)."""


class Step(Enum):
    """What a worker does at a tick."""

    SKIP = "wait for the next tick"
    PROBE = "probe the container"
    END = "end for good"


class ProbeState(msgspec.Struct, frozen=True):
    """What a worker remembers: the instance it looks at, and its last outcomes in a row, `count` of them."""

    container_id: str = ""
    on_hold: bool = False
    last: ProbeOutcome | None = None
    count: int = 0


class ProbeFacts(msgspec.Struct, frozen=True):
    """What a worker sees at a tick: the container's status, and what its pod is up to.

    `age` is in seconds since the container started; `proven` says that the probe has succeeded for the
    kubelet before this one (PROBE-25).
    """

    phase: str | None
    container_id: str
    running: bool
    terminated: bool
    started: bool
    age: float
    initial_delay: int
    restarts: bool
    proven: bool


class Tick(msgspec.Struct, frozen=True):
    """The decision: the step, the state after it, and what is published first."""

    step: Step
    state: ProbeState
    published: tuple[ProbeOutcome, ...] = ()


class ProbeTransition(msgspec.Struct, frozen=True):
    """What an outcome leads to; `published` is None while the published result stays as it is."""

    state: ProbeState
    published: ProbeOutcome | None


class Seen(NamedTuple):
    """What decides about a tick."""

    kind: ProbeKind
    worker: ProbeState
    facts: ProbeFacts


@dataclass(frozen=True, slots=True)
class TickRow(Row[Seen, Step]):
    """Where `when` holds, a worker does `then` at a tick, and `publishes` something first."""

    publishes: ProbeOutcome | None = None


#: Before there is an instance to look at.
WITHOUT_INSTANCE = Table[ProbeFacts, Row[ProbeFacts, Step]](
    Row("pod phase terminal", lambda facts: is_terminal_phase(facts.phase), Step.END),
    Row("no container id yet", lambda facts: not facts.container_id, Step.SKIP),
)

#: With an instance; one that is new has been entered by then.
WITH_INSTANCE = Table[Seen, TickRow](
    TickRow("on hold", lambda s: s.worker.on_hold, Step.SKIP),
    TickRow(
        "container terminated for good",
        lambda s: s.facts.terminated and not s.facts.restarts,
        Step.END,
        ProbeOutcome.FAILURE,
    ),
    TickRow("container not Running", lambda s: not s.facts.running, Step.SKIP, ProbeOutcome.FAILURE),
    TickRow("age < initialDelay", lambda s: int(s.facts.age) < s.facts.initial_delay, Step.SKIP),
    TickRow("started and type startup", lambda s: s.facts.started and s.kind is ProbeKind.STARTUP, Step.SKIP),
    TickRow(
        "not started and type != startup",
        lambda s: not s.facts.started and s.kind is not ProbeKind.STARTUP,
        Step.SKIP,
    ),
    TickRow("otherwise", lambda _: True, Step.PROBE),
)


def tick(kind: ProbeKind, state: ProbeState, facts: ProbeFacts) -> Tick:
    """What a worker does at a tick."""
    for early in WITHOUT_INSTANCE.fitting(facts):
        return Tick(early.then, state)
    published: tuple[ProbeOutcome, ...] = ()
    if state.container_id != facts.container_id:
        # Nothing of an old instance counts for a new one: neither result nor hold nor run (PROBE-08, 26).
        published = (first_value(kind, facts),)
        state = ProbeState(facts.container_id)
    row = WITH_INSTANCE.row(Seen(kind, state, facts))
    if row.publishes is not None:
        published = (*published, row.publishes)
    return Tick(row.then, state, published)


def first_value(kind: ProbeKind, facts: ProbeFacts) -> ProbeOutcome:
    """What is published of an instance before it is probed (PROBE-02, PROBE-25)."""
    return ProbeOutcome.SUCCESS if facts.proven else INITIAL[kind]


def probe_transition(
    kind: ProbeKind, state: ProbeState, outcome: ProbeOutcome, threshold: int, behaviour: Behaviour
) -> ProbeTransition:
    """What an outcome means; `threshold` is how many of its sort in a row are needed (PROBE-06)."""
    count = state.count + 1 if outcome is state.last else 1
    if count < threshold:
        return ProbeTransition(ProbeState(state.container_id, last=outcome, count=count), None)
    on_hold = rests_after(kind, outcome, behaviour)
    return ProbeTransition(ProbeState(state.container_id, on_hold, outcome, count), outcome)


def rests_after(kind: ProbeKind, outcome: ProbeOutcome, behaviour: Behaviour) -> bool:
    """Whether a worker that published this waits for a new instance (PROBE-08, K8S-22107)."""
    if kind is ProbeKind.STARTUP:
        return outcome is ProbeOutcome.FAILURE or behaviour.startup_success_holds_probe
    return kind is ProbeKind.LIVENESS and outcome is ProbeOutcome.FAILURE


@dataclass(frozen=True, slots=True)
class ProbeTools:
    """What all workers of a kubelet share.

    `began` is when the kubelet started, in seconds of the clock; `stored_status` is the status manager's view
    of a pod by UID; the two decisions can be replaced.
    """

    probe: Callable[[ProbeTarget], Awaitable[ProbeOutcome | None]]
    stored_status: Callable[[str], PodStatus | None]
    clock: Clock
    random: Random
    behaviour: Behaviour
    began: float
    tick: Callable[[ProbeKind, ProbeState, ProbeFacts], Tick] = tick
    probe_transition: Callable[[ProbeKind, ProbeState, ProbeOutcome, int, Behaviour], ProbeTransition] = (
        probe_transition
    )

    @property
    def began_wall(self) -> float:
        """When the kubelet started, in seconds since the epoch."""
        return self.clock.wall_ns() / NANOSECONDS - (self.clock.monotonic() - self.began)


@dataclass(eq=False)
class ProbeWorker:
    """Probes one container in one way, on a grid of its period, until its pod or its container is done."""

    kind: ProbeKind
    probe: Probe
    pod: Pod
    container: Container
    tools: ProbeTools
    results: ResultCache

    def __post_init__(self) -> None:
        self._state = ProbeState()
        self._stopped = False
        self._period = self.probe.periodSeconds or 10
        self._thresholds = {
            ProbeOutcome.SUCCESS: self.probe.successThreshold or 1,
            ProbeOutcome.FAILURE: self.probe.failureThreshold or 3,
        }
        self._ticker = Ticker(self._period)

    def stop(self) -> None:
        """End soon; a probe that is under way is not cut off, and its outcome no longer counts."""
        self._stopped = True
        self._ticker.trigger()

    def trigger(self) -> None:
        """Probe now instead of at the next tick (PROBE-23)."""
        self._ticker.trigger()

    async def run(self) -> None:
        """Work until stopped or at the end; the result goes with the worker."""
        await self._stagger()
        try:
            while not self._stopped and await self._tick():
                await self._wait()
        finally:
            self.results.remove(self._state.container_id)

    async def _stagger(self) -> None:
        """Spread the probes of a kubelet that has just started over their period (PROBE-05)."""
        if self._period > self.tools.clock.monotonic() - self.tools.began:
            await self.tools.clock.sleep(self.tools.random.jitter(self._period, 1) - self._period)
        self._ticker.restart()

    async def _wait(self) -> None:
        """Wait for the next tick or for a trigger, which may move the grid."""
        if await self._ticker.next() and self.tools.behaviour.trigger_restarts_probe_period:
            self._ticker.restart()

    async def _tick(self) -> bool:
        """Do what the table says; whether to go on."""
        decision = self.tools.tick(self.kind, self._state, self._facts())
        if decision.state.container_id != self._state.container_id:
            self.results.remove(self._state.container_id)
        self._state = decision.state
        for outcome in decision.published:
            self._publish(outcome)
        if decision.step is Step.PROBE:
            await self._probe()
        return decision.step is not Step.END

    async def _probe(self) -> None:
        """Probe once and follow what the outcome leads to."""
        tools = self.tools
        target = ProbeTarget(self.kind, self.probe, self.pod, self.container, self._state.container_id)
        outcome = await tools.probe(target)
        if outcome is None or self._stopped:
            return
        threshold = self._thresholds[outcome]
        transition = tools.probe_transition(self.kind, self._state, outcome, threshold, tools.behaviour)
        self._state = transition.state
        if transition.published is not None:
            self._publish(transition.published)

    def _publish(self, outcome: ProbeOutcome) -> None:
        self.results.set(self._state.container_id, outcome, pods.uid(self.pod))

    def _facts(self) -> ProbeFacts:
        """What the stored status shows of the container."""
        status = self.tools.stored_status(pods.uid(self.pod)) or PodStatus()
        shown = self._shown(status)
        state = (shown.state if shown else None) or ContainerState()
        return ProbeFacts(
            phase=status.phase,
            container_id=pods.bare_id(shown.containerID if shown else None),
            running=state.running is not None,
            terminated=state.terminated is not None,
            started=bool(shown and shown.started),
            age=self._age(state.running),
            initial_delay=self.probe.initialDelaySeconds or 0,
            restarts=self.restarts(),
            proven=shown is not None and self._is_proven(shown),
        )

    def _shown(self, status: PodStatus) -> ContainerStatus | None:
        shown = (*(status.containerStatuses or ()), *(status.initContainerStatuses or ()))
        return next((one for one in shown if one.name == self.container.name), None)

    def _age(self, running: ContainerStateRunning | None) -> float:
        """Seconds since the runtime started the container: no restart of the kubelet resets it (PROBE-04)."""
        if running is None or running.startedAt is None:
            return 0.0
        return self.tools.clock.wall_ns() / NANOSECONDS - running.startedAt.timestamp()

    def _is_proven(self, shown: ContainerStatus) -> bool:
        tools = self.tools
        return tools.behaviour.keeps_readiness and kept_by_probe(self.kind, self.pod, shown, tools.began_wall)

    def restarts(self) -> bool:
        """Whether another instance may follow one that ended; a sidecar's always does (K8S-132826)."""
        behaviour = self.tools.behaviour
        is_last = policy_of(self.pod, self.container, behaviour) == pods.NEVER
        has_own = has_own_rules(self.pod, self.container, behaviour)
        may_come = has_own and bool(self.container.restartPolicyRules)
        return not is_last or may_come or pods.is_sidecar(self.container)
