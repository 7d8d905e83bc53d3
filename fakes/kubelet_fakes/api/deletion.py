"""What a DELETE does to an object.

Source: BeforeDelete of the generic registry, and the pod strategy's CheckGracefulDelete.
"""

from dataclasses import dataclass

from kubelet_fakes.api.objects import FrozenDict, at, parse_time, replaced, rfc3339

_SECOND = 1_000_000_000
_TERMINAL = ("Failed", "Succeeded")


@dataclass(frozen=True, slots=True)
class Deletion:
    """What becomes of the object: changed or not (the same object), and whether it goes now."""

    object: FrozenDict
    removed: bool


def delete_gracefully(pod: FrozenDict, grace_seconds: int | None, now_ns: int) -> Deletion:
    """Delete a pod: the first time it is marked, after that its grace can only shrink, and at 0 it goes.

    A pod that no node has, or whose phase is terminal, has no grace. A finalizer keeps any pod.

    Args:
        pod: As stored.
        grace_seconds: As asked for; None is the pod's own. A negative one counts as 1.
        now_ns: Nanoseconds since the epoch.
    """
    if grace_seconds is not None and grace_seconds < 0:
        grace_seconds = 1
    pending = at(pod, "metadata", "deletionGracePeriodSeconds")
    if at(pod, "metadata", "deletionTimestamp") is None:
        grace = _first_grace(pod, grace_seconds)
        marked = _marked(pod, grace, now_ns + grace * _SECOND)
        if marked["metadata"].get("generation"):
            marked = replaced(marked, ("metadata", "generation"), marked["metadata"]["generation"] + 1)
    elif grace_seconds is not None and grace_seconds < pending:
        grace = grace_seconds
        asked_ns = parse_time(pod["metadata"]["deletionTimestamp"]) - pending * _SECOND
        marked = _marked(pod, grace, asked_ns + grace * _SECOND)
    else:
        return Deletion(pod, removed=False)
    return Deletion(marked, removed=finished(marked))


def delete_at_once(thing: FrozenDict, now_ns: int) -> Deletion:
    """Delete an object that knows no grace: only a finalizer can keep it."""
    if not at(thing, "metadata", "finalizers"):
        return Deletion(thing, removed=True)
    if at(thing, "metadata", "deletionTimestamp") is not None:
        return Deletion(thing, removed=False)
    return Deletion(_marked(thing, 0, now_ns), removed=False)


def finished(thing: FrozenDict) -> bool:
    """Whether a deletion was asked for and nothing keeps the object any more."""
    grace = at(thing, "metadata", "deletionGracePeriodSeconds")
    return grace == 0 and not at(thing, "metadata", "finalizers")


def _first_grace(pod: FrozenDict, asked: int | None) -> int:
    if not at(pod, "spec", "nodeName") or at(pod, "status", "phase") in _TERMINAL:
        return 0
    grace: int = (at(pod, "spec", "terminationGracePeriodSeconds") or 0) if asked is None else asked
    return 1 if grace < 0 else grace


def _marked(thing: FrozenDict, grace: int, deadline_ns: int) -> FrozenDict:
    thing = replaced(thing, ("metadata", "deletionTimestamp"), rfc3339(deadline_ns))
    return replaced(thing, ("metadata", "deletionGracePeriodSeconds"), grace)
