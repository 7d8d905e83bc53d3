"""Where two lives part: the first step that one did and the other did not, or did otherwise.

What a kubelet did after something that the scenario did to a pod, another may do later, as long as it had
the time for it and the scenario has not gone on. So the two need no common clock.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from kubelet_conformance.campaigns.comparison.lives import ORDERS, Life, PodLife, Stream
from kubelet_conformance.reports.trace_text.steps import Step

_SLACK_VIRTUAL_SECONDS = 1.0
_SLACK_SECONDS = 6.0
"""How much later than the other a kubelet may act: a relist, a full queue, a machine that has much to do."""
_SLACK_AFTER_FAILURE_SECONDS = 20.0
"""A retry comes 10 to 15 s after a failure, at the next tick."""
_SLACK_OF_REMOVALS_SECONDS = 70.0
"""Garbage is collected each minute, and the minutes of two kubelets do not begin together."""
_GOES = re.compile(r"(to be deleted, grace \d+|removed from \w+)$")
_SOURCE = re.compile(r"(?<= wanted) from \w+")
_TIMEOUT = re.compile(r"timeout (\d+)")
_TERMINAL = ("Failed", "Succeeded")
_TIMEOUT_SLACK_SECONDS = 2
"""What is left of a grace period depends on when its stop begins."""


@dataclass(frozen=True, slots=True)
class Parting:
    """Where two lives part.

    Attributes:
        scenario: the scenario.
        about: the pod or container, or what else the step is about.
        one, other: the step on each side; None where nothing came.
        at: when on each side, in seconds of its node.
    """

    scenario: str
    about: str
    one: Step | None
    other: Step | None
    at: tuple[float, float]


def first_parting(one: Life, other: Life) -> Parting | None:
    """The first step at which they part, None where they are equal."""
    ours, theirs = one.pods(), other.pods()
    nothing = PodLife()
    found: list[tuple[float, Parting]] = []
    for name in [*ours, *(each for each in theirs if each not in ours)]:
        pair = _Pair(one, other, ours.get(name, nothing), theirs.get(name, nothing), name)
        found += pair.partings()
    return min(found, key=lambda each: each[0])[1] if found else None


class _Spans:
    """The spans into which marks divide a life; the last ends with the part of it that is compared."""

    def __init__(self, marks: list[Step], begins: float, ends: float) -> None:
        self.begins = [begins, *(each.t for each in marks)]
        self.ends = ends

    def of(self, t: float) -> int:
        """The number of the span that holds a time."""
        return max(0, bisect_right(self.begins, t) - 1)

    def until(self, span: int) -> float:
        """When a span ends."""
        return self.begins[span + 1] if span + 1 < len(self.begins) else self.ends


class _Pair:
    """One pod in both lives."""

    def __init__(self, one: Life, other: Life, ours: PodLife, theirs: PodLife, name: str) -> None:
        self._scenario, self._name = one.scenario, name
        self._both = (ours, theirs)
        self._holds_back_alike = one.is_served == other.is_served
        self._virtual = one.is_virtual and other.is_virtual
        count = _common([_done(each) for each in ours.marks], [_done(each) for each in theirs.marks])
        self._marks_part = count < min(len(ours.marks), len(theirs.marks))
        self._next = [each.marks[count] if count < len(each.marks) else None for each in self._both]
        self._spans = [
            _Spans(
                pod.marks[:count],
                life.steps[0].t if life.steps else 0.0,
                pod.marks[count].t if count < len(pod.marks) else life.ends,
            )
            for pod, life in zip(self._both, (one, other), strict=True)
        ]

    def partings(self) -> Iterator[tuple[float, Parting]]:
        """Each parting, with when it is by the clock of the first."""
        if self._marks_part:
            yield self._parted(self._name, *self._next)
        for stream in {**self._both[0].streams, **self._both[1].streams}:
            yield from self._stream(stream)
        yield from self._statuses()

    def _stream(self, name: Stream) -> Iterator[tuple[float, Parting]]:
        about = " ".join(filter(None, name[1:]))
        one, other = (self._compared(side, name) for side in (0, 1))
        if name[2].startswith("`") and (_passes_through(one, other) or _passes_through(other, one)):
            return
        both = list(zip(one, other, strict=False))
        for at, (left, right) in enumerate(both):
            cut = at == len(both) - 1 and (_is_cut(left, right) or _is_cut(right, left))
            if not cut and not _same(left, right):
                yield self._parted(about, left, right)
                return
        shorter = 0 if len(one) < len(other) else 1
        longer = (other, one)[shorter]
        rest = longer[min(len(one), len(other)) :]
        if not rest or name[1] in ORDERS or not self._was_due(shorter, rest[0], longer[: -len(rest)]):
            return
        yield self._parted(about, *((None, rest[0]) if shorter == 0 else (rest[0], None)))

    def _compared(self, side: int, name: Stream) -> list[Step]:
        steps = self._both[side].streams.get(name, [])
        return [each for each in steps if each.t <= self._spans[side].ends]

    def _was_due(self, lacking: int, step: Step, before: list[Step]) -> bool:
        """Whether the side that lacks the step had the time for it."""
        had, lacks = self._spans[1 - lacking], self._spans[lacking]
        span = had.of(step.t)
        slack = self._slack(step, before)
        after = min(step.t, had.ends) - had.begins[span]
        return lacks.ends - lacks.begins[span] >= after + slack and had.ends - step.t >= 0

    def _slack(self, step: Step, before: list[Step]) -> float:
        if self._virtual:
            return _SLACK_VIRTUAL_SECONDS
        if step.what in {"RemoveContainer", "RemovePodSandbox"}:
            return _SLACK_OF_REMOVALS_SECONDS
        failed = "->" in step.detail or any("->" in each.detail for each in before[-1:])
        return _SLACK_AFTER_FAILURE_SECONDS if failed else _SLACK_SECONDS

    def _statuses(self) -> Iterator[tuple[float, Parting]]:
        """At the end of each span: the status of one is what the other has, has just had, or soon gets."""
        for span in range(1, len(self._spans[0].begins) + 1):
            ends = [each.begins[span] if span < len(each.begins) else each.ends for each in self._spans]
            one, other = (self._status(side, ends[side]) for side in (0, 1))
            if one is None or other is None or not (self._holds_back_alike or _both_go_on(one, other)):
                continue
            if one.detail not in self._around(1, span) and other.detail not in self._around(0, span):
                yield self._parted(f"status of {self._name}", one, other)
                return

    def _status(self, side: int, t: float) -> Step | None:
        before = [each for each in self._both[side].statuses if each.t <= t]
        return before[-1] if before else None

    def _around(self, side: int, span: int) -> set[str]:
        """The statuses in the span that ends there and in the next, and the one that was there before."""
        spans = self._spans[side]
        begins, ends = spans.begins[max(span - 1, 0)], spans.until(min(span, len(spans.begins) - 1))
        within = {each.detail for each in self._both[side].statuses if begins <= each.t <= ends}
        before = self._status(side, begins)
        return within | ({before.detail} if before is not None else set())

    def _parted(self, about: str, one: Step | None, other: Step | None) -> tuple[float, Parting]:
        steps = (one, other)
        at = [step.t if step is not None else self._spans[side].begins[-1] for side, step in enumerate(steps)]
        if one is None and other is not None:
            span = self._spans[1].of(other.t)
            at[0] = min(
                self._spans[0].begins[span] + other.t - self._spans[1].begins[span], self._spans[0].ends
            )
        elif other is None and one is not None:
            span = self._spans[0].of(one.t)
            at[1] = min(
                self._spans[1].begins[span] + one.t - self._spans[0].begins[span], self._spans[1].ends
            )
        return at[0], Parting(self._scenario, about, one, other, (at[0], at[1]))


def _done(mark: Step) -> str:
    """What was done, wherever the pod came from: for want of an API server a deletion is a removed file."""
    return _GOES.sub("goes", _SOURCE.sub("", mark.line))


def _common(one: list[str], other: list[str]) -> int:
    """How many they have in common at the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _both_go_on(one: Step, other: Step) -> bool:
    """Whether neither status has a terminal phase."""
    return not any(each.detail.startswith(_TERMINAL) for each in (one, other))


def _passes_through(one: list[Step], other: list[Step]) -> bool:
    """Whether the first has all outcomes of the second: some come and go between two turns of a probe."""
    rest = iter(each.line for each in one)
    return bool(other) and all(each.line in rest for each in other)


def _is_cut(one: Step, other: Step) -> bool:
    """Whether the first is a command that had not ended when its life did, and the other its like."""
    return one.what == "ExecSync" and other.line.startswith(f"{one.line} -> ")


def _same(one: Step, other: Step) -> bool:
    """Whether two calls are the same, but for what is left of a grace period."""
    if one.line == other.line:
        return True
    left, right = _TIMEOUT.search(one.detail), _TIMEOUT.search(other.detail)
    if left is None or right is None or _TIMEOUT.sub("", one.line) != _TIMEOUT.sub("", other.line):
        return False
    return abs(int(left[1]) - int(right[1])) <= _TIMEOUT_SLACK_SECONDS
