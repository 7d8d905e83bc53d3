"""Compare what two kubelets did to their runtimes, leaving out what a kubelet is free to do either way.

Free are: the order of stops that run in parallel, and of removals; stopping a sandbox again that is stopped,
and removing again what is gone; how often a probe runs as long as its outcome stays the same; reads.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from kubelet_conformance.reports.steps import MUTATING, steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kubelet_conformance.reports.steps import Step

__all__ = ("deeds_of_kubelet", "differences")

_UNORDERED = frozenset({"RemoveContainer", "RemovePodSandbox", "StopContainer"})
_IDEMPOTENT = frozenset({"RemoveContainer", "RemovePodSandbox", "StopPodSandbox"})


def differences(one: str, other: str) -> tuple[str, ...]:
    """What the kubelet of one trace alone did (`- `) and that of the other alone (`+ `), in order."""
    before, after = (list(deeds_of_kubelet(steps(path))) for path in (one, other))
    return tuple(line for line in difflib.ndiff(before, after) if line.startswith(("- ", "+ ")))


def deeds_of_kubelet(seen: Iterable[Step]) -> Iterator[str]:
    """Its calls that change something, a line each, in an order and number that say something."""
    parallel: list[str] = []
    kind = ""
    for step in _telling(seen):
        if parallel and step.what != kind:
            yield from sorted(parallel)
            parallel = []
        if step.what in _UNORDERED:
            kind = step.what
            parallel.append(step.line)
        else:
            yield step.line
    yield from sorted(parallel)


def _telling(seen: Iterable[Step]) -> Iterator[Step]:
    """Calls without those that say nothing new."""
    done: set[tuple[str, str]] = set()
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
            done.add(about)
        yield step
