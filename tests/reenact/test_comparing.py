"""The comparison forgives what a kubelet is free to do, and nothing else."""

import pytest
from reenact.comparing import sequence

from kubelet_conformance.reports.trace_text.steps import Step

#: Each step as TIME WHAT WHOM DETAIL.
FREE: dict[str, tuple[str, str]] = {
    "parallel stops": (
        "1 StopContainer web/c1#0 timeout 30; 1 StopContainer web/c2#0 timeout 30",
        "1 StopContainer web/c2#0 timeout 30; 1.05 StopContainer web/c1#0 timeout 30",
    ),
    "a hook beside another stop": (
        "1 ExecSync web/c1#0 `x` -> 0; 1 StopContainer web/c2#0",
        "1 StopContainer web/c2#0; 1 ExecSync web/c1#0 `x` -> 0",
    ),
    "removals": (
        "1 RemoveContainer web/c1#0; 9 RemoveContainer web/i1#0",
        "1 RemoveContainer web/i1#0; 9 RemoveContainer web/c1#0",
    ),
    "another stop of a stopped sandbox": (
        "1 StopPodSandbox web#0",
        "1 StopPodSandbox web#0; 2 StopPodSandbox web#0",
    ),
    "how often a probe runs": (
        "1 ExecSync web/c1#0 `x` -> 0",
        "1 ExecSync web/c1#0 `x` -> 0; 2 ExecSync web/c1#0 `x` -> 0",
    ),
    "what is no call": ("1 status web Running | ", "1 event web/c1 Started; 1 pod web"),
}
NOT_FREE: dict[str, tuple[str, str]] = {
    "stops one after another": (
        "1 StopContainer web/c1#0; 3 StopContainer web/c2#0",
        "1 StopContainer web/c2#0; 3 StopContainer web/c1#0",
    ),
    "a hook and the stop it belongs to": (
        "1 ExecSync web/c1#0 `x` -> 0; 1 StopContainer web/c1#0",
        "1 StopContainer web/c1#0; 1 ExecSync web/c1#0 `x` -> 0",
    ),
    "the grace": ("1 StopContainer web/c1#0 timeout 30", "1 StopContainer web/c1#0 timeout 2"),
    "the outcome of a probe": ("1 ExecSync web/c1#0 `x` -> 0", "1 ExecSync web/c1#0 `x` -> 1"),
    "a stop that failed": (
        "1 StopPodSandbox web#0 -> UNKNOWN; 9 StopPodSandbox web#0",
        "1 StopPodSandbox web#0",
    ),
    "the order of starts": (
        "1 CreateContainer web/c1#0; 1 CreateContainer web/c2#0",
        "1 CreateContainer web/c2#0; 1 CreateContainer web/c1#0",
    ),
}


def lines(seen: str) -> list[str]:
    """What the comparison sees."""
    steps = (each.split(maxsplit=3) for each in seen.split("; "))
    return [each.line for each in sequence(Step(float(t), *what) for t, *what in steps)]


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
