"""The comparison forgives what a kubelet is free to do, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubelet_conformance.reenact.comparing import sequence
from kubelet_conformance.reports.steps import Step

FREE: dict[str, tuple[Sequence[Step], Sequence[Step]]] = {
    "parallel stops": (
        [
            Step(1, "StopContainer", "web/c1#0", "timeout 30"),
            Step(1, "StopContainer", "web/c2#0", "timeout 30"),
        ],
        [
            Step(1, "StopContainer", "web/c2#0", "timeout 30"),
            Step(1.05, "StopContainer", "web/c1#0", "timeout 30"),
        ],
    ),
    "a hook beside another stop": (
        [Step(1, "ExecSync", "web/c1#0", "`x` -> 0"), Step(1, "StopContainer", "web/c2#0")],
        [Step(1, "StopContainer", "web/c2#0"), Step(1, "ExecSync", "web/c1#0", "`x` -> 0")],
    ),
    "removals": (
        [Step(1, "RemoveContainer", "web/c1#0"), Step(9, "RemoveContainer", "web/i1#0")],
        [Step(1, "RemoveContainer", "web/i1#0"), Step(9, "RemoveContainer", "web/c1#0")],
    ),
    "another stop of a stopped sandbox": (
        [Step(1, "StopPodSandbox", "web#0")],
        [Step(1, "StopPodSandbox", "web#0"), Step(2, "StopPodSandbox", "web#0")],
    ),
    "how often a probe runs": (
        [Step(1, "ExecSync", "web/c1#0", "`x` -> 0")],
        [Step(1, "ExecSync", "web/c1#0", "`x` -> 0"), Step(2, "ExecSync", "web/c1#0", "`x` -> 0")],
    ),
    "what is no call": (
        [Step(1, "status", "web", "Running | ")],
        [Step(1, "event", "web/c1", "Started"), Step(1, "pod", "web")],
    ),
}
NOT_FREE: dict[str, tuple[Sequence[Step], Sequence[Step]]] = {
    "stops one after another": (
        [Step(1, "StopContainer", "web/c1#0"), Step(3, "StopContainer", "web/c2#0")],
        [Step(1, "StopContainer", "web/c2#0"), Step(3, "StopContainer", "web/c1#0")],
    ),
    "a hook and the stop it belongs to": (
        [Step(1, "ExecSync", "web/c1#0", "`x` -> 0"), Step(1, "StopContainer", "web/c1#0")],
        [Step(1, "StopContainer", "web/c1#0"), Step(1, "ExecSync", "web/c1#0", "`x` -> 0")],
    ),
    "the grace": (
        [Step(1, "StopContainer", "web/c1#0", "timeout 30")],
        [Step(1, "StopContainer", "web/c1#0", "timeout 2")],
    ),
    "the outcome of a probe": (
        [Step(1, "ExecSync", "web/c1#0", "`x` -> 0")],
        [Step(1, "ExecSync", "web/c1#0", "`x` -> 1")],
    ),
    "a stop that failed": (
        [Step(1, "StopPodSandbox", "web#0", "-> UNKNOWN"), Step(9, "StopPodSandbox", "web#0")],
        [Step(1, "StopPodSandbox", "web#0")],
    ),
    "the order of starts": (
        [Step(1, "CreateContainer", "web/c1#0"), Step(1, "CreateContainer", "web/c2#0")],
        [Step(1, "CreateContainer", "web/c2#0"), Step(1, "CreateContainer", "web/c1#0")],
    ),
}


def lines(seen: Sequence[Step]) -> list[str]:
    """What the comparison sees."""
    return [each.line for each in sequence(seen)]


@pytest.mark.parametrize("case", FREE)
def test_what_is_free_is_no_difference(case: str) -> None:
    """Both are one and the same."""
    one, other = FREE[case]

    assert lines(one) == lines(other)


@pytest.mark.parametrize("case", NOT_FREE)
def test_what_is_not_free_is_a_difference(case: str) -> None:
    """Each of them shows."""
    one, other = NOT_FREE[case]

    assert lines(one) != lines(other)
