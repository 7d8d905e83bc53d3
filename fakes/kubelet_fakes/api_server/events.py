"""Events in the form of events.k8s.io: the same objects as those of the core group, by other names."""

from typing import Any

from kubelet_fakes.api.objects import FrozenDict, frozen

_NAMES = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""A field of events.k8s.io, and its name in the core group."""
_NAMES_BACK = {old: new for new, old in _NAMES.items()}


def to_events_v1(stored: FrozenDict) -> FrozenDict:
    """A stored event as events.k8s.io shows it."""
    shown: FrozenDict = frozen({_NAMES_BACK.get(key, key): value for key, value in stored.items()})
    return FrozenDict({**shown, "apiVersion": "events.k8s.io/v1"})


def from_events_v1(body: dict[str, Any]) -> dict[str, Any]:
    """An event of events.k8s.io, or a patch of one, as the core group has it."""
    return {_NAMES.get(key, key): value for key, value in body.items() if key != "apiVersion"}
