"""The comparison accepts what two kubelets may do differently, and nothing else."""

from dataclasses import replace

import pytest

from kubelet_conformance.campaigns.comparison.lives import Life
from kubelet_conformance.campaigns.comparison.parting import first_parting
from kubelet_conformance.reports.trace_text.steps import Step

BOTH = "1 CreateContainer web/c1#0; 1 CreateContainer web/c2#0"
#: Each step as TIME WHAT WHOM DETAIL; the first creates the pod.
EQUAL: dict[str, tuple[str, str]] = {
    "another pace": (
        "0 RunPodSandbox web#0; 1 CreateContainer web/c1#0",
        "5 RunPodSandbox web#0; 9 CreateContainer web/c1#0",
    ),
    "the order of two containers' restarts": (
        f"{BOTH}; 3 CreateContainer web/c1#1; 4 CreateContainer web/c2#1",
        f"{BOTH}; 3 CreateContainer web/c2#1; 4 CreateContainer web/c1#1",
    ),
    "how often a probe runs": (
        "1 ExecSync web/c1#0 `x` -> 0; 9 ExecSync web/c1#0 `x` -> 1",
        "1 ExecSync web/c1#0 `x` -> 0; 2 ExecSync web/c1#0 `x` -> 0; 9 ExecSync web/c1#0 `x` -> 1",
    ),
    "another stop of a stopped sandbox": (
        "1 StopPodSandbox web#0",
        "1 StopPodSandbox web#0; 2 StopPodSandbox web#0",
    ),
    "what is left of the grace": (
        "1 StopContainer web/c1#0 timeout 30",
        "3 StopContainer web/c1#0 timeout 28",
    ),
    "what came too late for the other": ("59 CreateContainer web/c1#0", ""),
    "a status that was passed through": (
        "1 status web Pending | A=True; 9 status web Running | A=True",
        "9 status web Running | A=True",
    ),
    "events": ("1 event web/c1 Started", ""),
}
PARTED: dict[str, tuple[str, str]] = {
    "the order of starts": (
        "1 CreateContainer web/c1#0; 2 CreateContainer web/c2#0",
        "1 CreateContainer web/c2#0; 2 CreateContainer web/c1#0",
    ),
    "what the other had the time for": (
        "1 CreateContainer web/c1#0; 2 StartContainer web/c1#0",
        "1 CreateContainer web/c1#0",
    ),
    "a failure": ("1 StartContainer web/c1#0 -> UNKNOWN", "1 StartContainer web/c1#0"),
    "the outcome of a probe": ("1 ExecSync web/c1#0 `x` -> 0", "1 ExecSync web/c1#0 `x` -> 1"),
    "the grace": ("1 StopContainer web/c1#0 timeout 30", "1 StopContainer web/c1#0 timeout 2"),
    "an attempt": ("1 CreateContainer web/c1#0", "1 CreateContainer web/c1#1"),
    "the status in the end": ("9 status web Running | A=True", "9 status web Pending | A=True"),
    "a container": ("1 RemoveContainer web/c1#0; 80 end", "80 end"),
}


def life(seen: str, ends: float = 90.0) -> Life:
    """A life of one pod, on wall time."""
    steps = [Step(0.0, "pod", "web", "wanted from api: c1", "default")]
    for each in filter(None, seen.split("; ")):
        t, what, whom, detail = (*each.strip().split(maxsplit=3), "", "")[:4]
        steps.append(Step(float(t), what, whom, detail, "default", "app" if "/" in each else ""))
    return Life(
        "start.one",
        "kubelet",
        "1.36",
        is_virtual=False,
        is_shared=False,
        is_served=False,
        steps=tuple(steps),
        ends=ends,
    )


@pytest.mark.parametrize("case", EQUAL)
def test_what_may_differ_is_no_parting(case: str) -> None:
    """In neither direction."""
    ends = 60.0 if "late" in case else 90.0
    one, other = (life(each, ends) for each in EQUAL[case])

    assert first_parting(one, other) is None
    assert first_parting(other, one) is None


def test_a_kubelet_may_show_an_end_before_it_writes_it() -> None:
    """Where one side is what the kubelet serves, a terminal phase that the other holds back is no parting."""
    one, other = (life(f"9 status web {phase} | A=True") for phase in ("Failed", "Running"))

    assert first_parting(replace(one, is_served=True), other) is None
    assert first_parting(one, other) is not None


@pytest.mark.parametrize("case", PARTED)
def test_what_may_not_differ_is_a_parting(case: str) -> None:
    """In both directions."""
    one, other = map(life, PARTED[case])

    assert first_parting(one, other) is not None
    assert first_parting(other, one) is not None
