"""How long a pod may take to stop: the grace period that its worker hands down."""

from __future__ import annotations

from collections.abc import Iterator

from lightkube.models.core_v1 import Pod

from kubelet_reference import pods
from kubelet_reference.versions import Behaviour

MINIMUM_SECONDS = 1
"""A worker never asks for less (constants of the catalogue)."""


def effective_grace(previous: int, pod: Pod, override: int | None, behaviour: Behaviour) -> int:
    """The grace period after one more request to end the pod, in seconds, at least 1 (WORK-07).

    `previous` is the one so far, 0 if there was no request yet; `override` is what another part of the
    kubelet asked for. What is asked for can only shorten it; the spec counts where nobody asked. A 0 asked
    for explicitly counts as 1; up to 1.26 it was taken for "not asked" (WORK-08).
    """
    grace = previous
    was_asked = False
    for seconds in _requests(pod, override):
        if grace == 0 or seconds < grace:
            grace = seconds
            was_asked = seconds > 0 or behaviour.explicit_zero_grace_counts
    if grace == 0 and not was_asked:
        grace = pods.grace_seconds(pod)
    return max(grace, MINIMUM_SECONDS)


def is_shorter(previous: int, new: int) -> bool:
    """Whether an earlier request gave more time than there is now."""
    return previous != 0 and new < previous


def _requests(pod: Pod, override: int | None) -> Iterator[int]:
    asked = pods.deletion_grace_seconds(pod)
    if asked is not None:
        yield asked
    if override is not None:
        yield override
