"""Compare what two kubelets did to their runtimes, leaving out what a kubelet is free to do either way.

Free are: the order of stops and preStop hooks that run in parallel, and of removals; stopping a sandbox again
that is stopped, and removing again what is gone; how often a probe runs as long as its outcome stays the
same; how late a retry comes within its bounds; reads. Of what they wrote, statuses and events count too.
"""

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import chain

from kubelet_conformance.reports.trace_text.steps import MUTATING, Step, steps

RETRY_SECONDS_MAX = 20.0
"""What one kubelet did, another may do this much later: the longest retry and its slack."""
RETRY_SPREAD_SECONDS = 6.0
"""A retry comes 10 to 15 s after a failure, at the next tick."""

_ENDINGS = frozenset({"ExecSync", "StopContainer"})
_REMOVALS = frozenset({"RemoveContainer", "RemovePodSandbox"})
_IDEMPOTENT = frozenset({"StopPodSandbox", *_REMOVALS})
_PARALLEL_SECONDS = 0.1
_NOISE = frozenset({"Warning MissingClusterDNS"})
"""Events about the kubelet's configuration, not about the pod."""


def differences(recorded: str, reenacted: str) -> tuple[str, ...]:
    """What only the recorded kubelet did or said (`- `), and what only the other (`+ `).

    Both are traces; the second may go on for longer than the first, so what the other did first when the
    record was about to end counts for nothing. Statuses and events may have been recorded by polling: each
    that was seen must have been written by the other too, statuses in the same order.
    """
    real, ours = steps(recorded), steps(reenacted)
    until = real[-1].t - RETRY_SPREAD_SECONDS
    return tuple(chain(_calls(real, ours, until), _statuses(real, ours), _events(real, ours, until)))


def _calls(real: list[Step], ours: list[Step], until: float) -> Iterator[str]:
    one, other = list(sequence(real)), list(sequence(ours))
    matcher = SequenceMatcher(
        None, [each.line for each in one], [each.line for each in other], autojunk=False
    )
    for tag, first, last, begin, stop in matcher.get_opcodes():
        if tag != "equal":
            yield from (f"- {each.line}" for each in one[first:last])
            yield from (f"+ {each.line}" for each in other[begin:stop] if last < len(one) or each.t <= until)


def _statuses(real: list[Step], ours: list[Step]) -> Iterator[str]:
    """The first status is the API server's own, and has no conditions."""
    written = [each.line for each in ours if each.what == "status"]
    at = 0
    for each in real:
        if each.what != "status" or each.detail.endswith("| "):
            continue
        if each.line in written[at:]:
            at = written.index(each.line, at)
        else:
            yield f"- {each.line}"


def _events(real: list[Step], ours: list[Step], until: float) -> Iterator[str]:
    seen = {each.line: None for each in real if each.what == "event" and each.detail not in _NOISE}
    sent = {each.line: each.t for each in reversed(ours) if each.what == "event"}
    yield from (f"- {line}" for line in seen if line not in sent)
    yield from (f"+ {line}" for line in reversed(sent) if line not in seen and sent[line] <= until)


def sequence(seen: Iterable[Step]) -> Iterator[Step]:
    """The calls that change something, without repetitions and order that mean nothing."""
    together: list[Step] = []
    for step in _significant(seen):
        if together and not _belongs(step, together[0]):
            yield from sorted(together, key=_order)
            together = []
        together.append(step)
    yield from sorted(together, key=_order)


def _belongs(step: Step, first: Step) -> bool:
    """Whether the order of the two means nothing."""
    if {step.what, first.what} <= _ENDINGS:
        return step.t - first.t <= _PARALLEL_SECONDS
    return {step.what, first.what} <= _REMOVALS


def _order(step: Step) -> tuple[str, str]:
    """Each container's own order is kept where the calls are not all alike: sorting is stable."""
    return step.whom, "" if step.what in _ENDINGS else step.what


def _significant(seen: Iterable[Step]) -> Iterator[Step]:
    """Calls without repetitions that mean nothing."""
    done: dict[tuple[str, str], None] = {}
    outcomes: dict[tuple[str, str], str] = {}
    for step in seen:
        if step.what not in MUTATING:
            continue
        about = step.what, step.whom
        if step.what == "ExecSync":
            command, _, outcome = step.detail.rpartition(" -> ")
            if outcomes.get((step.whom, command)) == outcome:
                continue
            outcomes[step.whom, command] = outcome
        elif step.what in _IDEMPOTENT and "->" not in step.detail:
            if about in done:
                continue
            done[about] = None
        yield step
