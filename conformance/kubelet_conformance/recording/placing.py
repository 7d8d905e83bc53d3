"""Where the changes of wanted pods belong among the calls that were heard between two looks.

Pods are read from time to time, so a change is found after what the kubelet did about it. A kubelet runs no
pod that it has not been told of, and stops none for what it does not know yet: what is found out is put
before the first call that it explains, and else at the time of the look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubelet_conformance.recording.owners import Work
from kubelet_conformance.recording.wanted import Change

_STOPS = frozenset({"StopContainer", "StopPodSandbox"})
_BRINGS_UP = frozenset({"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer"})


def place_of(change: Change, works: Sequence[tuple[int, Work]]) -> int | None:
    """Before which of these calls the change is told; None for the time of the look.

    `works` are the calls since the look before, in order, each with its place.
    """
    about = [(place, work) for place, work in works if change.key.fits(*work.owner)]
    match change.what:
        case "new":
            return about[0][0] if about else None
        case "changed":
            return _first(about, lambda work: work.rpc in _STOPS or _is_new(work, change.known))
        case "going":
            return _stop(about)
        case _:
            return None


def _is_new(work: Work, known: frozenset[str]) -> bool:
    return work.rpc == "CreateContainer" and work.container not in known


def _first(works: Sequence[tuple[int, Work]], fits: Callable[[Work], bool]) -> int | None:
    return next((place for place, work in works if fits(work)), None)


def _stop(works: Sequence[tuple[int, Work]]) -> int | None:
    """The first stop, or the hook that goes before it: an exec after which nothing is brought up any more."""
    hook: int | None = None
    for place, work in works:
        if work.rpc in _STOPS:
            return place if hook is None else hook
        if work.rpc in _BRINGS_UP:
            hook = None
        elif work.hook and hook is None:
            hook = place
    return hook
