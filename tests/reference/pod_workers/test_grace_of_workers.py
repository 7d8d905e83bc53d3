"""The grace period that a worker hands down."""

import pytest
from lightkube.models.core_v1 import Pod, PodSpec
from lightkube.models.meta_v1 import ObjectMeta

from kubelet_reference.pod_workers.worker_rules import effective_grace
from kubelet_reference.util.versions import Behaviour

NOW = Behaviour.of()
OLD = Behaviour.of("1.26")


def pod(spec: int | None = 30, deletion: int | None = None) -> Pod:
    """A pod with a grace period in its spec and one that its deletion asks for."""
    return Pod(
        metadata=ObjectMeta(deletionGracePeriodSeconds=deletion),
        spec=PodSpec(containers=[], terminationGracePeriodSeconds=spec),
    )


@pytest.mark.parametrize(
    ("previous", "deletion", "override", "expected"),
    [
        (0, None, None, 30),
        (0, 60, None, 60),
        (0, None, 5, 5),
        (0, 60, 5, 5),
        (0, 5, 60, 5),
        (60, 5, None, 5),
        (5, 30, None, 5),
        (5, None, None, 5),
        (0, 0, None, 1),
        (10, 0, None, 1),
    ],
)
def test_grace_only_shrinks(previous: int, deletion: int | None, override: int | None, expected: int) -> None:
    """The least that was asked for counts, the spec if nobody asked, never less than 1 s (WORK-07)."""
    assert effective_grace(previous, pod(deletion=deletion), override, NOW) == expected


def test_explicit_zero() -> None:
    """Grace 0 asked for is 1 s; 1.26 took it for no wish at all (WORK-08)."""
    forced = pod(deletion=0)

    assert effective_grace(0, forced, None, NOW) == 1
    assert effective_grace(0, forced, None, OLD) == 30
    assert effective_grace(0, pod(), 0, OLD) == 30


def test_spec_without_grace() -> None:
    """A pod whose spec has no grace period gets 2 s."""
    assert effective_grace(0, pod(spec=None), None, NOW) == 2
