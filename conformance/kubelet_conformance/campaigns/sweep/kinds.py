"""The kinds of faults of a sweep: what becomes of the call, and what else happens."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kubelet_conformance.campaigns.sweep.points import Point, Role
from kubelet_conformance.targets.controls import Effect, Fault

_RUNTIME_SECONDS = 250.0
"""Longer than the deadline of every call but the pull of an image: RunPodSandbox has 240 s."""
_API_SECONDS = 60.0
_PROBE_SECONDS = 30.0
_ENDING = frozenset({"StopContainer", "RemoveContainer", "StopPodSandbox", "RemovePodSandbox"})
"""What these do not find is gone: a runtime that says so of what it has tells a lie."""


class After(StrEnum):
    """What happens when the fault has come, beside the fault."""

    NOTHING = ""
    RECONNECT = "the connection breaks and is made anew"
    KILL_KUBELET = "the kubelet is killed and started again"
    RESTART_RUNTIME = "the runtime is killed and started again"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault.

    Attributes:
        name: what it is called.
        words: what becomes of the call.
        effect: the same for the fakes.
        codes: the error of a call to the runtime, and of a request to the API server; empty is the usual one.
        after: what happens then.
        is_late: the call is late by longer than its deadline.
    """

    name: str
    words: str
    effect: Effect
    codes: tuple[str, str] = ("", "500")
    after: After = After.NOTHING
    is_late: bool = False

    def fault(self, point: Point) -> Fault:
        """The fault at that point."""
        effect = Effect.AFTER if self.name == "not-found" and point.call in _ENDING else self.effect
        has_code = effect in {Effect.BEFORE, Effect.AFTER} and point.role is not Role.PROBE
        code = self.codes[point.role is Role.WRITE] if has_code else ""
        delay = seconds_of(point) if self.is_late else 0.0
        return Fault(point.call, effect, code, first=point.number, times=1, delay=delay)


def seconds_of(point: Point) -> float:
    """Longer than anybody waits for an answer there."""
    if point.role is Role.PROBE:
        return _PROBE_SECONDS
    return _API_SECONDS if point.role is Role.WRITE else _RUNTIME_SECONDS


_EVERY = (
    Kind("refused", "is refused before it takes place", Effect.BEFORE),
    Kind("failed", "takes place and is answered with an error", Effect.AFTER),
    Kind("late", "takes place long after its deadline", Effect.NONE, is_late=True),
    Kind("lost", "takes place and is never answered", Effect.LOST_REPLY),
    Kind("not-found", "is refused: what it is about is not found", Effect.BEFORE, ("NOT_FOUND", "404")),
    Kind(
        "unavailable",
        "is refused as the connection breaks",
        Effect.BEFORE,
        ("UNAVAILABLE", "503"),
        After.RECONNECT,
    ),
    Kind(
        "kubelet-killed",
        "takes place, and the kubelet is killed before it is answered",
        Effect.LOST_REPLY,
        after=After.KILL_KUBELET,
    ),
    Kind(
        "runtime-killed",
        "takes place, and the runtime is killed before it answers",
        Effect.LOST_REPLY,
        after=After.RESTART_RUNTIME,
    ),
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _EVERY}
"""All kinds by name."""
_OF_ROLE: Mapping[Role, tuple[str, ...]] = {
    Role.CHANGE: tuple(KINDS),
    Role.PLUGIN: ("refused",),
    # A client of the API server has no deadline: what is late beyond it is lost.
    Role.WRITE: ("refused", "failed", "lost", "not-found", "unavailable", "kubelet-killed"),
    Role.PROBE: ("refused", "lost", "kubelet-killed"),
    Role.READ: ("refused", "lost", "not-found", "unavailable", "kubelet-killed"),
    Role.POLL: ("refused", "lost"),
}


@dataclass(frozen=True, slots=True)
class Blow:
    """One fault at one point of a play."""

    point: Point
    kind: Kind

    def __str__(self) -> str:
        return f"{self.point} {self.kind.name}"

    @property
    def seconds(self) -> float:
        """How long it keeps the play waiting by itself."""
        is_lost = self.kind.effect is Effect.LOST_REPLY and not self.kind.after
        return seconds_of(self.point) if self.kind.is_late or is_lost else 0.0

    @property
    def late_call(self) -> str:
        """The call that takes place after its caller has left, "" if none does."""
        return self.point.call if self.kind.is_late else ""


def blows_at(point: Point) -> list[Blow]:
    """The faults that a play is repeated with at this point."""
    return [Blow(point, KINDS[name]) for name in _OF_ROLE[point.role]]
