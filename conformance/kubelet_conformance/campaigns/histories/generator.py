"""The state machine that generates histories: which actions there are, how often, and in which order.

It is one of Hypothesis' rule-based state machines: each rule is one action, and
each run leaves out some of the rules altogether, so that the others come close together. The machine only
records the actions; its end runs the history on virtual time, in the same way as a kept one is run again.
"""

import sys
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec.structs import replace

from kubelet_conformance.campaigns.histories.history import History
from kubelet_conformance.campaigns.histories.pod_strategies import IMAGES, PATHS, pods
from kubelet_conformance.campaigns.histories.steps import (
    AddAgain,
    DelayWatch,
    Delete,
    DeleteMirror,
    DisturbEvents,
    End,
    ExpireWatch,
    Heal,
    InjectFault,
    KillSandbox,
    Outage,
    Publish,
    Reboot,
    RestartKubelet,
    RestartRuntime,
    SetProbeResponse,
    Step,
    Update,
    Wait,
    Want,
)
from kubelet_conformance.targets.controls import Effect

T = TypeVar("T")

STEPS = 20
"""How many things happen in a history, beside the pod that it begins with."""
_ORDERS_MEAN = 4
_ORDERS_MAX = 20
_CHOICES_MAX = 3
"""The largest number in the list of choices."""
_CHANGES = (
    *("StopContainer", "StartContainer", "CreateContainer", "RunPodSandbox", "StopPodSandbox"),
    *("PullImage", "RemoveContainer", "RemovePodSandbox", "ExecSync"),
)
_QUERIES = (
    *("ContainerStatus", "PodSandboxStatus", "ListContainers", "ListPodSandbox", "ImageStatus", "Status"),
    *("ListImages", "Version", "RuntimeConfig"),
)
_CODES = ("INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED")
_WRITES = ("patch pods/status", "delete pods", "create pods")
_READS = ("get pods", "get nodes", "list pods", "watch pods")
_FAILURES = ("500", "503", "0")
"""Statuses of HTTP; 0 is a refused connection."""
_PROBES = (*(f"httpGet {path}" for path in PATHS), "tcpSocket *", "grpc *")
_OF_WRITES = (Effect.BEFORE, Effect.AFTER, Effect.LOST_REPLY)
"""What a late write brings has been overtaken, and nothing on the record says when it was asked for."""
_OF_PROBES = (Effect.BEFORE, Effect.LOST_REPLY, Effect.NONE)
_FAULTS_MAX = 2
"""So many faults stand at once at most: of what a kubelet owes under more, no source speaks."""
_EFFECTS = (Effect.BEFORE, Effect.AFTER, Effect.NONE, Effect.HANG, Effect.LOST_REPLY)

_FAULTS = (InjectFault, Outage, DelayWatch, DisturbEvents)
"""What stands until it is healed."""

_numbers = st.integers(0, 5)
_graces = st.sampled_from((None, None, 0, 1, 10, 60))
_wanted = st.builds(Want, pods(), st.integers(0, 5).map((5).__eq__))
"""Pods; about one in six is static."""
_evented = st.sampled_from((False, False, False, True))
"""Whether the kubelet uses container events: about one in four does."""
_delays = st.sampled_from((0.0, 1.0, 10.0))
_delays_alone = st.sampled_from((1.0, 0.2, 7.0, 30.0))
"""Where nothing else is wrong."""
_times = st.sampled_from((1, 2, 5))


def _faults(
    calls: tuple[str, ...], codes: tuple[str, ...], effects: tuple[Effect, ...]
) -> st.SearchStrategy[InjectFault]:
    """Faults of these calls, with these effects or late; what only fails has one of these codes."""
    some_calls, some_codes = st.sampled_from(calls), st.sampled_from(codes)
    some_effects = st.sampled_from(effects)

    @st.composite
    def faults(draw: st.DrawFn) -> InjectFault:
        call, effect = draw(some_calls), draw(some_effects)
        delay = draw(_delays_alone if effect is Effect.NONE else _delays)
        code = draw(some_codes) if effect in {Effect.BEFORE, Effect.AFTER} else codes[0]
        return InjectFault(call, effect, draw(_times), delay, code)

    return faults()


_disturbances = st.one_of(
    st.builds(DisturbEvents, st.just("lose"), st.sampled_from((1, 2, 5))),
    st.builds(DisturbEvents, st.just("delay"), st.sampled_from((1, 2, 5)), st.sampled_from((1.0, 7.0, 40.0))),
    st.builds(DisturbEvents, st.just("reverse"), st.sampled_from((2, 3, 5))),
    st.just(DisturbEvents("cut")),
)


_OF_WATCHES: tuple[Step, ...] = (
    *(ExpireWatch(), Outage(), DelayWatch(2.0), DelayWatch(20.0)),
    *(InjectFault("watch pods", Effect.AFTER, None, code=code) for code in ("500", "410")),
)
_RESTARTS: tuple[Step, ...] = (RestartRuntime(), Reboot())


def _waits(*seconds: float) -> st.SearchStrategy[Wait]:
    return st.sampled_from(seconds).map(Wait)


@st.composite
def _lists(draw: st.DrawFn, elements: st.SearchStrategy[T], most: int, mean: int) -> tuple[T, ...]:
    """Up to `most` elements, about `mean` of them: Hypothesis' own lists are mostly short."""
    found: list[T] = []
    goes_on = st.integers(0, mean)
    while len(found) < most and draw(goes_on):
        found.append(draw(elements))
    return tuple(found)


class Machine(RuleBasedStateMachine):
    """What may happen on a node; the history that came of it is passed to `on_history`."""

    def __init__(self, on_history: Callable[[History], None]) -> None:
        super().__init__()
        self._on_history = on_history
        self._beginning = History(())
        self._steps: list[Step] = []
        self._active_faults = 0
        """How many faults are in force."""
        self._has_deleted = False
        self._has_static = False

    def happens(self, step: Step) -> None:
        """Write a step down, and what the preconditions of rules ask for: they are asked far more often."""
        self._steps.append(step)
        if isinstance(step, Want):
            self._has_static = self._has_static or step.static
        elif isinstance(step, Delete):
            self._has_deleted = True
        elif isinstance(step, Heal):
            self._active_faults = 0
        elif isinstance(step, _FAULTS):
            self._active_faults += 1

    # Preconditions; Hypothesis is slow to name one that is a lambda.

    def has_deleted_pod(self) -> bool:
        """A pod was deleted."""
        return self._has_deleted

    def has_static_pod(self) -> bool:
        """There is a static pod, whose mirror may be deleted."""
        return self._has_static

    def may_add_fault(self) -> bool:
        """Another fault may stand."""
        return self._active_faults < _FAULTS_MAX

    def may_add_event_fault(self) -> bool:
        """Another fault may stand, and the kubelet uses container events."""
        return self._beginning.evented and self.may_add_fault()

    def has_fault(self) -> bool:
        """A fault stands."""
        return self._active_faults > 0

    @initialize(
        first=_wanted,
        orders=_lists(st.integers(0, _CHOICES_MAX), _ORDERS_MAX, _ORDERS_MEAN),
        seed=st.integers(0, 3),
        evented=_evented,
    )
    def begin(self, first: Want, orders: tuple[int, ...], seed: int, evented: bool) -> None:  # noqa: FBT001 - a rule
        """A node with a pod on it."""
        self._beginning = History((), orders, seed, evented)
        self.happens(first)

    @precondition(has_fault)
    @rule()
    def heal(self) -> None:
        """All faults end."""
        self.happens(Heal())

    def teardown(self) -> None:
        """All has been drawn, unless Hypothesis has given it up: then it would not be drawn again either."""
        if sys.exc_info()[0] is None:
            self._on_history(replace(self._beginning, steps=tuple(self._steps)))


_When: TypeAlias = Callable[[Machine], bool] | None
_RULES: tuple[tuple[str, st.SearchStrategy[Step], _When], ...] = (
    # Less than a kubelet takes for anything, a relist or some probes, the first back-off, a grace period.
    ("wait_a_moment", _waits(0.0, 0.1, 0.5), None),
    ("wait_some_seconds", _waits(1.0, 2.0, 5.0), None),
    ("wait_for_a_retry", _waits(10.0, 15.0), None),
    ("wait_long", _waits(30.0, 60.0), None),
    # Pods.
    ("want", _wanted, None),
    ("update", st.builds(Update, _numbers, _numbers, st.sampled_from(IMAGES)), None),
    ("delete", st.builds(Delete, _numbers, _graces), None),
    ("add_again", st.builds(AddAgain, _numbers), Machine.has_deleted_pod),
    ("delete_mirror", st.builds(DeleteMirror, _numbers, _graces), Machine.has_static_pod),
    # What happens in pods.
    ("succeed", st.builds(End, _numbers), None),
    ("fail", st.builds(End, _numbers, st.sampled_from((1, 137)), st.booleans()), None),
    ("flip_probe", st.builds(SetProbeResponse, st.sampled_from(PATHS), st.sampled_from((200, 500, 0))), None),
    ("kill_sandbox", st.builds(KillSandbox, st.just("kill_sandbox"), _numbers), None),
    # Calls or probes of the kubelet fail; the registry changes; watches and events are late or lost.
    ("set_fault_on_a_change", _faults(_CHANGES, _CODES, _EFFECTS), Machine.may_add_fault),
    ("set_fault_on_a_query", _faults(_QUERIES, _CODES, _EFFECTS), Machine.may_add_fault),
    ("set_fault_on_a_write", _faults(_WRITES, ("409", *_FAILURES), _OF_WRITES), Machine.may_add_fault),
    ("set_fault_on_a_read", _faults(_READS, _FAILURES, _EFFECTS), Machine.may_add_fault),
    ("set_fault_on_a_probe", _faults(_PROBES, ("",), _OF_PROBES), Machine.may_add_fault),
    ("publish", st.builds(Publish, st.sampled_from(IMAGES[1:]), st.booleans()), None),
    ("disturb_api", st.sampled_from(_OF_WATCHES), Machine.may_add_fault),
    ("disturb_events", _disturbances, Machine.may_add_event_fault),
    # The node.
    ("restart_kubelet", st.builds(RestartKubelet, st.sampled_from((1.0, 0.0, 20.0)), st.booleans()), None),
    ("restart_more", st.sampled_from(_RESTARTS), None),
)
"""What may happen, under which name, drawn from what, and when.

Any rule is as likely as any other, so what happens often has several. Hypothesis orders them by name.
"""


def _rule(name: str, steps: st.SearchStrategy[Step], when: _When) -> Callable[..., None]:
    def happens(machine: Machine, step: Step) -> None:
        machine.happens(step)

    happens.__name__ = name
    made = rule(step=steps)(happens)
    return made if when is None else precondition(when)(made)


for _row in _RULES:
    setattr(Machine, _row[0], _rule(*_row))
